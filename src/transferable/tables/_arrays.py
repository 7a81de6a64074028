"""Tables in files of arrays: NPY, NPZ and MAT.

A matrix named X of d columns becomes the columns X0 to X{d-1}, a vector named y the column y. The
one matrix of an NPY file is named x.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable.tables._errors import TableError

__all__ = ["read_mat", "read_npy", "read_npz"]


def read_npy(stream: IO[bytes], path: Path) -> pd.DataFrame:
    """One matrix, or a structured array whose fields are the columns."""
    array = np.load(stream, allow_pickle=False)
    if array.dtype.names:
        return _as_table({name: array[name] for name in array.dtype.names}, path)
    return _as_table({"x": array}, path)


def read_npz(stream: IO[bytes], path: Path) -> pd.DataFrame:
    """Matrices and vectors of as many rows each."""
    with np.load(stream, allow_pickle=False) as archive:
        return _as_table({name: archive[name] for name in archive.files}, path)


def read_mat(stream: IO[bytes], path: Path) -> pd.DataFrame:
    """Matrices, also sparse ones, and column or row vectors of as many rows each."""
    from scipy.io import loadmat

    try:
        arrays = loadmat(stream, spmatrix=False)
    except NotImplementedError as error:
        raise TableError(f"{path} is a MAT file of version 7.3; save it with -v7.") from error
    except Exception as error:  # its readers take any bytes for sizes and types
        raise TableError(f"{path} cannot be read as a MAT file ({error}).") from error
    dense = {
        name: value.toarray() if sp.issparse(value) else np.asarray(value)
        for name, value in arrays.items()
        if not name.startswith("__")
    }
    matrices = [value for value in dense.values() if min(value.shape, default=0) > 1]
    rows = len(matrices[0]) if matrices else max((v.size for v in dense.values()), default=0)
    return _as_table({name: v.ravel() if v.size == rows else v for name, v in dense.items()}, path)


def _as_table(arrays: Mapping[str, NDArray[Any]], path: Path) -> pd.DataFrame:
    """Arrays side by side, if they have as many rows each."""
    shapes = {name: array.shape for name, array in arrays.items()}
    if len({shape[:1] for shape in shapes.values()}) != 1 or any(
        len(shape) not in (1, 2) for shape in shapes.values()
    ):
        raise TableError(
            f"{path} must hold matrices and vectors with a row for each sample; it holds "
            + (", ".join(f"{name} of shape {shape}" for name, shape in shapes.items()) or "nothing")
            + ". Save one file for each domain."
        )
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        values = _plain(array, path)
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f"{name}{i}": values[:, i] for i in range(values.shape[1])}
    return pd.DataFrame(columns)


def _plain(array: NDArray[Any], path: Path) -> NDArray[Any]:
    """Numbers, booleans or texts; bytes become texts."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind not in "biufUM":
        raise TableError(f"{path} holds an array of dtype {array.dtype}, which is no table.")
    return array
