"""Engine of TCA, JDA, BDA, McDA, TJM, SCA, JGSA, LPJT and LDML.

Each method finds maps W that maximise tr(W'BW) / tr(W'AW), where B and A are sums of terms of the
embedded rows and of a penalty on W. The solution is the leading eigenvectors of B v = w A v.
Methods that compare classes pseudo-label the target in this space and solve again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from transferable._kernel.choose import SOURCE_WEIGHTS, SourceWeights, source_weights
from transferable._kernel.objective import Means
from transferable._linalg.arrays import CPU, unit_rows
from transferable._linalg.eigen import Matrix, Root, leading_updated
from transferable._linalg.kernels import Kernel
from transferable._linalg.memory import Plan, memory_budget
from transferable._linalg.nystrom import FeatureTable, Nystrom, draw_landmarks
from transferable._sklearn import POSITIVE, Interval, StrOptions
from transferable.domains import Domains
from transferable.limits import LIMITS
from transferable.transformers._bases import (
    COUNT,
    KernelParameters,
    Spread,
    warn_if_reduced,
)
from transferable.transformers._features import (
    Features,
    RowMap,
    by_row,
    farthest,
    kernel_features,
    row_features,
    table_features,
)

_DEFAULT_COMPONENTS = 30

Codes = NDArray[np.intp]
# Eigenvalues in falling order, and coefficients of Phi with v'Av = 1.
Solution = tuple[Matrix, Matrix]
# From pseudo-labels of the target (None if there are none yet) and the number of vectors.
Solver = Callable[[Codes | None, int], Solution]
# From coefficients to embedded rows.
Times = Callable[[Matrix], Matrix]


class SpectralTransformer(KernelParameters):
    """Base of the spectral methods; a subclass solves its problem in ``_learn``.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the shared space. None is 30, or as many as there are if fewer; a number that
        is too large is reduced with a warning.
    kernel : {"linear", "rbf", "poly"}, callable or None, default=None
        None learns a linear map of the features. A kernel learns an expansion over the fitted rows;
        a callable receives two tables and returns their kernel matrix.
    regularization : float, default=0.1
        lambda: penalty on ||W||^2, relative to the mean squared length of the rows (of their kernel
        features), which makes it independent of the unit.
    scaling : {"unit", "constraint"}, default="unit"
        "unit" gives each column of W the length 1, as published results need; "constraint" scales
        it so that W'K H K W = I, as the objective is printed.
    normalize : bool, default=False
        Scale embedded rows to unit length, which helps 1-NN on histograms and deep features.
    n_landmarks : int, "auto" or None, default="auto"
        Landmark rows, drawn from both domains alike, for a Nystrom approximation of the kernel
        matrix in time and memory linear in the rows. None takes all rows. "auto" takes all up to
        10,000 rows if memory allows, else 1,000, with a warning. None and "linear" need none.
    max_memory : int, str or None, default=None
        Bytes, or a text such as "4GB", that a fit with a kernel may take besides its rows; None is
        half of the free memory.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the two sides of the objective for each component, largest first.
    n_landmarks_ : int or None
        Number of landmarks; None if the solution is exact.
    """

    family = "components"
    _needs_factor: ClassVar[bool] = False
    _power: ClassVar[int | None] = None
    # Tables of the size of all rows' features that `_learn` forms.
    _feature_tables: ClassVar[int] = 0

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_components": [COUNT, None],
        "kernel": [*KernelParameters._parameter_constraints["kernel"], None],
        "regularization": [POSITIVE],
        "scaling": [StrOptions({"unit", "constraint"})],
        "normalize": ["boolean"],
        "n_landmarks": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), None],
        "max_memory": [COUNT, str, None],
    }

    n_components: int | None = field(default=None, kw_only=False)
    kernel: Kernel | None = None
    regularization: float = 0.1
    scaling: str = "unit"
    normalize: bool = False
    n_landmarks: int | str | None = "auto"
    max_memory: int | str | None = None

    def _fit_domains(self, domains: Domains) -> None:
        self.n_landmarks_: int | None = None
        features = self._features_of(domains, Spread.of_rows(domains.X, domains.row_weights))
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
        """Return features of the rows, or of their kernel with all rows or with landmarks."""
        self._refuse_equal_rows(spread, *domains.X.shape)
        power = self._power or (1 if self.kernel is None else 2)
        if self.kernel is None or self.kernel == "linear":
            return row_features(domains, power)
        kernel, plan = self._kernel(spread), self._plan(domains)
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
        if spread.range <= 1e-10 * spread.largest.max():
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
        """Return eigenvalues and scaled coefficients."""

    def _wanted(self, rank: int) -> int:
        """Return the number of components to find; two maps could give twice the rank."""
        if self.n_components is None:
            return min(_DEFAULT_COMPONENTS, rank)
        return int(self.n_components)

    def _scaled(self, values: Matrix, vectors: Matrix, lengths: Matrix | None = None) -> Solution:
        """Return coefficients of maps of unit length, or such that W'BW = I.

        The maps have the length of their coefficients unless `lengths` are given.
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
        return values, vectors * (np.sign(farthest(vectors)) / lengths)

    def _embed(self, times: Times, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        """Return rows in the shared space, from products with the table that W multiplies."""
        Z = self._project(times, W, source)
        return unit_rows(Z) if self.normalize else Z

    def _project(self, times: Times, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        """Return rows embedded by one map for both domains."""
        return times(W)

    def _transform_block(self, rows: Any, source: NDArray[np.bool_]) -> Matrix:
        mapped = self._map(rows)
        return self._embed(lambda w: mapped @ w, self._coefficients, source)

    def _width(self, n_features: int) -> int:
        return self._map.width(n_features)


class AligningTransformer(SpectralTransformer):
    """Base of TCA, JDA and BDA, which align the means of every source with those of the target.

    Parameters
    ----------
    source_weights : "auto", mapping or array-like, default="auto"
        Weight of each of several sources, by id or in the order of the ids; only ratios matter.
        "auto" takes the squared share of target rows whose nearest row is of that source.

    Attributes
    ----------
    source_weights_ : ndarray of shape (n_sources,)
        Weight of each source, in the order of the ids, 1 on average over their rows.
    """

    _parameter_constraints = {"source_weights": SOURCE_WEIGHTS}  # noqa: RUF012

    source_weights: SourceWeights = "auto"

    def _fit_domains(self, domains: Domains) -> None:
        self.source_weights_ = source_weights(self.source_weights, domains)
        super()._fit_domains(replace(domains, source_weights=self.source_weights_))

    def _solver(self, domains: Domains, features: Features) -> Solver:
        """Return the solver for B = Phi'HPhi, A = Phi'M Phi + ridge I with M of low rank."""
        root = Root.diagonal(1.0 / np.sqrt(self.regularization * features.scale))

        def solve(codes: Codes | None, k: int) -> Solution:
            columns = features.projected(self._means(domains, codes), domains, codes)
            return leading_updated(features.total_scatter, root, columns, k)

        return solve

    def _means(self, domains: Domains, codes: Codes | None) -> Matrix:
        return means_by_group(domains, codes)


def means_by_group(
    domains: Domains, codes: Codes | None, *, balance: float = 0.5, class_weighted: bool = False
) -> Matrix:
    """Return B by group with E = G B, M = E E' of JDA for the target's pseudo-labels.

    Without any, it compares marginals only. `class_weighted` weights a class's mean by the root of
    its share of the domain, as weighted BDA does.
    """
    counts = domains.counts(codes)
    balance = 0.0 if codes is None else balance
    return Means(1.0, class_weighted).by_group(domains, counts, domains.ratios, balance)


def mean_columns(domains: Domains, codes: Codes | None, balance: float = 0.5) -> Matrix:
    """Return the columns E of JDA's M."""
    return by_row(means_by_group(domains, codes, balance=balance), domains, codes)


def between_columns(domains: Domains) -> Matrix:
    """Return E with E E' the form sum_c n_c |mean_c - mean|^2 over the source's classes."""
    E = np.zeros((len(domains.order), domains.n_classes))
    sizes = np.bincount(domains.y)
    E[np.arange(domains.n_source), domains.y] = 1.0 / sizes[domains.y]
    E[domains.source] -= 1.0 / domains.n_source
    return np.sqrt(sizes) * E


@dataclass(frozen=True)
class SpectralSizes:
    """Sizes that determine the memory of a fit besides its rows."""

    n_rows: int
    n_classes: int
    n_components: int
    itemsize: int  # of a number of the rows
    factored: bool  # whether the kernel matrix is decomposed
    tables: int = 0  # of all rows' features that a method forms for itself

    @property
    def growth(self) -> str:
        """Growth of the time of the exact solve with the rows."""
        return "cube" if self.factored else "square"

    @property
    def row_bytes(self) -> int:
        """Bytes of a few tables of embedded rows, and of columns for each class."""
        return 8 * (6 * self.n_components + 4 * (self.n_classes + 1))

    @property
    def matrices(self) -> int:
        """Number of matrices as large as the kernel matrix, with its eigenvectors, as measured."""
        return (14 if self.factored else 3) + self.tables

    def landmark_bytes(self, m: int, *, held: bool, chunk: int) -> int:
        """Return the bytes of m landmarks: features, blocks, and m x m matrices by class."""
        matrices = 10 + (2 * self.n_classes if self.factored else 0)
        row = m * ((self.itemsize if held else 0) + 8 * self.tables) + self.row_bytes
        return 8 * matrices * m * m + self.n_rows * row + 4 * 8 * LIMITS.block_values
