"""The methods of a family as a table: what each is and takes, asked of the classes themselves."""

import inspect

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from abilities import ABILITIES
from transferable import FAMILIES, all_estimators

COLUMNS = ("method", "what it is", "gives", *ABILITIES)


def _row(name, estimator):
    gives, home = ("labels", "classifiers")
    if not hasattr(estimator, "predict"):
        gives, home = ("features", "transformers")
    first = inspect.getdoc(estimator).split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    first = first.split(": ", 1)[-1]  # what stands before is the name again
    link = f"{{class}}`~transferable.{home}.{name}`"
    model = estimator()
    takes = ("yes" if has(model) else "" for has in ABILITIES.values())
    return [link, first.rstrip("."), gives, *takes]


class MethodsTable(SphinxDirective):
    """Rows for the methods of one family, on a Markdown page."""

    required_arguments = 1

    def run(self):
        """The table as nodes."""
        classes = dict(all_estimators())
        names = FAMILIES[self.arguments[0]]
        rows = [COLUMNS, ["---"] * len(COLUMNS), *(_row(name, classes[name]) for name in names)]
        lines = StringList([f"| {' | '.join(row)} |" for row in rows], source="methods-table")
        holder = nodes.container(classes=["methods"])
        self.state.nested_parse(lines, self.content_offset, holder)
        return [holder]


def setup(app):
    """Offer the directive."""
    app.add_directive("methods-table", MethodsTable)
    return {"parallel_read_safe": True}
