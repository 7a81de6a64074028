"""The table of methods: what each is and takes, asked of the classes themselves."""

import inspect
from dataclasses import fields

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from transferable._discovery import FAMILIES, all_estimators
from transferable.takes import Takes

PARAMETERS = {"n_landmarks": "landmarks", "device": "GPU", "class_shares": "class shares"}
TAKES = {field.name: field.name.replace("_", " ") for field in fields(Takes)}
COLUMNS = ("method", "what it is", "gives", "sparse rows", *PARAMETERS.values(), *TAKES.values())


def _row(name, estimator):
    parameters = inspect.signature(estimator).parameters
    gives, home = ("labels", "classifiers")
    if not hasattr(estimator, "predict"):
        gives, home = ("features", "transformers")
    first = inspect.getdoc(estimator).split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    first = first.split(": ", 1)[-1]  # what stands before is the name again
    model = estimator()
    takes = (
        model.__sklearn_tags__().input_tags.sparse,
        *(parameter in parameters for parameter in PARAMETERS),
        *(getattr(model.takes, what) for what in TAKES),
    )
    link = f"{{class}}`~transferable.{home}.{name}`"
    return [link, first.rstrip("."), gives, *("yes" if has else "" for has in takes)]


class MethodsTable(SphinxDirective):
    """Rows for the methods of one family, or for all, on a Markdown page."""

    optional_arguments = 1

    def run(self):
        """The table as nodes."""
        classes = dict(all_estimators())
        names = [name for family in self.arguments or FAMILIES for name in FAMILIES[family]]
        rows = [COLUMNS, ["---"] * len(COLUMNS), *(_row(name, classes[name]) for name in names)]
        lines = StringList([f"| {' | '.join(row)} |" for row in rows], source="methods-table")
        holder = nodes.container(classes=["methods"])
        self.state.nested_parse(lines, self.content_offset, holder)
        return [holder]


def setup(app):
    """Offer the directive."""
    app.add_directive("methods-table", MethodsTable)
    return {"parallel_read_safe": True}
