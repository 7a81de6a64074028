"""A data file is either whole and verified, or an error that says what to do."""

import gzip
import hashlib
import os
import socket
from pathlib import Path

import pytest

from transferable.datasets import DataFileError, get_data_home
from transferable.datasets._files import DataFile

CONTENT = b"0123456789" * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def remains(folder: Path) -> list[Path]:
    """Everything under a folder but the dataset's own sub-folder, hidden names included."""
    return [path for path in folder.rglob("*") if path.name != "set"]


def assert_fails(file: DataFile, home: Path, *expected: str, download: bool = True) -> None:
    """Locating fails with an error that names the file, its folder and the expected words."""
    before = remains(home)
    with pytest.raises(DataFileError) as caught:
        file.locate(home, download=download)
    folder, name = file.path.split("/")
    for words in (name, str(home / folder), *expected):
        assert words in str(caught.value)
    assert remains(home) == before


def test_downloads_once(site, tmp_path):
    file = DataFile("set/rows.mat", SHA256, site.serve("/rows.mat", CONTENT))
    path = file.locate(tmp_path, download=True)
    assert path == tmp_path / "set" / "rows.mat"
    assert path.read_bytes() == CONTENT
    assert file.locate(tmp_path, download=True) == path
    assert site.requests == ["/rows.mat"]
    assert remains(tmp_path) == [path]


def test_a_file_in_place_needs_no_network(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "rows.mat").write_bytes(CONTENT)
    file = DataFile("set/rows.mat", SHA256, "http://127.0.0.1:9/rows.mat")
    assert file.locate(tmp_path, download=False).read_bytes() == CONTENT


def test_checksum_of_gzip_is_that_of_its_content(site, tmp_path):
    packed = gzip.compress(CONTENT, compresslevel=1)
    assert packed != gzip.compress(CONTENT, compresslevel=9)
    for home, level in ((tmp_path / "fast", 1), (tmp_path / "small", 9)):
        url = site.serve("/rows.gz", gzip.compress(CONTENT, compresslevel=level))
        assert DataFile("set/rows.gz", SHA256, url).locate(home, download=True).is_file()


def test_retries_after_a_passing_failure(site, tmp_path):
    url = site.answer(
        "/rows.mat",
        (503, b"", 0),
        (200, CONTENT[:100], len(CONTENT)),
        (200, CONTENT, len(CONTENT)),
    )
    path = DataFile("set/rows.mat", SHA256, url).locate(tmp_path, download=True)
    assert path.read_bytes() == CONTENT
    assert len(site.requests) == 3


def test_altered_download(site, tmp_path):
    url = site.serve("/rows.mat", CONTENT[:-1] + b"!")
    assert_fails(DataFile("set/rows.mat", SHA256, url), tmp_path, "altered", SHA256, url)


def test_altered_gzip_download(site, tmp_path):
    url = site.serve("/rows.gz", b"<html>sign in first</html>")
    assert_fails(DataFile("set/rows.gz", SHA256, url), tmp_path, "unpacked", "3 attempts", url)


def test_truncated_download(site, tmp_path):
    url = site.answer("/rows.mat", (200, CONTENT[:1000], len(CONTENT)))
    assert_fails(DataFile("set/rows.mat", SHA256, url), tmp_path, "3 attempts", url)


def test_address_gone(site, tmp_path):
    url = f"{site.url}/moved.mat"
    assert_fails(DataFile("set/rows.mat", SHA256, url), tmp_path, "404", "yourself")


def test_no_network(site, tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/rows.mat"
        assert_fails(
            DataFile("set/rows.mat", SHA256, url),
            tmp_path,
            "ConnectionError",
            "check the network",
            url,
        )


@pytest.mark.parametrize("content", [CONTENT[:-1], b""], ids=["truncated", "empty"])
def test_damaged_file_in_place_is_kept_and_reported(site, tmp_path, content):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "rows.mat").write_bytes(content)
    url = site.serve("/rows.mat", CONTENT)
    size = f"{len(content)} bytes"
    assert_fails(DataFile("set/rows.mat", SHA256, url), tmp_path, size, "Delete it and fetch again")
    assert_fails(DataFile("set/rows.mat", SHA256), tmp_path, size, "put an intact copy")
    assert site.requests == []


def test_truncated_gzip_in_place(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "rows.gz").write_bytes(gzip.compress(CONTENT)[:-20])
    assert_fails(DataFile("set/rows.gz", SHA256, "http://127.0.0.1:9"), tmp_path, "unpacked")


def test_missing_without_address(tmp_path):
    assert_fails(
        DataFile("set/rows.mat", SHA256), tmp_path, "no public address", "TRANSFERABLE_DATA"
    )


def test_missing_without_permission_to_download(site, tmp_path):
    url = site.serve("/rows.mat", CONTENT)
    file = DataFile("set/rows.mat", SHA256, url)
    assert_fails(file, tmp_path, "download=False", "download=True", url, download=False)
    assert site.requests == []


def test_without_pooch_the_extra_and_the_address_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("transferable.datasets._files.find_spec", lambda name: None)
    url = "http://127.0.0.1:9/rows.mat"
    with pytest.raises(ImportError, match=rf"rows\.mat needs pooch: .*\[data\].* {url}"):
        DataFile("set/rows.mat", SHA256, url).locate(tmp_path, download=True)
    assert not (tmp_path / "set").exists()


def test_folder_that_cannot_be_written(site, tmp_path):
    (tmp_path / "set").write_text("a file where the folder should be")
    file = DataFile("set/rows.mat", SHA256, site.serve("/rows.mat", CONTENT))
    assert_fails(file, tmp_path, "cannot be saved", "data_home=")


def test_data_home(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFERABLE_DATA", str(tmp_path))
    assert get_data_home() == tmp_path
    assert get_data_home(tmp_path / "mine") == tmp_path / "mine"
    assert get_data_home("~/mine") == Path(os.path.expanduser("~/mine"))
    monkeypatch.setenv("TRANSFERABLE_DATA", "")
    assert "transferable" in get_data_home().parts
