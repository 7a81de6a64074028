"""Table of published values beside ours, and its forms: terminal, Markdown, HTML, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

Values = dict[tuple[str, str], float]

_BEATS = "▲"
_UNBOUNDED = 1000
_KINDS = ("published", "ours", "difference")

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 75em; margin: 2em auto;
  padding: 0 1em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .5em; }
th, td { padding: .15em .6em; text-align: right; white-space: nowrap; }
th[scope=row], td.kind { text-align: left; }
thead th { border-bottom: 2px solid #444; }
tbody { border-bottom: 1px solid #ddd; }
tr.published td, tr.difference td { color: #6b6b6b; }
ul { color: #444; padding-left: 1.2em; }
"""


@dataclass(frozen=True)
class Comparison:
    """One table.

    Attributes
    ----------
    name, title : str
        For files and for readers.
    rows, columns : tuple of str
        Methods and tasks, or datasets.
    published, ours : dict
        Values by (row, column), where there are any.
    notes : tuple of str
        Explanations of the table.
    digits : int
        Digits after the point.
    lower_is_better : bool
        For times.
    ranked : bool
        Whether rows compete with each other, so that a column has a winner.
    """

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    published: Values
    ours: Values
    notes: tuple[str, ...] = ()
    digits: int = 1
    lower_is_better: bool = False
    ranked: bool = True

    def difference(self, row: str, column: str) -> float | None:
        """Return ours minus published, None where one is missing."""
        ours, printed = self.ours.get((row, column)), self.published.get((row, column))
        return None if ours is None or printed is None else ours - printed

    def beats(self, row: str, column: str) -> bool:
        """Return whether ours is better than the published value, judged by the digits shown."""
        difference = self.difference(row, column)
        if difference is None:
            return False
        gain = -difference if self.lower_is_better else difference
        return gain >= 0.5 * 10.0**-self.digits

    def winners(self, values: Values, column: str) -> set[str]:
        """Return the rows whose value, as shown, is the best of a column."""
        if not self.ranked:
            return set()
        shown = {
            r: round(values[r, column], self.digits) for r in self.rows if (r, column) in values
        }
        best = (min if self.lower_is_better else max)(shown.values(), default=None)
        return {row for row, value in shown.items() if value == best}


def _shown(table: Comparison, kind: str, row: str, column: str) -> str:
    """Return a value as all forms of the table write it; a dash where there is none."""
    if kind == "difference":
        difference = table.difference(row, column)
        # Adding zero turns a rounded -0.0 into 0.0.
        return (
            "-"
            if difference is None
            else f"{round(difference, table.digits) + 0:+.{table.digits}f}"
        )
    value = (table.published if kind == "published" else table.ours).get((row, column))
    return "-" if value is None else f"{value:.{table.digits}f}"


def _wins(table: Comparison, kind: str, row: str, column: str) -> bool:
    values = {"published": table.published, "ours": table.ours}.get(kind)
    return values is not None and row in table.winners(values, column)


def _decorated(
    table: Comparison, kind: str, row: str, column: str, bold: Callable[[str], str]
) -> str:
    text = _shown(table, kind, row, column)
    if _wins(table, kind, row, column):
        text = bold(text)
    return f"{text} {_BEATS}" if kind == "ours" and table.beats(row, column) else text


def _has_published(table: Comparison) -> bool:
    return any((row, column) in table.published for row in table.rows for column in table.columns)


def _legend(table: Comparison) -> list[str]:
    marks = [f"{_BEATS}: better than published"] if _has_published(table) else []
    bold = ["bold: best of a column"] if table.ranked else []
    return ["; ".join(marks + bold) + "."] if marks or bold else []


def _kinds(table: Comparison) -> tuple[str, ...]:
    return _KINDS if _has_published(table) else ("ours",)


