"""Rows as features Phi in which every spectral method is a small symmetric problem.

With X = U S V', a linear map W = V c of the features (no kernel) gives Z = X W = (U S) c, and
an expansion W = U c over the rows with a linear kernel gives Z = K W = (U S^2) c. V and U are
orthonormal, so c has the length of W and nothing with n rows and n columns is ever formed. Other
kernels have U and S^2 from the eigenvectors of K, or keep Phi = K where products with K suffice;
with landmarks, their Nystrom features take the place of X.

With more rows than columns, Phi = X V S^(power - 1) is not formed either: products with it are
products with blocks of X.

:class:`SubspaceTransformer` is the base of methods that compare principal subspaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv

from transferable._linalg.kernels import KERNELS, FeatureTable, Kernel, KernelFunction
from transferable._linalg.moments import Moments, RowTable, moments_of_blocks, moments_of_groups
from transferable._linalg.systems import (
    Matrix,
    gram_basis,
    row_basis,
)
from transferable._sklearn import COUNT, NUMBER, POSITIVE, StrOptions
from transferable.base import DomainTransformer
from transferable.domains import Domains

Table = RowTable | FeatureTable
# Rows of a domain, read in blocks, and their weights.
WeightedTable = tuple[RowTable, Matrix]


class KernelParameters(DomainTransformer):
    """Parameters of a kernel.

    Parameters
    ----------
    gamma : float or "scale", default="scale"
        Coefficient of "rbf" and "poly"; "scale" is 1 / (n_features * variance of the rows).
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=1.0
        Constant of "poly".
    random_state : int, RandomState instance or None, default=0
        Seed of the draw of landmarks.
    """

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [POSITIVE, StrOptions({"scale"})],
        "degree": [COUNT],
        "coef0": [NUMBER],
    }

    kernel: Kernel | None
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 1.0
    random_state: int | RandomState | None = 0

    def _kernel(self, spread: Spread) -> KernelFunction:
        """Return the kernel for rows of this spread."""
        gamma = spread.gamma if isinstance(self.gamma, str) else float(self.gamma)
        return KernelFunction(cast(Kernel, self.kernel), gamma, self.degree, self.coef0)


@dataclass(frozen=True)
class Spread:
    """Range and squares about a mean of the features of some rows; additive over blocks."""

    count: float
    lowest: Matrix
    highest: Matrix
    squares: Matrix

    @classmethod
    def of(cls, rows: Matrix, mean: Matrix | float, weights: Matrix) -> Spread:
        """Return the spread of a few rows about a mean, or one number for all features."""
        lowest, highest = rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)
        return cls(float(weights.sum()), lowest, highest, weights @ (rows - mean) ** 2)

    @classmethod
    def of_rows(cls, X: Any, weights: Matrix) -> Spread:
        """Return the spread of rows about the mean of all their values."""
        table = RowTable(X)
        total = sum(float(weights[some] @ rows.sum(axis=1)) for some, rows in table.blocks())
        mean = total / (float(weights.sum()) * table.rank)
        return reduce(add, (cls.of(rows, mean, weights[some]) for some, rows in table.blocks()))

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.count + other.count,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.squares + other.squares,
        )

    @property
    def gamma(self) -> float:
        """1 / (n_features * variance of all values), or 1 if they do not vary: gamma="scale"."""
        variance = float(np.sum(self.squares)) / self.count
        return 1.0 / variance if variance > 0 else 1.0

    @property
    def deviations(self) -> Matrix:
        """Standard deviation of each feature, 1 where it is constant."""
        deviations = np.sqrt(self.squares / self.count)
        largest = np.maximum(self.highest, -self.lowest)
        return np.where(deviations <= 1e-12 * largest, 1.0, deviations)


@dataclass(frozen=True, eq=False)
class RowMap:
    """Linear map of rows, or of their kernel with kept rows."""

    kernel: KernelFunction | None = None  # the kernel; None for rows as they are
    anchors: Any = None  # the kept rows
    # the map, learnt at last; map below map if there is one for each domain
    coefficients: Any = None

    def __call__(self, rows: Any) -> Matrix:
        """Return what the coefficients multiply: one row for each of these rows."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        return rows if self.kernel is None else np.asarray(self.kernel(rows, self.anchors))


