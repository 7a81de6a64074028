"""Readers of tables from files: the extension determines the format, text is read in pieces.

Errors of tables are in words for their users, and are reported together.

Pieces keep memory bounded: a text column is kept as codes into its different values, and
predicting needs one piece at a time. In files of arrays (NPY and NPZ) a matrix named X of d columns
becomes the columns X0 to X{d-1}, a vector named y the column y; the one matrix of an NPY
file is named x.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas._libs.parsers import STR_NA_VALUES
from pandas.api.types import is_float_dtype, is_numeric_dtype, union_categoricals

from transferable.events import stage
from transferable.exceptions import installing

__all__ = ["FORMATS", "Dialect", "iter_table", "read_table"]

_QUOTED = 60  # letters of a value that a message shows
_PIECE_BYTES = 4_000_000
_PIECE_ROWS = 20_000
# From pandas 3.1 on, numbers are read exactly by default.
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _PANDAS < (3, 1) else {}
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
MARKS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
# Formats that are read by an optional package, and the extra that installs it.
_NEEDED = {
    ".parquet": ("pyarrow", "tables"),
    ".feather": ("pyarrow", "tables"),
    ".xlsx": ("openpyxl", "excel"),
}
FORMATS = (*_SEPARATORS, *_NEEDED, ".npz", ".npy")
STDIN = "-"

Names = Collection[str]


class TableError(ValueError):
    """Table that cannot be used as requested; the message gives the reason and the remedy."""


class Problems(list[str]):
    """Collection of errors, which are reported together."""

    def add(self, text: str) -> None:
        """Record an error, once."""
        if text not in self:
            self.append(text)

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Record an error raised within instead of passing it on."""
        try:
            yield
        except TableError as error:
            self.add(str(error))

    def raise_if_any(self) -> None:
        """Raise all recorded errors, if there are any."""
        if self:
            raise TableError(" ".join(self))


def brief(value: Any) -> str:
    """Return a value as text that a message may quote: of a long one the beginning."""
    text = str(value)
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Return names in quotation marks, the first few of many, and of long ones the beginning."""
    quoted = [repr(brief(name)) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return ", ".join(quoted[:most]) + more


def who(table: Any, otherwise: str) -> str:
    """Return the name of the file that a table was read from, if it was."""
    return str(table.attrs.get("file", otherwise))


def require_columns(columns: Sequence[str], names: Iterable[str], *where: str) -> None:
    """Refuse names that no column has; suggest similar ones."""
    known = set(columns)
    lacking = [name for name in names if name not in known]
    if not lacking:
        return
    close = [match for name in lacking for match in get_close_matches(name, columns, n=1)]
    meant = f"; did you mean {listed(close)}?" if close else f"; it has {listed(columns)}."
    plural = "s" if len(lacking) > 1 else ""
    tables = list(dict.fromkeys(where))
    verb = "has" if len(tables) == 1 else "have"
    raise TableError(f"{' and '.join(tables)} {verb} no column{plural} {listed(lacking)}{meant}")


@dataclass(frozen=True)
class Dialect:
    """Format of the cells of a file: text files, except for the last two.

    Attributes
    ----------
    sep : str or None
        Separator of cells, also "tab", "comma", "semicolon" or "space"; None is a comma, in .tsv
        files a tab.
    decimal : str
        Decimal separator.
    encoding : str
        The encoding of the text.
    missing : sequence of str or None
        Texts of cells without a value, besides empty ones; None takes the usual words (NA, NaN,
        null, None, n/a and so on) in columns of features, and none in columns of names. Texts named
        here are missing in files of any format.
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
    missing: Sequence[str] | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        if len(self.decimal) != 1:
            raise TableError(f"{self.decimal!r} is not a single character; give one, such as ','.")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise TableError(
                f"there is no encoding {self.encoding!r}; try utf-8, utf-16 or cp1252."
            ) from None


