"""The command line as a whole."""

import signal
import subprocess
import sys
import warnings

import pytest
from typer.testing import CliRunner

from transferable import __version__, cli
from transferable.cli import COMMANDS, app, imported

runner = CliRunner()


def test_help_names_every_command():
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    for name in COMMANDS:
        assert name in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_says_what_each_of_them_says(name):
    assert " ".join(imported(name).help.split("\n\n")[0].split()) == COMMANDS[name].summary


def test_version():
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"transferable {__version__}\n")


def test_unknown_command_is_a_usage_error():
    result = runner.invoke(app, ["adopt"])
    assert result.exit_code == 2
    assert "adopt" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ad", {"adapt"}),
        ("adapt --scale ", {"auto", "per-domain", "joint", "none", "unit"}),
        ("adapt --device c", {"cpu", "cuda"}),
        ("adapt --n-landmarks ", {"auto", "none"}),
        ("adapt --method tfd", {"tfdf", "tfdfv"}),
        ("compare --methods coral,jda", {"coral,jda"}),
    ],
)
def test_shells_complete_commands_and_words(typed, offered):
    words = ["transferable", *typed.split(" ")]
    asked = {
        "_TRANSFERABLE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    result = runner.invoke(app, [], prog_name="transferable", env=asked)
    assert set(result.stdout.split()) == offered


LOST = """
import os, signal, time, typer, weakref
from transferable.cli import prepare_process
from transferable.cli._console import reporting

class Thing:
    pass

prepare_process()
thing = Thing()
watch = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.{name}))
try:
    with reporting():
        del thing  # what the signal raises is lost here
        time.sleep(20)
except typer.Exit as end:
    raise SystemExit(end.exit_code)
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_that_python_cannot_raise_is_sent_again(name, code):
    program = (sys.executable, "-c", LOST.format(name=name))
    done = subprocess.run(program, capture_output=True, text=True, timeout=15, check=False)
    assert done.returncode == code, done.stderr
    assert "ignored" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_none_that_is_needed(closed):
    line = f"{sys.executable} -m transferable adopt {closed}"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def process(monkeypatch):
    """Give back what the command line changes of a process, and have it start without streams."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("predict nothing.tfm target.csv", 2),
        ("adapt source.csv target.csv --label kind --id who --no-estimate --method coral", 0),
    ],
)
@pytest.mark.usefixtures("process")
def test_commands_need_no_stream(command, code, folder, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["transferable", *command.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == code
