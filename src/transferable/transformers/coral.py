"""Correlation alignment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains
from transferable.linalg.eigen import Matrix, gram_basis, row_basis
from transferable.linalg.moments import Moments
from transferable.linalg.row_tables import RowTable
from transferable.takes import Takes
from transferable.transformers._blocks import BlockwiseTransformer, domain_tables
from transferable.transformers._spectral import WEIGHT

__all__ = ["CORAL"]


class CORAL(BlockwiseTransformer):
    """Correlation alignment: source rows get the covariance of the target.

    The source is whitened and coloured again, x -> x C_s^-1/2 C_t^1/2, which minimises ||A'C_s A -
    C_t||^2 over linear maps A. Target rows stay as they are.

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
    Rows to transform are taken for target rows, and left alone, unless ``sample_domain`` marks them
    as source. Covariances act through the directions that rows span: with more features than rows
    no square matrix of features is formed.

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

    takes = Takes(no_labels=True)
    _parameter_constraints = {  # noqa: RUF012
        "regularization": [WEIGHT],
        "align_means": ["boolean"],
    }

    # None: rows go through the directions one after the other, as in models of earlier versions.
    _recolouring: Matrix | None = None

    def __init__(self, *, regularization: float = 1.0, align_means: bool = True) -> None:
        self.regularization = regularization
        self.align_means = align_means

    def _fit_domains(self, domains: Domains) -> None:
        source, target = (
            Covariance.of(table, self.regularization) for table in domain_tables(domains)
        )
        self._align_covariances(source, target)

    def _align_covariances(self, source: Covariance, target: Covariance) -> None:
        self._source, self._target = source, target
        self._n_features_out = n_features = len(source.mean)
        # One matrix, where it takes no more room than the directions that it is made of.
        if n_features <= self._source.rank + self._target.rank:
            self._recolouring = self._source.matrix(-0.5) @ self._target.matrix(0.5)
        else:
            self._recolouring = None

    def _transform_block(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        if not source.any():
            return np.asarray(rows)
        Z = np.array(rows, dtype=np.float64)
        moved = Z[source]
        if self.align_means:
            moved -= self._source.mean
        moved = self._recoloured(moved)
        if self.align_means:
            moved += self._target.mean
        Z[source] = moved
        return Z

    def _recoloured(self, rows: Matrix) -> Matrix:
        """Rows times C_s^-1/2 C_t^1/2."""
        if self._recolouring is not None:
            return rows @ self._recolouring
        return self._target.times(self._source.times(rows, -0.5), 0.5)


class Covariance:
    """Powers of C + regularization * I, through the directions that the rows of a table span.

    A direction without variance keeps none.
    """

    def __init__(
        self, mean: Matrix, basis: tuple[Matrix, Matrix], count: int, regularization: float
    ) -> None:
        self.floor, self.mean = regularization, mean
        self.V, s = basis
        self.values = s**2 / max(count - 1, 1) + regularization

    @classmethod
    def of(cls, table: RowTable, regularization: float) -> Covariance:
        """That of the rows of a table."""
        if table.rank <= table.n:
            return cls.of_moments(*_shifted_moments(table), regularization)
        mean = table.mean()
        centred = np.concatenate([rows - mean for _, rows in table.blocks()])
        return cls(mean, row_basis(centred), table.n, regularization)

    @classmethod
    def of_moments(cls, shift: Matrix, moments: Moments, regularization: float) -> Covariance:
        """That of rows whose moments about a row near their mean these are."""
        basis = gram_basis(moments.count * moments.covariance)
        return cls(shift + moments.mean, basis, moments.count, regularization)

    @property
    def rank(self) -> int:
        """How many directions there are."""
        return len(self.values)

    def times(self, rows: Matrix, exponent: float) -> Matrix:
        """Rows times the power."""
        outside, inside = self._powers(exponent)
        return outside * rows + ((rows @ self.V) * inside) @ self.V.T

    def matrix(self, exponent: float) -> Matrix:
        """The power itself."""
        outside, inside = self._powers(exponent)
        power = (self.V * inside) @ self.V.T
        power[np.diag_indices_from(power)] += outside
        return power

    def _powers(self, exponent: float) -> tuple[float, Matrix]:
        """The power's eigenvalue outside of the directions, and what they add to it."""
        outside = self.floor**exponent if self.floor > 0 else 0.0
        return outside, self.values**exponent - outside


def _shifted_moments(table: RowTable) -> tuple[Matrix, Moments]:
    """The mean of the first block and, in one reading, moments of all rows about it.

    That difference leaves little to take off the Gram matrix, wherever the rows lie.
    """
    shift: Any = None
    moments = Moments.none(table.rank)
    for _, rows in table.blocks():
        shift = rows.mean(axis=0) if shift is None else shift
        moments += Moments.of(rows - shift)
    return shift, moments
