"""Solvers of the classifier, expanded over all rows or over landmarks.

Over all rows F = K w, and w solves (S K + eta I) w = A Y. Over the Nystrom features of landmarks F
= Phi w with K ~ Phi Phi', and w solves (Phi'S Phi + eta I) w = Phi'A Y, a system of the size of the
landmarks that needs only sums over rows, which add up over blocks. The part of S that pseudo-labels
change has few columns E, so that one factorisation serves all rounds; only MMCD's second order
needs a new one in each.

Tables with a row for each coefficient are called projected. The scores x of the dual, F over all
rows and w itself over landmarks, give every value of the objective: tr(x'Sx), ||E'x||^2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transferable._kernel.class_shares import LabelRule
from transferable._kernel.covariances import Covariances, KernelCovariances, projected_covariances
from transferable._kernel.objective import Matrix, Term
from transferable._linalg.arrays import namespace, to_numpy
from transferable._linalg.kernels import FeatureTable
from transferable._linalg.moments import Moments, moments_of_blocks, moments_of_groups
from transferable._linalg.search import AnchorSums
from transferable._linalg.systems import (
    effective_ridge,
    eliminated,
    factored,
    inverse,
    solve_factored,
    solve_positive,
)
from transferable.domains import table_key
from transferable.events import stage
from transferable.limits import LIMITS

Form = Callable[[Matrix], Matrix]
_COLUMNS = 32  # of the kernel matrix that are worked on at once


@dataclass(eq=False)
class PseudoLabels:
    """Labels of the target rows at hand as class codes, weight of each class, share changed."""

    codes: NDArray[np.intp]
    counts: NDArray[Any]
    changed: float = 0.0  # share that changed


class Solver:
    """Solver of one objective over given rows, without the terms that depend on labels."""

    problem: Any  # the rows and the resolved parameters
    ridge: float  # eta, or the least that keeps the system regular
    n_landmarks: int | None = None
    # name, weight and form, in the dual, of each term that no label changes
    fixed: list[tuple[str, float, Form]]
    loss: Form  # A x, and W x with W the weights of all rows in the loss and in class confusion
    weighted: Form
    image: Matrix  # the right-hand side A Y, projected
    norm: float  # tr(Y'AY)
    key: Any  # equal for the same rows, kernel and ridge
    system_key: Any = None  # equal for equal systems; None for one that no other fit has
    expanded: Any  # the rows over which the classifier is expanded: all, or landmarks
    # coefficients of these rows are this times w; None for w itself
    whitening: Matrix | None = None
    known: dict[Any, Any]  # results computed for this system: its factor and solutions
    # forms, in the dual, of terms without few columns that labels change
    extra: Sequence[Form] = ()

    def updated(
        self, columns: Sequence[Matrix], pull: Matrix | None = None
    ) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return the solution with projected columns E in the system as EE', and its dual scores.

        By Woodbury's formula, from the solutions Q of the columns. Also returned are their dual
        scores J and I + E'J, which is symmetric and positive definite because K P^-1 is. `pull`
        times the last columns is added to the right-hand side; Q and J of the others are kept.
        """
        kept, concat = self.known.setdefault("columns", {}), namespace(self.image).concat
        blocks = [self.image, *columns]
        new = [E for E in blocks if id(E) not in kept]
        if new:  # one pass over the factor and the kernel matrix for all
            Q, end = self.solved(concat(new, axis=1)), 0
            J = self.dual(Q)
            for E in new:
                part = slice(end, end + E.shape[1])
                kept[id(E)], end = (E, Q[:, part], J[:, part]), part.stop
        (_, w, x), *parts = (kept[id(E)] for E in blocks)
        if pull is not None:
            E, Q, J = parts[-1]
            w, x = w + Q * pull, x + J * pull
        if columns:
            lasting = blocks if pull is None else blocks[:-1]  # others are of one round only
            self.known["columns"] = {id(E): kept[id(E)] for E in lasting}
        none = w[:, :0], w[:, :0], x[:, :0]
        E, Q, J = (concat(list(part), axis=1) for part in zip(none, *parts, strict=True))
        small = E.T @ J
        small = 0.5 * (small + small.T)
        i = np.arange(len(small))
        small[i, i] += 1.0
        if parts:
            a = solve_positive(small, E.T @ x)
            w, x = w - Q @ a, x - J @ a
        return w, x, J, small

    def left_out(
        self, F: Matrix, columns: Sequence[Matrix], ratio: NDArray[np.float64], most: int
    ) -> NDArray[np.float64]:
        """Return scores of the first source rows, each left out of the fit with these columns.

        With h the weight of a row's own label in its score, the score without it is
        (F - h Y) / (1 - h), exactly. A row of weight v > 1 counts as one of v copies.
        """
        d = self.problem.domains
        count = min(most, d.n_source)
        y, weights = d.y[:count], d.row_weights[:count]
        *_, J, small = self.updated(columns)
        if len(self.known.get("own", [()])[0]) < count:
            key = "own", self.system_key, count
            alone = self.system_key is None
            self.known["own"] = self._own(count) if alone else d.share(key, self._own, count)
        own, features = self.known["own"]
        own = own[:count]
        if columns:
            J = J[:count] if features is None else features[:count] @ J
            own = own - (J.T * solve_positive(small, J.T)).sum(axis=0)
        own = to_numpy(own) * (weights * ratio[y] / np.maximum(weights, 1.0))
        h = np.clip(own, 0.0, 1.0 - 1e-6)[:, None]
        return (to_numpy(F[:count]) - h * np.eye(d.n_classes)[y]) / (1.0 - h)

    def label(
        self,
        w: Matrix,
        F: Matrix,
        labelling: LabelRule,
        before: PseudoLabels | None = None,
        *,
        settled: bool = False,
    ) -> PseudoLabels:
        """Return labels of the target rows: known ones, and by score for the others.

        `before` are the labels to compare with; `settled` labels are final.
        """
        d = self.problem.domains
        codes, changed = d.known.copy(), 0.0
        if len(d.unknown):
            rows = d.target if len(d.unknown) == d.n_target else d.n_source + d.unknown
            codes[d.unknown] = labelling.codes(F[rows], settled)
        if before is not None and len(codes):
            changed = float((codes != before.codes).mean())
        return PseudoLabels(codes, np.bincount(codes, d.weights[d.target], d.n_classes), changed)

    def label_by(self, learn: Callable[..., Callable[[Any], NDArray[np.intp]]]) -> PseudoLabels:
        """Return labels by a learner given features, codes and weights of labelled rows."""
        d, Z = self.problem.domains, self.problem.Z
        rows = d.first_labelled(LIMITS.pool_rows)
        label = learn(Z[rows], d.with_target(d.known)[rows], d.row_weights[rows])
        codes = d.fixed(np.asarray(label(Z[d.target]), dtype=np.intp))
        return PseudoLabels(codes, np.bincount(codes, d.weights[d.target], d.n_classes))

    # Each of the two solvers implements these.
    reweighted: Callable[[NDArray[np.float64]], Any]
    scores: Callable[..., Matrix]
    source_only: Callable[[], tuple[Matrix, Matrix]]
    dual: Callable[[Matrix], Matrix]
    solved: Callable[[Matrix], Matrix]
    # Weights of the first rows' own labels in their scores, and features from which scores follow.
    _own: Callable[[int], tuple[Matrix, Matrix | None]]