def read_table(
    path: str | os.PathLike[str],
    *,
    as_written: Collection[str] = (),
    text: Collection[str] = (),
    dialect: Dialect | None = None,
) -> pd.DataFrame:
    r"""Read a whole table.

    Parameters
    ----------
    path : str or path-like
        A .csv, .tsv, .parquet, .feather, .xlsx, .npz or .npy file, with or without .gz, or "-" for
        CSV on standard input.
    as_written : collection of str, default=()
        Columns of names, such as ids and labels: text, kept as it is written; missing only where
        the cell is empty or holds a text named in `dialect`. Names that no column has are ignored.
    text : collection of str, default=()
        Columns to read as text, whatever they look like.
    dialect : Dialect or None, default=None
        Format of the file.

    Returns
    -------
    table : DataFrame
        The rows in order. Text columns are of category dtype, to save memory. The name of the file
        is in ``table.attrs["file"]``, for error messages.

    Raises
    ------
    TableError
        If there is no such file, or no table in it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from transferable.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "source.csv")
    ...     _ = path.write_text("who,size\n007,1.5\n008,\n")
    ...     read_table(path, as_written=["who"])["who"].tolist()
    ['007', '008']
    """
    with _on_disk(path) as (file, called):
        while True:
            pieces = []
            for piece, done in _pieces(file, called, as_written, text, dialect or Dialect()):
                stage(f"Reading {called.name}", done)
                texts = {
                    name: piece[name].astype(object).astype("category")  # codes into the texts
                    for name in piece.columns[~plain_numbers(piece)]
                    if pd.api.types.infer_dtype(piece[name], skipna=True) == "string"
                }
                pieces.append(piece.assign(**texts))
            plain = np.all([plain_numbers(piece) for piece in pieces], axis=0)
            others = pieces[0].columns[~plain]
            joined = {name: _joined([piece[name] for piece in pieces]) for name in others}
            mixed = [name for name, column in joined.items() if column is None]
            if not mixed:
                break
            text = {*text, *mixed}
    numbers = pd.concat([piece.loc[:, plain] for piece in pieces], ignore_index=True)
    table = pd.concat([numbers, pd.DataFrame(joined)], axis=1)[pieces[0].columns]
    table = table.copy()  # in one block for each type: a parser leaves one for each column
    table.attrs["file"] = called.name
    return table


