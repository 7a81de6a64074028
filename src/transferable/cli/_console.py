"""Where commands write: results to standard output, messages and progress to standard error."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from transferable.progress import Bar

__all__ = ["BAD_INPUT", "FAILURE", "INTERRUPTED", "Messages", "heed_signals", "reporting", "stdout"]

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130


def stdout() -> Console:
    """Return a console for results, on whatever standard output is now."""
    return Console(highlight=False)


class Messages:
    """Notes, which are remembered, and progress; both on standard error, unless told to be quiet.

    Progress is drawn on terminals only.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.notes: list[str] = []
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

    def note(self, text: str, kind: str = "Note") -> None:
        """Tell something worth knowing, once."""
        if text not in self.notes:
            self.notes.append(text)
            self.say(f"{kind}: {text}")

    def say(self, text: str) -> None:
        """Tell something in passing."""
        if not self._quiet:
            self._console.print(text)

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Within, tell what fits note and warn of as soon as they do, not when they are done."""
        from transferable.events import Event, Note, listen

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
        """Return a bar that shows what takes its time; hidden where it would be in the way."""
        from transferable.progress import Bar

        drawn = self._console.is_terminal and not self._quiet and not hidden
        return Bar(self._console, what, drawn=drawn)


_interruptions: list[int] = []


def heed_signals() -> None:
    """Let what is being written be cleared away when the process is told to end.

    Readers of files written in C may take an interruption for a failed read, so it is noted too.
    Where Python cannot raise it, as while an object is let go of, the signal is sent again.
    """

    def interrupt(*_: Any) -> None:
        _interruptions.append(signal.SIGINT)
        raise KeyboardInterrupt

    def end(*_: Any) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    def send_again(lost: Any) -> None:
        signals = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}
        if lost.exc_type in signals:
            Timer(0.01, os.kill, (os.getpid(), signals[lost.exc_type])).start()
        else:
            sys.__unraisablehook__(lost)

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, end)
    sys.unraisablehook = send_again


@contextmanager
def reporting(
    interrupted: str = "Interrupted; no file was left half-written.",
) -> Iterator[None]:
    """Turn errors into one line on standard error and an exit code.

    Input that cannot be used (ValueError) ends with 2, an interruption with 130 and
    whatever else goes wrong on the way with 1.
    """
    error_console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    try:
        yield
    except KeyboardInterrupt:
        error_console.print(interrupted)
        raise typer.Exit(INTERRUPTED) from None
    except ValueError as error:
        if _interruptions:
            error_console.print(interrupted)
            raise typer.Exit(INTERRUPTED) from None
        error_console.print(f"Error: {_in_one_line(error)}")
        raise typer.Exit(BAD_INPUT) from None
    except BrokenPipeError:  # whoever read standard output has seen enough
        raise
    except MemoryError as error:
        error_console.print(f"Error: not enough memory. {_in_one_line(error)}")
        raise typer.Exit(FAILURE) from None
    except OSError as error:
        error_console.print(f"Error: {_in_one_line(error)}")
        raise typer.Exit(FAILURE) from None


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
