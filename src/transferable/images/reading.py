"""Pictures in folders: which files there are, their classes, and their pixels as RGB.

Files come from others. A picture that cannot be read is a :class:`PictureError` in one line, links
that lead out of the folder are not followed, and nothing is decoded beyond pillow's limit of
pixels.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transferable._files import visible
from transferable.exceptions import installing
from transferable.tables.reading import listed

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
_SIXTEEN_BITS = 257  # a byte for so many steps of 16 bits

FilePath = str | os.PathLike[str]


class PictureError(ValueError):
    """Picture or folder that cannot be used; the message gives the reason and the remedy.

    Examples
    --------
    >>> from transferable.images import PictureError, read_folder
    >>> try:
    ...     read_folder("no-such-folder")
    ... except PictureError as error:
    ...     print(error)
    no-such-folder is not a folder; name one that holds pictures.
    """


@dataclass(frozen=True)
class Pictures:
    """Files of pictures, as :func:`read_folder` finds them.

    Attributes
    ----------
    files : list of Path
        The files, sorted by name.
    names : list of str
        Their names below the folder.
    labels : ndarray of str or None
        The class of each file, the folder it is in; None in a folder without classes.
    notes : list of str
        What was left out, and why.
    """

    files: list[Path]
    names: list[str]
    labels: NDArray[Any] | None = None
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.files)


def read_folder(path: FilePath, *, classes: bool | None = None) -> Pictures:
    """Find the pictures of a folder, and their classes if it has a folder for each.

    Parameters
    ----------
    path : str or path-like
        The folder.
    classes : bool or None, default=None
        Whether its folders are classes: True requires them, False takes all pictures below for
        pictures without labels. None takes folders for classes if no picture lies beside them.

    Returns
    -------
    pictures : Pictures
        The files, with labels if there are classes.

    Raises
    ------
    PictureError
        If there is no picture, or no class where classes are required.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from transferable.images import read_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat/1.png", "dog/1.png", "dog/2.png"):
    ...         (Path(folder) / name).parent.mkdir(exist_ok=True)
    ...         Image.new("RGB", (4, 4)).save(Path(folder) / name)
    ...     found = read_folder(folder)
    >>> found.names, found.labels.tolist()
    (['cat/1.png', 'dog/1.png', 'dog/2.png'], ['cat', 'dog', 'dog'])
    """
    root, shown = Path(path), one_line(path)
    if not root.is_dir():
        raise PictureError(f"{shown} is not a folder; name one that holds pictures.")
    notes: list[str] = []
    files = sorted(_files(root, notes))
    names = [file.relative_to(root).as_posix() for file in files]
    if not files:
        raise PictureError(
            f"{shown} holds no picture ({', '.join(SUFFIXES)})"
            + "".join(f"; {note}" for note in notes)
            + "."
        )
    beside = [name for name in names if "/" not in name]
    if classes is None:
        classes = not beside
    if not classes:
        return Pictures(files, names, None, notes)
    if len(beside) == len(names):
        raise PictureError(
            f"{shown} holds pictures and no folder of any; a source needs one folder of pictures "
            "for each class."
        )
    if beside:
        notes.append(f"{listed(beside)} in {shown} lie beside the folders of classes: left out")
    inside = [k for k, name in enumerate(names) if "/" in name]
    empty = sorted(
        entry.name
        for entry in root.iterdir()
        if entry.is_dir() and not entry.name.startswith(".")
        if not any(name.startswith(f"{entry.name}/") for name in names)
    )
    if empty:
        notes.append(f"{listed(empty)} in {shown} hold no picture: no class")
    labels = np.array([names[k].partition("/")[0] for k in inside])
    if len(set(labels)) == 1:
        raise PictureError(
            f"{shown} has one class, {one_line(labels[0])!r}; a classifier needs folders of at "
            "least two."
        )
    return Pictures([files[k] for k in inside], [names[k] for k in inside], labels, notes)


def _files(root: Path, notes: list[str]) -> Iterator[Path]:
    """Yield pictures below a folder; note other files and links that lead out."""
    real, outside, others, unwritable = root.resolve(), [], [], []
    for folder, folders, names in os.walk(root):
        place = Path(folder)
        linked = [name for name in folders if (place / name).is_symlink()]
        outside += [(place / name).relative_to(root).as_posix() for name in linked]
        folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in linked)
        for name in names:
            file = place / name
            below = file.relative_to(root).as_posix()
            if name.startswith(".") or name == "Thumbs.db":
                continue
            if file.is_symlink() and not file.resolve().is_relative_to(real):
                outside.append(below)
            elif file.suffix.lower() not in SUFFIXES or not file.is_file():
                others.append(below)
            elif below.encode("utf-8", "replace").decode() != below:
                unwritable.append(below)
            else:
                yield file
    if outside:
        notes.append(f"{listed(sorted(outside))} are links that are not followed: left out")
    if others:
        notes.append(f"{listed(sorted(others))} are not pictures: left out")
    if unwritable:
        notes.append(f"{listed(sorted(unwritable))} have names that are not UTF-8: left out")


def one_line(name: object) -> str:
    """Escape an untrusted name for a message of one line."""
    return visible(name).replace("\n", "\\n")


def open_picture(content: bytes | FilePath) -> Image:
    """Return a picture as RGB, upright, of 8 bits; the first frame if it is animated.

    Parameters
    ----------
    content : bytes, str or path-like
        The file or its content.

    Returns
    -------
    picture : PIL.Image.Image
        In mode "RGB". Transparent parts are white, and values of more than 8 bits are scaled.

    Raises
    ------
    PictureError
        If it cannot be decoded, or has more pixels than pillow allows.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> from transferable.images import open_picture
    >>> file = io.BytesIO()
    >>> Image.new("CMYK", (4, 3)).save(file, "TIFF")
    >>> open_picture(file.getvalue()).mode
    'RGB'
    """
    require_pillow()
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        data = content if isinstance(content, bytes) else Path(content).read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data)) as opened:
                opened.seek(0)
                opened.load()
                return _as_rgb(ImageOps.exif_transpose(opened) or opened)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise PictureError(
            f"it has more than the {Image.MAX_IMAGE_PIXELS:,} pixels that pillow decodes"
        ) from error
    except UnidentifiedImageError as error:
        raise PictureError("pillow does not recognise it as a picture") from error
    except MemoryError as error:
        raise PictureError("its pixels do not fit into memory") from error
    except Exception as error:  # whatever the decoders of damaged files raise
        raise PictureError(f"it cannot be decoded ({one_line(error)})") from error


def require_pillow() -> None:
    """Raise ImportError, with the extra to install, if there is no pillow."""
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise ImportError(f"pictures need pillow: {installing('images')}") from error


def _as_rgb(picture: Image) -> Image:
    from PIL import Image

    if picture.mode.startswith(("I", "F")):
        values = np.asarray(picture, dtype=np.float64)
        if picture.mode == "F":
            low, high = (float(end) for end in (values.min(), values.max()))
            values = 255.0 * (values - low) / ((high - low) or 1.0)
        elif values.max(initial=0) > 255:
            values = values / _SIXTEEN_BITS
        picture = Image.fromarray(np.clip(np.nan_to_num(values), 0, 255).astype(np.uint8))
    if picture.has_transparency_data:
        with_alpha = picture.convert("RGBA")
        white = Image.new("RGBA", with_alpha.size, "white")
        picture = Image.alpha_composite(white, with_alpha)
    return picture.convert("RGB")


def thumbnail(content: bytes | FilePath, side: int, colours: int | None = None) -> bytes:
    """Return a PNG file of a picture, of at most `side` pixels a side and `colours` colours."""
    picture = open_picture(content)
    picture.thumbnail((side, side))
    file = io.BytesIO()
    small = picture if colours is None else picture.quantize(colours)
    small.save(file, "PNG", optimize=True)
    return file.getvalue()
