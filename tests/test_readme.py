"""What the README shows runs, and what it lists exists."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from transferable import all_estimators, datasets

README = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")


def test_python_blocks_run(tmp_path, monkeypatch):
    """In order and in one session, with fewer printed digits and the two files of a reader."""
    monkeypatch.chdir(tmp_path)
    task = datasets.load_printed_to_handwritten()
    task.update(Xs=task.Xs[:420], ys=task.ys[:420])
    monkeypatch.setattr(datasets, "load_printed_to_handwritten", lambda: task)
    columns = [f"pixel {i}" for i in range(task.Xs.shape[1])]
    source = pd.DataFrame(task.Xs, columns=columns)
    source["label"] = [f"digit {d}" for d in task.ys]
    source.to_csv("source.csv", index=False)
    pd.DataFrame(task.Xt[:200], columns=columns).to_csv("target.csv", index=False)

    session = {}
    blocks = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), session)  # noqa: S102
    assert np.mean(session["later"] == task.yt[1500:]) > 0.5
    assert set(session["target"]["label"]) <= set(source["label"])


def test_methods_listed_are_the_methods_there_are():
    listed = set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE))
    assert listed == {name for name, _ in all_estimators()}
