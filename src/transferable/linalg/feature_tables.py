"""Features of many rows: held in memory where they fit, computed block by block where not.

Everything the engines ask of the n x r table Phi of Nystrom features is a sum over rows, so no
more than one block has to exist at a time. Sums are kept in float64, whatever Phi is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from transferable.limits import LIMITS
from transferable.linalg.arrays import Arrays, namespace
from transferable.linalg.moments import row_blocks
from transferable.linalg.nystrom import Nystrom

__all__ = ["FeatureTable"]


class FeatureTable:
    """Phi of given rows.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n, d)
        The rows, on the host or on the device of the features.
    nystrom : Nystrom
        The map from rows to features.
    arrays : Arrays
        Where features are computed.
    held : bool
        Whether Phi is kept. If not, blocks are computed again whenever they are asked for.
    known : array or None
        Phi, where it was computed before.
    block_rows : int or None
        Rows of a block; None takes as many as suit the device.
    chunk : int or None
        Columns of Phi that `between` works on at once; None is all of them.
    """

    def __init__(
        self,
        Z: Any,
        nystrom: Nystrom,
        arrays: Arrays,
        *,
        held: bool = True,
        known: Any = None,
        block_rows: int | None = None,
        chunk: int | None = None,
    ) -> None:
        self.Z, self.nystrom, self.arrays = Z, nystrom, arrays
        self.n, self.rank = int(Z.shape[0]), nystrom.rank
        width = max(int(nystrom.landmarks.shape[0]), int(Z.shape[1]))
        self._slices = row_blocks(self.n, width, block_rows, on_gpu=arrays.on_gpu)
        self._chunk = chunk or self.rank
        self._buffer: Any = None
        self._fine = self._slices
        if arrays.device is None and not sp.issparse(Z):  # blocks that caches hold, made in place
            self._fine = row_blocks(self.n, width, block_rows or LIMITS.mapped_rows)
        self._Phi: Any = known
        if held and known is None:
            self._Phi = self._columns(slice(None))

    @property
    def held(self) -> Any:
        """Phi of all rows where it is kept, else None."""
        return self._Phi

    def blocks(self, within: slice | None = None) -> Iterator[tuple[slice, Any]]:
        """Slices of rows, all or those within a slice, with their features."""
        within = within or slice(0, self.n)
        for block in self._slices:
            rows = slice(max(block.start, within.start), min(block.stop, within.stop))
            if rows.start < rows.stop:
                yield rows, self[rows]

    def __getitem__(self, rows: slice) -> Any:
        """Features of some rows."""
        return self.nystrom(self.Z[rows]) if self._Phi is None else self._Phi[rows]

    def times(self, w: Any) -> Any:
        """Phi w, in float64."""
        xp = namespace(w)
        out = xp.empty((self.n, w.shape[1]), dtype=xp.float64, device=self.arrays.device)
        if self._Phi is None:  # C (B w) costs a fraction of (C B) w
            w = self.nystrom.whitening @ w
            for rows in self._fine:
                out[rows] = xp.astype(self._kernel(rows), xp.float64) @ w
            return out
        w = self.arrays.table(w, self.nystrom.dtype)
        for rows in self._slices:
            out[rows] = xp.astype(self._Phi[rows] @ w, xp.float64)
        return out

    def transposed_times(self, T: Any, start: int = 0) -> Any:
        """Phi' T in float64, of a table T whose first row belongs to row `start` of Phi."""
        xp = namespace(T)
        width = int(self.nystrom.whitening.shape[self._Phi is not None])
        total = xp.zeros((width, T.shape[1]), dtype=xp.float64, device=self.arrays.device)
        for block in self._slices:
            rows = slice(max(block.start, start), min(block.stop, start + len(T)))
            if rows.start >= rows.stop:
                continue
            part = T[rows.start - start : rows.stop - start]
            if self._Phi is None:  # B' (C'T) costs a fraction of (C B)'T
                C = xp.astype(self.nystrom.kernel(self.Z[rows]), xp.float64)
                total += C.T @ xp.astype(part, xp.float64)
            else:
                part = self.arrays.table(part, self.nystrom.dtype)
                total += xp.astype(self._Phi[rows].T @ part, xp.float64)
        return total if self._Phi is not None else self.nystrom.whitening.T @ total

    def labelled(
        self, w: Any, label: Callable[[Any], NDArray[np.intp]], within: slice
    ) -> tuple[NDArray[np.intp], Any]:
        """Classes of rows by a function of their scores Phi w, and sums of features by class.

        Features that are not held are computed once for both.
        """
        xp, dtype = namespace(w), self.nystrom.dtype if self._Phi is not None else "float64"
        w = self.arrays.table(w if self._Phi is not None else self.nystrom.whitening @ w, dtype)
        codes = [np.empty(0, dtype=np.intp)]
        total = xp.zeros(w.shape, dtype=xp.float64, device=self.arrays.device)
        for block in self._fine:
            rows = slice(max(block.start, within.start), min(block.stop, within.stop))
            if rows.start >= rows.stop:
                continue
            T = self._Phi[rows] if self._Phi is not None else self._kernel(rows)
            T = self.arrays.table(T, dtype)
            codes.append(label(xp.astype(T @ w, xp.float64)))
            member = np.zeros((T.shape[0], w.shape[1]))
            member[np.arange(len(member)), codes[-1]] = 1.0
            total += xp.astype(T.T @ self.arrays.table(member, dtype), xp.float64)
        if self._Phi is None:
            total = self.nystrom.whitening.T @ total
        return np.concatenate(codes), total

    def between(self, apply: Callable[[Any], Any]) -> Any:
        """Phi' S Phi, where `apply` gives S times a table of n rows.

        S reaches across rows, so whole columns of Phi are needed at a time, but not all of them.
        """
        xp = namespace(self.nystrom.whitening)
        shape = (self.rank, self.rank)
        out = xp.zeros(shape, dtype=xp.float64, device=self.arrays.device)
        for start in range(0, self.rank, self._chunk):
            columns = slice(start, start + self._chunk)
            out[:, columns] = self.transposed_times(apply(self._columns(columns)))
        return (out + out.T) / 2

    def _columns(self, columns: slice) -> Any:
        """Some columns of Phi for all rows."""
        if self._Phi is not None:
            return self._Phi[:, columns]
        B = self.arrays.table(self.nystrom.whitening[:, columns], self.nystrom.dtype)
        xp = namespace(B)
        out = xp.empty((self.n, B.shape[1]), dtype=B.dtype, device=self.arrays.device)
        for rows in self._fine:
            xp.matmul(self._kernel(rows), B, out=out[rows])
        self._buffer = None
        return out

    def _kernel(self, rows: slice) -> Any:
        """C of some rows, which the next call may overwrite."""
        if self._fine is self._slices:
            return self.nystrom.kernel(self.Z[rows])
        if self._buffer is None:
            step = self._fine[0].stop * len(self.nystrom.landmarks)
            self._buffer = np.empty(step, dtype=self.nystrom.dtype)
        return self.nystrom.kernel(self.Z[rows], self._buffer)
