"""Tables of benchmarks/records: benchmarks write them, pages quote them.

A quotation names a file, the first cells of one row, and a column, with semicolons between them:
``field/surf.csv; TFDF; mean``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records"


def tabulate(name: str, rows: Sequence[dict[str, Any]], *, keep: bool = True) -> None:
    """Print a table and write it to ``records/NAME.csv``; a partial one (`keep` False) is printed.

    Floats get one digit, NaN and None are empty, and the columns are those of any row. Without rows
    there is no table.
    """
    if not rows:
        return
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = [columns, *([_shown(row.get(column)) for column in columns] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    print(f"\n{name}")
    for row in table:
        print("  ".join(map(str.ljust, row, widths)).rstrip())
    if keep:
        path = RECORDS / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table)


def _shown(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def read(file: str) -> list[dict[str, str]]:
    """The rows of a table; `file` is a path inside the folder."""
    with (RECORDS / file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def quote(text: str) -> str:
    """The cell that a quotation names; a ValueError if there is none, or more than one."""
    file, *start, column = (part.strip() for part in text.split(";"))
    rows = read(file)
    if column not in rows[0]:
        raise ValueError(f"{file} has no column {column!r}, but {', '.join(rows[0])}.")
    found = [row for row in rows if list(row.values())[: len(start)] == start]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows of {file} begin with {'; '.join(start)}, not one.")
    if not found[0][column]:
        raise ValueError(f"{text}: that cell is empty.")
    return found[0][column]
