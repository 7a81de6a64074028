"""Correlation alignment."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains
from transferable.linalg.eigen import Matrix, gram_basis, row_basis
from transferable.linalg.moments import Moments
from transferable.linalg.row_tables import RowTable
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

    _parameter_constraints = {  # noqa: RUF012
        "regularization": [WEIGHT],
        "align_means": ["boolean"],
    }

    def __init__(self, *, regularization: float = 1.0, align_means: bool = True) -> None:
        self.regularization = regularization
        self.align_means = align_means

    def _fit_domains(self, domains: Domains) -> None:
        self._source, self._target = (
            Covariance(table, self.regularization) for table in domain_tables(domains)
        )
        self._n_features_out = domains.X.shape[1]

    def _transform_block(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        Z = np.array(rows, dtype=np.float64)
        mean = self._source.mean if self.align_means else 0.0
        Z[source] = self._target.power(self._source.power(Z[source] - mean, -0.5), 0.5)
        if self.align_means:
            Z[source] += self._target.mean
        return Z


class Covariance:
    """Powers of C + regularization * I applied to rows, through the directions the rows span."""

    def __init__(self, table: RowTable, regularization: float) -> None:
        self.mean = table.mean()
        self.floor = regularization
        centred = (rows - self.mean for _, rows in table.blocks())
        if table.rank <= table.n:
            self.V, s = gram_basis(reduce(add, map(Moments.of, centred)).gram)
        else:
            self.V, s = row_basis(np.concatenate(list(centred)))
        self.values = s**2 / max(table.n - 1, 1) + regularization

    def power(self, rows: Matrix, exponent: float) -> Matrix:
        """Rows times (C + regularization * I)^exponent; a zero variance stays zero."""
        outside = self.floor**exponent if self.floor > 0 else 0.0
        inside = self.values**exponent - outside
        return outside * rows + ((rows @ self.V) * inside) @ self.V.T
