"""The objective over landmarks: scores F = Phi w with Nystrom features Phi, K ~ Phi Phi'.

The minimiser is w = (eta I + Phi' S Phi)^-1 Phi' A Y, a system as large as there are landmarks. All
it asks of the rows are sums over them (:class:`Sums`), which add up over blocks of rows, whoever
holds these: once, products of features in each domain and sums over the source's classes; in each
round, sums over the target's classes. MMCD's second order asks for covariances by class too,
Phi' Z_c K K Z_c Phi = D_c (Phi'Phi) D_c with D_c = Cov_s - Cov_t of the class. Only the graph of
neighbours reaches across rows, and is applied to columns of features instead.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Groups
from transferable.engines.risk.objective import Objective
from transferable.engines.risk.rows import Rows
from transferable.engines.risk.solver import Labelled, Solver
from transferable.events import stage
from transferable.limits import LIMITS
from transferable.linalg.arrays import namespace, to_numpy
from transferable.linalg.feature_tables import FeatureTable
from transferable.linalg.moments import Moments, moments_of_blocks, moments_of_groups
from transferable.linalg.systems import (
    Cholesky,
    Inverse,
    UpdatedSystem,
    add_to_diagonal,
    effective_ridge,
)
from transferable.terms.base import LowRank, Matrix
from transferable.terms.covariances import Covariances, ProjectedCovariances
from transferable.terms.risk import SourceLoss

__all__ = ["LandmarkSolver", "Sums"]


@dataclass(frozen=True)
class Sums:
    """Moments of the features in each domain, which no label of the target changes.

    Those of the classes of each source are known where rows of different classes count differently
    and there is room for them; those of target rows with a known label where there are any.
    """

    source: Moments
    target: Moments
    classes: tuple[Moments, ...] | None = None
    known: Moments | None = None

    @classmethod
    def of(
        cls,
        table: FeatureTable,
        n_source: int,
        weights: NDArray[np.float64] | None = None,
        known: NDArray[np.intp] | None = None,
    ) -> Sums:
        """Those of a table whose first rows are the sources', with weights of all rows.

        `known` tells the class of target rows whose label is known, -1 for the others.
        """
        arrays, within = table.arrays, (slice(0, n_source), slice(n_source, table.n))
        source, target = (moments_of_blocks(table, rows, arrays, weights) for rows in within)
        if known is None:
            return cls(source, target)
        is_known = np.concatenate([np.zeros(n_source, dtype=np.intp), known >= 0])
        _, labelled = moments_of_groups(table, is_known, 2, within[1], arrays, weights)
        return cls(source, target, known=labelled)

    def __add__(self, other: Sums) -> Sums:
        classes, known = None, self.known or other.known
        if self.classes is not None and other.classes is not None:
            classes = tuple(map(add, self.classes, other.classes))
        if self.known is not None and other.known is not None:
            known = self.known + other.known
        return Sums(self.source + other.source, self.target + other.target, classes, known)

    @cached_property
    def whole(self) -> Moments:
        """Moments of all rows."""
        return self.source + self.target

    def weighted_gram(self, weights: NDArray[np.float64]) -> Matrix | None:
        """Products of the sources' features, weighted by class; None if those are unknown."""
        if self.classes is None:
            return None
        pairs = zip(weights.tolist(), self.classes, strict=True)
        return sum(weight * moments.gram for weight, moments in pairs)


