"""AutoAdapter: a pool of adapted and source-only models that vote by agreement."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import groupby
from numbers import Integral, Real
from time import monotonic
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transferable._kernel.class_shares import ClassShares, exact_offsets, given_shares
from transferable._kernel.rounds import temperature
from transferable._linalg.arrays import CPU, dense, unit_rows
from transferable._linalg.memory import memory_budget
from transferable._linalg.search import nearest
from transferable._sklearn import CLASS_SHARES, JOBS, Interval, StrOptions, call_with_marks
from transferable.base import (
    DomainAdapter,
    DomainClassifier,
    Takes,
    class_scores,
)
from transferable.classifiers.adapted import AdaptedClassifier
from transferable.classifiers.tfdf import TFDF, TFDFV
from transferable.classifiers.trust import (
    Audit,
    Codes,
    Probabilities,
    RowsToLabel,
    Trust,
    agreements,
    assess,
    compared,
    consensus_weights,
    correction,
    left_out_accuracy,
    overlap,
    rows_to_label,
    strata_of,
    stratum_weights,
)
from transferable.domains import Domains, Store, as_labels, labelled_rows, row_hash
from transferable.events import Event, listen, silence, stage
from transferable.exceptions import NoTargetWarning
from transferable.limits import LIMITS
from transferable.transformers import GFK, JDA

_TREES, _FEWEST_TREES = 100, 10
_FOREST_BYTES = 2**29  # unless `max_memory` is given
_STEPS = 300  # of logistic regression
_NEIGHBORS = 6  # of a row, itself among them if it was fitted
_SMOOTHED = 0.6  # their weight: a fitted row itself has a half, five others a tenth each
_FEWEST_SCALED = 10  # target rows that suffice for their own scale, or directions
_FLOW = 40  # directions of each domain that the flow beside JDA's space joins
_WIDEST = 5000  # features up to which JDA's space is computed
_CHEAP = 0.1  # time of a model of scikit-learn, in those of an adapted one
_FOLDS = 3
_LEFT_OUT = 1000  # source rows that are enough to calibrate by
_SMALLEST = 1e-3  # probability: a forest whose trees all agree is no more certain than that
_SAME_DIRECTION = 1e-5  # difference up to which a row is one that was fitted
_WALKED = 10  # neighbours that a correction is passed on to
_SHARED_BYTES = 2**31  # of results that candidates share, at most half of `max_memory`
_NEAR = 5  # rows of a domain that a target row is compared with
_FAR, _UNSURE = 0.3, 0.3  # from source rows, and of the consensus, beyond which rows are unfamiliar

# The fitted candidate or None, the reason if there is none, and its seconds.
Attempt = tuple["Candidate | None", str | None, float]


class AutoAdapter(DomainClassifier):
    """Adaptation without tuning: a pool of models, adapted and not, that check one another.

    Adaptation can do harm, which cannot be determined for sure without target labels. So models
    trained on the source alone (logistic regression, a random forest) are fitted beside variants of
    TFDF on different inputs. Each is weighted by its agreement with all others; the probabilities
    of the pool are averaged, and once more over each row's neighbours in the target.

    Parameters
    ----------
    effort : {"thorough", "fast"}, default="thorough"
        The adapted models: "fast" fits TFDF to the rows as they are, TFDF after an embedding by JDA
        and a geodesic flow, and, to each domain standardised by itself, TFDF without alignment;
        "thorough" also fits TFDF and logistic regression to domains standardised by themselves.
        Those that align estimate the target's class prior. Sparse rows and those of more than 5,000
        features are not embedded.
    caution : float in [0, 1], default=0.4
        Total prior weight of the models trained on the source alone. More is safer where adaptation
        harms, and gains less where it helps.
    class_shares : {"estimated", "auto", "source"} or mapping or array-like, default="estimated"
        Class prior of the target, as for :class:`TFDF`. A given one holds for every candidate, and
        the labels of the fitted rows have it to within a row.
    target_labels : {"ignore", "use"}, default="ignore"
        Whether known labels of target rows are used: they weight the candidates and correct the
        labels of neighbouring rows, as those of an :meth:`audit` do.
    max_seconds : float or None, default=None
        Time after which no further candidate is fitted. One that is being adapted then stops
        between two rounds and is left out; logistic regression is always fitted. A warning and
        ``candidates_`` report what was left out.
    max_memory : int, str or None, default=None
        Memory that the fit of a candidate may take, as for :class:`TFDF`. A forest that would take
        more, or half a gigabyte by default, has fewer trees, at least ten.
    n_jobs : int or None, default=None
        Processes that fit candidates in parallel, -1 for the number of cores; candidates that see
        the same scaled rows share one. Each may take `max_memory`. The result is the same for any
        number. Within a process, linear algebra uses its own threads.
    random_state : int, RandomState instance or None, default=0
        Seed of the forest and of the random steps of TFDF.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_samples,)
        The label of every fitted row, in input order; source rows are labelled as new rows are.
    candidates_ : list of dict
        For each candidate `name`, `block` ("source-only" or "adapted"), `weight` in the average,
        `agreement` (Cohen's kappa with all others together), `seconds` and `error`, the reason why
        it was left out, else None. Makes a data frame.
    trust_ : Trust or None
        Whether the labels of the target rows can be used, without a label; None without a target.
    agreement_ : ndarray of shape (n_members, n_members)
        Cohen's kappa of the target labels of every two candidates that were not left out.
    unfamiliar_ : ndarray of shape (n_target,)
        True for target rows that are far from all source rows and of uncertain label, as rows of
        classes that the source lacks are.
    class_shares_ : ndarray of shape (n_classes,)
        The mean probability of each class over the target rows.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they were given as strings.

    See Also
    --------
    TFDF : One model, with settings of your own.

    Notes
    -----
    A model's probabilities are calibrated on held-out source rows. With prior weights u
    (``caution`` shared by the source-only block, the rest by the adapted one, half of which goes to
    models of rows as given and half to those of rows scaled by domain), candidate k has weight u_k
    max(kappa_k, 0.01)^2, kappa_k its agreement with the prior-weighted average of the others over
    the target rows. Where columns overlap by less than a half, candidates that compare values of
    both domains as they are have less prior weight, by the square of twice the overlap. A row's
    probabilities are four tenths its own average and six tenths that of its six nearest fitted
    target rows by cosine, itself among them if it was fitted. ``docs/trust.md`` has the
    measurements.

    Tables of flags have no scale: in place of candidates scaled by domain, the pool has TFDF and
    unaligned TFDF without a geodesic flow. Of candidates that are the same model of
    the same rows, one is kept.

    Without target rows the pool is the source-only block.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import AutoAdapter
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat(["cat", "dog"], 30)
    >>> centres = np.where((ys == "dog")[:, None], [6, 0, 0], [0, 6, 0])
    >>> Xs = rng.normal(size=(60, 3)) + centres
    >>> Xt = rng.normal(size=(60, 3)) + centres + 1
    >>> model = AutoAdapter(effort="fast").adapt(Xs, ys, Xt)
    >>> float(np.mean(model.predict(Xt) == ys))
    1.0
    >>> [candidate["name"] for candidate in model.candidates_]
    ['logistic regression', 'random forest', 'TFDF', 'TFDF after JDA', 'unaligned TFDF per domain']
    """

    effort: Literal["thorough", "fast"] = "thorough"
    caution: float = 0.4
    class_shares: ClassShares = "estimated"
    target_labels: Literal["ignore", "use"] = "ignore"
    max_seconds: float | None = None
    max_memory: int | str | None = None
    n_jobs: int | None = None
    random_state: int | RandomState | None = 0
    verbose: bool = False

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _accept_sparse = True
    _scales_domains = True  # tables need not be scaled each by itself
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "effort": [StrOptions({"thorough", "fast"})],
        "caution": [Interval(Real, 0, 1, closed="both")],
        "class_shares": [StrOptions({"estimated"}), *CLASS_SHARES],
        "target_labels": [StrOptions({"ignore", "use"})],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "n_jobs": JOBS,
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Return rows as the pool takes them: few sparse ones are centred too."""
        rows = super()._check_rows(X, reset=reset)
        few = reset and rows.shape[0] * rows.shape[1] <= LIMITS.block_values
        return dense(rows) if few else rows

    def _pool(self, domains: Domains, given: Any) -> list[Candidate]:
        """Return the candidates; the class prior of the target may be given."""
        seed = self.random_state
        if not isinstance(seed, Integral):  # candidates must not share one random state
            seed = int(check_random_state(seed).randint(2**31 - 1))
        ratios = None if given is None else given / domains.prior
        forest = RandomForestClassifier(self._n_trees(domains), oob_score=True, random_state=seed)
        linear = LogisticRegression(max_iter=_STEPS)
        pool = [
            Candidate("logistic regression", "source-only", linear, ratios=ratios),
            Candidate("random forest", "source-only", forest, ratios=ratios),
        ]
        if domains.n_target == 0:
            return pool
        shared: dict[str, Any] = {
            "max_memory": self.max_memory,
            "random_state": seed,
            # The other candidates check an estimated shift.
            "class_shares": self.class_shares if given is None else given,
        }
        pool.append(Candidate("TFDF", "adapted", TFDF(**shared)))
        if domains.n_target < _FEWEST_SCALED:
            return pool
        n_features = domains.X.shape[1]
        if n_features <= _WIDEST and not sp.issparse(domains.X):
            flow = GFK(max(1, min(_FLOW, n_features // 2, domains.n_source, domains.n_target)))
            # Centred rows along the flow beside their place in JDA's space, both of unit length.
            steps = (flow, JDA(max_memory=shared["max_memory"]))
            union = make_union(*(make_pipeline(step, Normalizer()) for step in steps))
            embedding = make_pipeline(StandardScaler(with_std=False), union)
            embedded = AdaptedClassifier(embedding, TFDF(manifold_dim=None, **shared))
            pool.append(Candidate("TFDF after JDA", "adapted", embedded))
        if _flags(domains.X[:]).all():
            shared["manifold_dim"] = None
            flowless = {"unaligned TFDF without flow": TFDFV(alignment=0, max_iter=1, **shared)}
            if self.effort == "thorough":
                flowless["TFDF without flow"] = TFDF(**shared)
            return pool + [Candidate(n, "adapted", m, input="no flow") for n, m in flowless.items()]
        unaligned = TFDFV(alignment=0, max_iter=1, **shared)
        scaled: dict[str, Any] = {"unaligned TFDF per domain": unaligned}
        if self.effort == "thorough":
            scaled["TFDF per domain"] = TFDF(**shared)
            scaled["logistic regression per domain"] = clone(linear)
        return pool + [
            Candidate(n, "adapted", m, input="per domain", ratios=None if "TFDF" in n else ratios)
            for n, m in scaled.items()
        ]

    def _n_trees(self, domains: Domains) -> int:
        """Return the number of trees that fit in memory; a node holds a number for each class."""
        taken = 16 * domains.n_source * domains.n_classes
        allowed = _FOREST_BYTES
        if self.max_memory is not None:
            allowed = memory_budget(self.max_memory, CPU)
        return int(np.clip(allowed // taken, _FEWEST_TREES, _TREES))

    def _fit_domains(self, domains: Domains) -> None:
        self.classes_ = domains.classes
        self._members: list[Candidate] = []
        given = given_shares(self.class_shares, domains)
        self._fit_pool(self._pool(domains, given), domains)
        self._factors = np.ones(domains.n_classes)  # of probabilities, to meet a given class prior
        self._added = None  # correction of each fitted target row by known labels
        self._targets = np.sort(domains.order[domains.target])  # their places in the input
        self._places = np.searchsorted(self._targets, domains.order[domains.target])
        self._hashes = domains.hashes[domains.target]
        if domains.n_target:
            self._agree(domains, given)
        else:
            self._do_without_target(domains)
        self.transduction_ = domains.restore(self.classes_[self._predict_codes(domains.X)])

    def _agree(self, domains: Domains, given: Any) -> None:
        """Weight the members by their agreement on the target rows, and draw the conclusions."""
        rows = domains.Xt
        # Probabilities of the fitted target rows by each member; `_rows` has their directions.
        self._tables = np.array([member.probabilities(rows) for member in self._members])
        self._centre = _centre(rows)
        self._rows = _directions(rows, self._centre)
        self._near, cosines = self._nearest(self._rows)
        moved = min(1.0, 2 * overlap(domains.Xs, rows)) ** 2
        self._weights, kappas = consensus_weights(self._tables, self._prior(moved))
        for k, row in enumerate(self._fitted()):
            row["weight"], row["agreement"] = float(self._weights[k]), float(kappas[k])
        if given is not None:
            offsets = exact_offsets(np.log(self._consensus() + 1e-12), given)
            self._factors = np.exp(offsets - offsets.max())
        codes = self._tables.argmax(axis=2)
        self.agreement_ = agreements(codes)
        self._agreed = self._weights  # without a correction by known labels
        of_views: dict[str, list[int]] = {}
        for k, member in enumerate(self._members):
            of_views.setdefault(member.view, []).append(k)
        views = [self._vote(own, self._tables[own]) for own in of_views.values()]
        self._alone = views[0]  # that of the source alone, whose candidates come first
        self.unfamiliar_ = np.zeros(len(self._targets), dtype=bool)
        far, unsure = self._unlikeness(domains.Xs, cosines, self._consensus())
        self.unfamiliar_[self._places] = (far > _FAR) & (unsure > _UNSURE)
        known = np.flatnonzero(domains.known >= 0)
        if len(known):
            self._correct(known, domains.known[known])
        consensus = self._consensus()
        self.class_shares_ = consensus.mean(axis=0)
        # Where columns hardly overlap, rows as given say nothing of rows scaled by domain.
        views = views if moved == 1.0 else views[-1:]
        one_column = domains.X.shape[1] == 1
        self.trust_: Trust | None = assess(
            consensus, views, self._alone, self.classes_, one_column=one_column
        )

    def _do_without_target(self, domains: Domains) -> None:
        self._weights = self._agreed = self._prior()
        for row, weight in zip(self._fitted(), self._weights, strict=True):
            row["weight"] = float(weight)
        self._rows = None
        self.trust_, self.agreement_ = None, np.ones((len(self._members),) * 2)
        self.unfamiliar_, self.class_shares_ = np.zeros(0, dtype=bool), domains.prior

    def _unlikeness(
        self, source: Any, cosines: NDArray[np.float64], P: Probabilities
    ) -> NDArray[np.float64]:
        """Return how far target rows are from all source rows, and how uncertain their labels.

        `cosines` are those of the nearest target rows, of which the first is the row itself.
        """
        if len(P) < 2:
            return np.zeros((2, len(P)))
        ours = _directions(source, _centre(source))
        k = min(_NEAR, ours.shape[0])
        to_source = nearest(self._rows, ours, k).similarities.mean(axis=1)
        to_target = cosines[:, 1 : 1 + _NEAR].mean(axis=1)
        unsure = (1 - P.max(axis=1)) / (1 - 1 / P.shape[1])
        return np.array([to_target - to_source, unsure])[:, self._near].mean(axis=2)

    def _nearest(self, directions: Any) -> tuple[Codes, NDArray[np.float64]]:
        """Return the nearest fitted target rows of each row, nearest first, and their cosines."""
        found = nearest(directions, self._rows, min(_WALKED, len(self._places)))
        order = np.lexsort((found.indices, -found.similarities.round(9)), axis=1)
        return (
            np.take_along_axis(found.indices, order, axis=1),
            np.take_along_axis(found.similarities, order, axis=1),
        )

    def _fit_pool(self, pool: list[Candidate], domains: Domains) -> None:
        """Fit the candidates that can be fitted, and report the others."""
        codes = domains.with_target(np.full(domains.n_target, -1))
        weights = None if (domains.weights == 1.0).all() else domains.weights
        ids = np.where(domains.ids < 0, -1, domains.ids)  # several targets are one
        limit = self.max_seconds
        deadline = math.inf if limit is None else monotonic() + limit
        found = self._attempts(pool, (domains.X[:], codes, ids, weights), deadline)
        self.candidates_: list[dict[str, Any]] = []
        costs = [1.0 if isinstance(c.model, DomainAdapter) else _CHEAP for c in pool]
        for k, candidate in enumerate(pool):
            step = f"{k + 1} of {len(pool)}, {candidate.name}"
            if limit is not None:
                step += f", at most {max(0.0, deadline - monotonic()):.0f} s more"
            stage("Fitting candidates", sum(costs[:k]) / sum(costs), step)
            fitted, error, seconds = next(found)
            self._members += [] if fitted is None else [fitted]
            self.candidates_.append(
                {
                    "name": candidate.name,
                    "block": candidate.block,
                    "weight": 0.0,
                    "agreement": float("nan"),
                    "seconds": seconds,
                    "error": error,
                }
            )
        if not any(isinstance(member.model, DomainAdapter) for member in self._members):
            # Candidates that merely scale by domain are, alone, no check on anything.
            for row in self._fitted():
                if row["block"] == "adapted":
                    row["error"] = "no candidate that aligns was fitted"
            self._members = [member for member in self._members if member.block == "source-only"]
        self._warn_of_missing()
        kept: list[Candidate] = []
        for row, member in zip(self._fitted(), self._members, strict=True):
            copied = next((other.name for other in kept if member.is_copy_of(other)), None)
            if copied is None:
                kept.append(member)
            else:
                row["error"] = f"same model and input as {copied}"
        self._members = kept

    def _attempts(
        self, pool: Sequence[Candidate], problem: tuple[Any, ...], deadline: float
    ) -> Iterator[Attempt]:
        """Fit the candidates, in `n_jobs` processes, and yield their results in order.

        Those that see the same rows share kernels and a process. The first is always fitted.
        """
        groups = [
            list(group)
            for _, group in groupby(pool, lambda c: c.name if c.input == "as given" else c.input)
        ]
        # Models that come back must hold arrays, not files that are mapped while processes run.
        jobs = self.n_jobs and min(self.n_jobs, len(groups))
        parallel = Parallel(n_jobs=jobs, return_as="generator", max_nbytes=None)
        most = min(_SHARED_BYTES, memory_budget(self.max_memory, CPU) // 2)
        for group in parallel(
            delayed(_fit_all)(group, problem, deadline if k else math.inf, self.max_seconds, most)
            for k, group in enumerate(groups)
        ):
            yield from group

    def _warn_of_missing(self) -> None:
        """Warn of candidates that were left out; refuse if none is left."""
        missing = [row for row in self.candidates_ if row["error"] is not None]
        if not missing:
            return
        named = "; ".join(f"{row['name']} ({row['error']})" for row in missing)
        if not self._members:
            raise RuntimeError(f"No candidate of AutoAdapter could be fitted: {named}.")
        alone = not any(member.block == "adapted" for member in self._members)
        ends = " Nothing adapted: the answer is that of the source alone." if alone else ""
        warnings.warn(
            f"AutoAdapter left out {len(missing)} of {len(self.candidates_)} candidates: {named}."
            + ends,
            stacklevel=6,
        )

    def _fitted(self) -> list[dict[str, Any]]:
        """Return the entries of the members, in their order."""
        return [row for row in self.candidates_ if row["error"] is None]

    def _prior(self, overlapping: float = 1.0) -> NDArray[np.float64]:
        """Return the prior weight of each member, summing to 1.

        Members that compare values of both domains as they are count by the given factor.
        """
        views = np.array([member.view for member in self._members])
        adapted = views != "source-only"
        weights = np.empty(len(views))
        for view in np.unique(views):
            weights[views == view] = 1 / np.sum(views == view)
        weights[adapted] /= max(1, len(np.unique(views[adapted])))
        if adapted.any() and not adapted.all():
            weights *= np.where(adapted, 1 - self.caution, self.caution)
        if (views == "per domain").any():
            weights[views != "per domain"] *= overlapping
        return weights / weights.sum()

    def _consensus(self) -> Probabilities:
        """Return probabilities of the fitted target rows."""
        own = np.tensordot(self._weights, self._tables, axes=1)
        P = self._smoothed(own, own, self._near)
        return P if self._added is None else _distributions(P + self._added)

    def _target_confidence(self) -> NDArray[np.float64]:
        """Return the probability of the label of each target row, NaN for rows left out."""
        confidence = np.full(len(self._targets), np.nan)
        confidence[self._places] = self._consensus().max(axis=1)
        return confidence

    def _scores(self, rows: Any) -> Probabilities:
        if sp.issparse(rows) and isinstance(self._rows, np.ndarray):  # fitted rows were centred
            size = max(1, LIMITS.block_values // rows.shape[1])
            blocks = (rows[k : k + size] for k in range(0, rows.shape[0], size))
            return np.concatenate([self._scores(dense(block)) for block in blocks])
        fitted, new, tables = self._answers(rows, self._members)
        P = np.tensordot(self._weights, tables, axes=1)
        if self._rows is None:
            return P
        near, own = np.empty((len(P), self._near.shape[1]), dtype=np.intp), ~new
        near[own] = self._near[fitted[own]]
        if new.any():
            near[new], cosines = self._nearest(_directions(rows[new], self._centre))
            # Rows that have a correction of their own, up to rounding in their precision.
            own[new] = cosines[:, 0] > 1 - max(1e-12, 16 * np.finfo(cosines.dtype).eps)
        P = self._smoothed(P, np.tensordot(self._weights, self._tables, axes=1), near)
        if self._added is None:
            return P
        passed_on = self._alpha * self._added[near].mean(axis=1)
        return _distributions(P + np.where(own[:, None], self._added[near[:, 0]], passed_on))

    def _answers(
        self, rows: Any, members: Sequence[Candidate]
    ) -> tuple[Codes, NDArray[np.bool_], NDArray[np.float64]]:
        """Return the place of each row among the fitted target rows, which are new, probabilities.

        These are a table for each member; those of the fitted target rows are known.
        """
        order, found = np.argsort(self._hashes), row_hash(rows)
        places = np.searchsorted(self._hashes, found, sorter=order) % max(len(order), 1)
        fitted = order[places] if len(order) else places
        new = self._hashes[fitted] != found if len(order) else np.ones(len(found), dtype=bool)
        tables = np.empty((len(members), len(found), len(self.classes_)))
        for table, member in zip(tables, members, strict=True):
            if not new.all():
                table[~new] = self._tables[self._members.index(member)][fitted[~new]]
            if new.any():
                table[new] = member.probabilities(rows[new])
        return fitted, new, tables

    def _smoothed(self, tables: Probabilities, own: Probabilities, near: Codes) -> Probabilities:
        """Average probabilities of rows with those of their neighbours, and meet a given prior.

        `own` are those of the fitted target rows. Both may be of several models, in front.
        """
        found = own[..., near[:, :_NEIGHBORS], :]
        P = (1 - _SMOOTHED) * tables + _SMOOTHED * found.mean(axis=-2)
        return P if (self._factors == 1.0).all() else _distributions(P * self._factors)

    def _probabilities(self, scores: Probabilities) -> Probabilities:
        return scores

    def _vote(self, members: Sequence[int], tables: NDArray[np.float64]) -> Codes:
        """Return codes by some of the members, of the probabilities by each of these."""
        weights = self._agreed[members]
        weights = weights if weights.any() else np.ones(len(weights))
        return np.tensordot(weights, tables, axes=1).argmax(axis=1)

    def predict_source_only(self, X: Any) -> NDArray[Any]:
        """Predict labels by the candidates of the source alone, for comparison.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to label.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The label of each row.
        """
        with np.errstate(under="ignore"):
            alone = [k for k, member in enumerate(self._members) if member.view == "source-only"]
            members = [self._members[k] for k in alone]
            tables = self._answers(self._validate_rows(X), members)[2]
            return self.classes_[self._vote(alone, tables)]

    def _complete(
        self, rows: Any, ids: NDArray[Any], y: ArrayLike | None, kept: NDArray[np.intp]
    ) -> None:
        super()._complete(rows, ids, y, kept)
        own, places = kept[self._targets], self._places
        self._targets = np.flatnonzero(ids < 0)
        self._places = np.searchsorted(self._targets, own)[places]
        self.unfamiliar_, flagged = np.zeros(len(self._targets), dtype=bool), self.unfamiliar_
        self.unfamiliar_[self._places] = flagged[places]

    # -- audit ---------------------------------------------------------------------------------

    def audit_rows(self, n_rows: int = 30) -> RowsToLabel:
        """Choose target rows for a person to label.

        Half of them are drawn where adapting changed the label of the source alone, a sixth of the
        unfamiliar rows, and the rest elsewhere, each part spread over the confidence. The same
        model gives the same rows.

        Parameters
        ----------
        n_rows : int, default=30
            How many.

        Returns
        -------
        chosen : RowsToLabel
            ``rows``, numbers of target rows in the order of the input, and ``weights``, the number
            of target rows that each stands for.

        Examples
        --------
        >>> import numpy as np
        >>> from transferable import AutoAdapter
        >>> rng = np.random.default_rng(0)
        >>> ys = np.arange(60) % 2
        >>> Xs = rng.normal(size=(60, 3)) + 3 * ys[:, None]
        >>> yt = rng.permutation(ys)
        >>> Xt = rng.normal(size=(60, 3)) + 3 * yt[:, None] + 0.5
        >>> model = AutoAdapter(effort="fast").adapt(Xs, ys, Xt)
        >>> rows, weights = model.audit_rows(20)
        >>> found = model.audit(rows, yt[rows])
        >>> bool(found.low <= np.mean(model.predict(Xt) == yt) <= found.high)
        True
        """
        check_is_fitted(self)
        n = len(self._places)
        if not isinstance(n_rows, Integral) or not 1 <= n_rows <= n:
            raise ValueError(f"n_rows={n_rows!r}: choose from 1 to {n}, the number of target rows.")
        P = self._consensus()
        chosen = rows_to_label(
            self._strata(P), P.max(axis=1), int(n_rows), np.random.default_rng(0)
        )
        return RowsToLabel(self._places[chosen.rows], chosen.weights)

    def audit(self, rows: ArrayLike, labels: ArrayLike) -> Audit:
        """Compare labels of target rows with those that a person gave, and correct the others.

        Parameters
        ----------
        rows : array-like of shape (n_rows,)
            Numbers of target rows in the order of the input, best those of :meth:`audit_rows`.
        labels : array-like of shape (n_rows,)
            Their true labels; those that the source lacks count as wrong and are reported.

        Returns
        -------
        audit : Audit
            The accuracy with an interval, whether adapted or source-only labels are better, unknown
            classes, corrected labels of all target rows, and a corrected model. This model stays as
            it is.
        """
        check_is_fitted(self)
        at, given = self._checked_audit(rows, labels)
        known = {label: code for code, label in enumerate(self.classes_.tolist())}
        truth = np.array([known.get(label, -1) for label in given.tolist()], dtype=np.intp)
        P = self._consensus()
        codes, weights = P.argmax(axis=1), stratum_weights(self._strata(P), at)
        model = copy(self)
        left_out = model._correct(at, truth)
        corrected = left_out_accuracy(left_out == truth, weights)
        fitted = self.classes_[model._consensus().argmax(axis=1)]
        strange = list(dict.fromkeys(given[truth < 0].tolist()))
        labels_now = self.transduction_[self._targets]
        labels_now[self._places] = fitted
        model.transduction_ = self.transduction_.copy()
        model.transduction_[self._targets] = labels_now
        if strange:  # the given labels may be longer, or of another kind
            labels_now = labels_now.astype(np.result_type(labels_now, given))
        labels_now[self._places[at]] = given
        unknown = {
            label: np.sort(self._places[np.unique(self._near[at[given == label]])])
            for label in strange
        }
        found = compared(codes, self._alone, at, truth, weights, unknown)
        return replace(found, labels=labels_now, corrected=corrected, model=model)

    def _strata(self, P: Probabilities) -> Codes:
        """Return the strata of the fitted target rows by their probabilities."""
        return strata_of(P.argmax(axis=1), self._alone, self.unfamiliar_[self._places])

    def _is_fitted_to(self, X: Any) -> bool:
        """Return whether these are the target rows of the fit, in its order."""
        rows = self._validate_rows(X)
        if self._rows is None or rows.shape[0] != len(self._targets):
            return False
        gap = _directions(rows[self._places], self._centre) - self._rows
        return bool(abs(gap).max() < _SAME_DIRECTION)

    def _checked_audit(self, rows: ArrayLike, labels: ArrayLike) -> tuple[Codes, NDArray[Any]]:
        """Return positions of audited rows among the fitted ones, and their labels, checked."""
        if self._rows is None:
            raise ValueError("The model was fitted without a target; there is no label to audit.")
        numbers, given = np.asarray(rows), as_labels(labels)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
            raise ValueError("rows must be a list of numbers of target rows, from audit_rows.")
        if len(numbers) != len(given):
            raise ValueError(f"{len(numbers)} rows have {len(given)} labels; give one each.")
        missing = ~labelled_rows(given)
        if missing.any():
            raise ValueError(
                f"{missing.sum()} of the {len(given)} audited rows have no label; leave them out."
            )
        values, counts = np.unique(numbers, return_counts=True)
        if counts.max() > 1:
            raise ValueError(f"row {values[counts.argmax()]} is there {counts.max()} times.")
        place = {number: k for k, number in enumerate(self._places.tolist())}
        strange = [number for number in values.tolist() if number not in place]
        if strange:
            raise ValueError(
                f"{strange[0]} is no fitted target row; there are {len(self._targets)}, from 0."
            )
        return np.array([place[number] for number in numbers.tolist()]), given

    def _correct(self, rows: Codes, truth: Codes) -> Codes:
        """Learn from known labels of fitted rows; return codes of these, each left out in turn."""
        before = self._known if self._added is not None else (rows[:0], truth[:0])
        new = ~np.isin(before[0], rows)  # a label that is given again replaces the earlier one
        every = np.concatenate([before[0][new], rows]), np.concatenate([before[1][new], truth])
        tables = self._smoothed(self._tables, self._tables, self._near)
        strata = self._strata(np.tensordot(self._agreed, tables, axes=1))
        weights = stratum_weights(strata, every[0])
        found = correction(tables, self._agreed, self._near, *every, weights)
        self._known = every
        self._weights, self._alpha, self._added = found.weights, found.alpha, None
        self._added = found.influence @ (found.wanted - self._consensus()[every[0]])
        return found.left_out[-len(rows) :]


class OutOfTime(Exception):  # noqa: N818 (no error: the limit was set)
    """Time limit of the fits exceeded."""


@dataclass
class Candidate:
    """A model, its input, and once fitted the calibration of its scores."""

    name: str
    block: Literal["source-only", "adapted"]  # whether target rows take part, or scale rows for it
    model: Any  # a classifier of the library, or of scikit-learn for the source alone
    input: Literal["as given", "per domain", "no flow"] = "as given"  # scaled each domain by itself
    ratios: Any = None  # of given class shares to the source's, for models that follow no shift
    scaler: Any = None  # scaler that brings target rows to the scale of the model
    temperature: float = 1.0  # divisor of its scores, calibrated on held-out source rows

    @property
    def view(self) -> str:
        """View of the candidate: models of one view err together, and count as one."""
        return self.block if self.block == "source-only" else self.input

    def is_copy_of(self, other: Candidate) -> bool:
        """Return whether this is the same model of the same rows, once both are fitted."""
        if (self.input == "per domain") != (other.input == "per domain"):
            return False
        # TFDF without a geodesic flow, by its own choice or because it was told to.
        ours, theirs = (
            clone(m).set_params(manifold_dim=m.manifold_dim_) if hasattr(m, "manifold_dim_") else m
            for m in (self.model, other.model)
        )
        return repr(ours) == repr(theirs)

    def fit(
        self,
        X: Any,
        codes: Codes,
        ids: NDArray[Any],
        weights: Any,
        *,
        deadline: float,
        store: Store | None,
    ) -> None:
        """Fit to source rows and, behind them, target rows of code -1, until the deadline.

        Candidates of the same input share kernels, graphs and factorisations in the store.
        """
        n_source, X = int(np.sum(codes >= 0)), _with_short_indices(X)
        if self.input == "per domain":
            flags = _flags(X)
            parts = [np.flatnonzero(ids == one) for one in np.unique(ids)]  # target first
            scalers = [_standardiser(X[part], flags) for part in parts]
            scaled = [s.transform(X[part]) for s, part in zip(scalers, parts, strict=True)]
            stacked = sp.vstack(scaled, format="csr") if sp.issparse(X) else np.concatenate(scaled)
            X, self.scaler = stacked[np.argsort(np.concatenate(parts))], scalers[0]
        if isinstance(self.model, DomainAdapter):
            with silence(), listen(_stop_after(deadline)), warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*reduced to", UserWarning)  # few rows, columns
                self.model._store = store
                call_with_marks(self.model.fit, X, codes, ids, weights)
                del self.model._store
            decides: Any = getattr(self.model, "estimator_", self.model)
            self.model._target_sample = decides._target_sample = None  # the pool keeps one for all
            self.temperature = float(decides._source_temperature)
        else:
            own = None if weights is None else weights[:n_source]
            Xs, ys = X[:n_source], codes[:n_source]
            fitted = _quietly(self.model.fit, Xs, ys, own)
            self.temperature = _fitted_temperature(fitted, Xs, ys, own)

    def probabilities(self, rows: Any) -> Probabilities:
        """Return calibrated probabilities of target rows, a column for each class."""
        rows = _with_short_indices(rows)
        rows = rows if self.scaler is None else self.scaler.transform(rows)
        scores = _scores(self.model, rows) / self.temperature
        if self.ratios is not None:
            with np.errstate(divide="ignore"):  # a class that is absent has probability 0
                scores = scores + np.log(self.ratios)
        return softmax(scores, axis=1)


def _fit_all(
    group: Sequence[Candidate],
    problem: tuple[Any, ...],
    deadline: float,
    max_seconds: float | None,
    most_bytes: int,
) -> list[Attempt]:
    attempts: list[Attempt] = []
    store = Store(most_bytes=most_bytes) if len(group) > 1 else None
    for candidate in group:
        start, error = monotonic(), None
        try:
            if start > deadline:
                raise OutOfTime
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NoTargetWarning)  # AutoAdapter itself warns
                candidate.fit(*problem, deadline=deadline, store=store)
        except OutOfTime:
            error = f"max_seconds={max_seconds} had passed"
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        attempts.append((None if error else candidate, error, monotonic() - start))
    return attempts


def _stop_after(deadline: float) -> Callable[[Event], None]:
    """Return a listener that ends its fit at this time."""

    def stop(_: Event) -> None:
        if monotonic() > deadline:
            raise OutOfTime

    return stop


def _fitted_temperature(model: Any, X: Any, y: Codes, weights: Any = None) -> float:
    """Return the temperature on held-out source rows, or on those held out from copies."""
    if isinstance(model, RandomForestClassifier):
        seen = np.isfinite(model.oob_decision_function_).all(axis=1)
        scores, known = _log(model.oob_decision_function_[seen]), y[seen]
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
            other = _quietly(clone(model).fit, X[~out], y[~out], own)
            tables.append(_scores(other, X[out]))
            codes.append(y[out])
    return temperature(np.concatenate(tables), np.concatenate(codes)) if codes else 1.0


def _quietly(fit: Callable[..., Any], X: Any, y: Codes, weights: Any = None) -> Any:
    """Fit a scikit-learn model without convergence warnings; it is calibrated as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
        return fit(X, y, sample_weight=weights)


def _scores(model: Any, rows: Any) -> NDArray[np.float64]:
    """Return scores whose softmax, at some temperature, gives the model's probabilities."""
    scores = class_scores(model, rows)
    return scores if hasattr(model, "decision_function") else _log(scores)


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


def _directions(rows: Any, centre: Any) -> Any:
    """Return rows of unit length; neighbours are those of similar direction from the centre."""
    if centre is None:
        return unit_rows(rows)
    further = np.zeros(rows.shape[0], dtype=rows.dtype)
    return unit_rows(np.column_stack([dense(rows), further]) - centre)


def _distributions(P: Probabilities) -> Probabilities:
    """Return positive values as probabilities that sum to 1."""
    P = np.maximum(P, 0.0)
    total = P.sum(axis=-1, keepdims=True)
    return np.divide(P, total, out=np.full_like(P, 1 / P.shape[-1]), where=total > 0)


def _log(P: Probabilities) -> NDArray[np.float64]:
    return np.log(np.maximum(P, _SMALLEST))


def _with_short_indices(X: Any) -> Any:
    """Return sparse rows with the 32-bit indices that trees need, where these suffice."""
    if not sp.issparse(X) or X.indices.dtype == np.int32 or max(X.nnz, X.shape[1]) >= 2**31:
        return X
    indices, indptr = (part.astype(np.int32) for part in (X.indices, X.indptr))
    return sp.csr_array((X.data, indices, indptr), shape=X.shape)


def _flags(X: Any) -> NDArray[np.bool_]:
    """Return the columns that hold 0 and 1 only: they have no unit."""
    if sp.issparse(X):
        other = (X.data != 0) & (X.data != 1)
        return np.bincount(X.indices[other], minlength=X.shape[1]) == 0
    return np.asarray(((X == 0) | (X == 1)).all(axis=0))


def _standardiser(rows: Any, flags: NDArray[np.bool_]) -> StandardScaler:
    """Return a scaler to mean 0 and variance 1, for sparse columns variance 1; flags are kept."""
    scaler = StandardScaler(with_mean=not sp.issparse(rows)).fit(rows)
    scaler.scale_[flags] = 1.0
    if scaler.with_mean:
        scaler.mean_[flags] = 0.0
    return scaler
