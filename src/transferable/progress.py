"""Progress: the current stage, the share done, time taken and time left, as a bar or as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from threading import Event, Thread, Timer
from time import monotonic
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from transferable.events import Event as Happening
from transferable.events import Progress, listen
from transferable.limits import LIMITS

_WIDTH = 30
_BETWEEN_LINES = 10.0  # seconds, where there is no terminal to draw on

T = TypeVar("T")


class Bar(ExitStack):
    """Bar on a terminal, drawn once a step takes long and removed when it is done.

    It shows the stages and rounds of the fits within it. The time left is an estimate: rounds may
    end early, and steps may differ in length. Where there is no terminal, it is a line every ten
    seconds and, with a patience of 0, one for each stage; in a notebook one line that is updated
    every second. `printed` is when the last line was.
    """

    def __init__(
        self,
        console: Console,
        what: str,
        *,
        drawn: bool,
        patience: float | None = None,
        printed: float | None = None,
    ) -> None:
        super().__init__()
        self._drawn, self._console = drawn, console
        self._lines = console.is_jupyter or not console.is_terminal
        self._between = 1.0 if console.is_jupyter else _BETWEEN_LINES
        self._cell: Any = None  # a notebook's line
        self._named: set[str] = set()  # stages that have a line
        self._begun = monotonic()
        self.printed = self._begun if printed is None else printed
        self._title = self._what = what
        self._share: float | None = None
        self._detail = ""
        self._stage_begun = self._updated = self._begun
        self._step: tuple[float, float, str] | None = None
        self._patience = LIMITS.awaited_seconds if patience is None else patience
        self._ended = Event()

    def __enter__(self) -> Self:
        if self._drawn:
            self.enter_context(listen(self.update))
        if self._drawn and self._lines:
            if self._patience == 0.0:
                self._print()
            printing = Thread(target=self._keep_printing, daemon=True)
            for end in (printing.join, self._ended.set):  # the last first
                self.callback(end)
            printing.start()
        elif self._drawn:
            live = Live(
                console=self._console,
                get_renderable=self.__rich__,
                refresh_per_second=8,
                transient=True,
                redirect_stdout=False,  # results must not mix with messages
                redirect_stderr=False,
            )
            timer = Timer(self._patience, live.start)
            timer.daemon = True
            for end in (live.stop, timer.join, timer.cancel):  # the last first
                self.callback(end)
            timer.start()
            if self._patience == 0.0:
                timer.join()
        return self

    def update(self, event: Happening) -> None:
        """Record the current stage, the share of it that is done, and its present step."""
        if not isinstance(event, Progress):
            return
        what, share, detail = event.what, event.share, event.detail
        if self._step is not None:
            before, part, detail = self._step
            what, share = self._title, before + part * (share or 0.0)
        if what != self._what or not share:  # rounds may begin anew under the same name
            self._what, self._stage_begun = what, monotonic()
        self._share, self._detail, self._updated = share, detail, monotonic()
        late = self._updated - self.printed > self._between
        named = self._patience > 0.0 or self._what in self._named
        if self._drawn and self._lines and (late or not named):
            self._print()

    def tick(self, share: float, detail: str = "") -> None:
        """Record the share that is done of the bar's own task."""
        self.update(Progress(self._title, share, detail))

    def through(self, steps: Iterable[T], name: Callable[[T], str]) -> Iterator[T]:
        """Iterate over steps, whose names are shown."""
        everything = list(steps)
        for i, step in enumerate(everything):
            self._step = (i / len(everything), 1 / len(everything), name(step))
            self.tick(0.0)
            yield step
        self._step = None

    def _keep_printing(self) -> None:
        """Print a line as often as that is due, also where a step takes longer than that."""
        while not self._ended.wait(max(0.0, self.printed + self._between - monotonic())):
            if monotonic() - self.printed >= self._between:
                self._print()

    def _print(self) -> None:
        """Print the stage and, once it takes time, the share that is done and the times."""
        self.printed = monotonic()
        what, times = self._words()
        done = f": {self._share:.0%}, {times}" if self._share else ""
        if not done and self.printed - self._begun >= 1.0:
            done = f": {times}"
        self._named.add(self._what)
        if not self._console.is_jupyter:
            self._console.print(what + done, soft_wrap=True, markup=False, highlight=False)
            return
        from IPython.display import display

        line = {"text/plain": what + done}
        if self._cell is None:
            self._cell = display(line, raw=True, display_id=True)
        else:
            self._cell.update(line, raw=True)

    def _words(self) -> tuple[str, str]:
        """Return the stage, and the time that it has taken and is likely to take."""
        now, share = monotonic(), self._share
        times = f"{_clock(now - self._begun)} elapsed"
        if share:
            waited = now - self._updated
            left = (self._updated - self._stage_begun) * (1.0 - share) / share - waited
            times += f", about {_clock(max(left, waited))} left"
        return f"{self._what}: {self._detail}" if self._detail else self._what, times

    def __rich__(self) -> Table:
        """Draw the stage, the share of it that is done, and the times, on one line."""
        what, times = self._words()
        share = self._share or 0.0
        bar = ProgressBar(total=1.0, completed=share, width=_WIDTH, pulse=not share)
        line = Table.grid(padding=(0, 1))
        line.add_row(what, bar, times)
        return line


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def shown(what: str) -> Bar:
    """Return a bar or lines on standard error, shown at once, for ``verbose=True``."""
    return Bar(Console(stderr=True), what, drawn=True, patience=0.0)
