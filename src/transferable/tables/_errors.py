"""Errors of tables, in words for their users, reported together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any


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


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Return names in quotation marks, the first few of many."""
    quoted = [repr(str(name)) for name in names]
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
