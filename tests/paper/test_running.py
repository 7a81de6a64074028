"""Runs resume, share a folder and survive failing methods."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.decomposition import PCA

from paper.plans import cells_of
from paper.records import RecordStore
from paper.running import run_cells
from toys import Deadly
from transferable.classifiers import AdaptedClassifier

TESTS = Path(__file__).parents[1]
RUN = """
import sys
sys.path.insert(0, sys.argv[3])
from sklearn.decomposition import PCA
from toys import DOMAINS, toy_collection
from transferable.classifiers import AdaptedClassifier
from paper.benchmarks import BENCHMARKS, Benchmark
from paper.records import Cell
from paper.records import RecordStore
from paper.running import run_cells
surf = toy_collection("surf", DOMAINS["surf"])
BENCHMARKS["surf"] = Benchmark("surf", lambda: surf)
cells = [
    Cell("surf", *pair, f"PCA {k}", "fixed", AdaptedClassifier(PCA(k)))
    for k in range(1, 5) for pair in surf.tasks()
]
run = run_cells(cells, RecordStore(sys.argv[1]), jobs=int(sys.argv[2]),
                finished=lambda cell, record: print(cell.key, flush=True))
print("done", len(run.records), len(run.failures), flush=True)
"""
N_CELLS = 48


def start(folder, jobs):
    command = [sys.executable, "-c", RUN, str(folder), str(jobs), str(TESTS)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def n_lines(store):
    return len(store.path.read_bytes().splitlines())


def test_a_second_run_computes_nothing_and_says_the_same(toy, tmp_path):
    cells, store, seen = cells_of("coil"), RecordStore(tmp_path), []
    first = run_cells(cells, store)
    content = store.path.read_bytes()
    second = run_cells(cells, store, finished=lambda cell, record: seen.append(cell.key))
    assert store.path.read_bytes() == content
    assert first.records == second.records
    assert sorted(seen) == sorted(cell.key for cell in cells)


def test_cells_with_the_same_setting_are_computed_once(toy, tmp_path):
    cells = cells_of("coil")[:2] * 3
    store, seen = RecordStore(tmp_path), []
    run_cells(cells, store, finished=lambda cell, record: seen.append(cell.key))
    assert n_lines(store) == len(seen) == 2
    run_cells(cells, store, finished=lambda cell, record: seen.append(cell.key))
    assert len(seen) == 4


@pytest.mark.processes
def test_workers_give_the_same_results_as_this_process(toy, tmp_path):
    cells = [cell for cell in cells_of("coil") if cell.method != "MEDA"]
    alone = run_cells(cells, RecordStore(tmp_path / "alone")).records
    workers = run_cells(cells, RecordStore(tmp_path / "workers"), jobs=2).records
    assert alone.keys() == workers.keys()
    for key, record in alone.items():
        assert workers[key].accuracy == record.accuracy
        assert workers[key].accuracy_best_iterate == record.accuracy_best_iterate


def test_a_failing_method_does_not_take_the_others_with_it(cell, tmp_path):
    broken = replace(cell, method="broken", estimator=AdaptedClassifier(PCA(-1)))
    store = RecordStore(tmp_path)
    run = run_cells([broken, cell], store)
    assert list(run.records) == [cell.key]
    [(failed, reason)] = run.failures
    assert failed is broken
    assert "n_components" in reason
    assert n_lines(store) == 1


@pytest.mark.processes
def test_a_worker_that_dies_is_told_and_loses_no_record(cell, tmp_path):
    dying = replace(cell, method="dying", estimator=AdaptedClassifier(Deadly()))
    store = RecordStore(tmp_path)
    run_cells([cell], store, jobs=2)
    with pytest.raises(ChildProcessError, match="Finished records are kept; try again with one"):
        run_cells([cell, dying, replace(dying, method="too")], store, jobs=2)
    assert list(store.load()) == [cell.key]


@pytest.mark.processes
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_killed_at_any_moment_goes_on_where_it_was(tmp_path, jobs):
    store = RecordStore(tmp_path)
    acknowledged = set()
    for n_seen in (1, 4):
        process = start(tmp_path, jobs)
        acknowledged |= {process.stdout.readline().strip() for _ in range(n_seen)}
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert acknowledged <= store.load().keys()
    store.set_aside_damaged()
    before = store.load()
    # With two jobs, workers of the killed runs may still be at it.
    out, _ = start(tmp_path, 1).communicate()
    assert out.strip().endswith(f"done {N_CELLS} 0")
    assert before.items() <= store.load().items()
    assert n_lines(store) == N_CELLS


@pytest.mark.processes
def test_two_runs_on_one_folder_share_the_work(tmp_path):
    both = [start(tmp_path, 1) for _ in range(2)]
    outputs = [process.communicate()[0].strip() for process in both]
    assert all(out.endswith(f"done {N_CELLS} 0") for out in outputs)
    store = RecordStore(tmp_path)
    assert n_lines(store) == len(store.load()) == N_CELLS
