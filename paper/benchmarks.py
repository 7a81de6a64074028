"""Datasets of the experiments by the names in commands and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transferable.datasets import (
    DataFileError,
    DomainCollection,
    fetch_coil20,
    fetch_mnist_usps,
    fetch_office_caltech,
    get_data_home,
)
from transferable.datasets._files import FILES, MNIST, Rows, read_idx, read_usps

_PARTS = ("train", "test")
_USPS_TRAIN = 7291  # rows of its training file, which come first
# The side of a digit of USPS in MNIST's 28 pixels; the rest is a black border. These are different
# tasks.
FRAMINGS = {"pad6": 16, "box": 20, "resized": 28}


def full_digits() -> DomainCollection:
    """Return the training files of MNIST (``"M"``) and USPS (``"U"``), resized to 28 x 28."""

    def read(domain: str) -> Rows:
        images, labels = read_digits(domain, "train")
        return (images if domain == "M" else in_frame(images, "resized")), labels

    names = [str(digit) for digit in range(10)]
    return DomainCollection("MNIST-USPS, all rows", ("M", "U"), names, read)


def read_digits(domain: str, part: Literal["train", "test"]) -> Rows:
    """Return pictures of a domain as bytes, 28 x 28 (MNIST) or 16 x 16 (USPS), and their digits."""
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
    """Resize square pictures (bilinearly) to the side of a framing, in a border up to 28."""
    side = FRAMINGS[framing]
    between = _interpolation(images.shape[1], side)
    resized = (between @ images.astype(np.float32) @ between.T).round().astype(np.uint8)
    border = (28 - side) // 2
    return np.pad(resized, ((0, 0), (border, border), (border, border)))


def _interpolation(before: int, after: int) -> NDArray[np.float32]:
    """Return the matrix from values at the middles of `before` cells to those of `after` cells."""
    where = np.clip((np.arange(after) + 0.5) * before / after - 0.5, 0, before - 1)
    return np.maximum(0.0, 1.0 - np.abs(where[:, None] - np.arange(before))).astype(np.float32)


@dataclass(frozen=True)
class Benchmark:
    """A dataset and the origin of its domains.

    Attributes
    ----------
    title : str
        Its name in tables.
    fetch : callable
        Gives its :class:`~transferable.datasets.DomainCollection`.
    unpublished : frozenset of str
        Domains without a public address: experiments continue without those that are missing.
    """

    title: str
    fetch: Callable[[], DomainCollection]
    unpublished: frozenset[str] = frozenset()


BENCHMARKS: dict[str, Benchmark] = {
    "surf": Benchmark("Office-Caltech10, SURF", lambda: fetch_office_caltech("surf")),
    "decaf6": Benchmark(
        "Office-Caltech10, DeCAF6",
        lambda: fetch_office_caltech("decaf6"),
        unpublished=frozenset("CA"),
    ),
    "efficientnet": Benchmark(
        "Office-Caltech10, EfficientNet-Lite0",
        lambda: fetch_office_caltech("efficientnet-lite0"),
        unpublished=frozenset("CAWD"),
    ),
    "digits": Benchmark("MNIST-USPS", fetch_mnist_usps),
    "coil": Benchmark("COIL20", fetch_coil20),
    "digits-full": Benchmark("MNIST-USPS, all rows", full_digits),
}


def domain_sizes(
    needed: Iterable[tuple[str, str]],
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], str]]:
    """Read every (dataset, domain) once, before anything is computed.

    Returns
    -------
    sizes : dict
        Number of rows of each domain that is there.
    missing : dict
        For each missing domain without a public address, the remedy.

    Raises
    ------
    DataFileError
        If any other domain is not available; it names the file, the folder and the remedy.
    """
    sizes, missing = {}, {}
    for dataset, domain in dict.fromkeys(needed):
        benchmark = BENCHMARKS[dataset]
        try:
            sizes[dataset, domain] = len(benchmark.fetch().domain(domain).y)
        except DataFileError as error:
            if domain not in benchmark.unpublished:
                raise
            missing[dataset, domain] = str(error)
    return sizes, missing
