"""Two small tables as files in an empty folder, and the command line run there."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from problems import small_problem
from transferable.cli import app

NAMES = np.array(["ant", "bee", "cat"])


def table(X, codes, prefix):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    frame.insert(0, "who", [f"{prefix}{i}" for i in range(len(X))])
    frame["habitat"] = np.where(X[:, 0] > 0, "wet", "dry")
    frame["kind"] = NAMES[codes]
    return frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with source.csv, which has labels, and target.csv, which has none."""
    monkeypatch.chdir(tmp_path)
    problem = small_problem(n_source=30, n_target=24, n_features=5)
    source = table(problem.Xs, problem.ys, "s")
    target = table(problem.Xt, problem.yt, "t")
    source.to_csv("source.csv", index=False)
    target.drop(columns="kind").to_csv("target.csv", index=False)
    target.rename(columns={"kind": "truth"}).to_csv("known.csv", index=False)
    return tmp_path


@pytest.fixture
def invoke():
    """The command line."""

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run
