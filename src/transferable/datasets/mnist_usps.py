"""MNIST and USPS: two collections of handwritten digits.

References
----------
.. [1] Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998). Gradient-based learning applied to
   document recognition. Proceedings of the IEEE 86(11).
.. [2] J. J. Hull (1994). A database for handwritten text recognition research. IEEE TPAMI 16(5).
"""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transferable.datasets._domains import DomainCollection, Rows
from transferable.datasets._files import get_data_home
from transferable.datasets._preprocessing import unit_rows
from transferable.datasets._readers import read_idx, read_mat, read_usps
from transferable.datasets._registry import MNIST, MNIST_USPS, USPS

_PARTS = {"U": "src", "M": "tar"}


def fetch_mnist_usps(
    full: bool = False,
    *,
    preprocess: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> DomainCollection:
    """Give the domains USPS and MNIST, whose files are fetched when a task needs them.

    Both have 256 features: pictures of 16x16 pixels between 0 and 1. Labels are the digits
    [1]_, [2]_.

    Parameters
    ----------
    full : bool, default=False
        False gives the task of the literature: 1800 digits of USPS and 2000 of MNIST, whose
        pictures were shrunk whole from 28x28. True gives all 9298 and 70000, training rows first.
        MNIST leaves a margin of 4 pixels around its digits and USPS leaves none, so the full
        MNIST is brought to the frame of USPS: its central 20x20 pixels are averaged over the
        areas of 16x16 pixels. Reading the full USPS needs h5py (``transferable[data]``).
    preprocess : bool, default=True
        Scale the rows to unit Euclidean length, as published. If False, they are pixels.
    data_home : str or path-like, default=None
        Folder of the files, see :func:`get_data_home`.
    download : bool, default=True
        Whether to download files that are missing.

    Returns
    -------
    DomainCollection
        The domains ``"U"`` (USPS) and ``"M"`` (MNIST).

    References
    ----------
    .. [1] Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998). Gradient-based learning applied to
       document recognition. Proceedings of the IEEE 86(11).
    .. [2] J. J. Hull (1994). A database for handwritten text recognition research. IEEE TPAMI
       16(5).

    Examples
    --------
    >>> from transferable.datasets import fetch_mnist_usps
    >>> digits = fetch_mnist_usps()
    >>> digits.tasks()
    [('U', 'M'), ('M', 'U')]
    >>> digits.task("U", "M").Xs.shape  # doctest: +SKIP
    (1800, 256)
    """
    home = get_data_home(data_home)

    def read_small(domain: str) -> Rows:
        file = MNIST_USPS.locate(home, download=download)
        X, y = read_mat(file, f"X_{_PARTS[domain]}", f"Y_{_PARTS[domain]}")
        return X.T, y

    def read_full(domain: str) -> Rows:
        if domain == "U":
            return read_usps(USPS.locate(home, download=download))
        return _read_mnist(home, download)

    return DomainCollection(
        "MNIST-USPS (full)" if full else "MNIST-USPS",
        tuple(_PARTS),
        [str(digit) for digit in range(10)],
        read_full if full else read_small,
        unit_rows if preprocess else None,
    )


def _read_mnist(home: Path, download: bool) -> Rows:
    """Read all of MNIST in the frame of USPS, training rows first."""
    rows, digits = [], []
    for image_file, label_file in MNIST:
        images = read_idx(image_file.locate(home, download=download), ndim=3)
        rows.append(_to_usps_frame(images).reshape(len(images), -1))
        digits.append(read_idx(label_file.locate(home, download=download), ndim=1))
    return np.concatenate(rows), np.concatenate(digits).astype(np.int64)


def _to_usps_frame(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Average the central 20x20 pixels of 28x28 pictures over the areas of 16x16 pixels."""
    # In quarter pixels a side is 80 long, and each of the 16 new pixels covers 5 of them.
    quarters = np.repeat(np.eye(20, dtype=np.float32), 4, axis=0)
    average = quarters.reshape(16, 5, 20).mean(axis=1)
    digits = images[:, 4:24, 4:24].astype(np.float32) / 255
    return average @ digits @ average.T
