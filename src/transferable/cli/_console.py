"""Output of commands: results to standard output or to files, messages to standard error."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, partialmethod
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

from transferable._files import replacing, visible
from transferable.cli import interruptions
from transferable.events import Event, Note, listen
from transferable.exceptions import installing
from transferable.progress import Bar

if TYPE_CHECKING:
    import pandas as pd

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130

_FORMATS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
_PARAMETER = re.compile(
    r"\b(?P<name>drop|ids|text|embedder|sep|decimal|encoding|sheet|model)="
    r"(?P<list>\[)?(?P<value>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?(list)\])"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how spreadsheets know one


class Terminal(Console):
    """Console, on standard output by default, that prints text without markup or control codes."""

    __init__ = partialmethod(Console.__init__, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Any:
        return super().render_str(visible(text), **options)


def print_lines(*lines: str) -> None:
    """Print lines on standard output as they are."""
    Terminal().print(*lines, sep="\n", soft_wrap=True)


def print_table(
    names: Sequence[str],
    numbers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    bold: Container[int] = (),
    unwrapped: Container[str] = (),
) -> None:
    """Print a table with columns of text, then columns of numbers; some rows in bold."""
    table = Table(show_header=bool(names))
    for heading in names:
        table.add_column(heading, no_wrap=heading in unwrapped)
    for heading in numbers:
        table.add_column(heading, justify="right")
    for i, row in enumerate(rows):
        table.add_row(*row, style="bold" if i in bold else None)
    Terminal().print(table)


@dataclass(kw_only=True, eq=False)
class Messages:
    """Notes, which are kept, and progress; both on standard error, unless quiet.

    Progress is drawn on terminals; elsewhere a long command prints a line every ten seconds.
    """

    quiet: bool = False
    notes: list[str] = field(default_factory=list)
    _console: Console = field(default_factory=partial(Terminal, stderr=True, soft_wrap=True))
    _bar: Bar | None = None

    def note(self, text: str, kind: str = "Note") -> None:
        """Print a note, once."""
        text = as_options(text)
        if text not in self.notes:
            self.notes.append(text)
            self.say(f"{kind}: {text}")

    def say(self, text: str) -> None:
        """Print a passing remark."""
        if not self.quiet:
            self._console.print(text)

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Print notes and warnings of fits within as soon as they come."""

        def hear(event: Event) -> None:
            if isinstance(event, Note):
                self.note(event.text)

        def show(message: Any, category: type[Warning], *_: Any) -> None:
            if issubclass(category, UserWarning | RuntimeWarning):
                self.note(str(message))

        with warnings.catch_warnings(), listen(hear):
            warnings.simplefilter("always")
            warnings.showwarning = show  # type: ignore[assignment]
            yield

    def bar(self, what: str, *, hidden: bool = False) -> Bar:
        """Return a progress bar; hidden where it would be in the way."""
        printed = monotonic() if self._bar is None else self._bar.printed
        drawn = not self.quiet and not hidden
        self._bar = Bar(self._console, what, drawn=drawn, printed=printed)
        return self._bar


@contextmanager
def reporting(
    interrupted: str = "Interrupted; no file was left half-written.",
) -> Iterator[None]:
    """Turn errors into one line on standard error and an exit code.

    Invalid input and missing packages end with 2, an interruption with 130, other errors with 1.
    """
    try:
        yield
    except BrokenPipeError:  # the reader of standard output has closed it
        raise
    except (KeyboardInterrupt, ValueError, ImportError, MemoryError, OSError) as error:
        bad = isinstance(error, ValueError | ImportError)
        if isinstance(error, KeyboardInterrupt) or (bad and interruptions):
            text, code = interrupted, INTERRUPTED
        else:
            lead = "not enough memory. " if isinstance(error, MemoryError) else ""
            text = f"Error: {lead}{as_options(' '.join(str(error).split()))}"
            code = BAD_INPUT if bad else FAILURE
        Terminal(stderr=True, soft_wrap=True).print(text)
        raise typer.Exit(code) from None


def as_options(text: str) -> str:
    """Return a message of the library with parameters as options: drop=['x'] becomes --drop x."""

    def option(found: re.Match[str]) -> str:
        name = {"ids": "id", "model": "embedder"}.get(found["name"], found["name"])
        return f"--{name} {shlex.quote(found['value'][1:-1])}"

    return _PARAMETER.sub(option, text)


