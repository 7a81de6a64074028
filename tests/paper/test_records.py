"""Records survive kills, torn lines and neighbours."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from paper.records import Record, RecordStore
from toys import make_record

ROOT = Path(__file__).parents[2]
APPENDER = """
import sys
from dataclasses import replace
from paper.records import Record, RecordStore
store, line = RecordStore(sys.argv[1]), sys.argv[2]
first = Record.from_line(line)
for i in range(10**6):
    record = replace(first, task=f"{sys.argv[3]}-{i}")
    store.append(record.to_line())
    print(record.task, flush=True)
"""


def appender(folder, name):
    command = [sys.executable, "-c", APPENDER, str(folder), make_record().to_line(), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def line_with(**texts):
    """A line whose values are replaced by other texts, which need not be sane."""
    fields = {name: json.dumps(value) for name, value in asdict(make_record()).items()} | texts
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in fields.items()) + "}\n").encode()


def tasks_of(store):
    return {record.task for record in store.load().values()}


def test_a_record_survives_the_way_to_a_line_and_back():
    record = make_record(parameters={"gamma": 0.5, "kernel": "rbf", "estimator": None})
    assert Record.from_line(record.to_line()) == record
    assert "\n" not in record.to_line()


def test_the_key_tells_settings_apart_and_nothing_else():
    record = make_record()
    assert record.key == make_record(accuracy=0.1, seconds=9.0, warnings=["slow"]).key
    others = [
        make_record(task="C->W"),
        make_record(method="TCA"),
        make_record(protocol="oracle"),
        make_record(parameters={"n_components": 20}),
        make_record(seed=1),
        make_record(versions={"transferable": "0.0.1"}),
    ]
    assert len({record.key, *(other.key for other in others)}) == 7


def test_what_was_appended_is_found_again(tmp_path):
    records = [make_record(task=f"task {i}") for i in range(5)]
    for record in records:
        RecordStore(tmp_path / "new" / "folder").append(record.to_line())
    loaded = RecordStore(tmp_path / "new" / "folder").load()
    assert loaded == {record.key: record for record in records}


@pytest.mark.parametrize(
    "damage",
    [
        b'{"dataset": "surf", "task"',
        b"\x00\xff\xfe garbage\n",
        b"[1, 2]\n",
        b'{"dataset": "surf"}\n',
        make_record(accuracy=0.5).to_line().replace("0.5", "55.0").encode() + b"\n",
        make_record().to_line().encode(),
        line_with(parameters="NaN"),
        line_with(parameters='{"gamma": NaN}'),
        line_with(parameters='{"gamma": 1e999}'),
        line_with(parameters="[" * 100_000 + "]" * 100_000),
        line_with(parameters='{"kernel": ' + "[" * 300 + "]" * 300 + "}", warnings="0"),
        line_with(warnings="[" * 100_000 + "]" * 100_000),
        line_with(seconds='"long"'),
        line_with(versions="{}"),
    ],
    ids=[
        *("torn", "garbage", "list", "fields", "range", "no end", "parameters", "nan", "infinity"),
        *("nested parameters", "warnings", "nested warnings", "seconds", "versions"),
    ],
)
def test_damaged_last_lines_are_set_aside_and_nothing_else(tmp_path, damage):
    store = RecordStore(tmp_path)
    kept = [make_record(task=f"task {i}") for i in range(3)]
    for record in kept:
        store.append(record.to_line())
    before = store.path.read_bytes()
    with store.path.open("ab") as file:
        file.write(damage)
    assert store.set_aside_damaged() == 1
    assert store.path.read_bytes() == before
    assert store.damaged_path.read_bytes().rstrip(b"\n") == damage.rstrip(b"\n")
    assert store.set_aside_damaged() == 0
    assert tasks_of(store) == {record.task for record in kept}


def test_a_record_after_a_torn_line_is_whole(tmp_path):
    store = RecordStore(tmp_path)
    store.append(make_record(task="first").to_line())
    with store.path.open("ab") as file:
        file.write(b'{"dataset": "su')
    store.append(make_record(task="second").to_line())
    assert tasks_of(store) == {"first", "second"}
    assert store.set_aside_damaged() == 1
    assert tasks_of(store) == {"first", "second"}


@pytest.mark.processes
def test_a_writer_killed_at_any_moment_loses_no_finished_record(tmp_path):
    acknowledged = set()
    pauses = np.random.default_rng(0).uniform(0, 0.05, size=6)
    for round_, pause in enumerate(pauses):
        process = appender(tmp_path, f"round{round_}")
        first = process.stdout.readline()
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read()
        process.wait()
        process.stdout.close()
        acknowledged |= {line for line in (first + rest).split("\n") if line}
        store = RecordStore(tmp_path)
        store.set_aside_damaged()
        assert acknowledged <= tasks_of(store)
    assert len(acknowledged) >= 6


@pytest.mark.processes
def test_two_writers_do_not_mix_their_lines(tmp_path):
    both = [appender(tmp_path, name) for name in ("left", "right")]
    acknowledged = set()
    for process in both:
        acknowledged |= {process.stdout.readline().strip() for _ in range(30)}
    for process in both:
        process.kill()
        process.wait()
        process.stdout.close()
    store = RecordStore(tmp_path)
    assert acknowledged <= tasks_of(store)
    whole = store.path.read_bytes().splitlines()[:-1]
    assert all(json.loads(line) for line in whole)


@pytest.mark.processes
def test_a_claim_keeps_other_processes_out_and_ends_with_its_holder(tmp_path):
    script = (
        "import sys, time; from paper.records import RecordStore\n"
        "with RecordStore(sys.argv[1]).claim(sys.argv[2], wait=False) as mine:\n"
        "    print(mine, flush=True); time.sleep(60)"
    )
    key, other = make_record().key, make_record(task="other").key
    command = [sys.executable, "-c", script, str(tmp_path), key]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert holder.stdout.readline() == "True\n"
    store = RecordStore(tmp_path)
    with store.claim(key, wait=False) as mine:
        assert not mine
    with store.claim(other, wait=False) as mine:
        assert mine
    holder.kill()
    with store.claim(key, wait=True) as mine:
        assert mine
    holder.wait()
    holder.stdout.close()
