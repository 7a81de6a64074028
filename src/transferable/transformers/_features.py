"""Rows as features Phi in which every spectral method is a small symmetric problem.

With X = U S V', a linear map W = V c of the features (no kernel) gives Z = X W = (U S) c, and
an expansion W = U c over the rows with a linear kernel gives Z = K W = (U S^2) c. V and U are
orthonormal, so c has the length of W and nothing with n rows and n columns is ever formed. Other
kernels have U and S^2 from the eigenvectors of K, or keep Phi = K where products with K suffice;
with landmarks, their Nystrom features take the place of X.

With more rows than columns, Phi = X V S^(power - 1) is not formed either: products with it are
products with blocks of X.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv

from transferable._linalg.eigen import Matrix, gram_basis, row_basis
from transferable._linalg.kernels import KernelFunction
from transferable._linalg.moments import Moments, RowTable, moments_of_blocks, moments_of_groups
from transferable._linalg.nystrom import FeatureTable
from transferable.domains import Domains

Table = RowTable | FeatureTable


@dataclass(frozen=True)
class RowMap:
    """Map from rows to the input of a fitted map: themselves, or their kernel with kept rows."""

    kernel: KernelFunction | None = None
    anchors: Any = None

    def __call__(self, rows: Any) -> Matrix:
        """Return one row for each of these rows."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        return rows if self.kernel is None else np.asarray(self.kernel(rows, self.anchors))

    def width(self, n_features: int) -> int:
        """Return the number of columns for rows of so many features."""
        return n_features if self.anchors is None else max(n_features, len(self.anchors))


class Features:
    """Phi of the fitted rows, with the products that the methods need.

    Parameters
    ----------
    table : RowTable or FeatureTable
        T, of n rows.
    domains : Domains
        The problem of these rows.
    matrix : ndarray of shape (columns of T, rank) or None
        Phi = T matrix; None is the identity.
    roots : ndarray of shape (rank,) or None
        S^power, where Phi is U S^power; None where Phi is K itself.
    scale : float
        Typical size of a squared feature; penalties on W are multiplied by it, so that they do not
        depend on the unit of the rows. It is 1 for rows of unit length.
    row_map : RowMap
        Map from any rows to the table that `expand` gives coefficients of.
    expansion : ndarray or None
        Factor from coefficients of Phi to those, or its diagonal; None is the identity.
    moments : sequence of Moments or None
        Moments of T in the source and in the target, if known.

    Notes
    -----
    A row of weight w counts as w rows, whose coefficients are equal, so that an expansion over the
    rows is one over rows times the root of w, and the columns of Phi = K are multiplied by it.
    """

    def __init__(
        self,
        table: Table,
        *,
        domains: Domains,
        matrix: Matrix | None = None,
        roots: Matrix | None = None,
        scale: float,
        row_map: RowMap,
        expansion: Matrix | None = None,
        moments: list[Moments] | None = None,
    ) -> None:
        self._table, self._matrix, self.roots = table, matrix, roots
        self._sides = domains.source, domains.target
        self._known, self._weights = moments, domains.row_weights
        self._total = float(sum(m.count for m in moments) if moments else self._weights.sum())
        self.scale = scale if scale > 0 else 1.0
        self.map, self._expansion = row_map, expansion
        self.n = table.n
        self.rank = table.rank if matrix is None else matrix.shape[1]

    def times(self, w: Matrix) -> Matrix:
        """Return Phi w."""
        return self._table.times(w if self._matrix is None else self._matrix @ w)

    def transposed_times(self, T: Matrix) -> Matrix:
        """Return Phi' T."""
        return self._mapped(self._table.transposed_times(T))

    def signs(self, W: Matrix) -> Matrix:
        """Return signs that make the embedded row farthest from zero positive, by component.

        Coefficients do not determine them where rows are repeated or weighted.
        """
        return np.sign(farthest(self.times(W)))

    def projected(self, B: Matrix, domains: Domains, target: Any) -> Matrix:
        """Return Phi'E, where E has the coefficients B of its group on each row."""
        return self.transposed_times(by_row(B, domains, target))

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield slices of rows with their part of Phi."""
        for rows, block in self._table.blocks():
            yield rows, block if self._matrix is None else block @ self._matrix

    def expand(self, W: Matrix) -> Matrix:
        """Return coefficients of the output of `map` from those of Phi, map below map."""
        if self._expansion is None:
            return W
        if self._expansion.ndim == 1:
            return self._expansion[:, None] * W
        parts = np.split(W, len(W) // self.rank)
        return np.concatenate([self._expansion @ part for part in parts])

    def moments(self, codes: NDArray[np.intp], n_groups: int, within: slice) -> list[Moments]:
        """Return moments of the features of each group, over the rows of a slice."""
        moments = moments_of_groups(self._table, codes, n_groups, within, weights=self._weights)
        if self._matrix is None:
            return moments
        return [
            Moments(m.count, self._mapped(m.total), self._mapped(m.gram @ self._matrix))
            for m in moments
        ]

    def scatter(self, domain: int) -> Matrix:
        """Return Phi' H Phi over the rows of the source (0) or of the target (1)."""
        moments = self._moments[domain]
        scatter = moments.count * moments.covariance
        return scatter if self._matrix is None else self._mapped(scatter @ self._matrix)

    def total_scatter(self, x: Matrix) -> Matrix:
        """Return Phi' H Phi x, at the cost of one product with a vector if Phi'Phi is diagonal."""
        if self.roots is not None:
            mean = self._total * np.multiply.outer(self._mean, self._mean @ x)
            return (self.roots**2 * x.T).T - mean
        K, w = self._table.X, self._weights  # type: ignore[union-attr]
        if x.ndim == 1 and (w == 1.0).all():  # K's symmetry halves the reading
            y = dsymv(1.0, K.T, x)
            return dsymv(1.0, K.T, y - y.mean())
        y = K @ x
        return K.T @ (w * (y - w @ y / self._total).T).T

    @cached_property
    def _moments(self) -> list[Moments]:
        weights = self._weights
        return self._known or [
            moments_of_blocks(self._table, rows, weights=weights) for rows in self._sides
        ]

    @cached_property
    def _mean(self) -> Matrix:
        if self._known is None:
            return self.transposed_times(self._weights[:, None] / self._total)[:, 0]
        source, target = self._known
        return self._mapped((source.total + target.total) / self._total)

    def _mapped(self, columns: Matrix) -> Matrix:
        return columns if self._matrix is None else self._matrix.T @ columns