class LandmarkSolver(Solver):
    """The objective in coefficients w of the features."""

    def __init__(
        self,
        objective: Objective,
        rows: Rows,
        features: FeatureTable,
        known: LandmarkSolver | None = None,
    ) -> None:
        """`known` solved the same with other class shares, which change no sum but the loss's."""
        super().__init__(objective, rows)
        self.features = features
        self.n_landmarks = int(features.nystrom.landmarks.shape[0])
        self.ridge = effective_ridge(objective.ridge, features.nystrom.gram)
        if known is None:
            stage("Summing over rows")
            domains = self.domains
            self.sums = Sums.of(features, domains.n_source, domains.row_weights, domains.known)
            self._source_sums, self._known_sums = self._labelled_sums()
            self._products: dict[Hashable, Matrix] = {}
        else:
            self.sums, self._products = known.sums, known._products
            self._source_sums, self._known_sums = known._source_sums, known._known_sums
        # Phi'AY: the labelled features, summed by class as the loss counts them.
        loss = self.fixed.get(SourceLoss.name)
        self._target = self._class_sums(getattr(loss, "group_weights", None))

    def _labelled_sums(self) -> tuple[Matrix, Matrix | None]:
        """Sums of the features by source and class; by class, of target rows with known labels."""
        domains, arrays = self.domains, self.rows.arrays
        member = self.Y
        if domains.n_sources > 1 or domains.weights is not None or domains.known is not None:
            groups = domains.groups(np.zeros(domains.n_target, dtype=np.intp))
            rows = np.arange(domains.n_source)
            table = np.zeros((len(domains.order), domains.n_sources * domains.n_classes))
            table[rows, groups.index[rows]] = (
                1.0 if domains.weights is None else domains.weights[rows]
            )
            member = arrays.table(table)
        sums = self.features.transposed_times(member)
        if domains.known is None:
            return sums, None
        known = self.AY[domains.target]
        return sums, self.features.transposed_times(known, domains.n_source)

    def _class_sums(self, group_weights: NDArray[np.float64] | None = None) -> Matrix:
        """Sums of the labelled features by class; sources and, if given, groups are weighted."""
        domains, sums = self.domains, self._source_sums
        if group_weights is None and domains.source_weights is not None:
            group_weights = np.repeat(domains.source_weights, domains.n_classes)
        if group_weights is not None:
            sums = sums * self.rows.arrays.table(group_weights)
        if domains.n_sources > 1:
            sums = sums.reshape(len(sums), domains.n_sources, domains.n_classes).sum(axis=1)
        return sums if self._known_sums is None else sums + self._known_sums

    def with_shares(self, shares: NDArray[np.float64] | None) -> LandmarkSolver:
        """The same objective, where the target's classes are taken to have these shares."""
        size = self.domains.n_sources * self.domains.n_classes * self.features.rank**2 * 8
        if self.sums.classes is None and size <= LIMITS.class_bytes:
            self.sums = replace(self.sums, classes=tuple(self._source_moments))
        return LandmarkSolver(self.objective, self.rows.with_shares(shares), self.features, self)

    @cached_property
    def _forms(self) -> dict[str, Matrix]:
        """Phi' S Phi of each term that no pseudo-label changes."""
        forms = {}
        for name, form in self.fixed.items():
            product = form.projected(self.sums)
            if product is None:  # the term reaches across rows, or weighs them
                key = form.key, form.weight
                if key not in self._products:
                    self._products[key] = self.features.between(form.apply)
                product = self._products[key]
            forms[name] = product
        return forms

    @cached_property
    def _fixed(self) -> Matrix:
        """eta I + Phi' S Phi of all of them."""
        return add_to_diagonal(sum(self._forms.values()), self.ridge)

    @cached_property
    def _fixed_system(self) -> UpdatedSystem:
        return UpdatedSystem(Inverse(self._fixed))

    def _system(self, labelled: Labelled) -> UpdatedSystem:
        """The system without the low-rank part, factored."""
        if labelled.covariances is None:
            return self._fixed_system
        if labelled.system is None:
            labelled.system = UpdatedSystem(Inverse(self._fixed + labelled.covariances.matrix))
        return labelled.system

    def _columns(self, labelled: Labelled) -> dict[str, Matrix]:
        """Phi'E of each term of few columns, which sums of features by group tell."""
        if not labelled.projected:
            sums = self._group_sums(labelled.groups)
            for name, form in labelled.low_rank.items():
                labelled.projected[name] = self._project(form, sums)
        return labelled.projected

    def _project(self, form: LowRank, sums: Matrix) -> Matrix:
        coefficients = getattr(form, "coefficients", None)
        if coefficients is None:
            return self.features.transposed_times(form.columns)
        return sums @ (form.weight**0.5 * self.rows.arrays.table(coefficients))

    def _group_sums(self, groups: Groups) -> Matrix:
        """Sums of the features by group: the sources', known, beside the target's."""
        xp, start = namespace(self.Y), groups.n_source
        member = np.zeros((len(groups.codes) - start, groups.n_classes))
        weights = 1.0 if groups.weights is None else groups.weights[start:]
        member[np.arange(len(member)), groups.codes[start:]] = weights
        table = self.rows.arrays.table(member)
        return xp.concat([self._source_sums, self.features.transposed_times(table, start)], axis=1)

    def zero(self) -> Matrix:
        """The coefficients of the classifier that scores zero everywhere."""
        return namespace(self._target).zeros_like(self._target)

    def scores(self, coefficients: Matrix) -> Matrix:
        """F = Phi w."""
        return self.features.times(coefficients)

    def solve(self, labelled: Labelled, around: tuple[Matrix, Matrix] | None = None) -> Matrix:
        """W of (eta I + Phi' S Phi) w = Phi'AY, with class confusion around the last if asked."""
        columns, rhs = list(self._columns(labelled).values()), self._target
        if around is not None and self.confusion is not None:
            image, B = self._images(around[0])
            separating, pull = self.confusion.around(image, B)
            columns, rhs = [*columns, separating], rhs + pull
        return self._solved(labelled, rhs, columns)

    def _solved(self, labelled: Labelled, rhs: Matrix, columns: list[Matrix]) -> Matrix:
        system = self._system(labelled)
        if not columns:
            return system.P.solve(rhs)
        return system.solve(rhs, namespace(rhs).concat(columns, axis=1))

    def _images(self, w: Matrix) -> tuple[Matrix, Matrix]:
        """Phi'F and F'F, for F = Phi w, with rows weighted as the loss weights them."""
        gram = self.sums.whole.gram
        if self.domains.shares is not None:
            gram = self._forms[SourceLoss.name] + self.sums.target.gram
            if self.sums.known is not None:  # they are among the target's
                gram = gram - self.sums.known.gram
        image = gram @ w
        return image, w.T @ image

    def source_only_scores(self) -> Matrix:
        """Scores of the target rows by the regularised risk of labelled rows alone."""
        gram = namespace(self.Y).asarray(self.sums.source.gram, copy=True)
        if self.sums.known is not None:
            gram += self.sums.known.gram
        factor = Cholesky(add_to_diagonal(gram, self.ridge))
        return self.scores(factor.solve(self._class_sums()))[self.domains.n_source :]

    def own_weights(self, labelled: Labelled, count: int) -> Matrix:
        """How much each of the first source rows' own label weighs in its score."""
        xp = namespace(self.Y)
        Phi = xp.astype(self.features[slice(0, count)], xp.float64)
        columns = list(self._columns(labelled).values())
        own = xp.sum(Phi.T * self._solved(labelled, Phi.T, columns), axis=0)
        return self.own_counts(count) * own

    def values(self, coefficients: Matrix, scores: Matrix, labelled: Labelled) -> dict[str, float]:
        """Value of each entry of the objective."""
        w = coefficients
        values = {"ridge": self.ridge * float((w * w).sum())}
        for name, form in self._forms.items():
            values[name] = float((w * (form @ w)).sum())
        if "source" in values:
            # tr((F - Y)' A (F - Y)) = tr(F' A F) - 2 tr(F' A Y) + tr(Y' A Y)
            values["source"] += float(self.AY.sum()) - 2.0 * float((w * self._target).sum())
        for name, columns in self._columns(labelled).items():
            values[name] = float(((columns.T @ w) ** 2).sum())
        if labelled.covariances is not None:
            values["covariances"] = labelled.covariances.value(w)
        if self.confusion is not None:
            values["confusion"] = self.confusion.value(self._images(w)[1])
        return values

    def gradient(
        self, coefficients: Matrix, labelled: Labelled, *, as_printed: bool = False
    ) -> Matrix:
        """Slope in w."""
        w = coefficients
        slope = self._fixed @ w - self._target
        for columns in self._columns(labelled).values():
            slope += columns @ (columns.T @ w)
        if labelled.covariances is not None:
            slope += labelled.covariances.apply(w)
        slope *= 2.0
        if self.confusion is not None:
            slope += self.confusion.gradient(*self._images(w), as_printed=as_printed)
        return slope

    def expansion(self, coefficients: Matrix) -> tuple[Any, NDArray[np.float64]]:
        """The landmarks and their coefficients."""
        nystrom = self.features.nystrom
        landmarks = nystrom.landmarks
        rows = landmarks if hasattr(landmarks, "indptr") else to_numpy(landmarks)
        return rows, to_numpy(nystrom.whitening @ coefficients)

    def _covariances(self, term: Covariances, groups: Groups) -> ProjectedCovariances:
        within = slice(groups.n_source, len(groups.codes))
        target = self._moments(groups.codes, groups.n_classes, within)
        return term.over_features(self.rows, groups, self._source_moments, target)

    @cached_property
    def _source_moments(self) -> list[Moments]:
        """Moments of the rows of each source and class, which no pseudo-label changes."""
        domains = self.domains
        codes = domains.y
        if domains.sources is not None:
            codes = codes + domains.n_classes * domains.sources
        return self._moments(codes, domains.n_sources * domains.n_classes, domains.source)

    def _moments(self, codes: NDArray[np.intp], n_groups: int, within: slice) -> list[Moments]:
        """Moments by group of the rows of a slice."""
        arrays, weights = self.rows.arrays, self.domains.weights
        return moments_of_groups(self.features, codes, n_groups, within, arrays, weights)
