"""What is wrong with a table, in words for the person who brought it."""

__all__ = ["TableError", "listed"]


class TableError(ValueError):
    """A table that cannot be used as asked; the message says why and what to do."""


def listed(names: object, most: int = 8) -> str:
    """Names in quotation marks, the first few of many."""
    names = [repr(str(name)) for name in names]  # type: ignore[attr-defined]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
