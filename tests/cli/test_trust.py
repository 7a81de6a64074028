"""``adapt`` tells whether to trust it, and ``compare``'s baselines know the source alone."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest

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


def test_harm_is_told_beside_what_the_source_alone_says(skewed, invoke):
    result = invoke(*GIVEN, *SCALED, "--target-label", "truth", "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    lines, trust = pd.DataFrame(record["predictions"]), record["trust"]
    truth = pd.read_csv("target.csv")["truth"]
    assert record["evaluation"]["accuracy"] < 0.5
    assert np.mean(lines["source_only"] == truth) > 0.97
    assert trust["verdict"] == "doubtful"
    assert "adapting may do harm" in trust["warning"]
    assert "PerDomainScaler gets" in trust["warning"]
    assert trust["changed"] == int(np.sum(lines["source_only"] != lines["prediction"])) > 40
    rows = [change["rows"] for change in trust["changes"]]
    assert sum(rows) == trust["changed"]
    assert rows == sorted(rows, reverse=True)
    for found in trust["estimated_accuracy"].values():
        assert 0 <= found["low"] <= found["accuracy"] <= found["high"] <= 1
    shares = trust["estimated_class_shares"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["bee"] > 0.9


def test_no_warning_where_adapting_is_what_it_takes(folder, invoke):
    write_domains((30, 30, 30), shift=4.0)
    given = (*GIVEN, *SCALED, "--target-label", "truth", "--json")
    record = json.loads(invoke(*given).stdout)
    lines = pd.DataFrame(record["predictions"])
    assert record["evaluation"]["accuracy"] > 0.95
    assert np.mean(lines["source_only"] == pd.read_csv("target.csv")["truth"]) < 0.85
    assert record["trust"]["warning"] == ""
    assert record["trust"]["verdict"] == "good"


def test_people_are_told_the_same(skewed, invoke):
    result = invoke(*GIVEN, *SCALED, "--drop", "truth", "--out", "p.csv", "--report", "r.html")
    for words in (
        "Against a model of the source alone",
        "Estimated without labels",
        "by the source",
        "Warning: adapting may do harm",
    ):
        assert words in result.stdout, words
    page = (skewed / "r.html").read_text(encoding="utf-8")
    assert "Not yet" in page
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
    result = invoke(*GIVEN, "--tune", "--method", "coral", "--no-estimate", "--model", "m.skops")
    assert result.exit_code == 0, result.stderr
    assert "of 4 settings, --tune chose transformer__regularization=" in result.stderr
    again = invoke("predict", "m.skops", "target.csv", "--quiet")
    assert pd.read_csv(io.StringIO(again.stdout)).equals(pd.read_csv(io.StringIO(result.stdout)))
    record = json.loads(invoke("inspect", "m.skops", "--json").stdout)
    assert record["method"] == "CORAL"
    refused = invoke(*GIVEN, "--tune", "--method", "perdomainscaler")
    assert refused.exit_code == 2
    assert "--tune knows no setting" in refused.stderr


@pytest.mark.parametrize(("counts", "shift"), [((5, 85, 0), 0.0), ((30, 30, 30), 4.0)])
def test_diagnose_adapt_and_the_report_speak_with_one_voice(folder, invoke, counts, shift):
    from transferable.report.sections import VERDICTS

    write_domains(counts, shift)
    given = ("source.csv", "target.csv", "--label", "kind", "--id", "who", "--drop", "truth")
    adapted = invoke("adapt", *given, "--report", "r.html", "--json")
    told = json.loads(adapted.stdout)["trust"]
    diagnosed = json.loads(invoke("diagnose", *given, "--json").stdout)
    assert diagnosed["estimated_accuracy"] == told["estimated_accuracy"]
    assert (diagnosed["verdict"], diagnosed["warning"]) == (told["verdict"], told["warning"])
    assert (diagnosed["adaptation_likely_to_pay"] == "likely") <= (told["verdict"] != "doubtful")
    assert diagnosed["kind"] == "alike" or (
        (diagnosed["kind"] == "other things") == bool(told["warning"])
    )
    assert VERDICTS[told["verdict"]][0] in (folder / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("method", ["tfdf", "meda", "jda", "spl"])
def test_tune_knows_the_settings_of_every_family(folder, invoke, method):
    result = invoke(*GIVEN, "--tune", "--method", method, "--no-estimate")
    assert result.exit_code == 0, result.stderr
    said = re.search(r"of (\d+) settings, --tune chose (\S+)=", result.stderr)
    assert said is not None, result.stderr
    assert int(said[1]) > 1
    assert len(result.stdout.splitlines()) == 25