class ExactSolver(Solver):
    """Solver of (S K + eta I) w = A Y over all rows."""

    _weights: NDArray[np.float64]  # of labelled rows in the loss
    _covariances: KernelCovariances

    def __init__(self, problem: Any, terms: Sequence[Term]) -> None:
        stage("Comparing all rows")
        d, table = problem.domains, problem.arrays.table
        self.problem, self.expanded = problem, problem.Z
        rows = table(problem.Z, "float64")
        where = problem.kernel, problem.key
        self.K = table(d.share(("kernel", where), problem.kernel, rows, rows))
        self.ridge = effective_ridge(problem.ridge, self.K, d.weights)
        self.Y = table(d.one_hot())
        self.fixed = [(term.name, term.weight, term.form) for term in terms]
        self.key = where, self.ridge
        self._key = self.key, tuple((term.key, term.weight) for term in terms)
        self._terms = terms
        self._first: dict[str, Any] = {}  # weights and factors that serve those of other priors
        self._second_order: dict[Any, Any] = {}

    def reweighted(self, ratio: NDArray[np.float64]) -> Self:
        """Return a solver whose source rows are weighted by this ratio of class priors."""
        d, table = self.problem.domains, self.problem.arrays.table
        weights = d.row_weights.copy()
        weights[d.source] *= ratio[d.y]
        labelled = np.zeros_like(weights)
        labelled[d.labelled] = weights[d.labelled]
        loss = partial(namespace(self.K).multiply, table(labelled[:, None]))
        other = copy(self)
        vars(other).update(
            known={},
            loss=loss,
            weighted=partial(namespace(self.K).multiply, table(weights[:, None])),
            image=loss(self.Y),
            norm=float(labelled.sum()),
            system_key=(self._key, labelled.tobytes()),
            _weights=labelled,
        )
        return other

    def scores(self, w: Matrix, x: Matrix | None = None) -> Matrix:
        """Return F = K w, the dual scores x; BLAS takes nearly half the time for w'K."""
        return (w.T @ self.K).T if x is None else x

    dual = scores

    def source_only(self) -> tuple[Matrix, Matrix]:
        """Return coefficients and scores of least squares on the labelled rows alone."""
        d = self.problem.domains
        rows = d.source if len(d.labelled) == d.n_source else d.labelled
        inside = 1.0 * self.K[rows][:, rows]
        i = np.arange(len(inside))
        inside[i, i] += self.problem.arrays.table(self.ridge / d.row_weights[rows])
        w = 0.0 * self.Y
        w[rows] = solve_positive(inside, self.Y[rows])
        return w, self.scores(w)

    def group_columns(self, B: NDArray[np.float64], labels: PseudoLabels) -> Matrix:
        """Return the columns of which each row has those of its group, times its weight."""
        d = self.problem.domains
        of_source, of_target = d.sources * d.n_classes + d.y, d.source_counts.size + labels.codes
        E = B[np.concatenate([of_source, of_target])] * d.weights[:, None]
        return self.problem.arrays.table(E)

    def with_covariances(
        self, term: Covariances, labels: PseudoLabels, ratio: NDArray[np.float64], balance: float
    ) -> Self:
        """Return a solver whose system has the term for these labels."""
        p = self.problem
        form = KernelCovariances(
            *(term, self.K, self._second_order, p.domains, labels.codes, ratio, balance),
            p.arrays.table,
        )
        other = copy(self)
        vars(other).update(known={}, system_key=None, extra=[form.form], _covariances=form)
        return other

    def _factored(self) -> tuple[Matrix, ...]:
        """Return the LU of the system, begun with target rows, and what is left of source rows.

        Another class prior only weights source rows otherwise, in which that is linear: it is all
        that is factored anew. The columns of source rows that were chosen for pivots are a sum of
        weighted tables.
        """
        d, G = self.problem.domains, None
        if self.extra or not self._first:
            beside = self._second_order.get("beside loss")
            empty = namespace(self.K).empty_like
            P = empty(self.K) if beside is None else beside + self.loss(self.K)
            # Few columns at a time, which are rows of K, so that tables stay in caches.
            step = _COLUMNS if self.problem.arrays.device is None else LIMITS.mapped_rows
            for start in range(0, len(P), step) if beside is None else ():
                few = slice(start, start + step)
                part = 1.0 * self.K[few].T
                sums = self.loss(part)
                for term in self._terms:
                    sums += term.weight * term.form(part)
                P[:, few] = sums
            if self.extra and beside is None:  # every round needs it
                self._second_order["beside loss"] = P - self.loss(self.K)
            if self.extra:
                P += self._covariances.times_kernel()
            i = np.arange(len(P))
            P[i, i] += self.ridge
            changing = 0 if self.extra else d.n_source
            factor, order, V = factored(P[changing:])
            B, S = eliminated(P[:changing], order, V)
            columns, last = [(1.0, B)], 1.0 * S  # S itself serves other priors
        else:
            first, weights = self._first, self._first["weights"]
            factor, order, V, columns, S, *_ = first["factor"]
            if "kernel" not in first:
                key = "kernel", first["key"]
                first["kernel"] = d.share(key, eliminated, self.K[d.source], order, V)
            of_kernel, G = first["kernel"]
            change = self.problem.arrays.table((self._weights - weights)[d.source, None])
            columns, last = [*columns, (change, of_kernel)], change * G
            last += S
        return factor, order, V, columns, S, G, *factored(last)[:2]

    def solved(self, R: Matrix) -> Matrix:
        """Return the solution of the system for projected columns R."""
        d = self.problem.domains
        if "factor" not in self.known:
            first = self._first
            if self.extra or first.get("key", self.system_key) != self.system_key:
                self.known["factor"] = self._factored()
            else:
                if not first:
                    first["factor"] = d.share(("factor", self.system_key), self._factored)
                    first.update(key=self.system_key, weights=self._weights)
                self.known["factor"] = first["factor"]
        factor, order, V, columns, *_, last, last_order = self.known["factor"]
        y, rest = solve_factored(factor, R[len(last) :]), 1.0 * R[: len(last)]
        for weight, B in columns:
            rest -= weight * (y.T @ B.T).T
        z = namespace(R).empty_like(rest)
        z[last_order] = solve_factored(last, rest)
        x = namespace(R).empty_like(R)
        x[order[: len(y)]], x[order[len(y) :]] = y - (z.T @ V.T).T, z
        return x

    def _own(self, count: int) -> tuple[Matrix, None]:
        _, order, V, *_, G, last, last_order = self.known["factor"]
        units = self.problem.arrays.table(np.eye(len(last) or len(self.K), count))
        if self.extra:
            return (self.K[:, :count] * self.solved(units)).sum(axis=0), None
        G = eliminated(self.K[:count], order, V)[1] if G is None else G[:count]
        return (G[:, last_order].T * solve_factored(last, units)).sum(axis=0), None