def to_terminal(table: Comparison, console: Console) -> Group:
    """Return what fits: all; else ours, and all of the last column (the average); else that."""
    kinds = _kinds(table)
    whole = [(column, kind) for column in table.columns for kind in kinds]
    final = [pair for pair in whole if pair[0] == table.columns[-1]]
    ours = [pair for pair in whole if pair not in final and pair[1] == "ours"]
    grids = (_grid(table, shown) for shown in (whole, ours + final, final))
    unbounded = console.options.update(width=_UNBOUNDED)
    widths = ((console.measure(grid, options=unbounded).maximum, grid) for grid in grids)
    fitting = (grid for width, grid in widths if width <= console.width)
    grid = next(fitting, None) or _grid(table, final)
    notes = [Text(note, style="dim") for note in (*_legend(table), *table.notes)]
    return Group(Text(table.title, style="bold"), grid, *notes)


def _grid(table: Comparison, shown: list[tuple[str, str]]) -> Table:
    """Return the values of some (column, kind), all of them from left to right."""
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    grid.add_column("", no_wrap=True)
    for column, kind in shown:
        alone = (column, "published") not in shown
        head = column if alone else f"{column}\n{kind}" if kind == "published" else f"\n{kind}"
        grid.add_column(head.replace("->", "→"), justify="right", no_wrap=True)
    for row in table.rows:
        grid.add_row(row, *(_text(table, kind, row, column) for column, kind in shown))
    return grid


def _text(table: Comparison, kind: str, row: str, column: str) -> Text:
    text = Text(_decorated(table, kind, row, column, bold=str))
    if kind == "ours" and _wins(table, kind, row, column):
        text.stylize("bold green")
    elif kind != "ours":
        text.stylize("dim")
    return text


def to_markdown(table: Comparison) -> str:
    """Return three lines for each row: published, ours and their difference."""
    kinds = _kinds(table)
    head = ["", "", *(column.replace("->", "→") for column in table.columns)]
    lines = [f"### {table.title}", "", markdown_row(head)]
    lines.append(markdown_row(["---", "---", *["--:"] * len(table.columns)]))
    for row in table.rows:
        for kind in kinds:
            values = [_decorated(table, kind, row, c, "**{}**".format) for c in table.columns]
            lines.append(markdown_row([row if kind == kinds[0] else "", kind, *values]))
    lines += ["", *(f"- {note}" for note in (*_legend(table), *table.notes)), ""]
    return "\n".join(lines)


def markdown_row(values: list[str]) -> str:
    """Return one line of a table."""
    return "| " + " | ".join(values) + " |"


def to_html(table: Comparison) -> str:
    """Return a page of its own with the table and its notes."""
    kinds = _kinds(table)
    head = "".join(f'<th scope="col">{escape(c.replace("->", "→"))}</th>' for c in table.columns)
    bodies = []
    for row in table.rows:
        lines = []
        for kind in kinds:
            first = f'<th scope="row" rowspan="{len(kinds)}">{escape(row)}</th>'
            values = "".join(
                f"<td>{_decorated(table, kind, row, column, '<strong>{}</strong>'.format)}</td>"
                for column in table.columns
            )
            label = first if kind == kinds[0] else ""
            lines.append(f'<tr class="{kind}">{label}<td class="kind">{kind}</td>{values}</tr>')
        bodies.append("<tbody>\n" + "\n".join(lines) + "\n</tbody>")
    notes = "\n".join(f"<li>{escape(note)}</li>" for note in (*_legend(table), *table.notes))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(table.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<table>\n<caption>{escape(table.title)}</caption>\n"
        f"<thead><tr><th></th><th></th>{head}</tr></thead>\n" + "\n".join(bodies) + "\n</table>\n"
        f"<ul>\n{notes}\n</ul>\n</body>\n</html>\n"
    )


def to_csv(table: Comparison) -> str:
    """Return one line for each value, with the digits of the table; empty where there is none."""
    rows = [["row", "column", *_KINDS]]
    for row in table.rows:
        for column in table.columns:
            values = (_shown(table, kind, row, column) for kind in _KINDS)
            rows.append([row, column, *("" if value == "-" else value for value in values)])
    return lines_of(rows)


def lines_of(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as comma-separated values."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
