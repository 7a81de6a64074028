"""The engine of TCA, JDA, BDA, McDA, TJM, SCA, JGSA and LPJT.

Each method asks for maps W that maximise tr(W'BW) / tr(W'AW), where B and A are sums of terms of
the embedded rows and of a penalty on W. The solution is the leading eigenvectors of B v = w A v.
Methods that compare classes guess the target's labels in the space they have, and solve again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from transferable._sklearn import NUMBER, POSITIVE, WEIGHT, Interval, StrOptions
from transferable.domains import Domains
from transferable.engines.sources import SourceWeights, weigh_sources
from transferable.engines.spectral.components import warn_if_reduced
from transferable.engines.spectral.features import (
    Features,
    RowMap,
    kernel_features,
    row_features,
    table_features,
)
from transferable.engines.spectral.sizes import SpectralSizes
from transferable.engines.spectral.spread import Spread
from transferable.linalg.arrays import CPU
from transferable.linalg.eigen import Matrix, Root, leading_updated
from transferable.linalg.feature_tables import FeatureTable
from transferable.linalg.kernels import KERNELS, Kernel, KernelFunction, is_scale_free
from transferable.linalg.memory import Plan, memory_budget
from transferable.linalg.nystrom import Nystrom, draw_landmarks
from transferable.linalg.rows import unit_rows
from transferable.terms.base import LowRank
from transferable.terms.means import MeanDiscrepancy
from transferable.transformers._blocks import BlockwiseTransformer

__all__ = [
    "COUNT",
    "POSITIVE",
    "WEIGHT",
    "Codes",
    "Labeller",
    "Solution",
    "Solver",
    "SpectralTransformer",
    "Times",
    "WeighingSolver",
    "aligning_solver",
    "mean_discrepancy",
]

COUNT = Interval(Integral, 1, None, closed="left")
_DEFAULT_COMPONENTS = 30

Codes = NDArray[np.intp]
# Eigenvalues in falling order, and coefficients of Phi with v'Av = 1.
Solution = tuple[Matrix, Matrix]
# From pseudo-labels of the target (None if there are none yet) and the number of vectors.
Solver = Callable[[Codes | None, int], Solution]
# From embedded rows to their classes.
Labeller = Callable[[Matrix], Codes]


@runtime_checkable
class WeighingSolver(Protocol):
    """A solver that weights the rows too."""

    weights: Matrix  # one for each row, as of the last solve

    def __call__(self, codes: Codes | None, k: int, /) -> Solution:
        """Solve for the target's pseudo-labels."""


# From coefficients to embedded rows.
Times = Callable[[Matrix], Matrix]


