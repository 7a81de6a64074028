"""Consensus of fitted models: a weighted average of their probabilities, smoothed over the target.

Its members are candidates whose scores are calibrated. Both are frozen: a fit and a correction
return new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from transferable._kernel.class_shares import agreement, exact_offsets
from transferable._kernel.rounds import temperature
from transferable._linalg.arrays import dense
from transferable._pool import Candidate, Kind, TargetRows
from transferable.base import DomainAdapter, class_scores
from transferable.domains import Domains
from transferable.limits import LIMITS
from transferable.trust import (
    LEAST_AUDITED,
    Codes,
    Probabilities,
    consensus_weights,
    correction,
    strata_of,
    stratum_weights,
)

Tables = NDArray[np.float64]  # probabilities by each of several models

_NEIGHBORS = 6  # of a row, itself among them if it was fitted
SMOOTHED = 0.6  # their weight: a fitted row itself has a half, five others a tenth each
_FAR, _UNSURE = 0.3, 0.3  # from source rows, and of the consensus, beyond which rows are unfamiliar
_AUDIT_FOLDS = 5
_KNOWN_ROWS = 10.0  # source rows that a known target row counts as, where a model is refitted
_FAVOUR = 10.0  # slope of the odds of the refitted model, by its lead in accuracy
_STEPS = 1000  # of logistic regression
_KEPT_ROWS = 20_000  # of the source, for audits to fit to again
_FOLDS = 3
_LEFT_OUT = 1000  # source rows that are enough to calibrate by
_SMALLEST = 1e-3  # probability: a forest whose trees all agree is no more certain than that


# -- members -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibrated(Candidate):
    """A candidate that gives probabilities, calibrated on held-out source rows.

    Attributes
    ----------
    ratios : ndarray of shape (n_classes,) or None
        Given class shares over those of the source, for models that follow no shift.
    temperature : float
        Divisor of the scores.
    """

    ratios: Any = None
    temperature: float = 1.0

    def _calibrated(self, X: Any, y: Codes, weights: Any) -> Self:
        model = self.model
        if hasattr(model, "_source_temperature"):
            return replace(self, temperature=float(model._source_temperature))
        if isinstance(model, DomainAdapter):  # around another, whose scores on the source it has
            model = model.estimator
        return replace(self, temperature=_fitted_temperature(model, X, y, weights))

    def probabilities(self, rows: Any) -> Probabilities:
        """Return calibrated probabilities of target rows, a column for each class."""
        scores = _scores(self.model, self.seen(rows)) / self.temperature
        if self.ratios is not None:
            with np.errstate(divide="ignore"):  # a class that is absent has probability 0
                scores = scores + np.log(self.ratios)
        return softmax(scores, axis=1)


def _fitted_temperature(model: Any, X: Any, y: Codes, weights: Any = None) -> float:
    """Return the temperature on held-out source rows, or on those held out from copies."""
    if isinstance(model, RandomForestClassifier):
        seen = np.isfinite(model.oob_decision_function_).all(axis=1)
        scores, known = np.log(np.maximum(model.oob_decision_function_[seen], _SMALLEST)), y[seen]
        return temperature(scores, known) if len(known) else 1.0
    # Rows are left out in folds that keep a row of every class.
    counts = np.bincount(y)
    order = np.argsort(y, kind="stable")
    fold = np.empty_like(y)
    fold[order] = (np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)) % _FOLDS
    fold[counts[y] < 2] = _FOLDS
    tables: list[NDArray[np.float64]] = []
    codes: list[NDArray[np.intp]] = []
    for k in range(_FOLDS):
        out = fold == k
        if out.any() and sum(map(len, codes)) < _LEFT_OUT:
            own = None if weights is None else weights[~out]
            other = clone(model).fit(X[~out], y[~out], sample_weight=own)
            tables.append(_scores(other, X[out]))
            codes.append(y[out])
    return temperature(np.concatenate(tables), np.concatenate(codes)) if codes else 1.0


def _scores(model: Any, rows: Any) -> NDArray[np.float64]:
    """Return scores whose softmax, at some temperature, gives the model's probabilities."""
    if isinstance(model, DomainAdapter):
        return model._scores(rows)  # that the pool has validated
    scores = class_scores(model, rows)
    certain = hasattr(model, "decision_function")
    return scores if certain else np.log(np.maximum(scores, _SMALLEST))


