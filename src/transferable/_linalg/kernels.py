"""Kernels by name or by function, and Nystrom features: rows through a kernel with landmarks.

With landmarks L, C = K(X, L) and B the inverse root of K(L, L), the features Phi = C B have Phi
Phi' = C K(L, L)^-1 C', the best approximation of K(X, X) within the span of the landmarks, and
equal to it if every row is a landmark. The solvers need only sums over the rows of Phi, which is
held in memory where it fits and computed block by block where not. Sums are in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrmm, strmm
from scipy.linalg.lapack import dtrtri

from transferable._linalg.arrays import (
    Arrays,
    dense,
    in_threads,
    is_torch_array,
    limited_threads,
    namespace,
    products,
    row_blocks,
)
from transferable.limits import LIMITS

KERNELS = ("linear", "poly", "rbf")
_SAMPLE = 5  # rows considered for each landmark
_MANY_STEPS = 256
_LARGEST = 1e60  # value of a kernel: methods multiply several
Kernel = str | Callable[[Any, Any], NDArray[np.float64]]


@dataclass(frozen=True)
class KernelFunction:
    """Kernel with its parameters; equal parameters make equal kernels."""

    kernel: Kernel
    gamma: float
    degree: int = 3
    coef0: float = 1.0

    def __call__(self, X: Any, Y: Any, buffer: Any = None) -> Any:
        """Return K(X, Y) in the tables' precision, in the buffer's memory if there is one.

        A callable receives both tables whole and returns the matrix, as in `sklearn.svm.SVC`.
        """
        kernel, gamma = self.kernel, self.gamma
        if callable(kernel):
            return _called(kernel, X, Y)
        K = products(X, Y, buffer)
        if kernel == "linear":
            return K
        if kernel == "poly":
            with np.errstate(over="ignore"):
                K = (gamma * K + self.coef0) ** self.degree
            name = f"The kernel (gamma x'y + coef0)^{self.degree}"
            return _moderate(K, name, "a smaller degree")
        K *= 2.0 * gamma
        K -= gamma * squared_lengths(X)[:, None]
        K -= gamma * squared_lengths(Y)[None, :]
        if is_torch_array(K):
            return K.clamp_(max=0.0).exp_()
        return np.exp(np.minimum(K, 0.0, out=K), out=K)


def squared_lengths(X: Any) -> Any:
    """Return the squared Euclidean length of each row."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return namespace(X).vecdot(X, X, axis=1)


def _called(kernel: Callable[[Any, Any], Any], X: Any, Y: Any) -> Any:
    if is_torch_array(X):
        raise ValueError(
            'A kernel function computes with numpy; take device="cpu", or a kernel by name: '
            f"{', '.join(KERNELS)}."
        )
    K = np.asarray(kernel(X, Y))
    if K.shape != (X.shape[0], Y.shape[0]) or K.dtype.kind not in "fiub":
        raise ValueError(
            f"The kernel function returned shape {K.shape} and dtype {K.dtype} for tables of "
            f"{X.shape[0]} and {Y.shape[0]} rows; it must return a real number for each pair of "
            "rows."
        )
    K = _moderate(K.astype(np.float64), "The kernel function", "scaled rows")
    if X is Y:
        _check_inner_products(K)
    return K


def _check_inner_products(K: NDArray[np.float64]) -> None:
    """Refuse a matrix that violates k(x, y) = k(y, x) or k(x, y)^2 <= k(x, x) k(y, y)."""
    squares = np.diagonal(K)
    rounding = 1e-6 * np.abs(K).max(initial=0.0)
    bound = np.sqrt(np.maximum(np.outer(squares, squares), 0.0)) + rounding
    if (
        (squares < -rounding).any()
        or np.abs(K - K.T).max(initial=0.0) > rounding
        or (np.abs(K) > bound).any()
    ):
        raise ValueError(
            "The kernel function is not positive semi-definite: k(x, y) = k(y, x) and "
            "k(x, y)^2 <= k(x, x) k(y, y) must hold for all rows. Take another one."
        )


