"""The engine of TCA, JDA, BDA, McDA, TJM, SCA, JGSA and LPJT.

Each method asks for maps W that maximise tr(W'BW) / tr(W'AW), where B and A are sums of terms of
the embedded rows and of a penalty on W. The solution is the leading eigenvectors of B v = w A v.
Methods that compare classes guess the target's labels in the space they have, and solve again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from transferable.base import AdaptiveTransformer
from transferable.domains import Domains
from transferable.linalg.eigen import Matrix, Root, leading_updated
from transferable.linalg.kernels import Kernel
from transferable.linalg.rows import unit_rows
from transferable.terms.base import LowRankTerm
from transferable.terms.mmd import MeanDiscrepancy
from transferable.transformers._components import warn_if_reduced
from transferable.transformers._features import Features, KernelOptions

__all__ = [
    "COUNT",
    "POSITIVE",
    "WEIGHT",
    "Codes",
    "Solution",
    "Solver",
    "SpectralTransformer",
    "aligning_solver",
    "mean_discrepancy",
]

WEIGHT = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
COUNT = Interval(Integral, 1, None, closed="left")
_DEFAULT_COMPONENTS = 30

Codes = NDArray[np.intp]
# Eigenvalues in falling order, and coefficients of Phi with v'Av = 1.
Solution = tuple[Matrix, Matrix]
# From pseudo-labels of the target (None if there are none yet) and the number of vectors.
Solver = Callable[[Codes | None, int], Solution]


class SpectralTransformer(AdaptiveTransformer):
    """Base of all of them; a subclass solves its problem in ``_learn``."""

    _needs_factor: ClassVar[bool] = False
    _power: ClassVar[int | None] = None

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_components": [COUNT, None],
        "kernel": [StrOptions({"primal", "linear", "poly", "rbf"}), callable],
        "gamma": [POSITIVE, StrOptions({"scale"})],
        "degree": [COUNT],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "regularization": [POSITIVE],
        "scaling": [StrOptions({"unit", "constraint"})],
        "normalize": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Kernel = "primal",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        regularization: float = 0.1,
        scaling: str = "unit",
        normalize: bool = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.regularization = regularization
        self.scaling = scaling
        self.normalize = normalize

    def _fit_domains(self, domains: Domains) -> None:
        X = np.asarray(domains.X, dtype=np.float64)
        if np.ptp(X, axis=0).max() <= 1e-10 * np.abs(X).max():
            raise ValueError(
                f"All {len(X)} rows are the same, of {X.shape[1]} feature(s); "
                f"{type(self).__name__} needs rows that differ."
            )
        options = KernelOptions(self.kernel, self.gamma, self.degree, self.coef0, X)
        features = Features(X, options, factored=self._needs_factor, power=self._power)
        values, W = self._learn(domains, features)
        warn_if_reduced(self.n_components, len(values))
        self.eigenvalues_ = values
        self._features, self._coefficients = features.map, W
        self._n_features_out = W.shape[1]

    @abstractmethod
    def _learn(self, domains: Domains, features: Features) -> Solution:
        """Eigenvalues and scaled coefficients."""

    @property
    def _wanted(self) -> int:
        return _DEFAULT_COMPONENTS if self.n_components is None else int(self.n_components)

    def _scaled(self, values: Matrix, vectors: Matrix, lengths: Matrix | None = None) -> Solution:
        """Coefficients of maps of unit length, or such that W'BW = I.

        The maps have the length of their coefficients unless `lengths` tells.
        """
        if len(values) == 0:
            raise ValueError(
                f"{type(self).__name__} has nothing to maximise with these parameters: its "
                "numerator is zero on these rows."
            )
        if self.scaling == "constraint":
            lengths = np.sqrt(values)
        elif lengths is None:
            lengths = np.linalg.norm(vectors, axis=0)
        largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))]
        return values, vectors * (np.sign(largest) / lengths)

    def _embed(self, Phi: Matrix, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        """Rows with features Phi in the shared space."""
        Z = self._project(Phi, W, source)
        return unit_rows(Z) if self.normalize else Z

    def _project(self, Phi: Matrix, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        """Phi W, with one map for both domains."""
        return Phi @ W

    def _transform_rows(self, rows: Any, source: NDArray[np.bool_]) -> Matrix:
        return self._embed(self._features(rows), self._coefficients, source)


def mean_discrepancy(
    domains: Domains, codes: Codes | None, *, balance: float = 0.5, class_weighted: bool = False
) -> MeanDiscrepancy:
    """M of JDA and its kin for the target's pseudo-labels; without any, of whole domains only."""
    if codes is None:
        codes, balance = np.zeros(domains.n_target, dtype=np.intp), 0.0
    return MeanDiscrepancy(
        domains.with_target(codes),
        domains.n_source,
        domains.n_classes,
        weight=1.0,
        balance=balance,
        normalised=True,
        class_weighted=class_weighted,
    )


def aligning_solver(
    features: Features, ridge: float, means: Callable[[Codes | None], LowRankTerm]
) -> Solver:
    """B = Phi'HPhi, A = Phi'M Phi + ridge I with M of few columns: Lanczos with a small update."""
    root = Root.diagonal(1.0 / np.sqrt(ridge))

    def solve(codes: Codes | None, k: int) -> Solution:
        columns = features.Phi.T @ means(codes).columns
        return leading_updated(features.total_scatter, root, columns, k)

    return solve
