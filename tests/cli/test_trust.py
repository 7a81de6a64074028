"""``adapt`` tells whether to trust it, and ``compare``'s baselines know the source alone."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from transferable import AutoAdapter
from transferable.tables import TableClassifier

GIVEN = ("adapt", "source.csv", "target.csv", "--label", "kind", "--id", "who")


# What it does is known: it makes the class shares of the target those of the source.
SCALED = ("--method", "perdomainscaler", "--scale", "joint")


def write_domains(counts, shift):
    """Three classes, as many source rows of each, and a target of other shares or elsewhere."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 0.0], [0.0, 6.0, 0.0]])
    names = np.array(["ant", "bee", "cat"])
    for name, sizes, offset in (("source", (40, 40, 40), 0.0), ("target", counts, shift)):
        codes = np.repeat(np.arange(3), sizes)
        X = centres[codes] + rng.normal(size=(len(codes), 3)) + offset
        table = pd.DataFrame(X, columns=["x", "y", "z"]).assign(who=range(len(codes)))
        table["truth" if name == "target" else "kind"] = names[codes]
        table.to_csv(f"{name}.csv", index=False)


@pytest.fixture
def skewed(folder):
    """A target that lacks a class and has few rows of another: scaling it by itself does harm."""
    write_domains((5, 85, 0), shift=0.0)
    return folder


def test_the_verdict_stands_beside_what_the_source_alone_says(skewed, invoke):
    result = invoke(*GIVEN, *SCALED, "--target-label", "truth", "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    lines, trust = pd.DataFrame(record["predictions"]), record["trust"]
    truth = pd.read_csv("target.csv")["truth"]
    assert record["evaluation"]["accuracy"] < 0.5
    assert np.mean(lines["source_only"] == truth) > 0.97
    assert trust["state"] in ("use", "check", "reject")
    assert trust["of"] == "AutoAdapter"
    assert trust["agreement_with_method"] < 0.6
    assert trust["changed"] == int(np.sum(lines["source_only"] != lines["prediction"])) > 40
    rows = [rows for *_, rows in trust["changes"]]
    assert sum(rows) == trust["changed"]
    assert rows == sorted(rows, reverse=True)
    assert trust["state"] != "use"  # of another method's labels
    assert trust["low"] is trust["high"] is None
    shares = trust["estimated_class_shares"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["bee"] > 0.9


def test_every_command_and_python_have_the_same_words(folder, invoke):
    write_domains((30, 30, 30), shift=0.5)
    source, target = pd.read_csv("source.csv"), pd.read_csv("target.csv").drop(columns="truth")
    model = TableClassifier(AutoAdapter(), ids=["who"]).adapt(source, "kind", target)
    given = (*GIVEN[1:], "--drop", "truth")
    texts = [
        invoke("adapt", *given, "--out", "p.csv", "--report", "r.html").stdout,
        invoke("diagnose", *given).stdout,
        invoke("compare", *given, "--methods", "coral").stdout,
    ]
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert model.trust_.title in page
    for text in texts:
        words = " ".join(text.split())
        assert [line for line in model.trust_.lines if line not in words] == []
    lines = pd.read_csv("p.csv")
    assert lines.columns[-2:].tolist() == ["source_only", "unfamiliar"]
    assert lines["prediction"].tolist() == model.predict(target).tolist()
    assert "transferable audit target.csv p.csv" in texts[0]


def test_columns_that_moved_are_scaled_alike_by_adapt_and_compare(folder, invoke):
    """Two classes, every column moved by three deviations."""
    rng = np.random.default_rng(2)
    y = np.arange(200) % 2
    for name, move in (("source", 0.0), ("target", 3.0)):
        X = rng.normal(size=(200, 3)) + 2.5 * np.outer(y - 0.5, [0.8, -0.6, 0.1])
        table = pd.DataFrame(X + move * X.std(axis=0), columns=["a", "b", "c"])
        table["kind"] = np.array(["no", "yes"])[y]
        table.to_csv(f"{name}.csv", index=False)
    given = ("source.csv", "target.csv", "--label", "kind", "--target-label", "kind", "--json")
    adapted = json.loads(invoke("adapt", *given).stdout)["evaluation"]["accuracy"]
    results = json.loads(invoke("compare", *given, "--methods", "autoadapter").stdout)["results"]
    compared = next(r["accuracy"] for r in results if r["method"] == "AutoAdapter")
    scaled = json.loads(invoke("adapt", *given, "--scale", "per-domain").stdout)["evaluation"]
    assert adapted == compared > 0.8
    assert round(200 * abs(adapted - scaled["accuracy"])) <= 2  # rows


def test_people_are_told_the_same(skewed, invoke):
    result = invoke(*GIVEN, *SCALED, "--drop", "truth", "--out", "p.csv", "--report", "r.html")
    for words in (
        "labels of a model of the source alone",
        "the accuracy cannot be estimated without labels",
        "by the source",
        "The verdict is AutoAdapter's on its own labels, which are those of PerDomainScaler",
    ):
        assert words in " ".join(result.stdout.split()), words
    page = (skewed / "r.html").read_text(encoding="utf-8")
    assert "source alone" in page
    assert pd.read_csv("p.csv").columns[-1] == "source_only"


def test_no_estimate_says_nothing_of_it(folder, invoke):
    record = json.loads(invoke(*GIVEN, "--no-estimate", "--json").stdout)
    assert record["trust"] is None
    assert "source_only" not in record["predictions"][0]


def test_baselines_of_compare_see_no_target_row(folder, invoke):
    """Whatever the target's other rows are, a row gets the same label from the source alone."""
    target = pd.read_csv("known.csv")
    moved = pd.concat([target, target.assign(f0=target["f0"] + 1e3)], ignore_index=True)
    moved["truth"] = [*target["truth"], *[None] * len(target)]
    moved.to_csv("moved.csv", index=False)
    given = ("--label", "kind", "--id", "who", "--target-label", "truth", "--methods", "coral")
    accuracies = []
    for name in ("known.csv", "moved.csv"):
        result = invoke("compare", "source.csv", name, *given, "--json")
        assert result.exit_code == 0, result.stderr
        lines = json.loads(result.stdout)["results"]
        accuracies.append({r["method"]: r["accuracy"] for r in lines if not r["adapts"]})
    assert accuracies[0] == accuracies[1]


def test_tune_searches_and_says_what_it_chose(folder, invoke):
    result = invoke(*GIVEN, "--tune", "--method", "coral", "--no-estimate", "--model", "m.tfm")
    assert result.exit_code == 0, result.stderr
    assert "of 4 settings, --tune chose transformer__regularization=" in result.stderr
    again = invoke("predict", "m.tfm", "target.csv", "--quiet")
    assert pd.read_csv(io.StringIO(again.stdout)).equals(pd.read_csv(io.StringIO(result.stdout)))
    record = json.loads(invoke("inspect", "m.tfm", "--json").stdout)
    assert record["method"] == "CORAL"
    refused = invoke(*GIVEN, "--tune", "--method", "perdomainscaler")
    assert refused.exit_code == 2
    assert "--tune has no settings" in refused.stderr


@pytest.mark.parametrize("method", ["tfdf", "meda", "jda", "spl"])
def test_tune_knows_the_settings_of_every_family(folder, invoke, method):
    result = invoke(*GIVEN, "--tune", "--method", method, "--no-estimate")
    assert result.exit_code == 0, result.stderr
    said = re.search(r"of (\d+) settings, --tune chose (\S+)=", result.stderr)
    assert said is not None, result.stderr
    assert int(said[1]) > 1
    assert len(result.stdout.splitlines()) == 25
