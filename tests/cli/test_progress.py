"""The time left: a bar on terminals once work takes long, elsewhere a line every ten seconds."""

import io
import os
import pty
import re
import sys
import threading
import time
import types

import pytest
from rich.console import Console

from paper.__main__ import app as paper
from problems import small_problem
from toys import install
from transferable import TFDF, progress
from transferable.classifiers import AdaptedClassifier
from transferable.cli import app
from transferable.cli._console import Messages
from transferable.events import Iterate, Progress, listen, rounds, stage
from transferable.limits import LIMITS

ADAPT = ("adapt", "source.csv", "target.csv", "--label", "kind", "--id", "who")
ADAPT += ("--method", "jda", "--no-estimate")  # ten rounds
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ENDS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]+")


@pytest.fixture
def terminal():
    """Run a command whose standard error is a terminal; what that shows, line by line."""

    shown = bytearray()

    def run(*arguments, app=app):
        ours, theirs = pty.openpty()

        def listen():
            try:
                while piece := os.read(ours, 4096):
                    shown.extend(piece)
            except OSError:  # how the end of a terminal is told
                pass

        listener = threading.Thread(target=listen)
        listener.start()
        results = io.StringIO()
        with os.fdopen(theirs, "w") as stream, pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "120")
            patch.setattr(sys, "stdout", results)
            patch.setattr(sys, "stderr", stream)
            app([str(a) for a in arguments], standalone_mode=False)
        listener.join()
        os.close(ours)
        lines = ENDS.split(COLOURS.sub("", shown.decode()))
        return [line for line in lines if line], results.getvalue()

    def wait(stage="Adapting"):
        """Wait until the time left of a stage is shown, as it is once a part is done and drawn."""
        end = time.monotonic() + 0.5
        drawn = re.compile(rf"{stage}[^\r\n]* left")
        while not drawn.search(shown.decode(errors="ignore")) and time.monotonic() < end:
            time.sleep(0.01)

    run.wait = wait
    return run


@pytest.fixture
def eager(monkeypatch):
    """Have bars drawn earlier than people need them."""
    monkeypatch.setattr(LIMITS, "awaited_seconds", 0.05)


@pytest.fixture
def slow(eager):
    """Have rounds take long enough for a bar."""
    with listen(lambda event: time.sleep(0.03) if isinstance(event, Iterate) else None):
        yield


def delay_fits(monkeypatch, wait):
    """Wait before every fit of JDA's classifier: its rounds may be shared, or not heard here."""
    fit = AdaptedClassifier._fit_domains
    monkeypatch.setattr(AdaptedClassifier, "_fit_domains", lambda *a: wait() or fit(*a))


@pytest.mark.usefixtures("eager")
def test_a_long_fit_shows_what_is_done_and_the_time_left(folder, terminal):
    with listen(lambda event: terminal.wait() if isinstance(event, Iterate) else None):
        lines, results = terminal(*ADAPT)
    bars = [line for line in lines if line.startswith("Adapting")]
    assert any("elapsed" in line for line in bars)
    assert any(re.search(r"about \d+:\d\d left", line) for line in bars)
    assert results.startswith("who,prediction")
    assert len(results.splitlines()) == 25, "results are not mixed up with progress"


@pytest.mark.usefixtures("eager")
def test_tuning_shows_the_time_left(folder, terminal, monkeypatch):
    delay_fits(monkeypatch, lambda: terminal.wait("Trying"))
    lines, _ = terminal(*ADAPT, "--set", "max_iter=1", "--tune")
    assert any(
        re.search(r"Trying settings: \d+ of \d+ .*about \d+:\d\d left", line) for line in lines
    )


@pytest.mark.usefixtures("eager")
def test_reproducing_shows_the_task_and_the_time_left(tmp_path, terminal, monkeypatch):
    install(monkeypatch)
    delay_fits(monkeypatch, lambda: terminal.wait("Computing"))
    command = ("coil", "--methods", "JDA", "--jobs", "1", "--out", tmp_path)
    lines, results = terminal(*command, app=paper)
    assert any(
        re.search(r"^Computing: coil COIL\d->COIL\d .*about \d+:\d\d left", line) for line in lines
    )
    assert "COIL1" in results


def test_a_short_fit_shows_none(folder, terminal):
    lines, _ = terminal(*ADAPT)
    assert lines
    assert not any("elapsed" in line for line in lines)


@pytest.mark.usefixtures("slow")
def test_quiet_means_quiet(folder, terminal):
    lines, _ = terminal(*ADAPT, "--quiet")
    assert lines == []


@pytest.mark.usefixtures("slow")
def test_nothing_is_drawn_where_messages_are_piped(folder, invoke):
    result = invoke(*ADAPT)
    assert "elapsed" not in result.output
    assert "\x1b" not in result.output


@pytest.mark.parametrize(("awaited", "drawn"), [(60.0, False), (0.05, True)])
def test_a_bar_is_drawn_once_people_have_waited_and_not_before(awaited, drawn, monkeypatch):
    monkeypatch.setattr(LIMITS, "awaited_seconds", awaited)
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress.Bar(console, "Working", drawn=True):
        end = time.monotonic() + (10.0 if drawn else 0.5)
        while "Working" not in console.file.getvalue() and time.monotonic() < end:
            time.sleep(0.02)
    assert ("Working" in console.file.getvalue()) is drawn


