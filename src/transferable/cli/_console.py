"""Where commands write: results to standard output, messages and progress to standard error."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, track

__all__ = ["BAD_INPUT", "FAILURE", "INTERRUPTED", "Messages", "progress", "reporting", "stdout"]

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130

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


class Messages:
    """Notes, which are remembered, and progress; both on standard error, unless told to be quiet.

    Progress is drawn on terminals only.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.notes: list[str] = []
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Tell something worth knowing, once."""
        if text not in self.notes:
            self.notes.append(text)
            self.say(f"Note: {text}")

    def say(self, text: str) -> None:
        """Tell something in passing."""
        if not self._quiet:
            self._console.print(text)

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Show that something takes its time."""
        if self._quiet or not self._console.is_terminal:
            yield
        else:
            with self._console.status(what):
                yield

    @contextmanager
    def bar(self, description: str) -> Iterator[Callable[[float], None]]:
        """Show a bar with the time left; it is told the share that is done."""
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self._console,
            transient=True,
            disable=self._quiet or not self._console.is_terminal,
        )
        with bar:
            task = bar.add_task(description, total=1.0)
            yield lambda done: bar.update(task, completed=done)

    def through(self, steps: Iterable[T], description: str) -> Iterator[T]:
        """Go through steps with a bar."""
        everything = list(steps)
        with self.bar(description) as tick:
            for i, step in enumerate(everything):
                tick(i / len(everything))
                yield step


@contextmanager
def reporting() -> Iterator[None]:
    """Turn errors into one line on standard error and an exit code.

    Input that cannot be used (ValueError) ends with 2, an interruption with 130 and
    whatever else goes wrong on the way with 1.
    """
    error_console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    try:
        yield
    except KeyboardInterrupt:
        error_console.print("Interrupted; no file was left half-written.")
        raise typer.Exit(INTERRUPTED) from None
    except ValueError as error:
        error_console.print(f"Error: {error}")
        raise typer.Exit(BAD_INPUT) from None
    except BrokenPipeError:  # whoever read standard output has seen enough
        raise
    except MemoryError as error:
        error_console.print(f"Error: not enough memory. {error}")
        raise typer.Exit(FAILURE) from None
    except OSError as error:
        error_console.print(f"Error: {error}")
        raise typer.Exit(FAILURE) from None
