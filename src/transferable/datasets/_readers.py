"""Readers of the file formats in use: MATLAB, idx, and the HDF5 file of USPS."""

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from transferable.datasets._domains import Rows
from transferable.datasets._files import DataFileError


def read_mat(file: Path, data: str, labels: str) -> Rows:
    """Read two variables of a MATLAB file.

    Parameters
    ----------
    file : pathlib.Path
        The file, of MATLAB version 7 or older.
    data, labels : str
        Names of the variables. Labels start at 1 in the file, at 0 in what is returned.

    Returns
    -------
    tuple of ndarray
        The data as stored, integers as float64, and the labels.

    Raises
    ------
    DataFileError
        If it is no such file, or lacks the variables.
    """
    try:
        content = loadmat(file, variable_names=[data, labels], spmatrix=False)
        X, y = content[data], content[labels]
    except (ValueError, TypeError, KeyError, NotImplementedError, OSError) as error:
        raise DataFileError(
            f"{file.name} in {file.parent} is not a MATLAB file (version 7 or older) with the "
            f"variables {data!r} and {labels!r}: {error}. Replace it with the published file."
        ) from error
    if not np.issubdtype(X.dtype, np.floating):
        X = X.astype(np.float64)
    return X, y.ravel().astype(np.int64) - 1


def read_idx(file: Path, ndim: int) -> NDArray[np.uint8]:
    """Read a gzipped idx file of bytes, whose checksum has been verified.

    Parameters
    ----------
    file : pathlib.Path
        The file.
    ndim : {1, 3}
        1 for labels, 3 for images.

    Returns
    -------
    ndarray of uint8 with `ndim` axes
        The content.
    """
    with gzip.open(file) as stream:
        content = stream.read()
    header = np.frombuffer(content, dtype=">i4", count=1 + ndim)
    return np.frombuffer(content, dtype=np.uint8, offset=header.nbytes).reshape(header[1:])


def read_usps(file: Path) -> Rows:
    """Read the training and test rows of the full USPS file, one after the other.

    Parameters
    ----------
    file : pathlib.Path
        The HDF5 file.

    Returns
    -------
    tuple of ndarray
        Pixels between 0 and 1 as float32, and the digits.

    Raises
    ------
    ImportError
        If h5py is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            f"Reading {file.name} needs h5py. Install it with: pip install 'transferable[data]'"
        ) from error
    with h5py.File(file) as content:
        X = np.concatenate([content[part]["data"][()] for part in ("train", "test")])
        y = np.concatenate([content[part]["target"][()] for part in ("train", "test")])
    return X, y.astype(np.int64)
