"""Reading tables from files: the format is told by the extension, text is read in pieces.

Pieces keep memory bounded: a text column is kept as codes into its different values, and
predicting needs one piece at a time.
"""

from __future__ import annotations

import gzip
import os
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import pandas as pd
from pandas.api.types import is_numeric_dtype, union_categoricals

from transferable.tables._arrays import read_mat, read_npy, read_npz
from transferable.tables._errors import TableError

__all__ = ["FORMATS", "iter_table", "read_table"]

_PIECE_BYTES = 4_000_000
_PIECE_ROWS = 20_000
# From pandas 3.1 on, numbers are read exactly without being asked for.
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _PANDAS < (3, 1) else {}
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_WORDS = {",": "commas", "\t": "tabs", ";": "semicolons"}


def _arrow(read: Callable[[Any], pd.DataFrame]) -> Callable[[IO[bytes], Path], pd.DataFrame]:
    """A reader that needs pyarrow, with a message where it is not installed."""

    def reader(stream: IO[bytes], path: Path) -> pd.DataFrame:
        try:
            return read(stream)
        except ImportError as error:
            raise TableError(
                f"{path} needs pyarrow to be read: pip install 'transferable[tables]'."
            ) from error

    return reader


_READERS: dict[str, Callable[[IO[bytes], Path], pd.DataFrame]] = {
    ".parquet": _arrow(pd.read_parquet),
    ".feather": _arrow(pd.read_feather),
    ".npz": read_npz,
    ".npy": read_npy,
    ".mat": read_mat,
}
FORMATS = (*_SEPARATORS, *_READERS)


def read_table(
    path: str | os.PathLike[str],
    *,
    text: Collection[str] = (),
    progress: Callable[[float], None] | None = None,
) -> pd.DataFrame:
    r"""Read a whole table.

    Parameters
    ----------
    path : str or path-like
        A .csv, .tsv, .parquet, .feather, .npz, .npy or .mat file, with or without .gz.
    text : collection of str, default=()
        Columns to take for text, whatever they look like.
    progress : callable or None, default=None
        Told the share of the file that has been read, after each piece.

    Returns
    -------
    table : DataFrame
        The rows in order. Text columns are of category dtype, to save memory.

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
    ...     _ = path.write_text("size,colour\n1.5,red\n,blue\n")
    ...     read_table(path).shape
    (2, 2)
    """
    pieces: dict[str, list[pd.Series]] = {}
    for piece, done in iter_table(path, text=text):
        if progress is not None:
            progress(done)
        for name in piece.columns:
            pieces.setdefault(name, []).append(_compact(piece[name]))
    mixed = [name for name, parts in pieces.items() if _is_mixed(parts)]
    if mixed:
        return read_table(path, text={*text, *mixed}, progress=progress)
    columns = {name: _joined(pieces.pop(name)) for name in list(pieces)}
    return pd.DataFrame(columns, copy=False)


def iter_table(
    path: str | os.PathLike[str], *, text: Collection[str] = ()
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Read a table piece by piece.

    Parameters
    ----------
    path : str or path-like
        As for :func:`read_table`.
    text : collection of str, default=()
        Columns to take for text, whatever they look like.

    Yields
    ------
    piece : DataFrame
        The next rows.
    done : float
        The share of the file that has been read.
    """
    path = Path(path)
    suffix = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    suffix = suffix.lower()
    if suffix not in FORMATS:
        raise TableError(
            f"{path} must end in one of {', '.join(FORMATS)}, with or without .gz after it."
        )
    if not path.is_file():
        raise TableError(f"there is no file {path}.")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    pieces = _text_pieces if suffix in _SEPARATORS else _array_pieces
    rows = 0
    with path.open("rb") as raw:
        stream: Any = gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else raw
        try:
            for piece in pieces(stream, path, suffix, text):
                rows += len(piece)
                yield piece, raw.tell() / path.stat().st_size
        except TableError:
            raise
        except UnicodeDecodeError as error:
            raise TableError(
                f"{path} is not text in UTF-8 ({error}); convert it, or name it after its format."
            ) from error
        except (ValueError, OSError, EOFError, BadZipFile, ArithmeticError, KeyError) as error:
            raise TableError(f"{path} cannot be read as {suffix[1:]}: {error}") from error
    if rows == 0:
        raise TableError(f"{path} has no rows.")


def _text_pieces(
    stream: IO[bytes], path: Path, suffix: str, text: Collection[str]
) -> Iterator[pd.DataFrame]:
    """Rows of delimited text, each piece with the types its own values suggest."""
    head = stream.readline(_PIECE_BYTES)
    sample = stream.read(65_536)
    if b"\0" in head + sample:
        raise TableError(f"{path} is not a text file; name it after its format, or export it anew.")
    other = _other_separator(head.decode("utf-8", "replace"), _SEPARATORS[suffix])
    if other is not None:
        raise TableError(
            f"{path} has one column only, which {_WORDS[other]} seem to divide; separate columns "
            f"with {_WORDS[_SEPARATORS[suffix]]}"
            + (", or name the file .tsv." if other == "\t" else ".")
        )
    stream.seek(0)
    lines = sample.count(b"\n") or 1
    rows = max(100, min(_PIECE_ROWS, _PIECE_BYTES * lines // max(len(sample), 1)))
    with pd.read_csv(
        stream,
        sep=_SEPARATORS[suffix],
        dtype=dict.fromkeys(text, str),
        chunksize=rows,
        encoding="utf-8-sig",
        low_memory=False,
        **_EXACT,
        skipinitialspace=True,
        index_col=False,
    ) as reader:
        while True:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                try:
                    piece = next(reader)
                except StopIteration:
                    return
                except pd.errors.ParserWarning as warning:
                    raise TableError(
                        f"{path} has rows that are longer than its heading; give every column a "
                        "name."
                    ) from warning
            yield piece


def _other_separator(heading: str, separator: str) -> str | None:
    """What divides a heading that the file's own separator does not divide, if anything does."""
    if separator in heading:
        return None
    return next((mark for mark in _WORDS if mark in heading.strip()), None)


def _array_pieces(
    stream: IO[bytes], path: Path, suffix: str, text: Collection[str]
) -> Iterator[pd.DataFrame]:
    """Rows of a format that is read at once."""
    table = _READERS[suffix](stream, path)
    table.columns = table.columns.map(str)
    for start in range(0, len(table), _PIECE_ROWS):
        yield table.iloc[start : start + _PIECE_ROWS]


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
