"""Directives of the family pages: the figure of a family, and a table of its methods."""

import inspect
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from _site import toy
from abilities import ABILITIES
from transferable import all_estimators

COLUMNS = ("method", "what it is", "gives", "also takes")
FIGURES = "families/figures"  # in the folder of the pages; not kept in the repository


def _row(name, estimator):
    gives, home = ("labels", "classifiers")
    if not hasattr(estimator, "predict"):
        gives, home = ("features", "transformers")
    first = inspect.getdoc(estimator).split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    first = first.split(": ", 1)[-1]  # what stands before is the name again
    link = f"{{class}}`~transferable.{home}.{name}`"
    model = estimator()
    takes = [ability for ability, has in ABILITIES.items() if has(model) and ability != "new rows"]
    return [link, first[:1].upper() + first[1:].rstrip("."), gives, ", ".join(takes)]


class MethodsTable(SphinxDirective):
    """Rows for the methods of one family, on a Markdown page."""

    required_arguments = 1

    def run(self):
        """Return the table as nodes."""
        classes = {n: cls for n, cls in all_estimators() if cls.family == self.arguments[0]}
        rows = [COLUMNS, ["---"] * len(COLUMNS), *(_row(*item) for item in classes.items())]
        lines = StringList([f"| {' | '.join(row)} |" for row in rows], source="methods-table")
        holder = nodes.container(classes=["methods"])
        self.state.nested_parse(lines, self.content_offset, holder)
        return [holder]


class FamilyFigure(SphinxDirective):
    """The toy before a family adapts to it, and after; the content is the caption."""

    required_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged_required}  # noqa: RUF012 (docutils reads it)

    def run(self):
        """Return the figure as nodes."""
        path = Path(self.env.srcdir, FIGURES, f"{self.arguments[0]}.png")
        if not path.exists() or path.stat().st_mtime < Path(toy.__file__).stat().st_mtime:
            path.parent.mkdir(exist_ok=True)
            toy.draw(self.arguments[0], path)
        figure = nodes.figure("", nodes.image(uri=f"/{FIGURES}/{path.name}", **self.options))
        caption = nodes.caption()
        caption += self.parse_inline(" ".join(self.content))[0]
        figure += caption
        return [figure]


def setup(app):
    """Offer the directives."""
    app.add_directive("methods-table", MethodsTable)
    app.add_directive("family-figure", FamilyFigure)
    return {"parallel_read_safe": True}
