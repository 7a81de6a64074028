"""All of MNIST and USPS as pictures of 28 x 28 bytes, for the deep methods."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transferable.datasets import DomainCollection, get_data_home
from transferable.datasets._files import FILES, MNIST, Rows, read_idx, read_usps

__all__ = ["FRAMINGS", "full_digits", "in_frame", "read_digits"]

Part = Literal["train", "test"]

_PARTS = ("train", "test")
_USPS_TRAIN = 7291  # rows of its training file, which come first
# The side of a digit of USPS in MNIST's 28 pixels: what is left is a black border.
FRAMINGS = {"pad6": 16, "box": 20, "resized": 28}


def full_digits(part: Part = "train", framing: str = "resized") -> DomainCollection:
    """The domains ``"M"`` (60,000 or 10,000 rows) and ``"U"`` (7,291 or 2,007), from one file each.

    Parameters
    ----------
    part : {"train", "test"}, default="train"
        Which file of each domain.
    framing : {"resized", "box", "pad6"}, default="resized"
        How the 16 x 16 pixels of USPS become 28 x 28: resized, resized to MNIST's box of 20, or as
        they are in a border of 6. These are different tasks.
    """

    def read(domain: str) -> Rows:
        images, labels = read_digits(domain, part)
        return (images if domain == "M" else in_frame(images, framing)), labels

    names = [str(digit) for digit in range(10)]
    return DomainCollection("MNIST-USPS, all rows", ("M", "U"), names, read)


def read_digits(domain: str, part: Part) -> Rows:
    """Pictures of a domain as bytes, 28 x 28 (MNIST) or 16 x 16 (USPS), and their digits."""
    home = get_data_home()
    if domain == "M":
        images, labels = (
            read_idx(file.locate(home, download=True), ndim=ndim)
            for file, ndim in zip(MNIST[_PARTS.index(part)], (3, 1), strict=True)
        )
        return images, labels.astype(np.int64)
    X, y = read_usps(FILES["usps_full/usps.h5"].locate(home, download=True))
    rows = slice(_USPS_TRAIN) if part == "train" else slice(_USPS_TRAIN, None)
    return (X[rows].reshape(-1, 16, 16) * 255).round().astype(np.uint8), y[rows]


def in_frame(images: NDArray[np.uint8], framing: str) -> NDArray[np.uint8]:
    """Square pictures resized (bilinearly) to the side of a framing, in a border up to 28."""
    side = FRAMINGS[framing]
    between = _interpolation(images.shape[1], side)
    resized = (between @ images.astype(np.float32) @ between.T).round().astype(np.uint8)
    border = (28 - side) // 2
    return np.pad(resized, ((0, 0), (border, border), (border, border)))


def _interpolation(before: int, after: int) -> NDArray[np.float32]:
    """The matrix that takes values at the middles of `before` cells to those of `after` cells."""
    where = np.clip((np.arange(after) + 0.5) * before / after - 0.5, 0, before - 1)
    return np.maximum(0.0, 1.0 - np.abs(where[:, None] - np.arange(before))).astype(np.float32)
