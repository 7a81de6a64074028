"""``transferable adapt`` over many Parquet files."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from problems import small_problem
from transferable import TFDFV, load

P = small_problem(3, n_source=90, n_target=72, n_features=4)
NAMES = np.array(["ant", "bee", "cat"])
GIVEN = ("adapt", "source/*.parquet", "target", "--label", "kind", "--id", "who", "--out", "out")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Three files of source rows with labels, and three of target rows, one of them empty."""
    monkeypatch.chdir(tmp_path)
    source = pd.DataFrame(P.Xs, columns=list("abcd")).assign(kind=NAMES[P.ys])
    target = pd.DataFrame(P.Xt, columns=list("abcd"))
    for name, rows, cuts in (
        ("source", source, (0, 30, 40, 90)),
        ("target", target, (0, 50, 50, 72)),
    ):
        rows.insert(0, "who", [f"{name}{i}" for i in range(len(rows))])
        (tmp_path / name).mkdir()
        for i, (start, end) in enumerate(pairwise(cuts)):
            rows.iloc[start:end].to_parquet(tmp_path / name / f"part{i}.parquet", index=False)
    return tmp_path


def test_each_file_of_the_target_gets_one_of_predictions(folders, invoke):
    more = "--method", "tfdfv", "--set", "manifold_dim=2", "--n-landmarks", "20"
    result = invoke(*GIVEN, *more, "--workers", "2", "--json", "--model", "m.tfm")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert sorted(path.name for path in (folders / "out").iterdir()) == [
        f"part{i}.parquet" for i in range(3)
    ]
    parts = [pd.read_parquet(folders / "out" / f"part{i}.parquet") for i in range(3)]
    assert [len(part) for part in parts] == [50, 0, 22]
    lines = pd.concat(parts)
    assert lines["who"].tolist() == [f"target{i}" for i in range(72)]
    local = TFDFV(n_landmarks=20, manifold_dim=2, graph="anchors")
    local.adapt(P.Xs, NAMES[P.ys], P.Xt)
    assert lines["prediction"].tolist() == local.predict(P.Xt).tolist()
    assert lines["prediction"].value_counts().to_dict() == {
        name: rows for name, rows in record["predicted"].items() if rows
    }
    model = load(folders / "m.tfm")
    assert model.predict(pd.DataFrame(P.Xt, columns=list("abcd"))).tolist() == list(
        lines["prediction"]
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--method", "capls"), "--method capls is not for clusters"),
        (("--tune",), "--tune cannot be had with --scheduler or --workers"),
        (("--label", "species"), "no column 'species' of labels"),
        (("--out", "target"), "holds the target's own files"),
        (("--out", "p.csv"), "names a folder"),
        (("--scheduler", "tcp://127.0.0.1:1"), "exclude each other"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(more, message, folders, invoke):
    result = invoke(*GIVEN, "--workers", "2", *more)
    assert result.exit_code == 2
    assert message in result.stderr


def test_patterns_that_the_shell_has_expanded(folders, invoke):
    files = sorted(folders.glob("*/part*.parquet"))
    result = invoke("adapt", *files, "--label", "kind", "--workers", "1", "--out", "out")
    assert result.exit_code == 2
    assert "6 files were named; on a cluster" in result.stderr


def test_files_that_are_not_there(folders, invoke):
    result = invoke("adapt", "none/*.parquet", "target", "--label", "kind", "--workers", "1")
    assert result.exit_code == 2
    assert "no file matches none/*.parquet" in result.stderr
