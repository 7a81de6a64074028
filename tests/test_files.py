"""Files that are there whole or not at all."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

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


WRITING = """
import time
from transferable._files import replacing
from transferable.cli._console import heed_signals
heed_signals()
with replacing("out.csv") as stream:
    print("begun", flush=True)
    time.sleep(60)
"""


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