def by_row(B: Matrix, domains: Domains, target: NDArray[np.intp] | None) -> Matrix:
    """Return E = W G B: on each row, its weight times the coefficients of its group."""
    E: Matrix = B[domains.groups(target)]
    E *= domains.weights[:, None]
    return E


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
    return Features(
        RowTable(X @ expansion),
        domains=domains,
        roots=s**power,
        scale=(float(np.sum(s**2)) / weights.sum()) ** power,
        row_map=RowMap(),
        expansion=expansion,
    )


def table_features(
    table: Table, domains: Domains, power: int, row_map: RowMap, whitening: Matrix | None = None
) -> Features:
    """Return features U S^power of a table U S V' of more rows than columns.

    The table is the output of `row_map`, times the whitening if there is one.
    """
    weights, sides = domains.row_weights, (domains.source, domains.target)
    moments = [moments_of_blocks(table, rows, weights=weights) for rows in sides]
    return Features(
        table, domains=domains, row_map=row_map, **spectrum(table, moments, power, whitening)
    )


def spectrum(
    table: Table, moments: list[Moments], power: int, whitening: Matrix | None = None
) -> dict[str, Any]:
    """Return features U S^power from a table's moments in source and target, as arguments."""
    nystrom = getattr(table, "nystrom", None)
    single = nystrom is not None and nystrom.dtype == "float32"
    gram = moments[0].gram + moments[1].gram
    V, s = gram_basis(gram, **({"rounding": 1e-6} if single else {}))
    matrix = V * s ** (power - 1)
    return {
        "matrix": matrix,
        "roots": s**power,
        "scale": (float(np.trace(gram)) / (moments[0].count + moments[1].count)) ** power,
        "expansion": matrix if whitening is None else whitening @ matrix,
        "moments": moments,
    }


def kernel_features(
    domains: Domains, kernel: KernelFunction, power: int, *, factored: bool
) -> Features:
    """Return features U S^power of the kernel matrix of all rows, or K itself if that suffices."""
    X = np.asarray(domains.X, dtype=np.float64)
    K = np.asarray(kernel(X, X))
    weights = domains.row_weights
    found: dict[str, Any] = {"domains": domains, "row_map": RowMap(kernel, X)}
    found["scale"] = float(np.average(np.diag(K), weights=weights)) ** power
    if factored:
        U, s = gram_basis(K)
        found |= {"roots": s**power, "expansion": U * s ** (power - 2.0)}
        return Features(RowTable(U * s**power), **found)
    found["expansion"] = np.sqrt(weights)
    K *= found["expansion"]
    return Features(RowTable(K), **found)
