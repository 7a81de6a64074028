"""Where commands write: results to standard output, messages and progress to standard error."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

__all__ = ["progress", "stdout"]

T = TypeVar("T")


def stdout() -> Console:
    """Return a console for results, on whatever standard output is now."""
    return Console(highlight=False)


def progress(steps: Iterable[T], description: str, total: int) -> Iterator[T]:
    """Go through steps with a progress bar, which is drawn on terminals only."""
    messages = Console(stderr=True)
    yield from track(
        steps,
        description=description,
        total=total,
        console=messages,
        transient=True,
        disable=not messages.is_terminal,
    )
