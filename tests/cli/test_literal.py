"""Text of files and of users is printed literally: no character of it controls the terminal."""

import io
import subprocess
import sys
import unicodedata
from pathlib import Path

import pandas as pd
import pytest

from transferable._files import visible
from transferable.cli import predict

HOSTILE = "\x1b[31m\x07\x9b2J\u202e\x00[bold]:bee:"
SHOWN = r"\x1b[31m\x07\x9b2J\u202e\x00[bold]:bee:"
CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")


def controls(text):
    return {c for c in text if c != "\n" and unicodedata.category(c) in CONTROLS}


@pytest.fixture
def hostile(folder):
    """Two files whose names, columns and labels are hostile, and the options to adapt them."""
    text = HOSTILE.replace("\x00", "")
    for name in ("source.csv", "target.csv"):
        table = pd.read_csv(name).drop(columns="who")
        if "kind" in table:
            table["kind"] = table["kind"].replace("ant", text)
        table = table.rename(columns={"f0": f"f0{text}", "kind": f"kind{text}"})
        table.assign(**{f"only{name}{text}": 1}).to_csv(f"{text}{name}", index=False)
    return [f"{text}source.csv", f"{text}target.csv", "--label", f"kind{text}"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("adapt", "--no-estimate", "--method", "coral", "--out", f"p{HOSTILE[:-14]}.csv"),
        ("adapt", "--method", "coral", "--out", "p.csv"),
        ("adapt", "--no-estimate", "--id", f"nothing{HOSTILE[:4]}"),
        ("adapt", "--no-estimate", "--set", f"{HOSTILE[:6]}=1"),
        ("diagnose",),
        ("compare", "--methods", "coral"),
    ],
    ids=str,
)
def test_names_and_labels_of_files(arguments, hostile, invoke):
    command, *options = arguments
    result = invoke(command, *hostile, *options)
    assert result.exit_code in (0, 2), result.stderr
    assert controls(result.output) == set()
    assert r"\x1b[31m" in result.output


def test_predictions_and_descriptions_of_models(hostile, invoke, monkeypatch):
    given = ("--no-estimate", "--method", "coral", "--quiet", "--model", "m.tfm")
    assert invoke("adapt", *hostile, *given).exit_code == 0
    result = invoke("predict", "m.tfm", hostile[1], "--out", "p.csv")
    assert result.exit_code == 0, result.stderr
    assert controls(result.output) == set()
    about = predict.about
    monkeypatch.setattr(
        predict, "about", lambda path: about(path) | {HOSTILE: HOSTILE, "saved": [HOSTILE]}
    )
    monkeypatch.setenv("COLUMNS", "200")
    result = invoke("inspect", "m.tfm")
    assert result.exit_code == 0, result.stderr
    assert controls(result.output) == set()
    assert result.output.count(SHOWN) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        (HOSTILE,),
        (f"--{HOSTILE}",),
        ("demo", f"--{HOSTILE}"),
        ("demo", HOSTILE),
        ("inspect", f"no{HOSTILE[:4]}.tfm"),
        ("predict", "a", "b", "--out", f"{HOSTILE[:4]}/p.csv"),
    ],
    ids=ascii,
)
def test_usage_errors(arguments, folder, invoke):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert controls(result.output) == set()
    unwrapped = "".join(result.output.replace("│", " ").split())
    assert r"\x1b" in unwrapped


class Screen(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("screen", [Screen(), io.StringIO()], ids=["terminal", "pipe"])
def test_predictions_are_escaped_on_terminals_and_exact_elsewhere(screen, hostile, monkeypatch):
    from transferable.cli._console import writing

    monkeypatch.setattr(sys, "stdout", screen)
    table = pd.DataFrame({HOSTILE: ["a", HOSTILE]})
    with writing(None) as write:
        write(table)
        write(table)
    exact = f"{HOSTILE}\na\n{HOSTILE}\na\n{HOSTILE}\n"
    assert screen.getvalue() == (visible(exact) if screen.isatty() else exact)


def test_warnings():
    code = f"""
import warnings, transferable.cli as cli
cli.app = lambda: warnings.warn({HOSTILE!r})
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert controls(done.stderr) == set()
    assert f"UserWarning: {SHOWN}\n" in done.stderr


def test_letters_signs_spaces_and_lines_stay():
    text = "naïve 日本\u3000語 1\u00a0000 😀\n"
    assert visible(text) == text
    assert visible(Path("a\udc80\t\r\x7f")) == r"a\udc80\t\r\x7f"