@pytest.fixture
def bar():
    """A bar that is drawn when asked, on a clock that stands still until it is moved."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress.Bar(console, "Working", drawn=True) as made:
        yield made


def text(bar, width=120):
    console = Console(file=io.StringIO(), width=width)
    console.print(bar)
    return " ".join(console.file.getvalue().split())


def test_rounds_and_stages_of_the_library_are_heard(bar):
    assert text(bar).startswith("Working")
    stage("Computing the kernel")
    assert text(bar).startswith("Computing the kernel")
    assert "left" not in text(bar)
    counted = rounds(4)
    next(counted)
    next(counted)
    assert text(bar).startswith("Adapting")
    assert "left" in text(bar)


def test_time_left_follows_from_the_share_that_is_done(bar, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr(progress, "monotonic", lambda: now + 30)
    bar.tick(0.25)
    assert "0:30 elapsed, about 1:30 left" in text(bar)
    monkeypatch.setattr(progress, "monotonic", lambda: now + 50)
    assert "0:50 elapsed, about 1:10 left" in text(bar)
    monkeypatch.setattr(progress, "monotonic", lambda: now + 3 * 3600)
    assert "3:00:00 elapsed, about 2:59:30 left" in text(bar), "late steps go on being late"


def test_rounds_that_begin_anew_are_timed_anew(bar, monkeypatch):
    now = time.monotonic()
    for seconds, share in ((10, 0.0), (20, 0.5), (30, 0.0), (34, 0.5)):
        monkeypatch.setattr(progress, "monotonic", lambda seconds=seconds: now + seconds)
        bar.update(Progress("Adapting", share))
    assert "0:34 elapsed, about 0:04 left" in text(bar)


def test_rounds_within_steps_are_parts_of_the_whole(bar):
    lengths = []
    for step in bar.through(["a", "b"], name=str.upper):
        lengths += [text(bar).count("━") for _ in rounds(2)]
        assert f"Working: {step.upper()}" in text(bar)
    whole = 30
    assert lengths[1:] == [int(whole * share) for share in (0.25, 0.5, 0.75)]


def test_without_a_terminal_stages_and_every_tenth_second_are_lines(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=20)
    with progress.Bar(console, "Adapting", drawn=True, patience=0.0):
        stage("Computing the kernel")
        for i in rounds(95, "Trying [bold] settings"):
            now[0] = float(i)
        stage("Computing the kernel")
    lines = console.file.getvalue().splitlines()
    assert lines[:4] == [
        "Adapting",
        "Computing the kernel",
        "Trying [bold] settings",
        "Trying [bold] settings: 13%, 0:11 elapsed, about 1:16 left",
    ]
    assert len(lines) == 3 + 8, "none for a stage that has one"
    with progress.Bar(console, "Working", drawn=False) as hidden:
        hidden.tick(0.5)
    assert len(console.file.getvalue().splitlines()) == len(lines)


def test_a_long_command_prints_a_line_every_ten_seconds_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(progress, "_BETWEEN_LINES", 0.3)
    messages = Messages()
    messages._console = console = Console(file=io.StringIO(), width=20)
    with messages.bar("Adapting") as bar:
        stage("Fitting candidates", 0.5, "3 of 7, TFDF")
        assert console.file.getvalue() == "", "no line yet"
        time.sleep(0.8)  # in a step that reports nothing
    with messages.bar("Judging the labels"):
        stage("Judging the labels")
        assert bar.printed == messages._bar.printed, "it is counted from the last line of all"
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("Fitting candidates: 3 of 7, TFDF: 50%, 0:0")
    assert re.search(r"about \d+:\d\d left$", lines[0])
    with Messages(quiet=True).bar("Adapting") as bar:
        time.sleep(0.4)
    assert bar.printed == pytest.approx(bar._begun, abs=0.1)


def test_verbose_fits_print_lines_where_there_is_no_terminal(capsys):
    problem = small_problem(n_source=30, n_target=24)
    TFDF(verbose=True).adapt(problem.Xs, problem.ys, problem.Xt)
    shown = capsys.readouterr()
    assert shown.err.splitlines()[0] == "Adapting"
    assert "\x1b" not in shown.err
    assert shown.out == ""


def test_a_notebook_has_one_line_that_is_updated(monkeypatch):
    lines = []

    class Cell:
        def update(self, data, *, raw):
            lines.append(data["text/plain"])

    def display(data, *, raw, display_id):
        Cell().update(data, raw=raw)
        return Cell()

    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    console = Console(file=io.StringIO(), force_jupyter=True)
    with progress.Bar(console, "Work", drawn=True, patience=0.0) as bar:
        bar.update(Progress("Other work", 0.5))
    assert lines[0] == "Work"
    assert lines[-1].startswith("Other work: 50%")
    assert console.file.getvalue() == ""
