"""Nothing that people wrote is rewritten, and nothing is passed over in silence."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from transferable.cli import app
from transferable.cli._console import as_options

CODES = {"ant": "01", "bee": "02", "cat": "10"}
ODD = ["000001", "0e5", "1.50", " 7", "NA", "None", "1_000", "+3", "12345678901234567890", "-0"]
GIVEN = ("--label", "kind", "--id", "who", "--method", "tfdfv", "--no-estimate")


def rewritten(name, **columns):
    """A file again, with columns of the texts given and everything else as it stands."""
    table = pd.read_csv(name, dtype=str, keep_default_na=False)
    return table.assign(**{c: v(table) if callable(v) else v for c, v in columns.items()})


@pytest.fixture
def written(folder):
    """Ids and labels that look like numbers or like nothing at all."""
    ids = [f"{ODD[i % len(ODD)]}" if i < len(ODD) else f"{i:06}" for i in range(24)]
    source = rewritten("source.csv", kind=lambda t: t["kind"].map(CODES))
    target = rewritten("target.csv", who=ids)
    known = rewritten("known.csv", who=ids, truth=lambda t: t["truth"].map(CODES))
    return {"source": source, "target": target, "known": known, "ids": ids}


def as_csv(table, name):
    table.to_csv(f"{name}.csv", index=False)
    return f"{name}.csv"


def as_parquet(table, name):
    numbers = [c for c in table.columns if c.startswith("f")]
    table.astype(dict.fromkeys(numbers, float)).to_parquet(f"{name}.parquet")
    return f"{name}.parquet"


def as_excel(table, name):
    numbers = [c for c in table.columns if c.startswith("f")]
    table.astype(dict.fromkeys(numbers, float)).to_excel(f"{name}.xlsx", index=False)
    return f"{name}.xlsx"


def output_of(result):
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout), dtype=str, keep_default_na=False)


@pytest.mark.parametrize("write", [as_csv, as_parquet, as_excel])
def test_ids_and_labels_come_out_as_they_went_in(written, invoke, write):
    source, target = (write(written[name], name) for name in ("source", "target"))
    first = output_of(invoke("adapt", source, target, *GIVEN, "--model", "m.tfm"))
    assert first["who"].tolist() == written["ids"]
    assert set(first["prediction"]) <= set(CODES.values())
    again = output_of(invoke("predict", "m.tfm", target))
    pd.testing.assert_frame_equal(first, again)


def test_ids_have_one_form_however_long_the_file(written, invoke):
    source, target = as_csv(written["source"], "source"), as_csv(written["target"], "target")
    invoke("adapt", source, target, *GIVEN, "--model", "m.tfm", "--out", "p.csv")
    long = pd.concat([written["target"]] * 1000, ignore_index=True)
    long["who"] = [f"{i:06}" for i in range(len(long))]
    long.loc[len(long) - 1, "who"] = "last"
    lines = output_of(invoke("predict", "m.tfm", as_csv(long, "long"), "--quiet"))
    assert lines["who"].tolist() == long["who"].tolist()


def test_whole_numbers_with_gaps_stay_whole(written, invoke):
    numbers = {c: pa.array(written["target"][c].astype(float)) for c in ("f0", "f1", "f2")}
    ids = pa.array([None, *range(1, 24)], type=pa.int64())
    pq.write_table(pa.table({"who": ids, **numbers}), "target.parquet")
    source = as_csv(written["source"], "source")
    lines = output_of(invoke("adapt", source, "target.parquet", *GIVEN))
    assert lines["who"].tolist() == ["", *map(str, range(1, 24))]


def test_words_for_nothing_are_labels_if_the_label_column_says_so(folder, invoke):
    names = {"ant": "NA", "bee": "None", "cat": "null"}
    as_csv(rewritten("source.csv", kind=lambda t: t["kind"].map(names)), "source")
    lines = output_of(invoke("adapt", "source.csv", "target.csv", *GIVEN))
    assert set(lines["prediction"]) == set(names.values())
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--missing", "NA")
    assert result.exit_code == 2
    assert "source.csv: 10 of the 30 source rows have no value" in result.stderr


def test_labels_that_are_broken_numbers_are_names_of_classes(folder, invoke):
    names = {"ant": "1.0", "bee": "2.50", "cat": "3.0"}
    as_csv(rewritten("source.csv", kind=lambda t: t["kind"].map(names)), "source")
    numbers = invoke("adapt", "source.csv", "target.csv", *GIVEN[:4])
    assert numbers.exit_code == 0
    assert "the label 'kind' is a number, such as" in numbers.stderr
    assert "'kind' has 3 different values only; are these classes?" in numbers.stderr
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--yes")
    assert set(output_of(result)["prediction"]) == set(names.values())
    assert "labels such as '2.50' are taken for names of classes, as they are" in result.stderr
    mixed = rewritten("source.csv", kind=lambda t: t["kind"].mask(t.index < 9, "01"))
    as_csv(mixed, "source")
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--yes")
    assert "'01' and '1.0' are one number, written in 2 ways" in result.stderr


def test_true_labels_are_compared_as_written_or_as_numbers_and_strangers_are_told(written, invoke):
    source = as_csv(written["source"], "source")
    known = written["known"]
    given = ("adapt", source, *GIVEN, "--target-label", "truth", "--json")
    exact = json.loads(invoke(*given, as_csv(known, "known")).stdout)
    floats = known.assign(truth=known["truth"].map(lambda text: f"{float(text)}"))
    result = json.loads(invoke(*given, as_csv(floats, "known")).stdout)
    assert result["evaluation"] == exact["evaluation"]
    assert any("'1.0' is taken for '01'" in text for text in result["notes"])
    strange = known.assign(truth=known["truth"].mask(known.index < 5, "wasp"))
    result = json.loads(invoke(*given, as_csv(strange, "known")).stdout)
    assert any("5 target rows have a label in 'truth' that no source row has ('wasp')" in text
               for text in result["notes"])  # fmt: skip
    assert result["evaluation"]["rows"] == 24


def test_columns_to_drop_must_be_there_and_may_have_commas(folder, invoke):
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN, "--drop", "habitut")
    assert result.exit_code == 2
    assert "source.csv and target.csv have no column 'habitut'" in result.stderr
    assert "did you mean 'habitat'?" in result.stderr
    for name in ("source", "target"):
        table = pd.read_csv(f"{name}.csv").assign(**{"a,b": 1.5})
        table["b"] = np.random.default_rng(0).normal(size=len(table))
        as_csv(table, name)
    given = ("adapt", "source.csv", "target.csv", *GIVEN, "--json")
    features = json.loads(invoke(*given, "--drop", "a,b").stdout)["features"]
    assert "b" in features
    assert "a,b" not in features
    features = json.loads(invoke(*given, "--drop", "f0,f1").stdout)["features"]
    assert not {"f0", "f1"} & set(features)


def test_too_few_rows_and_identifiers_among_the_features_are_noted_before_the_work(folder, invoke):
    pd.read_csv("target.csv").head(3).to_csv("few.csv", index=False)
    result = invoke("adapt", "source.csv", "few.csv", *GIVEN)
    assert "the target is scaled by its own 3 rows" in result.stderr
    rng = np.random.default_rng(0)
    for name in ("source", "target"):
        table = pd.read_csv(f"{name}.csv")
        as_csv(table.assign(customer=rng.integers(10**9, 10**10, len(table))), name)
    result = invoke("adapt", "source.csv", "target.csv", *GIVEN)
    assert "if it names rows: --id customer" in result.stderr
    assert result.stderr.index("customer") < result.stderr.index("learnt from")


def test_everything_that_is_wrong_is_told_at_once(folder, invoke):
    as_csv(rewritten("target.csv", f0="2024-01-31", f1=lambda t: t["f1"] + " %"), "target")
    as_csv(rewritten("source.csv", f2=lambda t: t["f2"].str.replace(".", ",")), "source")
    result = invoke("adapt", "source.csv", "target.csv", "--label", "sort", "--id", "whom")
    assert result.exit_code == 2
    for told in (
        "source.csv has no column 'sort'",
        "target.csv has no column 'whom'; did you mean 'who'?",
        "target.csv: column 'f0' holds dates",
        "target.csv: column 'f1' holds per cents",
        "source.csv: column 'f2' holds numbers with a decimal comma",
    ):
        assert told in result.stderr, told
    assert len(result.stderr.splitlines()) == 1
    result = invoke("adapt", "nothing.csv", "no.csv", "--label", "kind")
    assert "no file nothing.csv" in result.stderr
    assert "no file no.csv" in result.stderr


def test_warnings_of_the_fit_come_before_its_work(folder, invoke, monkeypatch):
    """What a method chooses by itself is told when it is chosen, not minutes later."""
    import warnings

    from transferable import TFDFV

    told = []
    fit = TFDFV._fit_domains

    def watched(self, domains):
        warnings.warn("landmarks were chosen", UserWarning, stacklevel=1)
        told.append("fit")
        fit(self, domains)

    def note(self, text):
        told.append(text)

    monkeypatch.setattr(TFDFV, "_fit_domains", watched)
    monkeypatch.setattr("transferable.cli._console.Messages.note", note)
    invoke("adapt", "source.csv", "target.csv", *GIVEN)
    assert told == ["landmarks were chosen", "fit"]


@pytest.fixture
def many(folder):
    """Source rows with ten different labels, a third of their number."""
    as_csv(rewritten("source.csv", kind=lambda t: [f"k{i % 10}" for i in range(len(t))]), "source")


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("command", ["adapt", "diagnose", "compare"])
def test_a_label_of_many_different_values_is_refused_where_nobody_can_be_asked(command, invoke):
    result = invoke(command, "source.csv", "target.csv", *GIVEN[:4])
    assert result.exit_code == 2
    assert "'kind' has 10 different values in 30 rows, more than 30% of them" in result.stderr
    assert result.stderr.endswith("if these are classes, say so: --yes.\n")


@pytest.mark.usefixtures("many")
def test_a_label_of_many_different_values_is_taken_for_classes_if_people_say_so(
    invoke, monkeypatch
):
    given = ("adapt", "source.csv", "target.csv", *GIVEN)
    assert invoke(*given, "--yes").exit_code == 0
    terminal = SimpleNamespace(isatty=lambda: True)
    streams = SimpleNamespace(stdin=terminal, stderr=terminal)
    monkeypatch.setattr(sys.modules["transferable.cli._inputs"], "sys", streams)
    for answer, code in (("y", 0), ("n", 2)):
        result = CliRunner().invoke(app, given, input=f"{answer}\n")
        assert result.exit_code == code
        assert "Are these classes? [y/N]" in result.stderr
        assert "classes?" not in result.stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("leave it out: drop=['when'].", "leave it out: --drop when."),
        ("ids=['a b'], else drop=[\"it's\"]", "--id 'a b', else --drop 'it'\"'\"'s'"),
        ("say so: sep='\\t'.", "say so: --sep '\\t'."),
        ("read with decimal=','", "read with --decimal ,"),
        (
            "column 'drop=x' has no value; scale='joint'",
            "column 'drop=x' has no value; scale='joint'",
        ),
    ],
)
def test_parameters_in_messages_become_options(text, expected):
    assert as_options(text) == expected


def test_tables_that_share_no_column_are_refused_with_the_names_of_both(folder, invoke):
    pd.read_csv("target.csv").rename(columns=str.upper).to_csv("target.csv", index=False)
    result = invoke("adapt", "source.csv", "target.csv", "--label", "kind")
    assert result.exit_code == 2
    assert "source.csv and target.csv have no feature in common: 'who', 'f0'" in result.stderr
    assert "'WHO', 'F0'" in result.stderr


def test_labels_of_the_target_are_noted_and_not_looked_at(folder, invoke):
    rewritten("known.csv", kind=lambda t: t["truth"]).to_csv("known.csv", index=False)
    result = invoke("adapt", "source.csv", "known.csv", *GIVEN, "--drop", "truth")
    assert "column 'kind' is not looked at; to evaluate with it: --target-label kind" in (
        result.stderr
    )
    assert result.stderr.count("not looked at") == 1