def accuracy_line(evaluation: dict[str, Any], rows: str) -> str:
    """Return the accuracy, or the errors of numbers, in words."""
    if "rmse" in evaluation:
        return (
            f"Errors on the {evaluation['rows']:,} {rows} with a value in "
            f"{evaluation['column']!r}: median {evaluation['median_absolute_error']:.4g}, root "
            f"mean squared {evaluation['rmse']:.4g}, R2 {evaluation['r2']:.2f} (used for this "
            "evaluation only)"
        )
    return (
        f"Accuracy on the {evaluation['rows']:,} {rows} with a value in "
        f"{evaluation['column']!r}: {evaluation['accuracy']:.1%} (used for this evaluation only)"
    )


def checked_output(given: Iterable[Path], out: Path | None, *others: Path | None) -> Path | None:
    """Return the file for predictions, None for standard output; refuse files not to be written.

    Those are inputs, names of folders, files of two results, and files in folders that do not exist
    or are read-only.
    """
    out = None if out == Path("-") else out
    if out is not None and not out.name.lower().endswith(_FORMATS):
        raise ValueError(
            f"{out.name!r} must end in one of {', '.join(_FORMATS)}, or be - for standard output."
        )
    taken = {path.resolve() for path in given}
    for path in (path for path in (out, *others) if path is not None):
        try:
            folder, is_folder = path.resolve().parent, path.is_dir()
            with suppress(FileNotFoundError):
                os.lstat(path.parent / f".{path.name}.12345678.part")  # its name at first
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ValueError(f"{str(path)[:60]!r} cannot be the name of a file: {why}.") from None
        if not folder.is_dir():
            raise ValueError(f"the folder {path.parent} does not exist; make it first.")
        if is_folder:
            raise ValueError(f"{path} is a folder; name a file.")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"the folder {path.parent} is read-only; name another.")
        if path.resolve() in taken:
            raise ValueError(f"{path} would be overwritten; name another file.")
        taken.add(path.resolve())
    return out


@contextmanager
def writing(
    path: Path | None, *, escape_formulas: bool = False
) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that appends lines to a file, all or nothing, or to standard output."""
    if path is None:
        yield _TextWriter(sys.stdout, ",", escape_formulas)
        return
    name = path.name.lower()
    separator = "\t" if name.removesuffix(".gz").endswith(".tsv") else ","
    if name.endswith(".parquet"):
        with _parquet_writer(path) as write:
            yield write
    elif name.endswith(".gz"):
        with replacing(path, "wb") as raw, gzip.open(raw, "wt", encoding="utf-8") as stream:
            yield _TextWriter(stream, separator, escape_formulas)
    else:
        with replacing(path) as stream:
            yield _TextWriter(stream, separator, escape_formulas)


def inert(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before texts that spreadsheets would run."""

    def escaped(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

    return table.map(escaped).rename(columns=escaped)


def without_escapes(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without the apostrophes that :func:`inert` puts before texts."""

    def plain(value: Any) -> Any:
        escaped = isinstance(value, str) and value[:1] == "'" and value[1:].startswith(_FORMULA)
        return value[1:] if escaped else value

    return table.map(plain).rename(columns=plain)


@dataclass
class _TextWriter:
    """Writer of lines as text below one heading."""

    stream: IO[str]
    separator: str
    escape: bool
    heading: bool = True

    def __call__(self, lines: pd.DataFrame) -> None:
        """Write further lines."""
        lines = inert(lines) if self.escape else lines
        file = None if self.stream.isatty() else self.stream
        form: dict[str, Any] = {"header": self.heading, "sep": self.separator}
        text = lines.to_csv(file, index=False, lineterminator="\n", **form)
        if file is None:
            self.stream.write(visible(text))
        self.heading = False


@contextmanager
def _parquet_writer(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that writes lines as a row group."""
    if find_spec("pyarrow") is None:
        raise ValueError(f"{path} needs pyarrow to be written: {installing('tables')}.")
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None

    def write(lines: pd.DataFrame) -> None:
        nonlocal writer
        texts = lines.select_dtypes(exclude=["number", "bool"]).columns
        plain = lines.assign(**{name: lines[name].astype(object) for name in texts})
        kinds = {
            name: pa.string() if name in texts else pa.from_numpy_dtype(plain[name].dtype)
            for name in plain.columns
        }
        table = pa.Table.from_pandas(plain, schema=pa.schema(kinds), preserve_index=False)
        if writer is None:
            writer = pq.ParquetWriter(stream, table.schema)
        writer.write_table(table)

    with replacing(path, "wb") as stream:
        yield write
        if writer is not None:
            writer.close()
