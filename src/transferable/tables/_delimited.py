"""Delimited text: how it may be written, and its rows piece by piece."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd
from pandas._libs.parsers import STR_NA_VALUES

from transferable.tables._errors import TableError, listed

__all__ = ["Dialect", "missing_texts", "text_pieces"]

_PIECE_BYTES = 4_000_000
_PIECE_ROWS = 20_000
# From pandas 3.1 on, numbers are read exactly without being asked for.
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _PANDAS < (3, 1) else {}
_WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Dialect:
    """How a file writes its cells: text files, but for the last two.

    Attributes
    ----------
    sep : str or None
        What separates cells; None is a comma, in .tsv files a tab.
    decimal : str
        What separates a number's decimals.
    encoding : str
        The encoding of the text.
    missing : tuple of str or None
        What stands in cells without a value, besides nothing at all; None takes the usual words
        (NA, NaN, null, None, n/a and so on) in columns of features, and none in columns of names.
        What is named here is missing in files of any format.
    sheet : str or None
        The sheet of an Excel file; None for the only one with cells in it.

    Examples
    --------
    >>> from transferable.tables.reading import Dialect
    >>> Dialect(sep=";", decimal=",").encoding
    'utf-8'
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] | None = None
    sheet: str | None = None


def text_pieces(
    stream: IO[bytes],
    path: Path,
    separator: str,
    dialect: Dialect,
    as_written: Collection[str],
    text: Collection[str],
) -> Generator[pd.DataFrame, None, None]:
    """Rows of delimited text, each piece with the types its own values suggest."""
    head, sample = stream.readline(_PIECE_BYTES), stream.read(65_536)
    encoding = "utf-8-sig" if dialect.encoding.lower() in ("utf-8", "utf8") else dialect.encoding
    _check_bytes(head + sample, path, encoding)
    sep = dialect.sep or separator
    start = (head + sample).decode(encoding, "ignore")
    names = _heading(start, sep, path, guessed=dialect.sep is None)
    first = next(iter(start.splitlines()), "")
    stream.seek(0)
    lines = sample.count(b"\n") or 1
    with pd.read_csv(
        stream,
        sep=sep,
        decimal=dialect.decimal,
        dtype=dict.fromkeys([*as_written, *text], str),
        na_values={name: missing_texts(name in as_written, dialect) for name in names},
        keep_default_na=False,
        chunksize=max(100, min(_PIECE_ROWS, _PIECE_BYTES * lines // max(len(sample), 1))),
        encoding=encoding,
        low_memory=False,
        **_EXACT,
        # Spaces are part of a cell, except in files with a space after every separator.
        skipinitialspace=0 < first.count(sep) == first.count(sep + " "),
        index_col=False,
    ) as reader:
        yield from _each(reader, path)


def _each(reader: Any, path: Path) -> Iterator[pd.DataFrame]:
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            try:
                piece = next(reader)
            except StopIteration:
                return
            except pd.errors.ParserWarning as warning:
                raise TableError(
                    f"{path} has rows that are longer than its heading; give every column a name."
                ) from warning
        yield piece


def missing_texts(as_written: bool, dialect: Dialect) -> list[str]:
    """What stands for no value in a column."""
    if dialect.missing is not None:
        return ["", *dialect.missing]
    return [""] if as_written else sorted(STR_NA_VALUES)


def _check_bytes(sample: bytes, path: Path, encoding: str) -> None:
    """Refuse what is no text, and text of an encoding that nobody named."""
    if encoding != "utf-8-sig":
        return
    if sample.startswith(_BYTE_ORDER_MARKS):
        raise TableError(f"{path} is text in UTF-16; say so: --encoding utf-16.")
    if b"\0" in sample:
        raise TableError(f"{path} is not a text file; name it after its format, or export it anew.")


def _heading(text: str, sep: str, path: Path, *, guessed: bool) -> list[str]:
    """The names of the columns, of which no two are alike."""
    line = next(iter(text.splitlines()), "")
    if guessed and sep not in line:
        other = next((mark for mark in _WORDS if mark in line.strip()), None)
        if other is not None:
            word = "tab" if other == "\t" else f"'{other}'"
            raise TableError(
                f"{path} has one column only, which {_WORDS[other]} seem to divide; say so: "
                f"--sep {word}."
            )
    try:
        names = next(csv.reader(io.StringIO(text), delimiter=sep), []) if len(sep) == 1 else []
    except csv.Error as error:
        raise TableError(f"{path} has a heading that is no line of text ({error}).") from error
    stripped = [name.strip() for name in names]
    twice = [name for name, count in Counter(stripped).items() if name and count > 1]
    if twice:
        raise TableError(f"{path} has several columns called {listed(twice)}; rename them.")
    return [name for raw in zip(names, stripped, strict=True) for name in dict.fromkeys(raw)]
