"""Numbers and tables of benchmarks/records on pages, so that none is copied by hand.

``{record}`field/surf.csv; TFDF; mean` `` is one cell: a file, the first cells of a row, a column.
The directive `records` is a table of some columns and rows, or of all::

    ```{records} field/surf.csv
    :columns: method; mean = accuracy; seconds
    :rows: AutoAdapter; TFDF
    ```

"mean = accuracy" shows the column under another heading. Rows are named by their first cell;
``:where: target = mean; method = TFDF`` keeps those with such cells.
"""

import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from recording import RECORDS, quote, read

_CALL = re.compile(r"\w+\(.*\)")
_NUMBER = re.compile(r"[+-]?[\d.,]*")
_WRONG = (OSError, ValueError)
_logger = logging.getLogger(__name__)


def _parts(text):
    return [part.strip() for part in text.split(";")]


def _pairs(text):
    """Names and what stands behind the sign of equality, or the names again."""
    split = (part.split(" = ") for part in _parts(text))
    return {name.strip(): (other or [name])[0].strip() for name, *other in split}


def _shown(cell):
    return f"`{cell}`" if _CALL.fullmatch(cell) else cell.replace("|", "\\|").replace("*", "\\*")


def table(file, columns=None, rows=None, where=None):
    """The lines of a Markdown table; a ValueError if a name is not there."""
    found = read(file)
    columns = columns or dict.fromkeys(found[0])
    if unknown := sorted({*columns, *(where or {})} - {*found[0]}):
        raise ValueError(f"{file} has no column {', '.join(unknown)}, but {', '.join(found[0])}.")
    found = [row for row in found if all(row[name] == cell for name, cell in (where or {}).items())]
    by_name = {}
    for row in found:
        by_name.setdefault(next(iter(row.values())), []).append(row)
    if missing := [name for name in rows or () if name not in by_name]:
        raise ValueError(f"{file} has no row {'; '.join(missing)}.")
    kept = [row for name in rows or by_name for row in by_name[name]]
    if not kept:
        raise ValueError(f"No row of {file} is left.")
    aligned = [
        "---:" if all(_NUMBER.fullmatch(row[name]) for row in kept) else "---" for name in columns
    ]
    heads = [_shown(name) if other in (None, name) else other for name, other in columns.items()]
    lines = [heads, aligned, *([_shown(row[name]) for name in columns] for row in kept)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


class Record(SphinxRole):
    """One cell."""

    def run(self):
        """The cell as text, or a warning."""
        self.env.note_dependency(str(RECORDS / _parts(self.text)[0]))
        try:
            return [nodes.Text(quote(self.text))], []
        except _WRONG as error:
            _logger.warning("%s", error, location=self.get_location(), type="records")
            return [nodes.problematic(self.rawtext, self.text)], []


class Records(SphinxDirective):
    """A table."""

    required_arguments = 1
    option_spec = {"columns": _pairs, "rows": _parts, "where": _pairs}  # noqa: RUF012

    def run(self):
        """The table as nodes, or a warning."""
        file = self.arguments[0]
        self.env.note_dependency(str(RECORDS / file))
        try:
            lines = table(file, **self.options)
        except _WRONG as error:
            _logger.warning("%s", error, location=self.get_location(), type="records")
            return []
        holder = nodes.container(classes=["records"])
        self.state.nested_parse(StringList(lines, source=file), self.content_offset, holder)
        return [holder]


def setup(app):
    """Offer both."""
    app.add_role("record", Record())
    app.add_directive("records", Records)
    return {"parallel_read_safe": True}
