"""The file itself: a zip archive with a header that names, sizes and digests every other member.

Nothing is unpacked before the header has accounted for it: names and sizes are compared first, and
digests are taken piece by piece.
"""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import psutil

from transferable import __version__

__all__ = ["FORMAT", "HEADER", "ModelFileError", "checked_header", "with_header"]

FORMAT = 3  # raise it when what fitted estimators hold changes
HEADER = "transferable.json"
_LONGEST_HEADER = 2**26
_PIECE = 2**20


class ModelFileError(ValueError):
    """A file that holds no model this version can load; the message says why and what to do."""


def with_header(content: bytes, header: dict[str, Any]) -> io.BytesIO:
    """The archive with a header of its own and of all members."""
    stream = io.BytesIO(content)
    with ZipFile(stream, "a", compression=ZIP_DEFLATED) as archive:
        members = archive.infolist()
        header = (
            {"format": FORMAT}
            | header
            | {
                "bytes": {member.filename: member.file_size for member in members},
                "sha256": {member.filename: _digest(archive, member) for member in members},
            }
        )
        archive.writestr(HEADER, json.dumps(header, indent=2))
    return stream


def checked_header(content: bytes, path: str) -> dict[str, Any]:
    """Return the header of an archive that is whole, unchanged and of the present format."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            header = _header(archive, path)
            members = [member for member in archive.infolist() if member.filename != HEADER]
            _check_names_and_sizes(members, header, path)
            changed = [m.filename for m in members if _digest(archive, m) != _told(header, m)]
    except ModelFileError:
        raise
    except BadZipFile as error:
        raise ModelFileError(
            f"{path} is not a saved model, or not all of one ({error}); copy or save it again."
        ) from error
    except Exception as error:  # whatever a damaged archive makes of its readers
        raise ModelFileError(
            f"{path} is damaged ({type(error).__name__}: {error}); copy or save it again."
        ) from error
    if changed:
        raise _changed(path, changed)
    return header


def _header(archive: ZipFile, path: str) -> dict[str, Any]:
    if HEADER not in archive.namelist():
        raise ModelFileError(f"{path} was not written by transferable.save.")
    if archive.getinfo(HEADER).file_size > _LONGEST_HEADER:
        raise ModelFileError(f"{path} has a header of more than {_LONGEST_HEADER} bytes.")
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


def _check_fields(header: Any, expected: dict[str, type], path: str) -> None:
    for name, kind in expected.items():
        if not isinstance(header, dict) or not isinstance(header.get(name), kind):
            raise ModelFileError(
                f"{path} has a header without {name!r}; it was damaged or not written by "
                "transferable.save. Copy or save it again."
            )


def _check_names_and_sizes(members: list[ZipInfo], header: dict[str, Any], path: str) -> None:
    """Refuse, before anything is unpacked, members that the header does not account for."""
    names = [member.filename for member in members]
    unknown = set(names) ^ header["sha256"].keys()
    if unknown or len(set(names)) < len(names):
        raise _changed(path, sorted(unknown) or names)
    told = header["bytes"]
    resized = [m.filename for m in members if told.get(m.filename) != m.file_size]
    if resized:
        raise _changed(path, resized)
    total, free = sum(told.values()), psutil.virtual_memory().available
    if total > free:
        raise ModelFileError(
            f"{path} unpacks to {total:,} bytes, but {free:,} are free; load it on a machine with "
            "more memory."
        )


def _changed(path: str, members: list[str]) -> ModelFileError:
    listed = ", ".join(members[:3]) + (", ..." if len(members) > 3 else "")
    return ModelFileError(
        f"{path} was changed after it was saved ({listed}); copy or save it again."
    )


def _told(header: dict[str, Any], member: ZipInfo) -> Any:
    return header["sha256"][member.filename]


def _digest(archive: ZipFile, member: ZipInfo) -> str:
    digest = hashlib.sha256()
    with archive.open(member) as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
