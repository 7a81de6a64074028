"""Tables of numpy or torch: where they live, products of their rows, work by threads.

Algebra is written once, with the operators and functions that both libraries share under the array
API standard (``namespace(F).sum(F, axis=0)``). Tables of numpy stay with numpy; those of torch stay
on their device, a CPU or a GPU. torch is imported only if requested. Threads work on blocks of rows
that depend only on the table's shape, so that results are equal for any number of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from math import prod
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from array_api_compat import device as device
from array_api_compat import is_torch_array as is_torch_array
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.preprocessing import normalize
from threadpoolctl import ThreadpoolController

from transferable.exceptions import installing
from transferable.limits import LIMITS

namespace = array_namespace
_CONSTANT = 1e-12  # share of the largest variance up to which a column is constant


@dataclass(frozen=True)
class Arrays:
    """Factory of tables: numpy's if `device` is None, else torch's on that device."""

    device: str | None = None

    @classmethod
    def on(cls, device: str) -> Arrays:
        """Return the factory for a `device`: "cpu", "torch", "auto" or a device of torch."""
        if device == "cpu" or (device == "auto" and not _has_cuda()):
            return CPU
        if find_spec("torch") is None:
            raise ImportError(
                f'device="{device}" needs torch, which is not installed: {installing("gpu")}, '
                'or leave device="cpu" to compute with numpy.'
            )
        if device == "torch":
            return cls("cpu")
        if not _has_cuda():
            raise ValueError(
                f'device="{device}" needs a GPU, but torch sees no CUDA GPU here; device="cpu" '
                'computes with numpy, device="torch" with torch on the CPU.'
            )
        return cls("cuda" if device == "auto" else device)

    @classmethod
    def of(cls, table: Any) -> Arrays:
        """Return the factory for the device of a table."""
        return cls(str(table.device)) if is_torch_array(table) else CPU

    @property
    def on_gpu(self) -> bool:
        """Whether tables lie in the memory of a GPU."""
        return self.device is not None and self.device != "cpu"

    def table(self, values: Any, dtype: str | None = None) -> Any:
        """Return the values as a table, copied only if need be; sparse matrices stay scipy's."""
        if sp.issparse(values):
            return values if dtype is None else values.astype(dtype)
        if self.device is None:
            values = to_numpy(values) if is_torch_array(values) else values
            return np.asarray(values, dtype=dtype)
        import torch

        values = torch.as_tensor(values, device=self.device)
        return values if dtype is None else values.to(getattr(torch, dtype))

    def sparse(self, values: Any) -> Any:
        """Return a sparse matrix in compressed rows."""
        if self.device is None or is_torch_array(values):
            return values
        parts = (self.table(part) for part in (values.indptr, values.indices, values.data))
        return sparse_tensor(*parts, shape=values.shape)

    def one_hot(self, codes: NDArray[np.intp], n_columns: int, dtype: str = "float64") -> Any:
        """Return a table with a one in each row's column and zeros elsewhere; no one for -1."""
        rows = self.table(codes)
        columns = self.table(np.arange(n_columns, dtype=codes.dtype))
        return self.table(rows[:, None] == columns, dtype)


CPU = Arrays()


def device_of(table: Any) -> str | None:
    """Return the device of a tensor on a GPU, or under scikit-learn's array API dispatch; or None.

    numpy reads a tensor of the CPU as an array of its own.
    """
    if not is_torch_array(table):
        return None
    apart = table.device.type != "cpu" or get_config()["array_api_dispatch"]
    return str(table.device) if apart else None


def _has_cuda() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def to_numpy(table: Any) -> NDArray[Any]:
    """Return the values as an array of numpy."""
    return table.detach().cpu().numpy() if is_torch_array(table) else np.asarray(table)


def sparse_tensor(starts: Any, columns: Any, weights: Any, *, shape: tuple[int, int]) -> Any:
    """Return a sparse tensor in compressed rows."""
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly")
        return torch.sparse_csr_tensor(starts, columns, weights, shape, check_invariants=False)


def on_host(values: Any) -> Any:
    """Return a tensor as an array of numpy; other objects unchanged."""
    if not is_torch_array(values) or device_of(values) is None:
        return values
    return to_numpy(values)


