"""``python -m paper``: every experiment in a reduced form, on toy data and on the real."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from typer.testing import CliRunner

from paper import plans, settings
from paper.__main__ import app
from paper.benchmarks import BENCHMARKS, Benchmark
from paper.plans import EXPERIMENTS, plan_study
from paper.records import RecordStore
from toys import METHODS, install
from transferable.classifiers import AdaptedClassifier
from transferable.datasets import DomainCollection

ROOT = Path(__file__).parents[2]
FIELDS = {
    "dataset",
    "task",
    "method",
    "protocol",
    "accuracy",
    "accuracy_best_iterate",
    "seconds",
    "parameters",
}
REDUCED = {
    "surf": ["--tasks", "D-W,W-D", "--methods", "1NN,JDA"],
    "decaf6": ["--tasks", "W->D", "--methods", "PCA"],
    "efficientnet": ["--tasks", "D-W", "--methods", "1NN,TFDF"],
    "digits": ["--methods", "JDA"],
    "coil": ["--methods", "1NN,TFDF"],
    "ablation": ["--tasks", "C-A,D:W,U-M,M-U,COIL1-COIL2"],
    "timing": ["--tasks", "D-W,COIL1-COIL2"],
    "fig-confusion": [],
    "fig-convergence": [],
    "fig-tsne": ["--methods", "JDA"],
    "fig-sensitivity": ["--tasks", "COIL1-COIL2"],
    "digits-full": ["--methods", "1NN,TFDF"],
}


@pytest.fixture
def toy(monkeypatch):
    install(monkeypatch)


def reproduce(*arguments, code=0):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def json_lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_reduced_form_of_every_experiment_is_tested():
    assert REDUCED.keys() == set(EXPERIMENTS)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("what", EXPERIMENTS)
def test_every_experiment_runs_and_leaves_its_files(tmp_path, what):
    result = reproduce(what, *REDUCED[what], "--out", tmp_path, "--jobs", 1)
    page = (tmp_path / "report.md").read_text()
    assert page.startswith("Made by `python -m paper")
    if what.startswith("fig-"):
        assert f"figures/{what}.png" in page
        assert (tmp_path / "figures" / f"{what}.png").stat().st_size > 1000
        assert (tmp_path / "figures" / f"{what}.svg").exists()
    else:
        assert "bold: best of a column" in result.stdout
        names = {path.name for path in (tmp_path / "tables").iterdir()}
        stem = what if what in ("ablation", "timing") else f"{what}-fixed"
        assert {f"{stem}.md", f"{stem}.html", f"{stem}.csv"} <= names


@pytest.mark.usefixtures("toy")
def test_json_has_one_record_a_line_and_nothing_else(tmp_path):
    records = json_lines(reproduce("coil", "--json", "--out", tmp_path, "--jobs", 1))
    assert len(records) == 2 * 5
    for record in records:
        assert record.keys() >= FIELDS
        assert 0 <= record["accuracy"] <= record["accuracy_best_iterate"] <= 1
        assert record["protocol"] == "fixed"
    again = json_lines(reproduce("coil", "--json", "--out", tmp_path, "--jobs", 1))
    assert sorted(map(str, again)) == sorted(map(str, records))


@pytest.mark.usefixtures("toy")
def test_the_oracle_gives_one_record_a_task_never_below_the_fixed_setting(tmp_path):
    arguments = ("coil", "--methods", "TFDF,1NN", "--json", "--out", tmp_path, "--jobs", 1)
    fixed = {(r["task"], r["method"]): r for r in json_lines(reproduce(*arguments))}
    oracle = json_lines(reproduce(*arguments, "--protocol", "oracle"))
    assert len(oracle) == len(fixed) == 4
    for record in oracle:
        assert record["protocol"] == "oracle"
        assert record["accuracy"] >= fixed[record["task"], record["method"]]["accuracy"]
    names = {path.stem for path in (tmp_path / "tables").iterdir()}
    assert names == {"coil-fixed", "coil-oracle"}


@pytest.mark.usefixtures("toy")
def test_the_label_free_protocol_has_a_table_of_its_own(tmp_path):
    arguments = ("coil", "--methods", "TFDF,1NN", "--json", "--out", tmp_path, "--jobs", 1)
    records = json_lines(reproduce(*arguments, "--protocol", "label-free"))
    assert {(r["method"], r["protocol"]) for r in records} == {
        ("TFDF", "label-free"),
        ("1NN", "fixed"),
    }
    for record in records:
        assert record["accuracy_best_iterate"] >= record["accuracy"]
    assert {path.stem for path in (tmp_path / "tables").iterdir()} == {"coil-label-free"}
    assert (tmp_path / "summary.csv").read_text().splitlines()[1].startswith("coil-label-free,")


@pytest.mark.usefixtures("toy")
def test_damaged_lines_are_set_aside_aloud_and_computed_again(tmp_path):
    arguments = ("coil", "--methods", "1NN", "--out", tmp_path, "--jobs", 1)
    reproduce(*arguments)
    records = tmp_path / "records.jsonl"
    nan, torn = records.read_bytes().splitlines()
    nan = nan.replace(b'"parameters": {', b'"parameters": {"gamma": NaN, ')
    nested = b'{"dataset": ' + b"[" * 100_000
    records.write_bytes(b"\n".join([nan, nested, torn[:-20]]))
    result = reproduce(*arguments)
    assert "3 damaged line(s)" in result.stderr
    assert "records.damaged.jsonl" in result.stderr
    assert len(RecordStore(tmp_path).load()) == 2
    assert (tmp_path / "records.damaged.jsonl").read_bytes().strip()


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["surfing"], "'surfing'"),
        (["surf", "--methods", "jda"], "'jda'"),
        (["surf", "--tasks", "U-M"], "'U->M'"),
        (["surf", "--protocol", "lucky"], "'lucky'"),
        (["ablation", "--protocol", "oracle"], "Nothing is left"),
        (["surf", "--jobs", "0"], "--jobs"),
    ],
)
def test_wrong_names_are_a_usage_error(tmp_path, arguments, message):
    result = reproduce(*arguments, "--out", tmp_path / "out", code=2)
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_without_data_the_message_names_the_folder_and_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFERABLE_DATA", str(tmp_path / "nowhere"))
    result = reproduce("efficientnet", "--methods", "1NN", "--out", tmp_path / "out", code=1)
    assert "office_caltech10_effnet_lite0" in result.stderr
    assert "TRANSFERABLE_DATA" in result.stderr
    assert result.stdout == ""


@pytest.mark.usefixtures("toy")
def test_quiet_leaves_results_alone(tmp_path):
    arguments = ("coil", "--methods", "1NN", "--out", tmp_path, "--jobs", 1, "--quiet")
    reproduce(*arguments)
    (tmp_path / "records.jsonl").write_bytes(b"torn")
    result = reproduce(*arguments)
    assert result.stderr == ""
    assert "Tables, figures and records are in" in result.stdout


@pytest.mark.usefixtures("toy")
def test_a_failing_method_is_named_and_the_others_are_kept(tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "PCA", lambda: AdaptedClassifier(PCA(500)))
    arguments = ("coil", "--methods", "1NN,PCA", "--out", tmp_path, "--jobs", 1)
    result = reproduce(*arguments, code=1)
    assert "Failed: PCA on coil COIL1->COIL2: ValueError: n_components=500" in result.stderr
    assert len(RecordStore(tmp_path).load()) == 2


def test_real_data_give_the_published_1nn_row(data_home, tmp_path):
    arguments = ("surf", "coil", "--tasks", "D-W,W-D,COIL1-COIL2", "--methods", "1NN,TCA")
    records = json_lines(reproduce(*arguments, "--json", "--out", tmp_path, "--jobs", 2))
    accuracy = {(r["method"], r["task"]): 100 * r["accuracy"] for r in records}
    assert accuracy["1NN", "D->W"] == pytest.approx(63.4, abs=0.05)
    assert accuracy["1NN", "COIL1->COIL2"] == pytest.approx(83.6, abs=0.05)
    assert accuracy["TCA", "W->D"] == pytest.approx(91.1, abs=0.15)


def tiny_digits():
    """Pictures of a bright half, the upper or the lower; one domain is darker."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.integers(0, 60, size=(40, 28, 28), dtype=np.uint8)
    X[y == 0, :14] += 150
    X[y == 1, 14:] += 150
    data = {"M": (X, y), "U": (X // 2, y)}
    return DomainCollection("digits", ("M", "U"), ["up", "down"], data.__getitem__)


def test_the_deep_table_runs_with_a_tiny_setting(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    build = settings.build
    short = {"epochs": 1, "epoch_steps": 2, "batch_size": 8, "augment": None}
    monkeypatch.setattr(plans, "require_gpu", lambda experiment: None)
    monkeypatch.setattr(settings, "build", lambda d, m, **_: build(d, m).set_params(**short))
    monkeypatch.setitem(BENCHMARKS, "digits-full", Benchmark("Tiny digits", tiny_digits))
    arguments = ("--methods", "SourceOnly,DeepCORAL", "--json", "--out", tmp_path, "--jobs", 1)
    records = json_lines(reproduce("digits-full", *arguments))
    assert {(r["method"], r["task"]) for r in records} == {
        (method, task) for method in ("SourceOnly", "DeepCORAL") for task in ("M->U", "U->M")
    }
    assert all(r["parameters"]["network"] == "lenet" for r in records)
    assert (tmp_path / "tables" / "digits-full-fixed.md").exists()


def test_without_a_gpu_the_deep_table_says_so_in_one_line(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = reproduce("digits-full", "--out", tmp_path / "out", code=1)
    assert result.stderr.count("\n") == 1
    assert "needs a GPU" in result.stderr
    assert not (tmp_path / "out").exists()


def test_without_torch_the_deep_table_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    result = reproduce("digits-full", "--out", tmp_path / "out", code=1)
    assert result.stderr.count("\n") == 1
    assert "pip install '.[deep]' in a clone" in result.stderr


def test_the_deep_table_is_run_by_name_only():
    assert "digits-full" not in plan_study().plan


@pytest.mark.processes
def test_an_interrupted_run_says_how_to_go_on(data_home, tmp_path):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "paper",
            "surf",
            "--methods",
            "1NN,PCA",
            "--jobs",
            "1",
            "--out",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    records = Path(tmp_path, "records.jsonl")
    for _ in range(600):
        if records.exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate()
    assert process.returncode == 130
    assert "the same command goes on" in messages
    assert RecordStore(tmp_path).load()