class SpectralTransformer(BlockwiseTransformer):
    """Base of all of them; a subclass solves its problem in ``_learn``.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the shared space. None means 30, or as many as there are if fewer; a number
        that is too large is reduced with a warning.
    kernel : {"linear", "rbf", "poly"}, callable or None, default=None
        None learns a linear map of the features. A kernel learns an expansion over the fitted rows
        in it; a callable receives two tables and returns their kernel matrix.
    gamma : float or "scale", default="scale"
        Coefficient of "rbf" and "poly"; "scale" is 1 / (n_features * variance of the rows).
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=1.0
        Constant of "poly".
    regularization : float, default=0.1
        lambda: penalty on ||W||^2, relative to the mean squared length of the rows (of their kernel
        features), so that it means the same in any unit.
    scaling : {"unit", "constraint"}, default="unit"
        "unit" gives each column of W the length 1, as published results need; "constraint" scales
        it so that W'K H K W = I, as the objective is printed.
    normalize : bool, default=False
        Bring embedded rows to unit length. Helps nearest neighbours on histograms and deep
        features.
    n_landmarks : int, "auto" or None, default="auto"
        Rows, drawn from both domains alike, whose kernel with all others stands for the kernel
        matrix (Nystrom), so that time and memory grow with the rows and not with their square.
        None takes all rows. "auto" takes all up to 10,000 rows if memory allows, else 1,000
        landmarks, and says so. None and "linear" need none.
    max_memory : int, str or None, default=None
        Bytes, or a text such as "4GB", that a fit with a kernel may take besides its rows; None is
        half of the free memory.
    random_state : int, RandomState instance or None, default=0
        Draws the landmarks.
    """

    source_weights: SourceWeights  # of those that take several sources
    _needs_factor: ClassVar[bool] = False
    _power: ClassVar[int | None] = None
    # Tables as large as the features of all rows that `_learn` forms.
    _feature_tables: ClassVar[int] = 0

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_components": [COUNT, None],
        "kernel": [StrOptions(set(KERNELS)), callable, None],
        "gamma": [POSITIVE, StrOptions({"scale"})],
        "degree": [COUNT],
        "coef0": [NUMBER],
        "regularization": [POSITIVE],
        "scaling": [StrOptions({"unit", "constraint"})],
        "normalize": ["boolean"],
        "n_landmarks": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), None],
        "max_memory": [COUNT, str, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Kernel | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        regularization: float = 0.1,
        scaling: str = "unit",
        normalize: bool = False,
        n_landmarks: int | str | None = "auto",
        max_memory: int | str | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.regularization = regularization
        self.scaling = scaling
        self.normalize = normalize
        self.n_landmarks = n_landmarks
        self.max_memory = max_memory
        self.random_state = random_state

    @property
    def _scale_free(self) -> bool:
        return is_scale_free(self.kernel, self.gamma)

    def _fit_domains(self, domains: Domains) -> None:
        self.n_landmarks_: int | None = None
        if self.takes.several_sources:
            domains = weigh_sources(domains, self.source_weights)
            self.source_weights_ = domains.weights_of_sources
        features = self._features_of(domains, Spread.of(domains.X, domains.row_weights))
        self._take(features, *self._learn(domains, features))

    def _take(self, features: Features, values: Matrix, W: Matrix) -> None:
        """Set the fitted attributes."""
        warn_if_reduced(self.n_components, len(values))
        if self.takes.sample_weight:
            W = W * features.signs(W)
        self.eigenvalues_ = values
        self._map, self._coefficients = features.map, features.expand(W)
        self._n_features_out = W.shape[1]

    def _features_of(self, domains: Domains, spread: Spread) -> Features:
        """Features of the rows, of their kernel with all rows or with landmarks."""
        self._refuse_equal_rows(spread, *domains.X.shape)
        power = self._power or (1 if self.kernel is None else 2)
        if self.kernel is None or self.kernel == "linear":
            return row_features(domains, power)
        gamma = spread.gamma if isinstance(self.gamma, str) else float(self.gamma)
        kernel = KernelFunction(self.kernel, gamma, self.degree, self.coef0)
        plan = self._plan(domains)
        self.n_landmarks_ = plan.n_landmarks
        if plan.n_landmarks is None:
            return kernel_features(domains, kernel, power, factored=self._needs_factor)
        rng = check_random_state(self.random_state)
        drawn = draw_landmarks(domains.X, domains.n_source, plan.n_landmarks, rng)
        nystrom = Nystrom(domains.X[drawn], kernel, CPU)
        table = FeatureTable(domains.X, nystrom, CPU, held=plan.held)
        row_map = RowMap(kernel, nystrom.landmarks)
        return table_features(table, domains, power, row_map, nystrom.whitening)

    def _refuse_equal_rows(self, spread: Spread, n_rows: int, n_features: int) -> None:
        if spread.range <= 1e-10 * spread.largest:
            raise ValueError(
                f"All {n_rows} rows are the same, of {n_features} feature(s); "
                f"{type(self).__name__} needs rows that differ."
            )

    def _plan(self, domains: Domains) -> Plan:
        sizes = SpectralSizes(
            n_rows=len(domains.order),
            n_classes=domains.n_classes,
            n_components=self._wanted(len(domains.order)),
            itemsize=domains.X.dtype.itemsize,
            factored=self._needs_factor,
            tables=self._feature_tables,
        )
        return Plan.make(sizes, self.n_landmarks, memory_budget(self.max_memory, CPU))

    @abstractmethod
    def _learn(self, domains: Domains, features: Features) -> Solution:
        """Eigenvalues and scaled coefficients."""

    def _wanted(self, rank: int) -> int:
        """Components to look for where so many features differ; two maps could give twice that."""
        if self.n_components is None:
            return min(_DEFAULT_COMPONENTS, rank)
        return int(self.n_components)

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

    def _embed(self, times: Times, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        """Rows in the shared space, from products with what W has coefficients of."""
        Z = self._project(times, W, source)
        return unit_rows(Z) if self.normalize else Z

    def _project(self, times: Times, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        """With one map for both domains."""
        return times(W)

    def _transform_block(self, rows: Any, source: NDArray[np.bool_]) -> Matrix:
        mapped = self._map(rows)
        return self._embed(lambda w: mapped @ w, self._coefficients, source)

    def _width(self, n_features: int) -> int:
        return self._map.width(n_features)


def mean_discrepancy(
    domains: Domains, codes: Codes | None, *, balance: float = 0.5, class_weighted: bool = False
) -> MeanDiscrepancy:
    """M of JDA and its kin for the target's pseudo-labels; without any, of whole domains only."""
    if codes is None:
        balance = 0.0
    return MeanDiscrepancy(
        domains.groups(codes),
        weight=1.0,
        balance=balance,
        normalised=True,
        class_weighted=class_weighted,
    )


def aligning_solver(
    features: Features, ridge: float, means: Callable[[Codes | None], LowRank]
) -> Solver:
    """B = Phi'HPhi, A = Phi'M Phi + ridge I with M of few columns: Lanczos with a small update."""
    root = Root.diagonal(1.0 / np.sqrt(ridge))

    def solve(codes: Codes | None, k: int) -> Solution:
        columns = features.projected(means(codes))
        return leading_updated(features.total_scatter, root, columns, k)

    return solve