def like(table: Any, values: NDArray[Any]) -> Any:
    """Return numbers as a tensor on the device of the input, if that was a tensor."""
    if not is_torch_array(table) or values.dtype.kind not in "fiub":
        return values
    device = device_of(table)
    return values if device is None else Arrays(device).table(values)


Part = TypeVar("Part")
Result = TypeVar("Result")

CACHED_VALUES = 2**18  # 2 MB in float64
_VALUES = 2**20  # of a block: much work between two requests of a thread for the interpreter


def thread_blocks(table: Any) -> list[slice]:
    """Return slices of the rows of a table, by its shape alone; one if it is small."""
    n, width = table.shape[0], max(1, int(np.prod(table.shape[1:])))
    step = n if n * width < LIMITS.threaded_values else max(1, _VALUES // width)
    return [slice(start, min(start + step, n)) for start in range(0, n, max(step, 1))]


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Return the results of the work for each part, in order.

    Each thread computes on its own: threads of BLAS inside it would wait for all others.
    """
    if len(parts) <= 1:
        return [work(part) for part in parts]
    with limited_threads(1) as free:
        if free == 1:
            return [work(part) for part in parts]
        with ThreadPoolExecutor(min(free, len(parts))) as pool:
            return list(pool.map(work, parts))


@contextmanager
def limited_threads(most: int) -> Iterator[int]:
    """Let BLAS and OpenMP use at most this many threads; yield how many BLAS would have used.

    Limits of fits side by side may end in any order: the last brings back the first number.
    """
    with _LOCK:
        pools, free = _pools(), {"blas": 1}
        for pool in pools.info():
            kind = pool["user_api"]
            free[kind] = max(free.get(kind, 1), pool["num_threads"])
        limits = {kind: min(most, count) for kind, count in free.items()}
        limit = [pools.limit(limits=limits)]
        _LIMITERS.append(limit)
    try:
        yield free["blas"]
    finally:
        with _LOCK:
            limit.append(None)  # it has ended
            while _LIMITERS and len(_LIMITERS[-1]) > 1:
                _LIMITERS.pop()[0].restore_original_limits()


# A search through all libraries takes longer than a small fit.
_pools = cache(ThreadpoolController)
_LOCK = Lock()
_LIMITERS: list[list[Any]] = []  # in force, or ended before a later one


def taken_rows(table: Any, order: Any) -> Any:
    """Return rows of a dense table in a given order, copied."""
    out = np.empty((len(order), *table.shape[1:]), dtype=table.dtype)

    def take(rows: slice) -> None:
        np.take(table, order[rows], axis=0, out=out[rows], mode="clip")

    in_threads(take, thread_blocks(out))
    return out


def centre_of(X: Any, weights: Any = None, moments: Any = None) -> NDArray[np.float64]:
    """Return the point that :func:`unit_rows` takes directions from: the mean of rows, and -r.

    A direction from the mean alone loses how far from it a row is, which matters where
    columns are few. So the point lies beside the rows, by r in a further coordinate; r is the
    deviation of rows in one column or, where there are more, in two. Constant columns do not count.
    `moments`, if known, take the place of the rows.
    """
    if moments:
        mean, variance = moments.mean, np.diag(moments.covariance)
    else:
        n, width = X.shape
        w, sparse = np.ones(n) if weights is None else weights, sp.issparse(X)
        values = LIMITS.block_values if sparse or isinstance(X, Reordered) else CACHED_VALUES
        step = max(1, values // max(width, 1))
        origin = np.zeros(width) if sparse else np.asarray(X[0], dtype=np.float64)
        blocks: Any = ((slice(k, k + step), X[k : k + step]) for k in range(0, n, step))
        total, squares = np.zeros(width), np.zeros(width)
        for rows, block in X.blocks(step) if isinstance(X, Reordered) else blocks:
            R = block if sparse else block - origin
            total += w[rows] @ R
            squares += w[rows] @ (sp.csr_array(R).power(2) if sparse else R * R)
        variance = squares / w.sum() - (total / w.sum()) ** 2
        mean = total / w.sum() + origin
    varying = variance[variance > _CONSTANT * variance.max()]
    r = np.sqrt(varying[:2].size * varying.mean()) if varying.size else 0.0
    return np.append(mean, -r)


def unit_rows(X: Any, flow: Any = None, centre: Any = None, beside: float = 0.0) -> Any:
    """Return rows, from a centre and times the factor of a flow if given, scaled to length one.

    `beside`, from 0 to 1, is the weight of the rows themselves beside their place along the flow.
    From a centre they have a further column (:func:`centre_of`) and are dense; otherwise
    rows of zeros stay zeros. The result is in the precision of the rows, and the same for any
    number of threads.
    """
    Q = None
    if flow is not None and flow.shape[1]:
        Q = (np.sqrt(1.0 - beside) * flow).astype(X.dtype)
    if is_torch_array(X):
        lengths = X.norm(dim=1, keepdim=True)
        return X / lengths.where(lengths > 0, 1.0)
    if sp.issparse(X) and centre is None and not beside:
        Z = X if Q is None else X @ Q
        return normalize(Z, norm="l2", axis=1)
    X = X if isinstance(X, Reordered) or sp.issparse(X) else np.asarray(X)
    width = X.shape[1] * (Q is None or beside > 0) + (0 if Q is None else Q.shape[1])
    dtype = np.result_type(X.dtype, np.float32)
    mean, r = (0, 0) if centre is None else np.split(centre.astype(dtype), [-1])
    out = np.empty((X.shape[0], width + (centre is not None)), dtype=dtype)
    if isinstance(X, Reordered):  # read in place, block by block
        for positions, rows in X.blocks(max(1, LIMITS.block_values // X.shape[1])):
            out[positions] = unit_rows(rows, flow, centre, beside)
        return out

    def scale(rows: slice) -> None:
        R = X[rows] if centre is None else np.asarray(X[rows] - mean)
        Z = R if Q is None else R @ Q
        Z = np.hstack([Z, np.sqrt(beside) * R]) if beside else Z
        lengths = np.sqrt(np.einsum("ij,ij->i", Z, Z, dtype=dtype) + r * r)
        lengths = np.where(lengths > 0, lengths, 1.0)[:, None]
        np.divide(Z, lengths, out=out[rows, :width])
        out[rows, width:] = -r / lengths

    if prod(X.shape) < LIMITS.threaded_values:
        scale(slice(0, X.shape[0]))
    else:
        in_threads(scale, thread_blocks(X))
    return out


def products(A: Any, B: Any, buffer: Any = None) -> Any:
    """Return A B' as a dense table, in the memory of the buffer if there is one."""
    if buffer is None:
        P = A @ B.T
        return P.toarray() if sp.issparse(P) else P
    return namespace(A).matmul(A, B.T, out=buffer[: len(A) * len(B)].reshape(len(A), len(B)))


def dense(X: Any) -> Any:
    """Return the table as a dense array."""
    return X.toarray() if sp.issparse(X) else X


class Reordered:
    """Table too large to be copied, such as a memory map, read in another order.

    Parameters
    ----------
    table : ndarray of shape (n, d)
        The rows in their stored order.
    order : ndarray of shape (n,)
        ``order[i]`` is the position in the table of row ``i``.
    """

    def __init__(self, table: NDArray[Any], order: NDArray[np.intp]) -> None:
        self.table, self.order = table, order
        self.shape, self.dtype = table.shape, table.dtype

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(self.table[self.order[rows]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("The rows of a reordered table are copied when they are read.")
        return np.asarray(self[:], dtype=dtype)

    def blocks(self, n_rows: int) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Yield blocks in their stored order, with the positions of their rows in ours."""
        positions = np.empty_like(self.order)
        positions[self.order] = np.arange(len(self.order))
        for start in range(0, len(self), n_rows):
            yield positions[start : start + n_rows], self.table[start : start + n_rows]


def row_blocks(n: int, width: int, rows: int | None = None, *, on_gpu: bool = False) -> list[slice]:
    """Return slices of n rows, of a given size or one that suits the device at this width."""
    values = LIMITS.gpu_block_values if on_gpu else LIMITS.block_values
    step = rows or max(1, values // max(width, 1))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
