"""Correlation alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.eigen import Matrix, gram_basis, row_basis
from transferable._linalg.moments import Moments, RowTable
from transferable._sklearn import WEIGHT
from transferable.base import Takes
from transferable.domains import Domains
from transferable.transformers._bases import PerDomainTransformer, table_of, tables_by_id


class CORAL(PerDomainTransformer):
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

    Attributes
    ----------
    n_features_in_ : int
        Number of features, before and after.

    Notes
    -----
    Rows to transform are treated as target rows, and left unchanged, unless ``sample_domain`` marks
    them as source. Covariances act through the directions that rows span: with more features than
    rows no square matrix of features is formed.

    Published: regularization 1 on standardised features.

    References
    ----------
    .. [1] B. Sun, J. Feng, K. Saenko (2016). Return of frustratingly easy domain adaptation. AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.transformers import CORAL
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> Xt = rng.normal(size=(30, 5)) + 3 * np.repeat([0, 1], 15)[:, None] + 1
    >>> model = CORAL().adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (30, 5)
    """

    _parameter_constraints = {  # noqa: RUF012
        "regularization": [WEIGHT],
        "align_means": ["boolean"],
    }

    regularization: float = 1.0
    align_means: bool = True

    takes = Takes(several_sources=True, sample_weight=True, no_labels=True)
    # None: rows are multiplied by one set of directions after the other.
    _recolouring: Matrix | None = None
    _further: Sequence[tuple[Covariance, Matrix | None]] = ()  # sources after the first

    def _fit_domains(self, domains: Domains) -> None:
        self._source_ids, tables = tables_by_id(domains, domains.source)
        first, *further = (Covariance.of(*part, self.regularization) for part in tables)
        target = first
        if domains.n_target:
            target = Covariance.of(*table_of(domains, domains.target), self.regularization)
        self._align_covariances(first, target)
        self._further = [(source, self._one_matrix(source)) for source in further]

    def _align_covariances(self, source: Covariance, target: Covariance) -> None:
        self._source, self._target = source, target
        self._n_features_out = len(source.mean)
        self._recolouring = self._one_matrix(source)

    def _one_matrix(self, source: Covariance) -> Matrix | None:
        """Return C_s^-1/2 C_t^1/2 where it is no larger than the directions it is made of."""
        if len(source.mean) > len(source.values) + len(self._target.values):
            return None
        return source.matrix(-0.5) @ self._target.matrix(0.5)

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        if not (ids > 0).any():
            return np.asarray(rows)
        Z = np.array(rows, dtype=np.float64)
        of_source = self._source_of(ids)
        for k, (source, matrix) in enumerate([(self._source, self._recolouring), *self._further]):
            moved = Z[of_source == k]
            if self.align_means:
                moved -= source.mean
            if matrix is None:
                moved = self._target.times(source.times(moved, -0.5), 0.5)
            else:
                moved = moved @ matrix
            if self.align_means:
                moved += self._target.mean
            Z[of_source == k] = moved
        return Z


@dataclass(frozen=True)
class Covariance:
    """Powers of C + regularization * I, through the directions that the rows of a table span.

    A direction without variance keeps none.
    """

    mean: Matrix
    V: Matrix
    values: Matrix
    floor: float

    @classmethod
    def of(cls, table: RowTable, weights: Matrix, regularization: float) -> Covariance:
        """Return the covariance of the rows of a table."""
        if table.rank <= table.n:
            return cls.of_moments(*_shifted_moments(table, weights), regularization)
        mean = table.mean(weights)
        centred = np.concatenate([rows - mean for _, rows in table.blocks()])
        V, s = row_basis(np.sqrt(weights)[:, None] * centred)
        values = s**2 / max(float(weights.sum()) - 1, 1) + regularization
        return cls(mean, V, values, regularization)

    @classmethod
    def of_moments(cls, shift: Matrix, moments: Moments, regularization: float) -> Covariance:
        """Return the covariance of rows from their moments about a row near their mean."""
        V, s = gram_basis(moments.count * moments.covariance)
        values = s**2 / max(moments.count - 1, 1) + regularization
        return cls(shift + moments.mean, V, values, regularization)

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