# -- consensus ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Consensus:
    """Average of fitted models over target rows, those that they were fitted to and new ones.

    Besides the members, the largest parts are the directions of the target rows, in their
    precision, and at most 20,000 source rows in single precision: 8 and 4 bytes for each value of
    dense double rows.

    Attributes
    ----------
    members : list of Calibrated
        The models, those of the source alone first.
    agreement : ndarray of shape (n_members,)
        Cohen's kappa of each member with all others together; empty without a target.
    agreed, weights : ndarray of shape (n_members,)
        Weights by that agreement, and those in use: corrected by known labels if there are any.
    source, source_labels : array of shape (n_kept, n_features), ndarray of shape (n_kept,)
        Source rows as the members saw them, and their codes; of more than 20,000 a sample with the
        same share of every class. With ``target.rows`` a model can be fitted to them again.
    target : TargetRows
        The fitted target rows, in whose order the following are.
    tables : ndarray of shape (n_members, n_target, n_classes)
        Probabilities of the target rows by each member.
    P : ndarray of shape (n_target, n_classes)
        Their probabilities by the consensus.
    alone : ndarray of shape (n_target,)
        Their codes by the members of the source alone.
    views : ndarray of shape (n_views, n_target)
        Their codes by each view whose agreement is evidence.
    uncertainty : ndarray of shape (n_target,)
        How uncertain the label of each is before any is known.
    smoothing : float
        Weight of the neighbours in the probabilities of a row.
    factors : ndarray of shape (n_classes,)
        Factors of probabilities by which given class shares are met.
    known : ndarray of shape (3, n_known)
        Rows with a known label, its code (-1 if the source lacks it), and the code that the
        consensus gives the row if its label is left out.
    added : ndarray of shape (n_target, n_classes) or None
        Correction of the probabilities by known labels.
    alpha : float
        Factor of the neighbours' mean correction for new rows.
    refitted : Calibrated or None
        Logistic regression of the source and the known rows, which count tenfold.
    share : float
        Weight of its probabilities, the larger the better it is on known rows that are left out.
    """

    members: list[Calibrated]
    agreement: NDArray[np.float64]
    agreed: NDArray[np.float64]
    weights: NDArray[np.float64]
    source: Any
    source_labels: Codes
    target: TargetRows
    tables: Tables
    P: Probabilities
    alone: Codes
    views: Codes
    uncertainty: NDArray[np.float64]
    smoothing: float
    factors: NDArray[np.float64]
    known: Codes = field(default_factory=lambda: np.zeros((3, 0), dtype=np.intp))
    added: Any = None
    alpha: float = 0.0
    refitted: Any = None
    share: float = 0.0

    @classmethod
    def of(
        cls,
        members: list[Calibrated],
        domains: Domains,
        kind: Kind,
        caution: float | None = None,
        shares: Any = None,
        common: float = 1.0,
    ) -> Consensus:
        """Weight fitted members by their agreement on the target rows.

        Parameters
        ----------
        members : list of Calibrated
            Those of the source alone first.
        domains : Domains
            What they were fitted to.
        kind : Kind
            The kind of rows: what neighbours and views weigh.
        caution : float, optional
            Prior weight of the members of the source alone; that of the kind by default.
        shares : ndarray of shape (n_classes,), optional
            Class shares that the labels of the target rows must have.
        common : float
            Mean share of values that columns of both domains have in common.
        """
        rows, n_classes, target = domains.Xt, domains.n_classes, TargetRows.of(domains)
        kept = _sample(domains.y)
        source = domains.X[kept].astype(np.float32), domains.y[kept]
        views = [member.view for member in members]
        factors = np.ones(n_classes)
        given = kind.caution if caution is None else caution, kind.shares
        if domains.n_target == 0:
            prior, codes = prior_weights(views, *given), np.zeros(0, dtype=np.intp)
            tables = np.zeros((len(members), 0, n_classes))
            return cls(
                *(members, np.zeros(0), prior, prior, *source, target, tables, tables[0]),
                *(codes, codes[None], np.zeros(0), 0.0, factors),
            )
        tables = np.array([member.probabilities(rows) for member in members])
        overlapping = min(1.0, 2 * common) ** 2
        prior = prior_weights(views, *given, overlapping)
        weights, kappas = consensus_weights(tables, prior)
        own = np.tensordot(weights, tables, axes=1)
        weight = kind.smoothing
        if callable(weight):
            weight = weight(own, target.near)
        if shares is not None:
            logs = np.log(_smoothed(own, own, target.near, weight, factors) + 1e-12)
            offsets = exact_offsets(logs, shares)
            factors = np.exp(offsets - offsets.max())
        P = _smoothed(own, own, target.near, weight, factors)
        of_views: dict[str, list[int]] = {}
        for k, view in enumerate(views):
            of_views.setdefault(view, []).append(k)
        codes = np.array([_vote(weights[some], tables[some]) for some in of_views.values()])
        return cls(
            *(members, kappas, weights, weights, *source, target, tables, P, codes[0]),
            # Where columns hardly overlap, rows as given say nothing of rows scaled by domain.
            codes if overlapping == 1.0 else codes[-1:],
            *((1 - P.max(axis=1)) / (1 - 1 / n_classes), weight, factors),
        )

    @property
    def strata(self) -> Codes:
        """Strata of the fitted target rows, from which rows to label are drawn."""
        return strata_of(self.P.argmax(axis=1), self.alone, self.unfamiliar())

    def probabilities(self, rows: Any) -> Probabilities:
        """Return the probabilities of target rows, fitted or new."""
        return self.label(rows)["probabilities"]

    def label(self, rows: Any) -> dict[str, NDArray[Any]]:
        """Return what a table of labels is made of.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
            Target rows, fitted or new. Members are called once, and only for new rows.

        Returns
        -------
        found : dict of ndarrays
            ``probabilities``, the codes by the members of the ``source_only``, and whether rows are
            ``unfamiliar``, which new rows are if their nearest fitted ones are.
        """
        if sp.issparse(rows) and isinstance(
            self.target.directions, np.ndarray
        ):  # fitted ones were dense
            size = max(1, LIMITS.block_values // rows.shape[1])
            found = [self.label(dense(rows[k : k + size])) for k in range(0, rows.shape[0], size)]
            return {name: np.concatenate([part[name] for part in found]) for name in found[0]}
        at, new = self.target.found(rows)
        if not len(self.P):
            tables = np.array([member.probabilities(rows) for member in self.members])
            P, alone = np.tensordot(self.weights, tables, axes=1), _vote(self.agreed, tables)
            return {"probabilities": P, "source_only": alone, "unfamiliar": ~new}
        P, alone, near = self.P[at], self.alone[at], self.target.near[at]
        if new.any():
            tables = np.array([member.probabilities(rows[new]) for member in self.members])
            alone[new] = _vote(self.agreed[: self._n_alone], tables[: self._n_alone])
            near[new], cosines = self.target.nearest(rows[new])
            own, fitted = (np.tensordot(self.weights, t, axes=1) for t in (tables, self.tables))
            P[new] = _smoothed(own, fitted, near[new], self.smoothing, self.factors)
            if self.added is not None:
                # Rows that have a correction of their own, up to rounding in their precision.
                same = cosines[:, 0] > 1 - max(1e-12, 16 * np.finfo(cosines.dtype).eps)
                passed_on = self.alpha * self.added[near[new]].mean(axis=1)
                corrections = np.where(same[:, None], self.added[near[new, 0]], passed_on)
                P[new] = _distributions(P[new] + corrections)
            if self.refitted is not None:
                other = self.refitted.probabilities(rows[new])
                P[new] = (1 - self.share) * P[new] + self.share * other
        unfamiliar = self.unfamiliar(near)
        return {"probabilities": P, "source_only": alone, "unfamiliar": unfamiliar}

    def source_only(self, rows: Any) -> Codes:
        """Return the codes of rows by the members of the source alone."""
        at, new = self.target.found(rows)
        codes = self.alone[at] if len(self.alone) else at
        if new.any():
            some = self.members[: self._n_alone]
            tables = np.array([member.probabilities(rows[new]) for member in some])
            codes[new] = _vote(self.agreed[: self._n_alone], tables)
        return codes

    def corrected(self, rows: Codes, truth: Codes) -> Consensus:
        """Learn from known labels of fitted target rows.

        Parameters
        ----------
        rows : ndarray of shape (n_rows,)
            Their positions. A label that is given again replaces the earlier one.
        truth : ndarray of shape (n_rows,)
            Codes of their labels, -1 for a label that the source lacks.

        Returns
        -------
        consensus : Consensus
            The corrected one, whose ``known`` rows end with these.
        """
        before = self.known[:2, ~np.isin(self.known[0], rows)]
        every, codes = np.concatenate([before, [rows, truth]], axis=1)
        near, factors = self.target.near, self.factors
        smooth = _smoothed(self.tables, self.tables, near, self.smoothing, factors)
        agreed = np.tensordot(self.agreed, smooth, axes=1).argmax(axis=1)
        strata = strata_of(agreed, self.alone, self.unfamiliar())
        weights = stratum_weights(strata, every)
        found = correction(smooth, self.agreed, near, every, codes, weights)
        own = np.tensordot(found.weights, self.tables, axes=1)
        P = _smoothed(own, own, near, self.smoothing, factors)
        added = found.influence @ (found.wanted - P[every])
        P, left_out = _distributions(P + added), _distributions(found.left_out)
        refitted, share = None, 0.0
        if len(every) >= LEAST_AUDITED:
            own = self.target.rows
            refitted, predicted = self._refitted(own, every, codes)
            right = [(one.argmax(axis=1) == codes).mean() for one in (predicted, left_out)]
            share = float(expit(_FAVOUR * (right[0] - right[1])))
            left_out = (1 - share) * left_out + share * predicted
            mixed = (1 - share) * P + share * refitted.probabilities(own)
            mixed[every] = P[every]
            P = mixed
        return replace(
            self,
            weights=found.weights,
            P=P,
            known=np.array([every, codes, left_out.argmax(axis=1)]),
            added=added,
            alpha=found.alpha,
            refitted=refitted,
            share=share,
        )

    def _refitted(
        self, own: Any, rows: Codes, truth: Codes
    ) -> tuple[Calibrated, NDArray[np.float64]]:
        """Fit to the source and known target rows; also return these, left out in five folds.

        Rows are standardised over both domains. Labels that the source lacks are left aside.
        """
        stack = sp.vstack if sp.issparse(own) else np.concatenate
        scaler = StandardScaler(with_mean=not sp.issparse(own)).fit(stack([self.source, own]))
        order = np.argsort(rows)  # the order in which labels are given means nothing
        truth, known = truth[order], scaler.transform(own[rows[order]])
        n, fold = len(self.source_labels), np.arange(len(rows)) % _AUDIT_FOLDS
        X = stack([scaler.transform(self.source), known])
        y = np.concatenate([self.source_labels, truth])
        weights = np.repeat([1.0, _KNOWN_ROWS], [n, len(rows)])

        def fitted(left: Any) -> LogisticRegression:
            kept = np.concatenate([np.arange(n), n + np.flatnonzero((truth >= 0) & ~left)])
            return LogisticRegression(max_iter=_STEPS).fit(X[kept], y[kept], weights[kept])

        predicted = np.zeros((len(rows), self.P.shape[1]))
        for k in range(_AUDIT_FOLDS):
            predicted[order[fold == k]] = fitted(fold == k).predict_proba(known[fold == k])
        name = "logistic regression with known labels"
        whole = fitted(np.zeros(len(rows), dtype=bool))
        return Calibrated(name, "as given", whole, scaler=scaler), predicted

    def unfamiliar(self, near: Codes | None = None) -> NDArray[np.bool_]:
        """Return whether rows with these neighbours are far from the source and of unsure label.

        Without any given, these are the fitted target rows.
        """
        near = self.target.near if near is None else near
        far, unsure = (part[near].mean(axis=1) for part in (self.target.gap, self.uncertainty))
        return np.asarray((far > _FAR) & (unsure > _UNSURE))

    @property
    def _n_alone(self) -> int:
        """Number of the members of the source alone, which come first."""
        return sum(member.view == self.members[0].view for member in self.members)


def prior_weights(
    views: Sequence[str],
    caution: float,
    shares: Mapping[str, float] = MappingProxyType({}),
    overlapping: float = 1.0,
) -> NDArray[np.float64]:
    """Return the prior weight of each member by its view, summing to 1.

    Views of both domains weigh by their shares, alike without any. Members that compare values of
    both domains as they are count by the given factor.
    """
    of = np.array(views)
    adapted, weights = of != "source-only", np.empty(len(of))
    for view in np.unique(of):
        weights[of == view] = shares.get(view, 1.0) / np.sum(of == view)
    weights[adapted] /= weights[adapted].sum() or 1.0
    if adapted.any() and not adapted.all():
        weights *= np.where(adapted, 1 - caution, caution)
    if (of == "per domain").any():
        weights[of != "per domain"] *= overlapping
    return weights / weights.sum()


def _sample(y: Codes) -> Codes:
    """Return the positions of rows to keep: all, or a sample with the same share of every class."""
    if len(y) <= _KEPT_ROWS:
        return np.arange(len(y))
    rng = np.random.default_rng(0)
    parts = [np.flatnonzero(y == code) for code in np.unique(y)]
    drawn = [
        rng.choice(part, max(1, len(part) * _KEPT_ROWS // len(y)), replace=False) for part in parts
    ]
    return np.sort(np.concatenate(drawn))


def by_neighbours(own: Probabilities, near: Codes) -> float:
    """Return the weight of neighbours by how well their labels agree with those of the rows.

    Where rows of one class are not neighbours, as texts of one opinion, they have none.
    """
    if near.shape[1] < 2:
        return 0.0
    theirs = own[near[:, 1:_NEIGHBORS]].mean(axis=1).argmax(axis=1)
    return SMOOTHED * max(0.0, agreement(own.argmax(axis=1), theirs))


def _smoothed(
    tables: Probabilities,
    own: Probabilities,
    near: Codes,
    weight: float,
    factors: NDArray[np.float64],
) -> Probabilities:
    """Average probabilities of rows with those of their neighbours, and meet given class shares.

    `own` are those of the fitted target rows. Both may be of several models, in front.
    """
    found = own[..., near[:, :_NEIGHBORS], :]
    P = (1 - weight) * tables + weight * found.mean(axis=-2)
    return P if (factors == 1.0).all() else _distributions(P * factors)


def _vote(weights: NDArray[np.float64], tables: Tables) -> Codes:
    """Return codes by some members, of their weights and the probabilities by each of them."""
    weights = weights if weights.any() else np.ones(len(weights))
    return np.tensordot(weights, tables, axes=1).argmax(axis=1)


def _distributions(P: Probabilities) -> Probabilities:
    """Return positive values as probabilities that sum to 1."""
    P = np.maximum(P, 0.0)
    total = P.sum(axis=-1, keepdims=True)
    return np.divide(P, total, out=np.full_like(P, 1 / P.shape[-1]), where=total > 0)