def iter_table(
    path: str | os.PathLike[str],
    *,
    as_written: Collection[str] = (),
    text: Collection[str] = (),
    dialect: Dialect | None = None,
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Read a table piece by piece, as `read_table` does; yield rows and the share that is read."""
    with _on_disk(path) as (file, called):
        yield from _pieces(file, called, as_written, text, dialect or Dialect())


@contextmanager
def _on_disk(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """Yield a file that can be read more than once, also for standard input, and its name."""
    if str(path) != STDIN:
        yield Path(path), Path(path)
        return
    with tempfile.NamedTemporaryFile(suffix=".csv") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        yield Path(spool.name), Path("standard input")


def _pieces(
    path: Path, called: Path, as_written: Names, text: Names, dialect: Dialect
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Yield the pieces of a file; errors name it as the user does."""
    zipped = path.suffix.lower() == ".gz"
    suffix = (path.with_suffix("") if zipped else path).suffix.lower()
    if suffix not in FORMATS and dialect.sep is None:
        raise TableError(
            f"{called} must end in one of {', '.join(FORMATS)}, with or without .gz after it; text "
            "of any other name is read if its separator is given, such as sep=','."
        )
    if not path.is_file():
        raise TableError(f"there is no file {called}.")
    if path.stat().st_size == 0:
        raise TableError(f"{called} is empty.")
    rows, before = 0, path.stat()
    with path.open("rb") as raw:
        stream: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
        try:
            if suffix in _SEPARATORS or suffix not in FORMATS:
                found = _text_pieces(stream, called, suffix, as_written, text, dialect)
            else:
                table = _read_whole(stream, called, suffix, as_written, dialect)
                found = _array_pieces(table, as_written, dialect)
            with closing(found):
                for piece in found:
                    rows += len(piece)
                    piece.attrs["file"] = called.name
                    yield piece, raw.tell() / before.st_size
        except TableError:
            raise
        except UnicodeError as error:
            raise TableError(
                f"{called} is not text in {dialect.encoding} ({error}); name its encoding, such as "
                "encoding='cp1252', or name the file after its format."
            ) from error
        except LookupError as error:
            raise TableError(f"{called} cannot be read: {error}; give another one.") from error
        except (ValueError, OSError, EOFError, BadZipFile, ArithmeticError) as error:
            kind = suffix[1:] or "text"
            raise TableError(f"{called} cannot be read as {kind}: {error}") from error
    if rows == 0:
        raise TableError(f"{called} has no rows.")
    now = path.stat()
    if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise TableError(f"{called} changed while it was read; read it again once it is complete.")


def _text_pieces(
    stream: IO[bytes], path: Path, suffix: str, as_written: Names, text: Names, dialect: Dialect
) -> Generator[pd.DataFrame, None, None]:
    """Yield rows of delimited text, each piece with the types its own values suggest."""
    head, sample = stream.readline(_PIECE_BYTES), stream.read(65_536)
    encoding = dialect.encoding
    if encoding.lower() in ("utf-8", "utf8") or head.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    if encoding == "utf-8-sig" and head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{path} is text in UTF-16; say so: encoding='utf-16'.")
    if encoding == "utf-8-sig" and b"\0" in head + sample:
        raise TableError(f"{path} is not a text file; name it after its format, or export it anew.")
    sep = MARKS.get(str(dialect.sep).lower(), dialect.sep) or _SEPARATORS.get(suffix, ",")
    start = (head + sample).decode(encoding, "ignore")
    first = next(iter(start.splitlines()), "")
    names = _heading(start, first, sep, path, guessed=dialect.sep is None)
    stream.seek(0)
    lines = sample.count(b"\n") or 1
    with pd.read_csv(
        stream,
        sep=sep,
        decimal=dialect.decimal,
        dtype=dict.fromkeys([*as_written, *text], str),
        na_values={name: _missing_texts(name in as_written, dialect) for name in names},
        keep_default_na=False,
        chunksize=max(100, min(_PIECE_ROWS, _PIECE_BYTES * lines // max(len(sample), 1))),
        encoding=encoding,
        low_memory=False,
        **_EXACT,
        # Spaces are part of a cell, except in files with a space after every separator.
        skipinitialspace=0 < first.count(sep) == first.count(sep + " "),
        index_col=False,
    ) as reader:
        piece = pd.DataFrame()
        while True:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                try:
                    piece = next(reader)
                except StopIteration:
                    break
                except pd.errors.ParserWarning as warning:
                    raise TableError(
                        f"{path} has rows that are longer than its heading; give every column a "
                        "name."
                    ) from warning
            yield piece
    if len(sep) == 1 and len(piece) and pd.isna(piece.iat[-1, -1]):
        stream.seek(0)
        _refuse_short_end(stream, path, sep, encoding, len(piece.columns))


def _refuse_short_end(
    stream: IO[bytes], path: Path, sep: str, encoding: str, n_columns: int
) -> None:
    """Refuse a last row of fewer cells than there are columns, as truncated files have."""
    line, n_cells = 0, n_columns
    with io.TextIOWrapper(stream, encoding, newline="") as text, suppress(csv.Error):
        reader = csv.reader(text, delimiter=sep)
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                line, n_cells = reader.line_num, len(cells)
    if n_cells < n_columns:
        raise TableError(
            f"{path}: the last line, {line}, has {n_cells} of {n_columns} cells, so the file seems "
            "to be truncated; export it again, or complete the line."
        )


def _missing_texts(as_written: bool, dialect: Dialect) -> list[str]:
    """Return the texts of missing values in a column."""
    if dialect.missing is not None:
        return ["", *dialect.missing]
    return [""] if as_written else sorted(STR_NA_VALUES)


def _heading(text: str, line: str, sep: str, path: Path, *, guessed: bool) -> list[str]:
    """Return the names of the columns, which must be distinct."""
    if guessed and sep not in line:
        other = next((mark for mark in _WORDS if mark in line.strip()), None)
        if other is not None:
            raise TableError(
                f"{path} has one column only, which {_WORDS[other]} seem to divide; say so: "
                f"sep={other!r}."
            )
    try:
        names = next(csv.reader(io.StringIO(text), delimiter=sep), []) if len(sep) == 1 else []
    except csv.Error as error:
        raise TableError(f"{path} has a heading that cannot be read as text ({error}).") from error
    stripped = [name.strip() for name in names]
    twice = [name for name, count in Counter(stripped).items() if name and count > 1]
    if twice:
        raise TableError(f"{path} has several columns called {listed(twice)}; rename them.")
    return [name for raw in zip(names, stripped, strict=True) for name in dict.fromkeys(raw)]


def _read_whole(
    stream: IO[bytes], path: Path, suffix: str, as_written: Names, dialect: Dialect
) -> pd.DataFrame:
    """Read a table of a format that is read at once."""
    if suffix not in _NEEDED:
        loaded = np.load(stream, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            with loaded:
                return _as_table(dict(loaded), path)
        names = loaded.dtype.names
        return _as_table({name: loaded[name] for name in names} if names else {"x": loaded}, path)
    try:
        if suffix == ".xlsx":
            return _read_excel(stream, path, as_written, dialect)
        return _read_arrow(stream, suffix, as_written)
    except ImportError as error:
        package, extra = _NEEDED[suffix]
        raise TableError(f"{path} needs {package} to be read: {installing(extra)}.") from error


def _read_arrow(stream: IO[bytes], suffix: str, as_written: Names) -> pd.DataFrame:
    """Read Parquet or Feather; whole numbers with gaps, which pandas would make floats, as text."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = (pa.parquet if suffix == ".parquet" else pa.feather).read_table(stream)
    for i, field in enumerate(table.schema):
        exact = pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
        if exact and field.name in as_written:
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
    return table.to_pandas()


def _read_excel(stream: IO[bytes], path: Path, as_written: Names, dialect: Dialect) -> pd.DataFrame:
    with pd.ExcelFile(stream, engine="openpyxl") as book:
        sheet = _sheet(book, path, dialect.sheet)
        columns = pd.read_excel(book, sheet_name=sheet, nrows=0).columns
        missing = {name: _missing_texts(name in as_written, dialect) for name in columns}
        kinds = dict.fromkeys(as_written, object)
        return pd.read_excel(
            book, sheet_name=sheet, dtype=kinds, keep_default_na=False, na_values=missing
        )


def _sheet(book: Any, path: Path, wanted: str | None) -> str:
    """Return the sheet that is named, or the only one with cells in it."""
    if wanted in book.sheet_names:
        return str(wanted)
    if wanted is not None:
        raise TableError(
            f"{path} has no sheet {wanted!r}; its sheets are {listed(book.sheet_names)}."
        )
    sheets = pd.read_excel(book, sheet_name=None, nrows=1)
    filled = [name for name, rows in sheets.items() if len(rows.columns)]
    if len(filled) > 1:
        raise TableError(
            f"{path} holds several sheets, {listed(filled)}; name one: sheet={filled[0]!r}."
        )
    return filled[0] if filled else book.sheet_names[0]


def _as_table(arrays: Mapping[str, NDArray[Any]], path: Path) -> pd.DataFrame:
    """Return arrays side by side, if they have as many rows each."""
    shapes = {name: array.shape for name, array in arrays.items()}
    rows, axes = {shape[:1] for shape in shapes.values()}, {len(s) for s in shapes.values()}
    if len(rows) != 1 or not axes <= {1, 2}:
        raise TableError(
            f"{path} must hold matrices and vectors with a row for each sample; it holds "
            + (", ".join(f"{name} of shape {shape}" for name, shape in shapes.items()) or "nothing")
            + ". Save one file for each domain."
        )
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        values = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
        if values.dtype.kind not in "biufUM":
            raise TableError(
                f"{path} holds an array of dtype {array.dtype}; save numbers, booleans or text."
            )
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f"{name}{i}": values[:, i] for i in range(values.shape[1])}
    return pd.DataFrame(columns)


def _array_pieces(
    table: pd.DataFrame, as_written: Names, dialect: Dialect
) -> Generator[pd.DataFrame, None, None]:
    """Yield rows of a table that was read at once."""
    table.columns = table.columns.map(str)
    if dialect.missing:
        values: list[Any] = list(dialect.missing)
        for text in dialect.missing:
            with suppress(ValueError):
                values.append(float(text))
        table = table.mask(table.isin(values))
    for name in table.columns.intersection(list(as_written)):
        table[name] = _written(table[name])
    for start in range(0, len(table), _PIECE_ROWS):
        yield table.iloc[start : start + _PIECE_ROWS]


def _written(column: pd.Series) -> pd.Series:
    """Return values as text; floats that are all whole as whole numbers."""
    known = column.dropna()
    if is_float_dtype(column.dtype) and np.all(known == np.floor(known)):
        column = column.astype("Int64")
    values = column.astype(object)
    return values.map(str, na_action="ignore").where(values.notna(), None)


def plain_numbers(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which columns hold numbers of numpy's, which can be read all at once."""
    return np.array([getattr(dtype, "kind", "O") in "iuf" for dtype in table.dtypes.array], bool)


def _joined(parts: list[pd.Series]) -> pd.Series | None:
    """Return the pieces of a column as one; None if some read as text and others as numbers."""
    if not any(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        return pd.concat(parts, ignore_index=True)
    if any(is_numeric_dtype(part.dtype) and part.notna().any() for part in parts):
        return None
    return pd.Series(union_categoricals([pd.Categorical(p.astype(object)) for p in parts]))
