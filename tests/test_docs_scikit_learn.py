"""Every block of docs/scikit-learn.md runs, and what the page says of each tool is so."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression

PAGE = Path(__file__).parents[1].joinpath("docs", "scikit-learn.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def run(blocks, **config):
    """The names that blocks leave behind; no setting of scikit-learn outlives them."""
    session = {}
    with sklearn.config_context(**config):
        for block in blocks:
            exec(compile(block, "docs/scikit-learn.md", "exec"), session)  # noqa: S102
    return session


def test_blocks_run_in_order():
    ours = [block for block in BLOCKS if "skada" not in block]
    assert len(ours) >= 10
    session = run(ours)
    assert session["Z"].shape == session["X"].shape
    assert len(session["scores"]) == 2
    assert set(session["search"].best_params_) == {"tfdfv__alignment"}
    assert session["calibrated"].classes_.tolist() == [0, 1, 2, 3]
    assert session["model"].n_landmarks_ == 100
    assert not sklearn.get_config()["enable_metadata_routing"]


def test_an_adapter_runs_in_a_pipeline_of_skada():
    with sklearn.config_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of skada's imports
        pytest.importorskip("skada")
    needed = [block for block in BLOCKS if "skada" in block or "import" in block]
    few = [block for block in needed if "cross_val" not in block and "Search" not in block]
    session = run(few, enable_metadata_routing=True)  # as importing skada does
    task, adapted = session["task"], session["pipeline"]
    assert adapted[-1].base_estimator_.classes_.tolist() == [0, 1, 2, 3], "no class for target rows"
    moved = session["CORAL"]()
    rows = sklearn.preprocessing.StandardScaler().fit_transform(session["X"])
    Z = moved.fit_transform(rows, sample_domain=session["domain"])
    alone = LogisticRegression().fit(Z[: len(task.Xs)], task.ys)
    expected = alone.score(Z[len(task.Xs) :], task.yt)
    assert adapted.score(task.Xt, task.yt) == pytest.approx(expected, abs=0.01)
    assert np.isfinite(expected)
