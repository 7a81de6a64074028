"""Reading tables from files: the format is told by the extension, text is read in pieces.

Pieces keep memory bounded: a text column is kept as codes into its different values, and
predicting needs one piece at a time.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype, is_numeric_dtype, union_categoricals

from transferable.tables._arrays import read_mat, read_npy, read_npz
from transferable.tables._delimited import Dialect, missing_texts, text_pieces
from transferable.tables._errors import TableError, listed
from transferable.tables.columns import plain_numbers

__all__ = ["FORMATS", "Dialect", "iter_table", "read_table"]

_PIECE_ROWS = 20_000
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
STDIN = "-"

_Reader = Callable[[IO[bytes], Path, Collection[str], Dialect], pd.DataFrame]


def _needing(package: str, extra: str, read: _Reader) -> _Reader:
    """A reader that needs an optional package, with a message where it is not installed."""

    def reader(
        stream: IO[bytes], path: Path, as_written: Collection[str], dialect: Dialect
    ) -> pd.DataFrame:
        try:
            return read(stream, path, as_written, dialect)
        except ImportError as error:
            raise TableError(
                f"{path} needs {package} to be read: pip install 'transferable[{extra}]'."
            ) from error

    return reader


def _read_parquet(
    stream: IO[bytes], path: Path, as_written: Collection[str], dialect: Dialect
) -> pd.DataFrame:
    import pyarrow.parquet

    return _from_arrow(pyarrow.parquet.read_table(stream), as_written)


def _read_feather(
    stream: IO[bytes], path: Path, as_written: Collection[str], dialect: Dialect
) -> pd.DataFrame:
    import pyarrow.feather

    return _from_arrow(pyarrow.feather.read_table(stream), as_written)


def _from_arrow(table: Any, as_written: Collection[str]) -> pd.DataFrame:
    """A table of Arrow; whole numbers with gaps, which pandas would make floats, as text if so."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if field.name in as_written and (
            pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
        ):
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
    return table.to_pandas()


def _read_excel(
    stream: IO[bytes], path: Path, as_written: Collection[str], dialect: Dialect
) -> pd.DataFrame:
    with pd.ExcelFile(stream, engine="openpyxl") as book:
        sheet = _sheet(book, path, dialect.sheet)
        columns = pd.read_excel(book, sheet_name=sheet, nrows=0).columns
        missing = {name: missing_texts(name in as_written, dialect) for name in columns}
        kinds = dict.fromkeys(as_written, object)
        return pd.read_excel(
            book, sheet_name=sheet, dtype=kinds, keep_default_na=False, na_values=missing
        )


def _sheet(book: Any, path: Path, wanted: str | None) -> str:
    """The sheet that is meant: the one that is named, or the only one with cells in it."""
    if wanted is not None:
        if wanted in book.sheet_names:
            return wanted
        raise TableError(
            f"{path} has no sheet {wanted!r}; its sheets are {listed(book.sheet_names)}."
        )
    sheets = pd.read_excel(book, sheet_name=None, nrows=1)
    filled = [name for name, rows in sheets.items() if len(rows.columns)]
    if len(filled) > 1:
        raise TableError(f"{path} holds several sheets, {listed(filled)}; name one with --sheet.")
    return filled[0] if filled else book.sheet_names[0]


_READERS: dict[str, _Reader] = {
    ".parquet": _needing("pyarrow", "tables", _read_parquet),
    ".feather": _needing("pyarrow", "tables", _read_feather),
    ".xlsx": _needing("openpyxl", "excel", _read_excel),
    ".npz": lambda stream, path, *_: read_npz(stream, path),
    ".npy": lambda stream, path, *_: read_npy(stream, path),
    ".mat": lambda stream, path, *_: read_mat(stream, path),
}
FORMATS = (*_SEPARATORS, *_READERS)


def read_table(
    path: str | os.PathLike[str],
    *,
    as_written: Collection[str] = (),
    text: Collection[str] = (),
    dialect: Dialect | None = None,
    progress: Callable[[float], None] | None = None,
) -> pd.DataFrame:
    r"""Read a whole table.

    Parameters
    ----------
    path : str or path-like
        A .csv, .tsv, .parquet, .feather, .xlsx, .npz, .npy or .mat file, with or without .gz, or
        "-" for CSV on standard input.
    as_written : collection of str, default=()
        Columns of names, such as ids and labels: text, kept as it is written; missing only where
        the cell is empty or holds what `dialect` names. Names that no column has do no harm.
    text : collection of str, default=()
        Columns to take for text, whatever they look like.
    dialect : Dialect or None, default=None
        How the file is written.
    progress : callable or None, default=None
        Told the share of the file that has been read, after each piece.

    Returns
    -------
    table : DataFrame
        The rows in order. Text columns are of category dtype, to save memory. The name of the
        file is in ``table.attrs["file"]``, where messages find it.

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
    if str(path) == STDIN and not text:  # it may have to be read twice
        with _spooled() as spool:
            table = _read(Path(spool.name), as_written, text, dialect, progress, STDIN)
    else:
        table = _read(Path(path), as_written, text, dialect, progress, str(path))
    table.attrs["file"] = "standard input" if str(path) == STDIN else Path(path).name
    return table


def _read(
    path: Path,
    as_written: Collection[str],
    text: Collection[str],
    dialect: Dialect | None,
    progress: Callable[[float], None] | None,
    name: str,
) -> pd.DataFrame:
    pieces = []
    for piece, done in _pieces(path, as_written, text, dialect or Dialect(), name):
        if progress is not None:
            progress(done)
        others = piece.columns[~plain_numbers(piece)]
        pieces.append(piece.assign(**{column: _compact(piece[column]) for column in others}))
    plain = np.all([plain_numbers(piece) for piece in pieces], axis=0)
    others = pieces[0].columns[~plain]
    mixed = [column for column in others if _is_mixed([piece[column] for piece in pieces])]
    if mixed:
        return _read(path, as_written, {*text, *mixed}, dialect, progress, name)
    joined = {column: _joined([piece[column] for piece in pieces]) for column in others}
    numbers = pd.concat([piece.loc[:, plain] for piece in pieces], ignore_index=True)
    table = pd.concat([numbers, pd.DataFrame(joined)], axis=1)[pieces[0].columns]
    return table.copy()  # in one block for each type: a parser leaves one for each column


def iter_table(
    path: str | os.PathLike[str],
    *,
    as_written: Collection[str] = (),
    text: Collection[str] = (),
    dialect: Dialect | None = None,
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Read a table piece by piece.

    Parameters
    ----------
    path : str or path-like
        As for :func:`read_table`.
    as_written : collection of str, default=()
        Columns of names, such as ids and labels, kept as they are written.
    text : collection of str, default=()
        Columns to take for text, whatever they look like.
    dialect : Dialect or None, default=None
        How the file is written.

    Yields
    ------
    piece : DataFrame
        The next rows.
    done : float
        The share of the file that has been read.
    """
    if str(path) == STDIN:
        with _spooled() as spool:
            yield from _pieces(Path(spool.name), as_written, text, dialect or Dialect(), STDIN)
    else:
        yield from _pieces(Path(path), as_written, text, dialect or Dialect(), str(path))