@dataclass(eq=False)
class Features:
    """Phi of the fitted rows, with the products that the methods need.

    Notes
    -----
    A row of weight w counts as w rows, whose coefficients are equal, so that an expansion over the
    rows is one over rows times the root of w, and the columns of Phi = K are multiplied by it.
    """

    table: Table  # T, of n rows
    domains: Domains  # the problem of these rows
    rank: int  # number of features
    # typical size of a squared feature; penalties on W are multiplied by it, so that they do
    # not depend on the unit of the rows. It is 1 for rows of unit length
    scale: float
    map: RowMap  # map from any rows to the table that `expand` gives coefficients of
    mean: Matrix | None = None  # (rank,): mean of the features; None where Phi is K itself
    matrix: Matrix | None = None  # (columns of T, rank): Phi = T matrix; None is the identity
    # (rank,): S^power, where Phi is U S^power; None where Phi is K itself
    roots: Matrix | None = None
    # factor from coefficients of Phi to those, or its diagonal; None is the identity
    expansion: Matrix | None = None
    moments: list[Moments] | None = None  # moments of T in the source and in the target, if known

    def times(self, w: Matrix) -> Matrix:
        """Return Phi w."""
        return self.table.times(w if self.matrix is None else self.matrix @ w)

    def transposed_times(self, T: Matrix) -> Matrix:
        """Return Phi' T."""
        columns = self.table.transposed_times(T)
        return columns if self.matrix is None else self.matrix.T @ columns

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield slices of rows with their part of Phi."""
        for rows, block in self.table.blocks():
            yield rows, block if self.matrix is None else block @ self.matrix

    def expand(self, W: Matrix) -> Matrix:
        """Return coefficients of the output of `map` from those of Phi, map below map."""
        if self.expansion is None:
            return W
        if self.expansion.ndim == 1:
            return self.expansion[:, None] * W
        parts = np.split(W, len(W) // self.rank)
        return np.concatenate([self.expansion @ part for part in parts])

    def moments_of(self, codes: NDArray[np.intp], n_groups: int, within: slice) -> list[Moments]:
        """Return moments of the features of each group, over the rows of a slice."""
        weights = self.domains.row_weights
        moments = moments_of_groups(self.table, codes, n_groups, within, weights=weights)
        Q = self.matrix
        if Q is None:
            return moments
        return [Moments(m.count, Q.T @ m.total, Q.T @ (m.gram @ Q)) for m in moments]

    def scatter(self, domain: int) -> Matrix:
        """Return Phi' H Phi over the rows of the source (0) or of the target (1)."""
        if self.moments is None:
            sides, weights = (self.domains.source, self.domains.target), self.domains.row_weights
            self.moments = [moments_of_blocks(self.table, i, weights=weights) for i in sides]
        scatter = self.moments[domain].count * self.moments[domain].covariance
        return scatter if self.matrix is None else self.matrix.T @ (scatter @ self.matrix)

    def total_scatter(self, x: Matrix) -> Matrix:
        """Return Phi' H Phi x, at the cost of one product with a vector if Phi'Phi is diagonal."""
        weights = self.domains.row_weights
        total = float(weights.sum())
        if self.mean is not None and self.roots is not None:
            mean = total * np.multiply.outer(self.mean, self.mean @ x)
            return (self.roots**2 * x.T).T - mean
        K = self.table.X  # type: ignore[union-attr]
        if x.ndim == 1 and (weights == 1.0).all():  # K's symmetry halves the reading
            y = dsymv(1.0, K.T, x)
            return dsymv(1.0, K.T, y - y.mean())
        y = K @ x
        return K.T @ (weights * (y - weights @ y / total).T).T


