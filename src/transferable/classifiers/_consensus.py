"""Consensus of fitted models: a weighted average of their probabilities, smoothed over the target.

A :class:`Candidate` is a model with the input that it is fitted to, a :class:`Consensus` the
average over those that were fitted. Both are frozen: a fit and a correction return new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler

from transferable._kernel.class_shares import exact_offsets
from transferable._kernel.rounds import temperature
from transferable._linalg.arrays import dense, unit_rows
from transferable._linalg.search import nearest
from transferable.base import DomainAdapter, class_scores
from transferable.domains import Domains, Store, row_hash
from transferable.events import Listener, silence
from transferable.limits import LIMITS
from transferable.trust import (
    Codes,
    Probabilities,
    consensus_weights,
    correction,
    overlap,
    strata_of,
    stratum_weights,
)

Tables = NDArray[np.float64]  # probabilities by each of several models

_NEIGHBORS = 6  # of a row, itself among them if it was fitted
_SMOOTHED = 0.6  # their weight: a fitted row itself has a half, five others a tenth each
_WALKED = 10  # neighbours that a correction is passed on to
_NEAR = 5  # rows of a domain that a target row is compared with
_FAR, _UNSURE = 0.3, 0.3  # from source rows, and of the consensus, beyond which rows are unfamiliar
_SAME_DIRECTION = 1e-5  # difference up to which a row is one that was fitted
_KEPT_ROWS = 20_000  # of the source, for audits to fit to again
_FOLDS = 3
_LEFT_OUT = 1000  # source rows that are enough to calibrate by
_SMALLEST = 1e-3  # probability: a forest whose trees all agree is no more certain than that


# -- members -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A model and its input; once fitted, with the scale of its rows and of its scores.

    Attributes
    ----------
    name : str
        Name of the candidate.
    view : {"source-only", "as given", "per domain", "no flow"}
        What the model sees: the source alone, or both domains as they are, each standardised by
        itself, or without a geodesic flow. Models of one view err together, and count as one.
    model : classifier
        One of the library, or one of scikit-learn.
    embedding : list of transformers
        Fitted to both domains, before the model; their features, of unit length each, stand side
        by side. Without any, the model sees the rows.
    ratios : ndarray of shape (n_classes,) or None
        Given class shares over those of the source, for models that follow no shift.
    scaler : StandardScaler or None
        Brings target rows to the scale of the embedding or model.
    temperature : float
        Divisor of the scores, calibrated on held-out source rows.
    """

    name: str
    view: str
    model: Any
    embedding: list[Any] = field(default_factory=list)
    ratios: Any = None
    scaler: Any = None
    temperature: float = 1.0

    @property
    def identity(self) -> tuple[bool, str, str]:
        """What makes two fitted candidates copies: whether rows are scaled, and the models.

        TFDF without a geodesic flow is the same whether it chose that or was told to.
        """
        model = self.model
        if hasattr(model, "manifold_dim_"):
            model = clone(model).set_params(manifold_dim=model.manifold_dim_)
        return self.view == "per domain", repr(self.embedding), repr(model)

    def fit(
        self,
        X: Any,
        codes: Codes,
        ids: NDArray[Any],
        weights: Any,
        *,
        store: Store | None = None,
        clock: Sequence[Listener] = (),
    ) -> Candidate:
        """Return the candidate fitted to source rows and, behind them, target rows of code -1.

        Candidates of the same input share kernels, graphs and factorisations in the store. The
        clock hears of every round, and may end the fit.
        """
        n_source, model, scaler = int(np.sum(codes >= 0)), self.model, None
        if self.view == "per domain":
            parts = [np.flatnonzero(ids == one) for one in np.unique(ids)]  # target first
            kept, scaled, sparse = flags(X), [], sp.issparse(X)
            for part in parts[::-1]:  # that of the target is kept
                scaler = StandardScaler(with_mean=not sparse).fit(X[part])
                scaler.scale_[kept] = 1.0
                if not sparse:
                    scaler.mean_[kept] = 0.0
                scaled.append(scaler.transform(X[part]))
            stacked = sp.vstack(scaled, format="csr") if sparse else np.concatenate(scaled)
            X = stacked[np.argsort(np.concatenate(parts[::-1]))]
        elif self.embedding:
            scaler = StandardScaler(with_std=False)
            X = scaler.fit_transform(X)
        with silence(*clock):
            if self.embedding:
                fitted = [part.fit(X, codes, ids) for part in self.embedding]
                X = np.hstack([unit_rows(part.transform(X, ids)) for part in fitted])
            if isinstance(model, DomainAdapter):
                model._store = store
                model.fit(X, codes, ids, weights)  # all take weights
                del model._store
                for part in (model, *self.embedding):
                    part._target_sample = None  # the pool keeps one for all
                return replace(self, scaler=scaler, temperature=float(model._source_temperature))
        own = None if weights is None else weights[:n_source]
        Xs, ys = X[:n_source], codes[:n_source]
        model.fit(Xs, ys, sample_weight=own)
        return replace(self, scaler=scaler, temperature=_fitted_temperature(model, Xs, ys, own))

    def probabilities(self, rows: Any) -> Probabilities:
        """Return calibrated probabilities of target rows, a column for each class."""
        rows = rows if self.scaler is None else self.scaler.transform(rows)
        if self.embedding:
            rows = np.hstack([unit_rows(part.transform(rows)) for part in self.embedding])
        scores = _scores(self.model, rows) / self.temperature
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
    scores = class_scores(model, rows)
    certain = hasattr(model, "decision_function")
    return scores if certain else np.log(np.maximum(scores, _SMALLEST))