@dataclass(frozen=True)
class Sums:
    """Moments of the features of each domain, and by anchors; additive over tables."""

    source: Moments  # rows counting by their weights and those of their sources
    target: Moments
    # sums over the rows tied to each anchor, where there are anchors
    anchors: AnchorSums | None = None
    uniform: bool = True  # whether every row has weight 1

    @classmethod
    def of(
        cls,
        table: FeatureTable,
        n_source: int,
        anchors: Any,
        weights: Any,
        source: Moments | None = None,
    ) -> Sums:
        """Return the sums of a table whose first rows are the sources', of known moments or not."""
        if source is None:
            source = moments_of_blocks(table, slice(0, n_source), table.arrays, weights)
        target = moments_of_blocks(table, slice(n_source, table.n), table.arrays, weights)
        tied = None
        if anchors is not None:
            blocks = ((table.Z[rows], features) for rows, features in table.blocks())
            tied = anchors.sums(blocks, table.rank)
        return cls(source, target, tied, bool((weights == 1.0).all()))

    def __add__(self, other: Sums) -> Sums:
        anchors = None
        if self.anchors is not None and other.anchors is not None:
            anchors = self.anchors + other.anchors
        uniform = self.uniform and other.uniform
        return Sums(self.source + other.source, self.target + other.target, anchors, uniform)

    @cached_property
    def whole(self) -> Moments:
        """Moments of all rows."""
        return self.source + self.target


