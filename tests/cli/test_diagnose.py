"""``transferable diagnose`` on two small files."""

import json

import pytest


def test_tells_the_gap_the_columns_and_a_verdict(invoke, folder):
    result = invoke("diagnose", "source.csv", "target.csv", "--label", "kind", "--drop", "who")
    assert result.exit_code == 0, result.stderr
    for words in ("30 source rows, 24 target rows", "all rows", "class bee", "MMCD", "KS distance"):
        assert words in result.stdout
    words = " ".join(result.stdout.split())
    assert "In the source, a linear model labels" in words
    assert "without labels, the accuracy is estimated at" in words


def test_json_is_one_object_with_the_columns_that_differ_most_first(invoke, folder):
    arguments = ["source.csv", "known.csv", "--label", "kind", "--target-label", "truth", "--json"]
    result = invoke("diagnose", *arguments, "--drop", "who", "--quiet")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert (record["n_source"], record["n_target"], record["scale"]) == (30, 24, "joint")
    assert record["gap_by_class"].keys() == {"ant", "bee", "cat"}
    distances = [column["distance"] for column in record["columns"]]
    assert distances == sorted(distances, reverse=True)
    assert record["trust"]["state"] in ("use", "check", "reject")
    assert 0 <= record["trust"]["low"] <= record["trust"]["high"] <= 1
    assert result.stderr == ""


def test_scaling_each_domain_by_itself_closes_the_gap_of_the_means(invoke, folder):
    columns = ["--label", "kind", "--id", "who", "--drop", "habitat"]
    gaps = {}
    for scale in ("joint", "per-domain"):
        result = invoke(
            "diagnose", "source.csv", "target.csv", *columns, "--scale", scale, "--json"
        )
        gaps[scale] = json.loads(result.stdout)["gap"]["MMD"]
    assert gaps["per-domain"] < 1e-6 < gaps["joint"]


def test_names_are_not_taken_for_markup(invoke, folder):
    for name in ("source.csv", "target.csv"):
        path = folder / name
        path.write_text(path.read_text().replace("habitat", "[bold]x[/nothing]"))
    result = invoke("diagnose", "source.csv", "target.csv", "--label", "kind", "--id", "who")
    assert result.exit_code == 0, result.output
    assert "[bold]x[/nothing]" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["source.csv", "nowhere.csv", "--label", "kind"], "nowhere.csv"),
        (["source.csv", "target.csv", "--label", "colour"], "colour"),
        (["source.csv", "target.csv", "--label", "kind", "--target-label", "truth"], "truth"),
        (["source.csv", "target.csv", "--label", "kind", "--scale", "much"], "much"),
    ],
)
@pytest.mark.parametrize("command", ["diagnose", "compare"])
def test_bad_input_is_one_line_and_a_status(invoke, folder, command, arguments, told):
    result = invoke(command, *arguments)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert told in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["diagnose", "compare"])
def test_a_single_class_is_refused(invoke, folder, command):
    path = folder / "source.csv"
    path.write_text(path.read_text().replace("bee", "ant").replace("cat", "ant"))
    result = invoke(command, "source.csv", "target.csv", "--label", "kind", "--id", "who")
    assert result.exit_code == 2
    assert "which is one class; at least two are needed" in result.stderr
