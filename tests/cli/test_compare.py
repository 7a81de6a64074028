"""``transferable compare`` on two small files."""

import json
import sys

from transferable import all_estimators

LABEL = ("--label", "kind", "--id", "who")


def test_all_methods_beside_two_models_of_the_source(invoke, folder):
    result = invoke("compare", "source.csv", "target.csv", *LABEL, "--json")
    record = json.loads(result.stdout)
    methods = {line["method"] for line in record["results"]}
    expected = {name for name, _ in all_estimators()} - {"AdaptedClassifier", "LandmarkFeatures"}
    assert methods == expected | {"1-NN", "logistic regression"}
    assert all(line["accuracy"] is None for line in record["results"])
    failed = [line for line in record["results"] if line["failure"]]
    assert all(line["agreement"] is None for line in failed)
    assert result.exit_code == (1 if failed else 0)


def test_accuracy_where_the_target_is_known_best_first(invoke, folder):
    arguments = ["source.csv", "known.csv", *LABEL, "--target-label", "truth"]
    result = invoke("compare", *arguments, "--methods", "tfdf-v,coral", "--json")
    assert result.exit_code == 0, result.stderr
    lines = json.loads(result.stdout)["results"]
    assert {line["method"] for line in lines if line["adapts"]} == {"TFDFV", "CORAL"}
    accuracies = [line["accuracy"] for line in lines]
    assert accuracies == sorted(accuracies, reverse=True)
    assert all(0 <= line["agreement"] <= 1 and line["seconds"] >= 0 for line in lines)
    assert all((line["group"] == 1) == (line["agreement"] >= 0.9) for line in lines)


def test_table_for_people(invoke, folder):
    result = invoke("compare", "source.csv", "target.csv", *LABEL, "--methods", "coral")
    assert result.exit_code == 0, result.stderr
    assert "agreement" in result.stdout
    assert "target accuracy" not in result.stdout
    assert "CORAL" in result.stdout


def test_landmarks_and_device_reach_those_that_take_them(invoke, folder):
    arguments = ["compare", "source.csv", "target.csv", *LABEL, "--json"]
    options = ["--n-landmarks", "9", "--device", "cpu"]
    result = invoke(*arguments, "--methods", "tfdfv,coral", *options)
    assert result.exit_code == 0, result.stderr
    methods = {line["method"] for line in json.loads(result.stdout)["results"]}
    assert {"TFDFV", "CORAL"} <= methods
    result = invoke(*arguments, "--methods", "coral,gfk", *options)
    assert result.exit_code == 2
    assert "CORAL, GFK have no option --n-landmarks; methods that have it: artl" in result.stderr


def test_unknown_method(invoke, folder):
    result = invoke("compare", "source.csv", "target.csv", *LABEL, "--methods", "magic")
    assert result.exit_code == 2
    assert "magic" in result.stderr


def test_a_method_that_fails_is_told_and_ends_with_status_1(invoke, folder, monkeypatch):
    from transferable.transformers import CORAL

    def fail(self, domains):
        raise ValueError("no such luck")

    monkeypatch.setattr(CORAL, "_fit_domains", fail)
    result = invoke("compare", "source.csv", "target.csv", *LABEL, "--methods", "coral,tca")
    assert result.exit_code == 1
    assert "Failed: CORAL: no such luck" in result.stderr
    assert "failed" in result.stdout


def test_label_free_scores_stand_beside_each_method(invoke, folder):
    arguments = ["compare", "source.csv", "target.csv", *LABEL, "--methods", "coral,spl"]
    lines = json.loads(invoke(*arguments, "--json").stdout)["results"]
    assert all(-1 <= line["consistency"] <= 1 and not line["left_out"] for line in lines)
    assert "consistency" in invoke(*arguments).stdout


def test_a_budget_too_small_for_anything_leaves_the_source_and_says_so(invoke, folder):
    arguments = ["compare", "source.csv", "target.csv", *LABEL, "--max-seconds", "0"]
    result = invoke(*arguments, "--methods", "coral,jda", "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    left_out = {line["method"] for line in record["results"] if line["left_out"]}
    assert left_out == {"CORAL", "JDA"}
    assert all(line["agreement"] is not None for line in record["results"] if not line["adapts"])
    assert "No method was done; only models of the source alone are compared." in record["notes"]
    assert "Left out: CORAL, JDA: no time was left" in result.stderr
    shown = invoke(*arguments, "--methods", "subspacealignment").stdout
    assert "left out" in shown
    assert "SubspaceAlignment" in shown  # names are whole however narrow the terminal


def test_several_methods_at_a_time_say_the_same(invoke, folder):
    arguments = ["compare", "source.csv", "target.csv", *LABEL, "--methods", "coral,jda", "--json"]

    def agreements(*options):
        lines = json.loads(invoke(*arguments, *options).stdout)["results"]
        return {line["method"]: line["agreement"] for line in lines}

    assert agreements("--jobs", "2") == agreements()


def test_an_extra_that_is_not_there_leaves_its_methods_out(invoke, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    arguments = ["compare", "source.csv", "target.csv", *LABEL]
    result = invoke(*arguments, "--methods", "coral,linearotmapping")
    assert result.exit_code == 0, result.stderr
    assert "Left out: LinearOTMapping: LinearOTMapping needs POT: pip install" in result.stderr
