"""``transferable adapt`` with several sources, and with a few target labels."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from transferable.cli import app

RUNNER = CliRunner()


def rows(n, shift, seed):
    y = np.arange(n) % 2
    X = np.random.default_rng(seed).normal(size=(n, 4)) + 3 * y[:, None] + shift
    return pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(y, "up", "down"))


@pytest.fixture
def folder(tmp_path):
    rows(40, 0.0, 1).assign(extra=1).to_csv(tmp_path / "one.csv", index=False)
    rows(30, 4.0, 2).to_csv(tmp_path / "two.csv", index=False)
    target = rows(30, 1.5, 3)
    target.drop(columns="kind").to_csv(tmp_path / "target.csv", index=False)
    partly = target.assign(kind=target["kind"].where(np.arange(30) < 6))
    partly.to_csv(tmp_path / "partly.csv", index=False)
    return tmp_path


def adapt(folder, *arguments):
    named = [str(folder / a) if a.endswith(".csv") else a for a in arguments]
    return RUNNER.invoke(app, ["adapt", *named, "--label", "kind", "--no-estimate"])


def test_the_last_of_several_files_is_the_target(folder):
    result = adapt(folder, "one.csv", "two.csv", "target.csv", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert (record["n_source"], record["n_target"], record["method"]) == (70, 30, "AutoAdapter")
    labels = [line["prediction"] for line in record["predictions"]]
    assert np.mean(np.array(labels) == rows(30, 1.5, 3)["kind"]) > 0.85
    told = " ".join(record["notes"])
    assert "2 sources: one.csv (40 rows), two.csv (30 rows)." in told
    assert "one.csv: column 'extra' is not in every source and is left out." in told
    assert sorted(record["features"]) == list("abcd")


def test_sources_are_weighted_by_a_method_that_weights_them(folder):
    result = adapt(folder, "one.csv", "two.csv", "target.csv", "--json", "--method", "tfdf")
    assert "2 sources: one.csv (40 rows) counts" in " ".join(json.loads(result.stdout)["notes"])


def test_a_method_that_cannot_tell_sources_apart_says_who_can(folder):
    result = adapt(folder, "one.csv", "two.csv", "target.csv", "--method", "easytl")
    assert result.exit_code == 2
    assert "EasyTL takes no several sources; ARTL, AutoAdapter, BDA" in result.output


def test_target_labels_are_learnt_from_if_asked(folder):
    given = "one.csv", "partly.csv", "--target-label", "kind"
    evaluated = adapt(folder, *given, "--json")
    assert json.loads(evaluated.stdout)["evaluation"]["rows"] == 6
    result = adapt(folder, *given, "--use-target-labels", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["evaluation"] is None
    assert record["parameters"]["target_labels"] == "use"
    labels = [line["prediction"] for line in record["predictions"]][:6]
    assert labels == rows(30, 1.5, 3)["kind"][:6].tolist()
    told = adapt(folder, *given, "--use-target-labels", "--out", "labels.csv").output
    assert "The 6 values in 'kind' were learnt from" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--use-target-labels"], "needs --target-label"),
        (["--use-target-labels", "--target-label", "kind", "--method", "jda"], "methods that have"),
        (["--use-target-labels", "--target-label", "kind", "--tune"], "without target labels"),
    ],
)
def test_what_cannot_use_target_labels_is_refused(folder, arguments, message):
    result = adapt(folder, "one.csv", "partly.csv", *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_report_shows_one_source(folder):
    result = adapt(folder, "one.csv", "two.csv", "target.csv", "--report", str(folder / "r.html"))
    assert result.exit_code == 2
    assert "one source and one target" in result.output
