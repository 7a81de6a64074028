"""Files that are there whole or not at all."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from transferable import _files as files
from transferable._files import replacing


def test_a_link_stays_a_link_and_leads_to_the_new_file(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    link.symlink_to(file)
    with replacing(link) as stream:
        stream.write("new")
    assert link.is_symlink()
    assert file.read_text() == "new"


def test_a_full_disk_names_the_file(tmp_path):
    with pytest.raises(OSError, match=r"No space left on device: .*table\.csv") as caught:  # noqa: SIM117
        with replacing(tmp_path / "table.csv"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def permissions(path):
    return path.stat().st_mode & 0o777


def test_a_new_file_has_the_permissions_of_a_plain_open_and_the_umask_is_left_alone(
    tmp_path, monkeypatch
):
    (tmp_path / "plain").write_text("")
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("other threads create files too"))
    with replacing(tmp_path / "new") as stream:
        stream.write("new")
    assert permissions(tmp_path / "new") == permissions(tmp_path / "plain")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_a_replaced_file_keeps_its_permissions_also_while_it_is_written(tmp_path, mode):
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(mode)
    with replacing(file) as stream:
        (part,) = tmp_path.glob(".file.*.part")
        assert permissions(part) == mode
        stream.write("new")
    assert (permissions(file), file.read_text()) == (mode, "new")


WRITING = """
import time
from transferable._files import replacing
from transferable.cli import prepare_process
prepare_process()
with replacing("out.csv") as stream:
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.mark.processes
def test_being_told_to_end_leaves_nothing_half_written(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING], cwd=tmp_path, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"begun\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processes
def test_what_a_killed_writer_left_is_removed_by_the_next_and_what_others_write_is_not(tmp_path):
    def begin(out):
        code = WRITING.replace("out.csv", out)
        started = subprocess.Popen(
            [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE
        )
        assert started.stdout.readline() == b"begun\n"
        return started

    dead = [begin("out.csv"), begin("other.csv")]
    for process in dead:
        process.kill()
        process.wait(30)
        process.stdout.close()
    living = begin("out.csv")
    try:
        mine = tmp_path / ".out.csv.notes.part"
        mine.write_text("a user's own")
        with replacing(tmp_path / "out.csv") as first, replacing(tmp_path / "out.csv") as second:
            assert len(list(tmp_path.glob(".out.csv.*.part"))) == 4
            first.write("first")
            second.write("second")
        assert (tmp_path / "out.csv").read_text() == "first"  # the last that was closed
        left = [path.name for path in tmp_path.glob(".*.part")]
        assert sorted(name.split(".")[1] for name in left) == ["other", "out", "out"]
        assert mine.exists()
    finally:
        living.kill()
        living.wait(30)
        living.stdout.close()
    with replacing(tmp_path / "out.csv") as stream:
        stream.write("again")
    assert [path.name for path in tmp_path.glob(".out.csv.*")] == [mine.name]


def test_a_file_that_is_taken_for_a_dead_one_before_it_is_locked_is_made_anew(
    tmp_path, monkeypatch
):
    lock, taken = files._hold, []

    def late(file, *, wait):
        if wait and not taken:
            taken.extend(tmp_path.glob(".out.csv.*.part"))
            taken[0].unlink()
        lock(file, wait=wait)

    monkeypatch.setattr(files, "_hold", late)
    with replacing(tmp_path / "out.csv") as stream:
        stream.write("whole")
    assert taken
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
