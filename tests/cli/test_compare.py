"""``transferable compare`` on two small files."""

import json

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


def test_table_for_people(invoke, folder):
    result = invoke("compare", "source.csv", "target.csv", *LABEL, "--methods", "coral")
    assert result.exit_code == 0, result.stderr
    assert "agreement" in result.stdout
    assert "accuracy" not in result.stdout
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
    assert "--n-landmarks means nothing to CORAL, GFK; methods that take it: artl" in result.stderr


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