def _spooled() -> Any:
    """Standard input as a file that can be looked at more than once."""
    spool = tempfile.NamedTemporaryFile(suffix=".csv")  # noqa: SIM115 (closed by the caller)
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.flush()
    return spool


def _pieces(
    path: Path, as_written: Collection[str], text: Collection[str], dialect: Dialect, name: str
) -> Iterator[tuple[pd.DataFrame, float]]:
    """The pieces of a file; errors tell what the user calls it."""
    called = Path("standard input" if name == STDIN else name)
    suffix = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    suffix = suffix.lower()
    if suffix not in FORMATS and dialect.sep is None:
        raise TableError(
            f"{called} must end in one of {', '.join(FORMATS)}, with or without .gz after it; text "
            "of any other name is read with --sep."
        )
    if not path.is_file():
        raise TableError(f"there is no file {called}.")
    if path.stat().st_size == 0:
        raise TableError(f"{called} is empty.")
    rows = 0
    with path.open("rb") as raw:
        stream: Any = gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else raw
        try:
            if suffix in _READERS:
                found = _array_pieces(
                    _READERS[suffix](stream, called, as_written, dialect), as_written, dialect
                )
            else:
                separator = _SEPARATORS.get(suffix, ",")
                found = text_pieces(stream, called, separator, dialect, as_written, text)
            with closing(found):
                for piece in found:
                    rows += len(piece)
                    piece.attrs["file"] = called.name
                    yield piece, raw.tell() / path.stat().st_size
        except TableError:
            raise
        except UnicodeError as error:
            raise TableError(
                f"{called} is not text in {dialect.encoding} ({error}); name its encoding, such as "
                "--encoding cp1252, or name the file after its format."
            ) from error
        except LookupError as error:
            raise TableError(f"{called} cannot be read: {error}; give another one.") from error
        except (ValueError, OSError, EOFError, BadZipFile, ArithmeticError) as error:
            kind = suffix[1:] or "text"
            raise TableError(f"{called} cannot be read as {kind}: {error}") from error
    if rows == 0:
        raise TableError(f"{called} has no rows.")


def _array_pieces(
    table: pd.DataFrame, as_written: Collection[str], dialect: Dialect
) -> Generator[pd.DataFrame, None, None]:
    """Rows of a format that is read at once."""
    table.columns = table.columns.map(str)
    if dialect.missing:
        table = table.mask(table.isin([*dialect.missing, *_numbers(dialect.missing)]))
    for name in as_written:
        if name in table.columns:
            table[name] = _written(table[name])
    for start in range(0, len(table), _PIECE_ROWS):
        yield table.iloc[start : start + _PIECE_ROWS]


def _numbers(texts: Collection[str]) -> Iterator[float]:
    """Those of the texts that are numbers, as numbers."""
    for text in texts:
        with suppress(ValueError):
            yield float(text)


def _written(column: pd.Series) -> pd.Series:
    """Values as text; floats that are all whole, as formats without whole numbers hold, so."""
    known = column.dropna()
    if is_float_dtype(column.dtype) and np.all(known == np.floor(known)):
        column = column.astype("Int64")
    values = column.astype(object)
    return values.map(str, na_action="ignore").where(values.notna(), None)


def _compact(column: pd.Series) -> pd.Series:
    """Text as codes into its different values; anything else as it is."""
    if pd.api.types.infer_dtype(column, skipna=True) == "string":
        return column.astype(object).astype("category")
    return column


def _is_mixed(parts: list[pd.Series]) -> bool:
    """Whether some pieces of a column read as text and others as numbers."""
    text = [isinstance(part.dtype, pd.CategoricalDtype) for part in parts]
    numbers = [is_numeric_dtype(part.dtype) and part.notna().any() for part in parts]
    return any(text) and any(numbers)


def _joined(parts: list[pd.Series]) -> pd.Series:
    """The pieces of a column as one."""
    if any(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        coded = [pd.Categorical(part.astype(object)) for part in parts]
        return pd.Series(union_categoricals(coded))
    return pd.concat(parts, ignore_index=True)