def flags(X: Any) -> NDArray[np.bool_]:
    """Return the columns that hold 0 and 1 only: they have no unit."""
    if sp.issparse(X):
        other = (X.data != 0) & (X.data != 1)
        return np.bincount(X.indices[other], minlength=X.shape[1]) == 0
    return np.asarray(((X == 0) | (X == 1)).all(axis=0))


# -- consensus ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Consensus:
    """Average of fitted models over target rows, those that they were fitted to and new ones.

    Fitted target rows are in the canonical order of the fit. Besides the members, the largest parts
    are their directions, in the precision of the rows, and at most 20,000 source rows in single
    precision: 8 and 4 bytes for each value of dense double rows.

    Attributes
    ----------
    members : list of Candidate
        The models, those of the source alone first.
    agreement : ndarray of shape (n_members,)
        Cohen's kappa of each member with all others together; empty without a target.
    agreed, weights : ndarray of shape (n_members,)
        Weights by that agreement, and those in use: corrected by known labels if there are any.
    source, source_labels : array of shape (n_kept, n_features), ndarray of shape (n_kept,)
        Source rows as the members saw them, and their codes; of more than 20,000 a sample with the
        same share of every class. With :meth:`target` they are what a model can be fitted to again.
    tables : ndarray of shape (n_members, n_target, n_classes)
        Probabilities of the target rows by each member.
    P : ndarray of shape (n_target, n_classes)
        Their probabilities by the consensus.
    alone : ndarray of shape (n_target,)
        Their codes by the members of the source alone.
    views : ndarray of shape (n_views, n_target)
        Their codes by each view whose agreement is evidence.
    near : ndarray of shape (n_target, n_near)
        The nearest target rows of each, the row itself first.
    unlikeness : ndarray of shape (2, n_target)
        How far each row is from all source rows, and how uncertain its label.
    unfamiliar : ndarray of shape (n_target,)
        Whether rows near each are, in the mean, both far from the source and uncertain.
    factors : ndarray of shape (n_classes,)
        Factors of probabilities by which given class shares are met.
    places : ndarray of shape (n_target,)
        Number of each row among the target rows of the input.
    hashes : ndarray of shape (n_target,)
        Hash of each row, by which it is known again.
    directions, lengths : array of shape (n_target, n_features + 1), ndarray of shape (n_target,)
        Direction and distance of each row from the centre; sparse rows, n_features wide, are not
        centred. None without a target.
    centre : ndarray of shape (n_features + 1,) or None
        The centre, with a further coordinate; None for sparse rows.
    known : ndarray of shape (3, n_known)
        Rows with a known label, its code (-1 if the source lacks it), and the code that the
        consensus gives the row if its label is left out.
    added : ndarray of shape (n_target, n_classes) or None
        Correction of the probabilities by known labels.
    alpha : float
        Factor of the neighbours' mean correction for new rows.
    """

    members: list[Candidate]
    agreement: NDArray[np.float64]
    agreed: NDArray[np.float64]
    weights: NDArray[np.float64]
    source: Any
    source_labels: Codes
    tables: Tables
    P: Probabilities
    alone: Codes
    views: Codes
    near: Codes
    unlikeness: NDArray[np.float64]
    unfamiliar: NDArray[np.bool_]
    factors: NDArray[np.float64]
    places: Codes
    hashes: NDArray[np.uint64]
    directions: Any = None
    lengths: Any = None
    centre: Any = None
    known: Codes = field(default_factory=lambda: np.zeros((3, 0), dtype=np.intp))
    added: Any = None
    alpha: float = 0.0

    @classmethod
    def of(
        cls, members: list[Candidate], domains: Domains, caution: float, shares: Any = None
    ) -> Consensus:
        """Weight fitted members by their agreement on the target rows.

        Parameters
        ----------
        members : list of Candidate
            Those of the source alone first.
        domains : Domains
            What they were fitted to.
        caution : float
            Prior weight of the members of the source alone.
        shares : ndarray of shape (n_classes,), optional
            Class shares that the labels of the target rows must have.
        """
        rows, n, n_classes = domains.Xt, domains.n_target, domains.n_classes
        kept = _sample(domains.y)
        source = domains.X[kept].astype(np.float32), domains.y[kept]
        prior = prior_weights([member.view for member in members], caution)
        if n == 0:
            none, codes = np.zeros((0, n_classes)), np.zeros(0, dtype=np.intp)
            tables = np.zeros((len(members), 0, n_classes))
            return cls(
                *(members, np.zeros(0), prior, prior, *source, tables, none),
                *(codes, codes[None], codes[:, None], np.zeros((2, 0)), codes.astype(bool)),
                *(np.ones(n_classes), codes),
                hashes=domains.hashes[domains.target],
            )
        tables = np.array([member.probabilities(rows) for member in members])
        centre = _centre(rows)
        moved = _from(rows, centre)
        directions = unit_rows(moved)
        near, cosines = _nearest(directions, directions)
        overlapping = min(1.0, 2 * overlap(domains.Xs, rows)) ** 2
        prior = prior_weights([member.view for member in members], caution, overlapping)
        weights, kappas = consensus_weights(tables, prior)
        own, factors = np.tensordot(weights, tables, axes=1), np.ones(n_classes)
        if shares is not None:
            logs = np.log(_smoothed(own, own, near, factors) + 1e-12)
            offsets = exact_offsets(logs, shares)
            factors = np.exp(offsets - offsets.max())
        P = _smoothed(own, own, near, factors)
        of_views: dict[str, list[int]] = {}
        for k, member in enumerate(members):
            of_views.setdefault(member.view, []).append(k)
        views = np.array([_vote(weights[some], tables[some]) for some in of_views.values()])
        unlikeness = np.zeros((2, n))
        if n > 1:
            ours = unit_rows(_from(domains.Xs, _centre(domains.Xs)))
            to_source = nearest(directions, ours, min(_NEAR, domains.n_source)).similarities
            gap = cosines[:, 1 : 1 + _NEAR].mean(axis=1) - to_source.mean(axis=1)
            unlikeness = np.array([gap, (1 - P.max(axis=1)) / (1 - 1 / n_classes)])
        order = domains.order[domains.target]
        return cls(
            *(members, kappas, weights, weights, *source, tables, P, views[0]),
            # Where columns hardly overlap, rows as given say nothing of rows scaled by domain.
            views if overlapping == 1.0 else views[-1:],
            *(near, unlikeness, _unfamiliar(unlikeness, near)),
            *(factors, np.searchsorted(np.sort(order), order)),
            hashes=domains.hashes[domains.target],
            directions=directions,
            lengths=sp.linalg.norm(moved, axis=1)
            if sp.issparse(moved)
            else np.linalg.norm(moved, axis=1),
            centre=centre,
        )

    @property
    def target(self) -> Any:
        """Target rows as the members saw them, in single precision and canonical order."""
        if sp.issparse(self.directions):
            return sp.csr_array(sp.diags_array(self.lengths) @ self.directions, dtype=np.float32)
        rows = self.directions * self.lengths[:, None] + self.centre
        return rows[:, :-1].astype(np.float32)

    @property
    def strata(self) -> Codes:
        """Strata of the fitted target rows, from which rows to label are drawn."""
        return strata_of(self.P.argmax(axis=1), self.alone, self.unfamiliar)

    def probabilities(self, rows: Any) -> Probabilities:
        """Return the probabilities of target rows, fitted or new."""
        return self.label(rows)["probabilities"]

    def label(self, rows: Any) -> dict[str, NDArray[Any]]:
        """Return what a table of labels is made of.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
            Target rows, fitted or new. The members are asked once, and only for new rows.

        Returns
        -------
        found : dict of ndarrays
            ``probabilities``, the codes by the members of the ``source_only``, and whether rows are
            ``unfamiliar``, which new rows are if their nearest fitted ones are.
        """
        if sp.issparse(rows) and isinstance(self.directions, np.ndarray):  # fitted ones were dense
            size = max(1, LIMITS.block_values // rows.shape[1])
            found = [self.label(dense(rows[k : k + size])) for k in range(0, rows.shape[0], size)]
            return {name: np.concatenate([part[name] for part in found]) for name in found[0]}
        at, new = self._found(rows)
        if self.directions is None:
            tables = np.array([member.probabilities(rows) for member in self.members])
            P, alone = np.tensordot(self.weights, tables, axes=1), _vote(self.agreed, tables)
            return {"probabilities": P, "source_only": alone, "unfamiliar": ~new}
        P, alone, near, unfamiliar = self.P[at], self.alone[at], self.near[at], self.unfamiliar[at]
        if new.any():
            tables = np.array([member.probabilities(rows[new]) for member in self.members])
            alone[new] = _vote(self.agreed[: self._n_alone], tables[: self._n_alone])
            near[new], cosines = _nearest(unit_rows(_from(rows[new], self.centre)), self.directions)
            unfamiliar[new] = _unfamiliar(self.unlikeness, near[new])
            own, fitted = (np.tensordot(self.weights, t, axes=1) for t in (tables, self.tables))
            P[new] = _smoothed(own, fitted, near[new], self.factors)
            if self.added is not None:
                # Rows that have a correction of their own, up to rounding in their precision.
                same = cosines[:, 0] > 1 - max(1e-12, 16 * np.finfo(cosines.dtype).eps)
                passed_on = self.alpha * self.added[near[new]].mean(axis=1)
                corrections = np.where(same[:, None], self.added[near[new, 0]], passed_on)
                P[new] = _distributions(P[new] + corrections)
        return {"probabilities": P, "source_only": alone, "unfamiliar": unfamiliar}

    def source_only(self, rows: Any) -> Codes:
        """Return the codes of rows by the members of the source alone."""
        at, new = self._found(rows)
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
        smooth = _smoothed(self.tables, self.tables, self.near, self.factors)
        agreed = np.tensordot(self.agreed, smooth, axes=1).argmax(axis=1)
        strata = strata_of(agreed, self.alone, self.unfamiliar)
        weights = stratum_weights(strata, every)
        found = correction(smooth, self.agreed, self.near, every, codes, weights)
        own = np.tensordot(found.weights, self.tables, axes=1)
        P = _smoothed(own, own, self.near, self.factors)
        added = found.influence @ (found.wanted - P[every])
        return replace(
            self,
            weights=found.weights,
            P=_distributions(P + added),
            known=np.array([every, codes, found.left_out]),
            added=added,
            alpha=found.alpha,
        )

    def is_fitted_to(self, rows: Any) -> bool:
        """Return whether these are the target rows of the fit, in its order."""
        gap = unit_rows(_from(rows, self.centre)) - self.directions
        return bool(abs(gap).max() < _SAME_DIRECTION)

    def _found(self, rows: Any) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the position of each row among the fitted target rows, and which are new."""
        found, order = row_hash(rows), np.argsort(self.hashes)
        if not len(order):
            return np.zeros(len(found), dtype=np.intp), np.ones(len(found), dtype=bool)
        at = order[np.searchsorted(self.hashes, found, sorter=order) % len(order)]
        return at, self.hashes[at] != found

    @property
    def _n_alone(self) -> int:
        """Number of the members of the source alone, which come first."""
        return sum(member.view == self.members[0].view for member in self.members)


def prior_weights(
    views: Sequence[str], caution: float, overlapping: float = 1.0
) -> NDArray[np.float64]:
    """Return the prior weight of each member by its view, summing to 1.

    Members that compare values of both domains as they are count by the given factor.
    """
    of = np.array(views)
    adapted, weights = of != "source-only", np.empty(len(of))
    for view in np.unique(of):
        weights[of == view] = 1 / np.sum(of == view)
    weights[adapted] /= max(1, len(np.unique(of[adapted])))
    if adapted.any() and not adapted.all():
        weights *= np.where(adapted, 1 - caution, caution)
    if (of == "per domain").any():
        weights[of != "per domain"] *= overlapping
    return weights / weights.sum()


def _unfamiliar(unlikeness: NDArray[np.float64], near: Codes) -> NDArray[np.bool_]:
    """Return whether rows with these neighbours are far from the source, and uncertain."""
    far, unsure = unlikeness[:, near].mean(axis=2)
    return np.asarray((far > _FAR) & (unsure > _UNSURE))


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


def _smoothed(
    tables: Probabilities, own: Probabilities, near: Codes, factors: NDArray[np.float64]
) -> Probabilities:
    """Average probabilities of rows with those of their neighbours, and meet given class shares.

    `own` are those of the fitted target rows. Both may be of several models, in front.
    """
    found = own[..., near[:, :_NEIGHBORS], :]
    P = (1 - _SMOOTHED) * tables + _SMOOTHED * found.mean(axis=-2)
    return P if (factors == 1.0).all() else _distributions(P * factors)


def _vote(weights: NDArray[np.float64], tables: Tables) -> Codes:
    """Return codes by some members, of their weights and the probabilities by each of them."""
    weights = weights if weights.any() else np.ones(len(weights))
    return np.tensordot(weights, tables, axes=1).argmax(axis=1)


def _nearest(directions: Any, fitted: Any) -> tuple[Codes, NDArray[np.float64]]:
    """Return the nearest fitted target rows of each row, nearest first, and their cosines."""
    found = nearest(directions, fitted, min(_WALKED, fitted.shape[0]))
    order = np.lexsort((found.indices, -found.similarities.round(9)), axis=1)
    return (
        np.take_along_axis(found.indices, order, axis=1),
        np.take_along_axis(found.similarities, order, axis=1),
    )


def _centre(rows: Any) -> Any:
    """Return the point that directions are from, with a further coordinate; None for sparse rows.

    The mean of the rows, beside it: of the size of up to two columns, so that rows of one direction
    and different distances from the mean differ where columns are few.
    """
    if sp.issparse(rows):
        return None
    mean = rows.mean(axis=0)
    spread = float(((rows - mean) ** 2).mean())
    return np.append(mean, -np.sqrt(min(2, len(mean)) * spread)).astype(rows.dtype)


def _from(rows: Any, centre: Any) -> Any:
    """Return rows as seen from the centre; those of similar direction from it are neighbours."""
    if centre is None:
        return rows
    further = np.zeros(rows.shape[0], dtype=rows.dtype)
    return np.column_stack([dense(rows), further]) - centre


def _distributions(P: Probabilities) -> Probabilities:
    """Return positive values as probabilities that sum to 1."""
    P = np.maximum(P, 0.0)
    total = P.sum(axis=-1, keepdims=True)
    return np.divide(P, total, out=np.full_like(P, 1 / P.shape[-1]), where=total > 0)