def _moderate(K: Any, name: str, remedy: str) -> Any:
    """Return the matrix, or raise if values are not finite or too large to compute with."""
    lowest, highest = (float(K.min()), float(K.max())) if K.shape[0] * K.shape[1] else (0.0, 0.0)
    if not (lowest >= -_LARGEST and highest <= _LARGEST):
        raise ValueError(
            f"{name} has values from {lowest:.3g} to {highest:.3g}; they must be numbers of at "
            f"most {_LARGEST:.0e}. Take {remedy}, or another kernel."
        )
    return K


# -- landmarks --------------------------------------------------------------------------------


def draw_landmarks(
    X: Any, n_source: int, count: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Return positions of landmarks, half of them from each domain as far as it has rows, in order.

    Each domain's are drawn by k-means++ from its first rows: rows far from those drawn before are
    likelier, so that no region is left without a landmark.
    """
    n = X.shape[0]
    n_target = n - n_source
    from_target = min(n_target, max(count // 2, count - n_source))
    from_source = min(n_source, count - from_target)
    source = _spread_rows(X, 0, n_source, from_source, rng)
    return np.concatenate([source, _spread_rows(X, n_source, n, from_target, rng)])


def _spread_rows(
    X: Any, start: int, stop: int, count: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Return positions of rows of a stretch, far from each other."""
    if count == 0 or count == stop - start:
        return np.arange(start, start + count)
    sample = X[start : min(stop, start + _SAMPLE * count)]  # the order of rows is random already
    return start + np.unique(_far_apart(sample, count, rng))  # equal rows may be drawn twice


def _far_apart(X: Any, count: int, rng: np.random.RandomState) -> list[int]:
    """Draw rows one by one, in proportion to the squared distance to those drawn before."""
    squares = squared_lengths(X)
    drawn = [int(rng.randint(len(squares)))]
    distances = np.full(len(squares), np.inf, dtype=squares.dtype)
    to_last, shares = np.empty_like(squares), np.empty(len(squares))
    # Threads would wait for each other in every one of many small products.
    with nullcontext() if count < _MANY_STEPS else limited_threads(1):
        while len(drawn) < count:
            row = dense(X[drawn[-1] : drawn[-1] + 1])[0]
            np.add(squares, row @ row, out=to_last)
            to_last -= 2.0 * (X @ row)
            np.minimum(distances, np.maximum(to_last, 0.0, out=to_last), out=distances)
            np.cumsum(distances, out=shares)
            pick = np.searchsorted(shares, rng.random_sample() * shares[-1])
            drawn.append(min(int(pick), len(squares) - 1))
    return drawn


class Nystrom:
    """Map from rows to features, fitted to landmarks.

    `whitening` is B, in float64, without directions that are rounding errors in the precision of
    the rows; `gram` is K(L, L).
    """

    def __init__(self, landmarks: Any, kernel: KernelFunction, arrays: Arrays) -> None:
        self._kernel, self._arrays = kernel, arrays
        self.landmarks = arrays.table(landmarks)
        double = arrays.table(landmarks, "float64")
        self.gram = arrays.table(kernel(double, double))
        xp = namespace(self.gram)
        self.dtype = str(np.dtype(landmarks.dtype))
        values = xp.linalg.eigvalsh(self.gram)
        kept = values > float(np.finfo(self.dtype).eps) * values[-1]
        # Upper triangular where all directions are kept: a product takes half the time.
        self.triangular = arrays.device is None and bool(kept.all())
        if self.triangular:
            self.whitening = dtrtri(cholesky(self.gram))[0]
        else:
            values, vectors = xp.linalg.eigh(self.gram)
            self.whitening = vectors[:, kept] / xp.sqrt(values[kept])
        self._rounded = arrays.table(self.whitening, self.dtype)

    @property
    def rank(self) -> int:
        """Number of features."""
        return int(self.whitening.shape[1])

    def __call__(self, rows: Any) -> Any:
        """Return Phi of rows, in their precision."""
        return self.kernel(rows) @ self._rounded

    def kernel(self, rows: Any, buffer: Any = None) -> Any:
        """Return C = K(rows, L), in the rows' precision, in the buffer's memory if there is one."""
        values = self._kernel(self._arrays.table(rows), self.landmarks, buffer)
        return self._arrays.table(values, self.dtype)


class FeatureTable:
    """Phi of given rows, which lie on the host or on the device of the features.

    Phi is kept if `held`, where it was not `known` before; else blocks of that many rows, or of as
    many as suit the device, are computed on every request. `between` works on `chunk` columns of
    Phi at once; None is all of them.
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
        self._buffers = local()  # a block of each thread
        self._fine = self._slices
        if arrays.device is None and not sp.issparse(Z):  # blocks that caches hold, made in place
            self._fine = row_blocks(self.n, width, block_rows or LIMITS.mapped_rows)
        self._Phi: Any = known
        if held and known is None:
            self._Phi = self._columns(slice(None))

    @property
    def held(self) -> Any:
        """Features Phi of all rows where they are kept, else None."""
        return self._Phi

    def blocks(self, within: slice | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield slices of rows, all or those within a slice, with their features."""
        within = within or slice(0, self.n)
        for block in self._slices:
            rows = slice(max(block.start, within.start), min(block.stop, within.stop))
            if rows.start < rows.stop:
                yield rows, self[rows]

    def __getitem__(self, rows: slice) -> Any:
        """Return features of some rows."""
        return self.nystrom(self.Z[rows]) if self._Phi is None else self._Phi[rows]

    def times(self, w: Any) -> Any:
        """Return Phi w, in float64."""
        xp = namespace(w)
        out = xp.empty((self.n, w.shape[1]), dtype=xp.float64, device=self.arrays.device)
        if self._Phi is None:  # C (B w) costs a fraction of (C B) w
            w = self.nystrom.whitening @ w
        else:
            w = self.arrays.table(w, self.nystrom.dtype)

        def score(rows: slice) -> None:
            if self._Phi is None:
                out[rows] = xp.astype(self._kernel(rows), xp.float64) @ w
            else:
                out[rows] = xp.astype(self._Phi[rows] @ w, xp.float64)

        self._by_threads(score)
        return out

    def transposed_times(self, T: Any, start: int = 0) -> Any:
        """Return Phi' T in float64, of a table T whose first row belongs to row `start` of Phi."""
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
        """Return classes of rows by a function of their scores Phi w, and feature sums by class.

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
        """Return Phi' S Phi, where `apply` gives S times a table of n rows.

        S couples rows, so whole columns of Phi are needed at a time, but not all of them.
        """
        xp = namespace(self.nystrom.whitening)
        shape = (self.rank, self.rank)
        out = xp.zeros(shape, dtype=xp.float64, device=self.arrays.device)
        for start in range(0, self.rank, self._chunk):
            columns = slice(start, start + self._chunk)
            out[:, columns] = self.transposed_times(apply(self._columns(columns)))
        return (out + out.T) / 2

    def _columns(self, columns: slice) -> Any:
        """Return some columns of Phi for all rows."""
        if self._Phi is not None:
            return self._Phi[:, columns]
        B = self.arrays.table(self.nystrom.whitening[:, columns], self.nystrom.dtype)
        xp = namespace(B)
        out = xp.empty((self.n, B.shape[1]), dtype=B.dtype, device=self.arrays.device)
        multiply = strmm if self.nystrom.dtype == "float32" else dtrmm

        def fill(rows: slice) -> None:
            C = self._kernel(rows)
            if self.nystrom.triangular and B.shape[1] == self.rank:
                out[rows] = multiply(1.0, B, C.T, trans_a=1, overwrite_b=1).T
            else:
                xp.matmul(C, B, out=out[rows])

        self._by_threads(fill)
        self._buffers = local()
        return out

    def _by_threads(self, work: Callable[[slice], None]) -> None:
        """Apply work to blocks of rows: of numpy by threads, each with a block of its own."""
        if self._fine is self._slices:
            for rows in self._slices:
                work(rows)
        else:
            in_threads(work, self._fine)

    def _kernel(self, rows: slice) -> Any:
        """Return C of some rows, which the thread's next call may overwrite."""
        if self._fine is self._slices:
            return self.nystrom.kernel(self.Z[rows])
        if not hasattr(self._buffers, "block"):
            step = self._fine[0].stop * len(self.nystrom.landmarks)
            self._buffers.block = np.empty(step, dtype=self.nystrom.dtype)
        return self.nystrom.kernel(self.Z[rows], self._buffers.block)
