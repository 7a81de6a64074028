"""Page on which a person labels rows: one HTML file, which works without a server or a network.

The page shows each row with all its columns, or its picture, and a button for every class. It gives
the labels back as the CSV file of the rows with their labels filled in.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment

from transferable._files import replacing, visible

__all__ = ["SIDE", "UNKNOWN_CLASS", "write_page"]

UNKNOWN_CLASS = "?"  # label of a row whose class is not among the known ones
SIDE = 640  # pixels of the longer side of a picture


def write_page(
    path: str | os.PathLike[str],
    rows: pd.DataFrame,
    classes: Sequence[Any],
    *,
    pictures: Sequence[bytes] | None = None,
    label: str = "label",
    sep: str = ",",
    decimal: str = ".",
) -> None:
    """Write a page on which a person labels rows, completely or not at all.

    Parameters
    ----------
    path : path
        The HTML file.
    rows : DataFrame
        The rows to label, with all that helps to decide. The first column has their numbers.
    classes : sequence
        The classes to choose from.
    pictures : sequence of bytes, default=None
        The PNG file of each row, if rows are pictures.
    label : str, default="label"
        Name of the column that the page fills in.
    sep, decimal : str
        Separator of cells and decimal mark of the CSV file that the page returns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from transferable.labelling import write_page
    >>> rows = pd.DataFrame({"row": [4, 9], "text": ["a good book", "never again"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(f"{folder}/label.html", rows, ["good", "bad"])
    ...     "never again" in pathlib.Path(folder, "label.html").read_text("utf-8")
    True
    """
    if UNKNOWN_CLASS in map(str, classes):
        raise ValueError(
            f"a class is called {UNKNOWN_CLASS!r}, which marks rows of no known class; rename it."
        )
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{path}: the page is an .html file; name one.")

    def lines(table: pd.DataFrame, **heading: Any) -> str:
        return table.to_csv(
            index=False, sep=sep, decimal=decimal, lineterminator="\n", **heading
        ).removesuffix("\n")

    filled_in = rows.assign(**{label: ""})
    at = range(len(rows))
    content = {
        "sep": sep,
        "head": lines(filled_in.iloc[:0]),
        "classes": [{"name": str(name), "shown": visible(name)} for name in classes],
        "columns": [visible(name) for name in rows.columns],
        # Lines of the file up to the label, which is empty and comes last.
        "lines": [lines(filled_in.iloc[[i]], header=False) for i in at],
        "cells": [["" if pd.isna(v) else visible(v) for v in row] for row in _values(rows)],
        "pictures": [base64.b64encode(png).decode() for png in pictures or ()],
        "unknown": UNKNOWN_CLASS,
        "file": f"{Path(path).stem}.csv",
    }
    content["key"] = hashlib.sha256(repr(content).encode()).hexdigest()
    page, script = (
        files("transferable.labelling").joinpath(name).read_text("utf-8")
        for name in ("page.html", "script.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = Environment(autoescape=True).from_string(page)
    with replacing(path) as file:
        file.write(text.render(content=content, script=script, digest=digest, n_rows=len(rows)))


def _values(rows: pd.DataFrame) -> list[list[Any]]:
    """Return the cells of each row; numbers keep their type."""
    return [list(row) for row in zip(*(rows[name].tolist() for name in rows), strict=True)]
