"""The objective over landmarks: scores F = Phi w with Nystrom features Phi, K ~ Phi Phi'.

The minimiser is w = (eta I + Phi' S Phi)^-1 Phi' A Y, a system as large as there are landmarks. All
it needs of the rows are sums over them: Phi' S_0 Phi of the terms that no pseudo-label changes,
once; sums of features by domain and class in each round; and for MMCD's second order their
covariances, Phi' Z_c K K Z_c Phi = D_c (Phi'Phi) D_c with D_c = Cov_s - Cov_t of the class.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transferable.classifiers._risk import Alignment, RiskProblem
from transferable.events import stage
from transferable.linalg.arrays import Arrays, inner, namespace, to_numpy
from transferable.linalg.features import FeatureTable
from transferable.linalg.moments import Moments
from transferable.linalg.systems import (
    Cholesky,
    Inverse,
    UpdatedSystem,
    add_to_diagonal,
    effective_ridge,
)
from transferable.linalg.tables import moments_of_groups
from transferable.terms.base import LowRankTerm, Matrix
from transferable.terms.mmcd import ProjectedCovariances

if TYPE_CHECKING:
    from transferable.classifiers._base import RiskClassifier
    from transferable.domains import Domains

__all__ = ["LandmarkProblem"]


class LandmarkProblem(RiskProblem):
    """The problem in coefficients w of the features."""

    def __init__(
        self,
        spec: RiskClassifier,
        domains: Domains,
        Z: Any,
        arrays: Arrays,
        features: FeatureTable,
    ) -> None:
        super().__init__(spec, domains, Z, arrays)
        self.features = features
        self.ridge = effective_ridge(spec.ridge, features.nystrom.gram)
        self._target = features.transposed_times(self.Y)

    @cached_property
    def _fixed(self) -> Matrix:
        """eta I + Phi' S_0 Phi of the terms that no pseudo-label changes."""
        stage("Summing over rows")
        return add_to_diagonal(self.features.between(self._apply_fixed), self.ridge)

    @cached_property
    def _fixed_system(self) -> UpdatedSystem:
        return UpdatedSystem(Inverse(self._fixed))

    def _system(self, alignment: Alignment) -> UpdatedSystem:
        """The system without the low-rank part, factored."""
        if alignment.covariances is None:
            return self._fixed_system
        return UpdatedSystem(Inverse(self._fixed + alignment.covariances.matrix))

    def _apply_fixed(self, table: Matrix) -> Matrix:
        first, *others = self.fixed.values()
        total = first.apply(table)
        for term in others:
            total += term.apply(table)
        return total

    def zero(self) -> Matrix:
        """The coefficients of the classifier that scores zero everywhere."""
        return namespace(self._target).zeros_like(self._target)

    def scores(self, coefficients: Matrix) -> Matrix:
        """F = Phi w."""
        return self.features.times(coefficients)

    def solve(
        self, alignment: Alignment, extra: LowRankTerm | None = None, pull: Matrix | None = None
    ) -> Matrix:
        """W of (eta I + Phi' S Phi) w = Phi' (A Y + pull)."""
        tables = [alignment.means.columns]
        if extra is not None:
            tables.append(extra.columns)
        n_columns = sum(table.shape[1] for table in tables)
        if pull is not None:
            tables.append(pull)
        # One pass over the rows for all of them.
        projected = self.features.transposed_times(namespace(self.Y).concat(tables, axis=1))
        rhs = self._target if pull is None else self._target + projected[:, n_columns:]
        return self._system(alignment).solve(rhs, projected[:, :n_columns])

    def source_only_codes(self) -> NDArray[np.intp]:
        """Classes of the target rows by the source's regularised risk alone."""
        gram = self.features.gram(slice(0, self.domains.n_source))
        return self.target_codes(
            self.scores(Cholesky(add_to_diagonal(gram, self.ridge)).solve(self._target))
        )

    def own_weights(self, alignment: Alignment, count: int) -> Matrix:
        """How much each of the first source rows' own label weighs in its score."""
        xp = namespace(self.Y)
        Phi = xp.astype(self.features[slice(0, count)], xp.float64)
        columns = self.features.transposed_times(alignment.means.columns)
        return xp.sum(Phi.T * self._system(alignment).solve(Phi.T, columns), axis=0)

    def pull_back(self, slope: Matrix, coefficients: Matrix, alignment: Alignment) -> Matrix:
        """Slope in w of eta ||f||^2 and of a function with this slope in F."""
        out = self.features.transposed_times(slope) + 2.0 * self.ridge * coefficients
        if alignment.covariances is not None:
            out = out + 2.0 * alignment.covariances.apply(coefficients)
        return out

    def expansion(self, coefficients: Matrix) -> tuple[Any, NDArray[np.float64]]:
        """The landmarks and their coefficients."""
        nystrom = self.features.nystrom
        landmarks = nystrom.landmarks
        rows = landmarks if hasattr(landmarks, "indptr") else to_numpy(landmarks)
        return rows, to_numpy(nystrom.whitening @ coefficients)

    def _covariances(self, codes: NDArray[np.intp], balance: float) -> ProjectedCovariances:
        spec, domains = self.spec, self.domains
        return ProjectedCovariances(
            self._source_moments,
            self._moments(codes, domains.n_source, len(codes)),
            weight=spec.alignment * spec.second_order,
            balance=balance,
            normalised=spec.alignment_form == "normalised",
        )

    @cached_property
    def _source_moments(self) -> list[Moments]:
        """Moments of the source rows of each class."""
        return self._moments(self.domains.y, 0, self.domains.n_source)

    def _moments(self, codes: NDArray[np.intp], start: int, stop: int) -> list[Moments]:
        """Moments by class of the rows from `start` to `stop`."""
        n_classes, within = self.domains.n_classes, slice(start, stop)
        return moments_of_groups(self.features, codes, n_classes, within, self.arrays)

    def _quadratics(
        self, coefficients: Matrix, F: Matrix, alignment: Alignment
    ) -> dict[str, float]:
        values = {"ridge": self.ridge * inner(coefficients, coefficients)}
        if alignment.covariances is not None:
            values["covariances"] = alignment.covariances.value(coefficients)
        return values
