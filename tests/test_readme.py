"""What the README shows runs, and what it lists exists."""

import re
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from transferable import all_estimators, datasets
from transferable.cli import app

README = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")


def test_python_blocks_run(tmp_path, monkeypatch):
    """In order and in one session, with fewer digits and the two files that the demo writes."""
    monkeypatch.chdir(tmp_path)
    task = datasets.load_printed_to_handwritten()
    task.update(Xs=task.Xs[:420], ys=task.ys[:420])
    monkeypatch.setattr(datasets, "load_printed_to_handwritten", lambda **_: task)
    assert CliRunner().invoke(app, ["demo", "--export", "."]).exit_code == 0

    session = {}
    blocks = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), session)  # noqa: S102
    assert np.mean(session["later"] == task.yt[1500:]) > 0.5
    assert set(session["target"]["digit"]) <= set(range(10))


def test_methods_listed_are_the_methods_there_are():
    listed = set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE))
    assert listed == {name for name, _ in all_estimators()}