class LandmarkSolver(Solver):
    """Solver of (Phi'S Phi + eta I) w = Phi'A Y over the features of landmarks."""

    system: Matrix  # Phi'S Phi

    def __init__(self, problem: Any, terms: Sequence[Term], features: FeatureTable) -> None:
        stage("Summing over rows")
        self.problem, self.features = problem, features
        landmarks, self.whitening = features.nystrom.landmarks, features.nystrom.whitening
        self.n_landmarks = int(landmarks.shape[0])
        self.expanded = landmarks if hasattr(landmarks, "indptr") else to_numpy(landmarks)
        self.ridge = effective_ridge(problem.ridge, features.nystrom.gram)
        where = problem.kernel, problem.key
        self.key = where, self.ridge, table_key(self.expanded)
        anchors = next((term.anchors for term in terms if hasattr(term, "anchors")), None)
        d = problem.domains
        tied = [term.key for term in terms if hasattr(term, "anchors")]
        key = "sums", self.key, *tied, d.y.tobytes()
        self._sums, self._source_sums, self._by_class = d.share(key, self._sum_up, anchors)
        self._known, self._known_sums = self._sum_up_known()
        grams = [
            (term.name, term.weight, d.share(("gram", self.key, term.key), self._projected, term))
            for term in terms
        ]
        self.fixed = [(name, weight, partial(namespace(G).matmul, G)) for name, weight, G in grams]
        self._beside_loss = sum(weight * G for _, weight, G in grams)

    # Up to `reweighted`: everything that reads the rows themselves.

    def _sum_up(self, anchors: Any) -> tuple[Sums, Matrix, list[Moments] | None]:
        """Return sums over all rows, and of the sources' rows sums and moments by class.

        These moments serve every class prior; they are left out where they are too large.
        """
        d, source, moments = self.problem.domains, None, None
        most = LIMITS.gpu_class_bytes if self.problem.arrays.on_gpu else LIMITS.class_bytes
        if d.source_counts.size * self.features.rank**2 * 8 <= most:
            moments = self._source_moments
            xp = namespace(moments[0].total)
            by_group = xp.stack([group.total for group in moments], axis=1)
            weights = np.repeat(d.source_weights, d.n_classes).tolist()
            pairs = zip(weights, moments, strict=True)
            source = reduce(add, (Moments(w * m.count, w * m.total, w * m.gram) for w, m in pairs))
        else:
            groups = d.sources * d.n_classes + d.y
            by_group = group_sums(self.features, groups, d.source_counts.size, d.source, d.weights)
        return Sums.of(self.features, d.n_source, anchors, d.row_weights, source), by_group, moments

    def _sum_up_known(self) -> tuple[Matrix, Matrix]:
        """Return products, and sums by class, of the features of target rows with known labels."""
        d, table = self.problem.domains, self.problem.arrays.table
        if not (d.known >= 0).any():
            return 0.0, 0.0
        weights = d.row_weights * np.r_[np.zeros(d.n_source), d.known >= 0]
        known = np.maximum(d.known, 0)
        moments = moments_of_blocks(self.features, d.target, self.problem.arrays, weights)
        sums = group_sums(self.features, known, d.n_classes, d.target, weights)
        return moments.gram, table(sums)

    def _target_sums(self, labels: PseudoLabels) -> Matrix:
        """Return sums of the target's features by class."""
        d = self.problem.domains
        return group_sums(self.features, labels.codes, d.n_classes, d.target, d.weights)

    @cached_property
    def _source_moments(self) -> list[Moments]:
        """Moments of the rows of each source and class, which no pseudo-label changes."""
        d = self.problem.domains
        return self._moments(d.sources * d.n_classes + d.y, d.source_counts.size, d.source)

    def _target_moments(self, labels: PseudoLabels) -> list[Moments]:
        """Return moments of the target rows of each class."""
        d = self.problem.domains
        return self._moments(d.with_target(labels.codes), d.n_classes, d.target)

    def _moments(self, codes: NDArray[np.intp], n_groups: int, within: slice) -> list[Moments]:
        arrays, weights = self.problem.arrays, self.problem.domains.weights
        return moments_of_groups(self.features, codes, n_groups, within, arrays, weights)

    def _projected(self, term: Term) -> Matrix:
        """Return Phi'S Phi of a term: from the sums, or by columns if it reaches across rows."""
        G = term.gram(self._sums)
        return self.features.between(term.form) if G is None else G

    def _loss_gram(self, class_weights: NDArray[np.float64]) -> Matrix:
        """Return the products of the sources' features, weighted by source and class."""
        if self._by_class is not None:
            pairs = zip(class_weights.tolist(), self._by_class, strict=True)
            return sum(weight * moments.gram for weight, moments in pairs)
        d = self.problem.domains
        weights = d.weights.copy()
        weights[d.source] *= class_weights[d.sources * d.n_classes + d.y]
        return moments_of_blocks(self.features, d.source, self.problem.arrays, weights).gram

    def reweighted(self, ratio: NDArray[np.float64]) -> Self:
        """Return a solver whose source rows are weighted by this ratio of class priors."""
        d = self.problem.domains
        class_weights = np.outer(d.source_weights, ratio).ravel()
        gram = self._sums.source.gram
        if not (ratio == 1).all():
            gram = self._loss_gram(class_weights)
        sums = self._source_sums * self.problem.arrays.table(class_weights)
        sums = sums.reshape(len(sums), d.n_sources, d.n_classes).sum(axis=1)
        loss = gram + self._known
        everybody = gram + self._sums.target.gram
        norm = float((d.source_counts.ravel() * class_weights).sum())
        norm += float((d.row_weights[d.target] * (d.known >= 0)).sum())
        other = copy(self)
        vars(other).update(
            known={},
            loss=partial(namespace(loss).matmul, loss),
            weighted=partial(namespace(everybody).matmul, everybody),
            image=sums + self._known_sums,
            norm=norm,
            system=loss + self._beside_loss,
        )
        return other

    def scores(self, w: Matrix, x: Matrix | None = None) -> Matrix:
        """Return F = Phi w in float64."""
        return self.features.times(w)

    def source_only(self) -> tuple[Matrix, Matrix]:
        """Return coefficients and scores of least squares on the labelled rows alone."""
        plain = self.reweighted(np.ones(self.problem.domains.n_classes))
        gram = 1.0 * (self._sums.source.gram + self._known)
        i = np.arange(len(gram))
        gram[i, i] += self.ridge
        w = solve_positive(gram, plain.image)
        return w, self.scores(w)

    def group_columns(self, B: NDArray[np.float64], labels: PseudoLabels) -> Matrix:
        """Return the projected columns of which each row has those of its group."""
        target = self._target_sums(labels)
        sums = namespace(target).concat([self._source_sums, target], axis=1)
        return sums @ self.problem.arrays.table(B)

    def with_covariances(
        self, term: Covariances, labels: PseudoLabels, ratio: NDArray[np.float64], balance: float
    ) -> Self:
        """Return a solver whose system has the term for these labels."""
        d = self.problem.domains
        counts = np.vstack([d.source_counts, labels.counts])
        moments = self._by_class or self._source_moments, self._target_moments(labels)
        G = projected_covariances(term, d, counts, *moments, ratio, balance)
        other, form = copy(self), partial(namespace(G).matmul, G)
        vars(other).update(known={}, extra=[form], system=self.system + G)
        return other

    def dual(self, E: Matrix) -> Matrix:
        """Return E: features are orthonormal coordinates."""
        return E

    def solved(self, R: Matrix) -> Matrix:
        """Return the solution of the system for projected columns R."""
        if "factor" not in self.known:  # an inverse: it serves many products
            P = 1.0 * self.system
            i = np.arange(len(P))
            P[i, i] += self.ridge
            self.known["factor"] = inverse(P)
        return self.known["factor"] @ R

    def _own(self, count: int) -> tuple[Matrix, Matrix]:
        Phi = namespace(self.image).astype(self.features[slice(0, count)], self.image.dtype)
        return (Phi.T * self.solved(Phi.T)).sum(axis=0), Phi


def landmark_solver(problem: Any, terms: Sequence[Term]) -> LandmarkSolver:
    """Return the solver over the landmarks of a problem, whose features fits may share."""
    stage("Comparing rows with landmarks")
    plan, known = problem.plan, None
    given = problem.table, problem.nystrom, problem.arrays
    if plan.held:
        drawn = plan.n_landmarks, str(problem.random_state)
        key = "features of landmarks", problem.kernel, problem.key, *drawn
        known = problem.domains.share(key, lambda: FeatureTable(*given).held)
    table = FeatureTable(*given, held=plan.held, known=known, chunk=plan.chunk)
    return LandmarkSolver(problem, terms, table)


def group_sums(
    table: FeatureTable,
    codes: NDArray[np.intp],
    n_groups: int,
    within: slice,
    weights: NDArray[np.float64],
) -> Matrix:
    """Return sums of features by group, a column each, of the rows of a slice with these codes.

    `weights` are of all rows.
    """
    members = table.arrays.one_hot(codes, n_groups, table.nystrom.dtype)
    if not (weights[within] == 1.0).all():
        members = members * table.arrays.table(weights[within][:, None], table.nystrom.dtype)
    return table.transposed_times(members, within.start)
