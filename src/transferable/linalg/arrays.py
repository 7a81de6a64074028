"""Tables of numpy or of torch: what the two call differently, and where a table lives.

Algebra is written once, with the operators and the functions that both libraries share under the
array API standard (``namespace(F).sum(F, axis=0)``). Tables of numpy stay with numpy; those of
torch stay on their device, be it a CPU or a GPU. torch is imported only if it was asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_torch_array
from numpy.typing import NDArray
from sklearn import get_config

from transferable.limits import LIMITS
from transferable.threads import in_threads, thread_blocks

__all__ = [
    "CPU",
    "Arrays",
    "device",
    "device_of",
    "in_blocks",
    "inner",
    "is_torch_array",
    "like",
    "namespace",
    "on_host",
    "sparse_tensor",
    "to_numpy",
]

namespace = array_namespace


@dataclass(frozen=True)
class Arrays:
    """Where tables are made: numpy's if `device` is None, else torch's on that device."""

    device: str | None = None

    @classmethod
    def on(cls, device: str) -> Arrays:
        """The tables of an estimator's `device`: "cpu", "torch", "auto" or a device of torch."""
        if device == "cpu" or (device == "auto" and not _has_cuda()):
            return CPU
        if find_spec("torch") is None:
            raise ImportError(
                f'device="{device}" needs torch, which is not installed: pip install '
                '"transferable[gpu]", or leave device="cpu" to compute with numpy.'
            )
        if device == "torch":
            return cls("cpu")
        if not _has_cuda():
            raise ValueError(
                f'device="{device}" was asked for, but torch sees no CUDA GPU here; device="cpu" '
                'computes with numpy, device="torch" with torch on the CPU.'
            )
        return cls("cuda" if device == "auto" else device)

    @classmethod
    def of(cls, table: Any) -> Arrays:
        """Where a table lives."""
        return cls(str(table.device)) if is_torch_array(table) else CPU

    @property
    def on_gpu(self) -> bool:
        """Whether tables lie in the memory of a GPU."""
        return self.device is not None and self.device != "cpu"

    def table(self, values: Any, dtype: str | None = None) -> Any:
        """The values as a table here, copied only if need be; sparse matrices stay scipy's."""
        if sp.issparse(values):
            return values if dtype is None else values.astype(dtype)
        if self.device is None:
            return np.asarray(to_numpy(values), dtype=dtype)
        import torch

        values = torch.as_tensor(values, device=self.device)
        return values if dtype is None else values.to(getattr(torch, dtype))

    def sparse(self, values: Any) -> Any:
        """A sparse matrix here, in compressed rows."""
        if self.device is None or is_torch_array(values):
            return values
        parts = (self.table(part) for part in (values.indptr, values.indices, values.data))
        return sparse_tensor(*parts, shape=values.shape)

    def one_hot(self, codes: NDArray[np.intp], n_columns: int, dtype: str = "float64") -> Any:
        """A table with a one in each row's column and zeros elsewhere; no one for a code of -1."""
        rows = self.table(codes)
        columns = self.table(np.arange(n_columns, dtype=codes.dtype))
        return self.table(rows[:, None] == columns, dtype)

    def free_bytes(self) -> int:
        """Memory that is free where the tables live."""
        if self.on_gpu:
            import torch

            return int(torch.cuda.mem_get_info(self.device)[0])
        import psutil

        return int(psutil.virtual_memory().available)


CPU = Arrays()


def device_of(table: Any) -> str | None:
    """Return the device of a tensor under scikit-learn's array API dispatch, else None."""
    dispatched = is_torch_array(table) and get_config()["array_api_dispatch"]
    return str(table.device) if dispatched else None


def _has_cuda() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def to_numpy(table: Any) -> NDArray[Any]:
    """The same values as an array of numpy."""
    return table.detach().cpu().numpy() if is_torch_array(table) else np.asarray(table)


def sparse_tensor(starts: Any, columns: Any, weights: Any, *, shape: tuple[int, int]) -> Any:
    """A sparse tensor in compressed rows."""
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly")
        return torch.sparse_csr_tensor(starts, columns, weights, shape, check_invariants=False)


def on_host(values: Any) -> Any:
    """A tensor that was passed in as an array of numpy; anything else as it is."""
    return values if device_of(values) is None else to_numpy(values)


def like(table: Any, values: NDArray[Any]) -> Any:
    """Numbers as a tensor on the device of the tensor that was passed in, if it was one."""
    device = device_of(table)
    if device is None or values.dtype.kind not in "fiub":
        return values
    return Arrays(device).table(values)


def in_blocks(work: Callable[[slice], None], table: Any) -> None:
    """Have work done on blocks of the rows of a table: one if it is small, else many, by threads.

    Blocks depend on the table's shape alone, so that results are equal for any number of threads.
    """
    if prod(table.shape) < LIMITS.threaded_values:
        work(slice(0, table.shape[0]))
    else:
        in_threads(work, thread_blocks(table))


def inner(A: Any, B: Any) -> float:
    """tr(A'B)."""
    return float(namespace(A, B).sum(A * B))
