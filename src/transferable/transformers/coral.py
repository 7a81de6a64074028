"""Correlation alignment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.moments import Moments, RowTable
from transferable._linalg.systems import Matrix, gram_basis, row_basis
from transferable._sklearn import WEIGHT
from transferable.base import DomainTransformer, Takes
from transferable.domains import Domains, positions_of
from transferable.transformers._features import WeightedTable, table_of


class CORAL(DomainTransformer, example=""):
    """Correlation alignment: source rows get the covariance of the target.

    The source is whitened and coloured again, x -> x C_s^-1/2 C_t^1/2, which minimises ||A'C_s A -
    C_t||^2 over linear maps A. Target rows stay as they are. Several sources are mapped each by its
    own map; new rows of theirs have to be marked with the id of their source.

    Parameters
    ----------
    regularization : float, default=1.0
        Added to the diagonals of both covariances. With 0 the covariances become equal in the
        directions that the source spans.
    align_means : bool, default=True
        Also move the source's mean onto the target's, which changes nothing for standardised
        domains, as the paper has them.

    Notes
    -----
    Rows to transform are treated as target rows, and left unchanged, unless ``sample_domain`` marks
    them as source. Covariances act through the directions that rows span: with more features than
    rows no square matrix of features is formed.

    Published: regularization 1 on standardised features.

    References
    ----------
    .. [1] B. Sun, J. Feng, K. Saenko (2016). Return of frustratingly easy domain adaptation. AAAI.
    """

    family = "moments"
    _parameter_constraints = {  # noqa: RUF012
        "regularization": [WEIGHT],
        "align_means": ["boolean"],
    }

    regularization: float = 1.0
    align_means: bool = True

    takes = Takes(several_sources=True, sample_weight=True, no_labels=True)

    def _fit_domains(self, domains: Domains) -> None:
        ids, tables = _tables_by_id(domains)
        sources = [Covariance.of(*part, self.regularization) for part in tables]
        target = sources[0]
        if domains.n_target:
            target = Covariance.of(*table_of(domains, domains.target), self.regularization)
        self._map, self._n_features_out = Recolouring.of(ids, sources, target), domains.X.shape[1]

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        ours, fitted = ids > 0, self._map
        if not ours.any():
            return np.asarray(rows)
        of_source = np.where(ours, positions_of(np.abs(ids), fitted.ids, ours), -1)
        Z = np.empty(rows.shape) if ours.all() else np.array(rows, dtype=np.float64)
        for k, source in enumerate(fitted.sources):
            mine: Any = of_source == k
            mine = slice(None) if mine.all() else mine  # needs no copies of some of the rows
            moved = fitted.recoloured(
                rows[mine] - source.mean if self.align_means else rows[mine], k
            )
            Z[mine] = moved + fitted.target.mean if self.align_means else moved
        return Z


def _tables_by_id(domains: Domains) -> tuple[NDArray[Any], list[WeightedTable]]:
    """Return the ids of the sources, and the rows of each."""
    marks = domains.ids[domains.source]
    ids = np.unique(marks)
    if len(ids) == 1:
        return ids, [table_of(domains, domains.source)]
    return ids, [table_of(domains, np.flatnonzero(marks == one)) for one in ids]


@dataclass(frozen=True, eq=False)
class Recolouring:
    """Maps C_s^-1/2 C_t^1/2, one for each source."""

    ids: NDArray[Any]  # (n_sources,): the ids of the sources
    sources: list[Covariance]  # C_s of each and C_t
    target: Covariance
    # the map of each; None where it is larger than the directions that it is made of
    matrices: list[Matrix | None]

    @classmethod
    def of(cls, ids: NDArray[Any], sources: list[Covariance], target: Covariance) -> Recolouring:
        """Form the maps."""
        matrices = [
            source.matrix(-0.5) @ target.matrix(0.5)
            if len(source.mean) <= len(source.values) + len(target.values)
            else None
            for source in sources
        ]
        return cls(ids, sources, target, matrices)

    def recoloured(self, rows: Matrix, k: int) -> Matrix:
        """Return rows of the k-th source, mapped."""
        matrix = self.matrices[k]
        if matrix is None:
            return self.target.times(self.sources[k].times(rows, -0.5), 0.5)
        return rows @ matrix


@dataclass(frozen=True, eq=False)
class Covariance:
    """Powers of C + regularization * I, through the directions that the rows of a table span.

    A direction without variance keeps none.
    """

    mean: Matrix  # (n_features,): mean row
    V: Matrix  # (n_features, rank): eigenvectors inside the span, and their eigenvalues
    values: Matrix
    floor: float  # the eigenvalue outside of it

    @classmethod
    def of(cls, table: RowTable, weights: Matrix, regularization: float) -> Covariance:
        """Return the covariance of the rows of a table."""
        if table.rank <= table.n:
            return cls.of_moments(*_shifted_moments(table, weights), regularization)
        mean = table.mean(weights)
        centred = np.concatenate([rows - mean for _, rows in table.blocks()])
        V, s = row_basis(np.sqrt(weights)[:, None] * centred)
        values = s**2 / max(float(weights.sum()) - 1, 1) + regularization
        return cls(mean, V, values, float(regularization))

    @classmethod
    def of_moments(cls, shift: Matrix, moments: Moments, regularization: float) -> Covariance:
        """Return the covariance of rows from their moments about a row near their mean."""
        V, s = gram_basis(moments.count * moments.covariance)
        values = s**2 / max(moments.count - 1, 1) + regularization
        return cls(shift + moments.mean, V, values, float(regularization))

    def times(self, rows: Matrix, exponent: float) -> Matrix:
        """Return rows times the power."""
        outside, inside = self._powers(exponent)
        return outside * rows + ((rows @ self.V) * inside) @ self.V.T

    def matrix(self, exponent: float) -> Matrix:
        """Return the power itself."""
        outside, inside = self._powers(exponent)
        power = (self.V * inside) @ self.V.T
        power[np.diag_indices_from(power)] += outside
        return power

    def _powers(self, exponent: float) -> tuple[float, Matrix]:
        """Return the power's eigenvalue outside the directions, and their additions to it."""
        outside = self.floor**exponent if self.floor > 0 else 0.0
        return outside, self.values**exponent - outside


def _shifted_moments(table: RowTable, weights: Matrix) -> tuple[Matrix, Moments]:
    """Return the mean of the first block and, in one reading, moments of all rows about it.

    The shift avoids cancellation in the Gram matrix, wherever the rows lie.
    """
    shift: Any = None
    moments = Moments.none(table.rank)
    for some, rows in table.blocks():
        shift = rows.mean(axis=0) if shift is None else shift
        moments += Moments.of(rows - shift, weights[some])
    return shift, moments