def by_row(B: Matrix, domains: Domains, target: NDArray[np.intp] | None) -> Matrix:
    """Return E = W G B: on each row, its weight times the coefficients of its group."""
    E: Matrix = B[domains.groups(target)]
    E *= domains.weights[:, None]
    return E


def by_domain(columns: Matrix, domains: Domains) -> Matrix:
    """Return the columns with zeros on target rows, beside those with zeros on source rows."""
    n, width = columns.shape
    apart = np.zeros((n, 2 * width))
    apart[domains.source, :width] = columns[domains.source]
    apart[domains.target, width:] = columns[domains.target]
    return apart


def farthest(Z: Matrix) -> Matrix:
    """Return the value of each column that is farthest from zero; 0 without rows."""
    if len(Z) == 0:
        return np.zeros(Z.shape[1])
    return Z[np.abs(Z).argmax(axis=0), np.arange(Z.shape[1])]


def row_features(domains: Domains, power: int) -> Features:
    """Return features U S^power of the rows themselves."""
    n, d = domains.X.shape
    if d <= n:
        return table_features(RowTable(domains.X), domains, power, RowMap())
    X = np.asarray(domains.X, dtype=np.float64)
    weights = domains.row_weights
    V, s = row_basis(np.sqrt(weights)[:, None] * X)
    expansion = V * s ** (power - 1)
    scale = (float(np.sum(s**2)) / weights.sum()) ** power or 1.0
    Phi, roots = X @ expansion, s**power
    mean = Phi.T @ (weights / weights.sum())
    given = domains, len(s), scale, RowMap(), mean
    return Features(RowTable(Phi), *given, roots=roots, expansion=expansion)


def table_features(
    table: Table, domains: Domains, power: int, row_map: RowMap, whitening: Matrix | None = None
) -> Features:
    """Return features U S^power of a table U S V' of more rows than columns.

    The table is the output of `row_map`, times the whitening if there is one.
    """
    sides, weights = (domains.source, domains.target), domains.row_weights
    moments = [moments_of_blocks(table, rows, weights=weights) for rows in sides]
    nystrom = getattr(table, "nystrom", None)
    single = nystrom is not None and nystrom.dtype == "float32"
    gram = moments[0].gram + moments[1].gram
    V, s = gram_basis(gram, **({"rounding": 1e-6} if single else {}))
    matrix, count = V * s ** (power - 1), moments[0].count + moments[1].count
    return Features(
        table,
        domains,
        len(s),
        (float(np.trace(gram)) / count) ** power or 1.0,
        row_map,
        matrix.T @ ((moments[0].total + moments[1].total) / count),
        matrix=matrix,
        roots=s**power,
        expansion=matrix if whitening is None else whitening @ matrix,
        moments=moments,
    )


def kernel_features(
    domains: Domains, kernel: KernelFunction, power: int, *, factored: bool
) -> Features:
    """Return features U S^power of the kernel matrix of all rows, or K itself if that suffices."""
    X = np.asarray(domains.X, dtype=np.float64)
    K = np.asarray(kernel(X, X))
    weights = domains.row_weights
    scale = float(np.average(np.diag(K), weights=weights)) ** power
    scale = scale if scale > 0 else 1.0
    if factored:
        U, s = gram_basis(K)
        Phi, expansion = U * s**power, U * s ** (power - 2.0)
        mean = Phi.T @ (weights / weights.sum())
        given = domains, len(s), scale, RowMap(kernel, X), mean
        return Features(RowTable(Phi), *given, roots=s**power, expansion=expansion)
    K *= np.sqrt(weights)
    row_map = RowMap(kernel, X)
    return Features(RowTable(K), domains, len(K), scale, row_map, expansion=np.sqrt(weights))


def table_of(domains: Domains, rows: slice | NDArray[np.intp]) -> WeightedTable:
    """Return some of the rows with their weights."""
    return RowTable(domains.X).part(rows), domains.weights[rows]
