"""File of a model: one zip archive of a header, a description in JSON, and plain arrays.

``transferable.json`` has the format, the versions that wrote the file, and the size and SHA-256 of
every other member by its name; ``model.json`` has the description, ``0.npy``, ``1.npy``, ... the
arrays. Names, sizes, and the header of each array are compared before its values are read, and
each member is read once.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import psutil
from numpy.typing import NDArray

from transferable import __version__
from transferable._files import visible

FORMAT = 7  # raise it when files of another version can no longer be read
LETTERS = 1000  # of a label, at most
HEADER, MODEL = "transferable.json", "model.json"
_DENSEST = 100  # bytes of the members for each of the file
_SPARE = 2**16  # bytes that any file may unpack to
_GROWTH = 20  # bytes of Python's objects for each of the description
_EMPTY = 2**20  # columns of an array without values
_DTYPES = "|b1", "|u1", "<i4", "<i8", "<u8", "<f4", "<f8"  # and text of bounded length
_LAYOUT = re.compile(
    rb"\{'descr': '([|<]\w{2,5})', 'fortran_order': (False|True), "
    rb"'shape': \(((?:\d{1,15}(?:, ?|(?=\))))*)\), \} *\n"
)


class ModelFileError(ValueError):
    """File without a model this version can load; the message gives the reason and the remedy."""

    def __init__(self, problem: str) -> None:
        super().__init__(visible(problem))


def storable(array: NDArray[Any]) -> bool:
    """Return whether an array is of one of the dtypes that files have."""
    if array.dtype.kind == "U":
        return 0 < array.dtype.itemsize <= 4 * LETTERS
    return array.dtype.newbyteorder("<").str in _DTYPES


def archived(about: dict[str, Any], model: Any, arrays: list[NDArray[Any]]) -> bytes:
    """Return the archive of a description and its arrays."""
    text = json.dumps(model, allow_nan=False, separators=(",", ":")).encode()
    members = {MODEL: text}
    for number, array in enumerate(arrays):
        stream = io.BytesIO()
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        np.lib.format.write_array(stream, little, (1, 0), allow_pickle=False)
        members[f"{number}.npy"] = stream.getvalue()
    header = {"format": FORMAT, **about, "bytes": {}, "sha256": {}}
    header["bytes"] = {name: len(content) for name, content in members.items()}
    header["sha256"] = {n: hashlib.sha256(content).hexdigest() for n, content in members.items()}
    members[HEADER] = json.dumps(header, indent=2).encode()
    stored: set[str] = set()
    while True:
        stream = io.BytesIO()
        with ZipFile(stream, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content, ZIP_STORED if name in stored else ZIP_DEFLATED)
            dense = {m.filename for m in archive.infolist() if _dense(m.file_size, m.compress_size)}
        if dense <= stored:
            return stream.getvalue()
        stored |= dense  # what packs as tightly as a bomb is not packed


def _dense(unpacked: int, packed: int) -> bool:
    return unpacked > _DENSEST * packed + _SPARE


def header_of(path: Path) -> dict[str, Any]:
    """Return the header of a file whose members have the names and sizes that it states."""
    with _opened(path) as (_, header):
        return header


def unarchived(path: Path) -> tuple[dict[str, Any], Any, dict[str, NDArray[Any]]]:
    """Return the header, the description and the arrays of a file that is complete."""
    with _opened(path) as (archive, header):
        digests, arrays, changed = header["sha256"], {}, []
        for member in archive.infolist():
            if member.filename == HEADER:
                continue
            with archive.open(member) as stream:
                digest = hashlib.sha256()
                if member.filename == MODEL:
                    text = stream.read()
                    digest.update(text)
                else:
                    arrays[member.filename] = _array(stream, member, digest)
            if digest.hexdigest() != digests[member.filename]:
                changed.append(member.filename)
        if changed:
            raise _changed(path, changed)
        return header, json.loads(text, parse_constant=_refuse), arrays


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[ZipFile, dict[str, Any]]]:
    """Open a file whose members have the names and sizes that its header states."""
    try:
        size = path.stat().st_size
        with warnings.catch_warnings(), ZipFile(path) as archive:
            header = _header(archive, path)
            _check_members(archive.infolist(), header, path, size)
            yield archive, header
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except ModelFileError as error:
        if str(path) in str(error):
            raise
        raise ModelFileError(f"{path} is damaged, or none: {error}.") from error
    except BadZipFile as error:
        raise ModelFileError(
            f"{path} is not a saved model, or not all of one ({error}); copy or save it again."
        ) from error
    except Exception as error:  # any error that a damaged archive raises in its readers
        raise ModelFileError(
            f"{path} is damaged ({type(error).__name__}: {str(error)[:200]}); copy or save it "
            "again."
        ) from error


def _header(archive: ZipFile, path: Path) -> dict[str, Any]:
    names = archive.namelist()
    if names.count(HEADER) != 1:
        raise ModelFileError(f"{path} was not written by transferable.save.")
    longest = 2**12 + 2**8 * len(names)
    if archive.getinfo(HEADER).file_size > longest:
        raise ModelFileError(f"{path} has a header of more than {longest} bytes.")
    header = json.loads(archive.read(HEADER))
    _check_fields(header, {"format": int, "versions": dict}, path)
    if header["format"] != FORMAT:
        raise ModelFileError(
            f"{path} has format {header['format']}, written by transferable "
            f"{header['versions'].get('transferable', '?')}; this is transferable {__version__}, "
            f"which reads format {FORMAT}. Fit and save the model again with this version."
        )
    _check_fields(header, {"class": str, "bytes": dict, "sha256": dict}, path)
    return header


def _check_fields(header: Any, expected: dict[str, type], path: Path) -> None:
    for name, kind in expected.items():
        if not isinstance(header, dict) or not isinstance(header.get(name), kind):
            raise ModelFileError(
                f"{path} has a header without {name!r}; it was damaged or not written by "
                "transferable.save. Copy or save it again."
            )


def _check_members(members: list[ZipInfo], header: dict[str, Any], path: Path, size: int) -> None:
    """Refuse, before anything is unpacked, members of other names, sizes or kinds than stated."""
    names, told = [member.filename for member in members], header["bytes"]
    listed = {*told, HEADER}
    strange = (set(names) ^ listed) | (told.keys() ^ header["sha256"].keys())
    strange |= {name for name in told if name != MODEL and not re.fullmatch(r"\d{1,6}\.npy", name)}
    strange |= {MODEL} - told.keys()
    strange |= {
        m.filename
        for m in members
        if m.flag_bits & 0x1
        or m.compress_type not in (ZIP_DEFLATED, ZIP_STORED)
        or (m.filename != HEADER and told.get(m.filename) != m.file_size)
    }
    if strange or len(set(names)) < len(names):
        raise _changed(path, sorted(strange) or names)
    unpacked = sum(member.file_size for member in members)
    if _dense(unpacked, size):
        raise ModelFileError(f"{path} unpacks to {unpacked:,} bytes, from {size:,}: no model does.")
    needed, free = unpacked + _GROWTH * told[MODEL], psutil.virtual_memory().available
    if needed > free:
        raise ModelFileError(
            f"{path} unpacks to {needed:,} bytes, but {free:,} are free; load it on a machine with "
            "more memory."
        )


def _changed(path: Path, members: list[str]) -> ModelFileError:
    listed = ", ".join(members[:3]) + (", ..." if len(members) > 3 else "")
    return ModelFileError(
        f"{path} was changed after it was saved ({listed}); copy or save it again."
    )


def _array(stream: IO[bytes], member: ZipInfo, digest: Any) -> NDArray[Any]:
    """Return the array of a member, whose own header is checked before there is room for it."""
    start = stream.read(10)
    layout = stream.read(int.from_bytes(start[8:], "little"))
    digest.update(start + layout)
    found = _LAYOUT.fullmatch(layout)
    if start[:8] != b"\x93NUMPY\x01\x00" or found is None:
        raise ModelFileError(f"{member.filename} has no layout that transferable.save writes")
    name, order, lengths = found[1].decode(), found[2], found[3].decode()
    text = re.fullmatch(r"<U([1-9]\d{0,3})", name)
    if name not in _DTYPES and not (text and int(text[1]) <= LETTERS):
        raise ModelFileError(f"{member.filename} is of dtype {name}, which no model file has")
    shape = tuple(int(length) for length in lengths.split(",") if length.strip())
    dtype, rest = np.dtype(name), member.file_size - len(start) - len(layout)
    if (
        len(shape) > 4
        or math.prod(shape) * dtype.itemsize != rest
        or max(shape, default=0) > max(rest, _EMPTY)
    ):
        raise ModelFileError(f"{member.filename} has {rest} bytes for {shape} of {dtype}")
    array = np.empty(shape, dtype, order="F" if order == b"True" else "C")
    flat = array.T if order == b"True" else array
    if rest:
        view = memoryview(flat.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        done = 0
        while done < rest and (read := stream.readinto(view[done : done + 2**20])):  # type: ignore[attr-defined]
            done += read
        if done < rest or stream.read(1):
            raise ModelFileError(f"{member.filename} is not as long as stated")
        digest.update(view)
    else:
        stream.read(1)  # compares the checksum
    if dtype.kind == "U" and rest and int(flat.reshape(-1).view(np.uint32).max()) > 0x10FFFF:
        raise ModelFileError(f"{member.filename} holds text that is not valid")
    if dtype.kind == "b" and rest and int(flat.reshape(-1).view(np.uint8).max()) > 1:
        raise ModelFileError(f"{member.filename} holds booleans that are not valid")
    return array
