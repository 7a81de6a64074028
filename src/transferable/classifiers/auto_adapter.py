"""AutoAdapter: a pool of adapted and source-only models that vote by agreement."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from numbers import Integral, Real
from time import monotonic
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils import check_random_state

from transferable._sklearn import JOBS, Interval, StrOptions
from transferable.base import DomainAdapter, DomainClassifier, class_scores, estimator
from transferable.classifiers._consensus import (
    MARGIN,
    Probabilities,
    compared,
    consensus_weights,
    expected_accuracy,
    not_compared,
)
from transferable.classifiers.adapted import AdaptedClassifier
from transferable.classifiers.tfdf import TFDF, TFDFV
from transferable.domains import Domains
from transferable.events import Event, listen, rounds, silence
from transferable.exceptions import NoTargetWarning
from transferable.kernel.rounds import temperature
from transferable.linalg.arrays import CPU, unit_rows
from transferable.linalg.memory import memory_budget
from transferable.linalg.search import nearest
from transferable.transformers import GFK, JDA

_TREES, _FEWEST_TREES = 100, 10
_FOREST_BYTES = 2**29  # unless `max_memory` is given
_STEPS = 300  # of logistic regression
_NEIGHBORS = 6  # of a row, itself among them if it was fitted
_SMOOTHED = 0.6  # their weight: a fitted row itself has a half, five others a tenth each
_FEWEST_SCALED = 10  # target rows that suffice for their own scale, or directions
_FLOW = 40  # directions of each domain that the flow beside JDA's space joins
_WIDEST = 5000  # features up to which JDA's space is computed
_FOLDS = 3
_LEFT_OUT = 1000  # source rows that are enough to calibrate by
_SMALLEST = 1e-3  # probability: a forest whose trees all agree is no more certain than that

# The fitted candidate or None, the reason if there is none, and its seconds.
Attempt = tuple["Candidate | None", str | None, float]


@estimator
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
        `agreement` (Cohen's kappa with all others together), `seconds`, `estimated_accuracy` and
        `error`, the reason why it was left out, else None. Makes a data frame.
    class_shares_ : ndarray of shape (n_classes,)
        The mean probability of each class over the target rows.
    estimated_accuracy_ : float
        An estimate, without labels, of the accuracy on the target rows: mean confidence, corrected
        by its relation to accuracy on other data. NaN without a target.
    accuracy_interval_ : tuple of float
        Interval that contains the accuracy in nine cases of ten.
    harm_ : dict
        Whether adaptation looks worse than the source alone: `likely` (None where the two cannot
        be compared), `rows` (target rows whose labels differ), `share` of them, and `reason`.
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
    the target rows. A row's probabilities are four tenths its own average and six tenths that of
    its six nearest fitted target rows by cosine, itself among them if it was fitted.
    ``docs/safety.md`` has the measurements.

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
    max_seconds: float | None = None
    max_memory: int | str | None = None
    n_jobs: int | None = None
    random_state: int | RandomState | None = 0
    verbose: bool = False

    _accept_sparse = True
    _scales_domains = True  # tables need not be scaled each by itself
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "effort": [StrOptions({"thorough", "fast"})],
        "caution": [Interval(Real, 0, 1, closed="both")],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "n_jobs": JOBS,
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    def _pool(self, domains: Domains) -> list[Candidate]:
        seed = self.random_state
        if not isinstance(seed, Integral):  # candidates must not share one random state
            seed = int(check_random_state(seed).randint(2**31 - 1))
        forest = RandomForestClassifier(self._n_trees(domains), oob_score=True, random_state=seed)
        pool = [
            Candidate("logistic regression", "source-only", LogisticRegression(max_iter=_STEPS)),
            Candidate("random forest", "source-only", forest),
        ]
        if domains.n_target == 0:
            return pool
        shared: dict[str, Any] = {
            "max_memory": self.max_memory,
            "random_state": seed,
            "class_shares": "estimated",  # the other candidates check a shift
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
        unaligned = TFDFV(alignment=0, max_iter=1, **shared)
        scaled: dict[str, Any] = {"unaligned TFDF per domain": unaligned}
        if self.effort == "thorough":
            scaled["TFDF per domain"] = TFDF(**shared)
            scaled["logistic regression per domain"] = LogisticRegression(max_iter=_STEPS)
        return pool + [Candidate(name, "adapted", m, per_domain=True) for name, m in scaled.items()]

    def _n_trees(self, domains: Domains) -> int:
        """Return the number of trees that fit in memory; a node holds a number for each class."""
        taken = 16 * domains.n_source * domains.n_classes
        allowed = _FOREST_BYTES
        if self.max_memory is not None:
            allowed = memory_budget(self.max_memory, CPU)
        return int(np.clip(allowed // taken, _FEWEST_TREES, _TREES))

    def _fit_domains(self, domains: Domains) -> None:
        self.classes_ = domains.classes
        self._fit_pool(self._pool(domains), domains)
        if domains.n_target:
            self._agree(domains)
        else:
            self._do_without_target(domains)
        self.transduction_ = domains.restore(self.classes_[self._predict_codes(domains.X)])

    def _agree(self, domains: Domains) -> None:
        """Weight the members by their agreement on the target rows, and draw the conclusions."""
        rows = domains.Xt
        tables = [member.probabilities(rows) for member in self._members]
        self._weights, kappas = consensus_weights(tables, self._prior())
        self._rows = unit_rows(rows)
        # Probabilities of the fitted target rows, which `_rows` holds.
        self._table: Probabilities | None = np.tensordot(self._weights, tables, axes=1)
        table = self._table
        consensus = self._smooth(rows, table)
        for k, row in enumerate(self._fitted()):
            row["weight"], row["agreement"] = float(self._weights[k]), float(kappas[k])
            row["estimated_accuracy"] = expected_accuracy(tables[k].argmax(axis=1), consensus)
        estimate = expected_accuracy(consensus.argmax(axis=1), consensus)
        self.estimated_accuracy_ = estimate
        self.accuracy_interval_ = max(0.0, estimate - MARGIN), min(1.0, estimate + MARGIN)
        self.class_shares_ = consensus.mean(axis=0)
        adapted, alone = (self._labels(tables, block) for block in ("adapted", "source-only"))
        if adapted is None or alone is None:
            self.harm_ = not_compared("adapted and source-only candidates were not both fitted")
        else:
            self.harm_ = compared(adapted, alone, consensus.argmax(axis=1))

    def _do_without_target(self, domains: Domains) -> None:
        self._weights = self._prior()
        for row, weight in zip(self._fitted(), self._weights, strict=True):
            row["weight"] = float(weight)
        self._rows = self._table = None
        self.estimated_accuracy_, self.accuracy_interval_ = float("nan"), (0.0, 1.0)
        self.class_shares_ = domains.prior
        self.harm_ = not_compared("there is no target row")

    def _fit_pool(self, pool: list[Candidate], domains: Domains) -> None:
        """Fit the candidates that can be fitted, and report the others."""
        codes = domains.with_target(np.full(domains.n_target, -1))
        found = self._attempts(pool, domains.X[:], codes)
        self._members: list[Candidate] = []
        self.candidates_: list[dict[str, Any]] = []
        for k, (fitted, error, seconds) in zip(
            rounds(len(pool), "Fitting candidates"), found, strict=True
        ):
            self._members += [] if fitted is None else [fitted]
            self.candidates_.append(
                {
                    "name": pool[k].name,
                    "block": pool[k].block,
                    "weight": 0.0,
                    "agreement": float("nan"),
                    "seconds": seconds,
                    "estimated_accuracy": float("nan"),
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

    def _attempts(
        self, pool: Sequence[Candidate], X: Any, codes: NDArray[np.intp]
    ) -> Iterator[Attempt]:
        """Fit the candidates, in `n_jobs` processes, and yield their results in order.

        Those that see the same rows share kernels and a process. The first is always fitted.
        """
        limit = self.max_seconds
        deadline = math.inf if limit is None else monotonic() + limit
        groups = [
            list(group)
            for _, group in groupby(pool, lambda c: "per domain" if c.per_domain else c.name)
        ]
        # Models that come back must hold arrays, not files that are mapped while processes run.
        jobs = self.n_jobs and min(self.n_jobs, len(groups))
        parallel = Parallel(n_jobs=jobs, return_as="generator", max_nbytes=None)
        for group in parallel(
            delayed(_fit_all)(group, X, codes, deadline if k else math.inf, limit)
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

    def _prior(self) -> NDArray[np.float64]:
        """Return the prior weight of each member, summing to 1."""
        views = np.array([member.view for member in self._members])
        adapted = views != "source-only"
        weights = np.empty(len(views))
        for view in np.unique(views):
            weights[views == view] = 1 / np.sum(views == view)
        weights[adapted] /= max(1, len(np.unique(views[adapted])))
        if adapted.any() and not adapted.all():
            weights *= np.where(adapted, 1 - self.caution, self.caution)
        return weights / weights.sum()

    def _smooth(self, rows: Any, table: Probabilities) -> Probabilities:
        """Return probabilities of rows, averaged with those of their neighbours in the target."""
        if self._table is None:
            return table
        n_neighbors = min(_NEIGHBORS, self._rows.shape[0])
        found = nearest(unit_rows(rows), self._rows, n_neighbors).indices
        return (1 - _SMOOTHED) * table + _SMOOTHED * self._table[found].mean(axis=1)

    def _scores(self, rows: Any) -> Probabilities:
        tables = [member.probabilities(rows) for member in self._members]
        return self._smooth(rows, np.tensordot(self._weights, tables, axes=1))

    def _probabilities(self, scores: Probabilities) -> Probabilities:
        return scores

    def _labels(self, tables: list[Probabilities], block: str) -> NDArray[np.intp] | None:
        """Return labels of the target rows by one block alone; None if it has no member."""
        own = [k for k, member in enumerate(self._members) if member.block == block]
        if not own:
            return None
        weights = self._weights[own] if self._weights[own].any() else np.ones(len(own))
        return np.tensordot(weights, [tables[k] for k in own], axes=1).argmax(axis=1)


class OutOfTime(Exception):  # noqa: N818 (no error: the limit was set)
    """Time limit of the fits exceeded."""


@dataclass
class Candidate:
    """A model, its input, and once fitted the calibration of its scores."""

    name: str
    block: Literal["source-only", "adapted"]  # whether target rows take part, or scale rows for it
    model: Any  # a classifier of the library, or of scikit-learn for the source alone
    per_domain: bool = False  # whether each domain is standardised by itself first
    scaler: Any = None  # scaler that brings target rows to the scale of the model
    temperature: float = 1.0  # divisor of its scores, calibrated on held-out source rows

    @property
    def view(self) -> str:
        """View of the candidate: models of one view err together, and count as one."""
        if self.block == "source-only":
            return self.block
        return "as given" if self.scaler is None else "per domain"

    def fit(self, X: Any, codes: NDArray[np.intp], deadline: float) -> None:
        """Fit to source rows and, behind them, target rows of code -1, until the deadline."""
        n_source, X = int(np.sum(codes >= 0)), _with_short_indices(X)
        if self.per_domain:
            flags, parts = _flags(X), (X[:n_source], X[n_source:])
            scalers = [_standardiser(part, flags) for part in parts]
            both = [s.transform(part) for s, part in zip(scalers, parts, strict=True)]
            X = sp.vstack(both, format="csr") if sp.issparse(X) else np.concatenate(both)
            self.scaler = scalers[1]
        if isinstance(self.model, DomainAdapter):
            with silence(), listen(_stop_after(deadline)), warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*reduced to", UserWarning)  # few rows, columns
                self.model.fit(X, codes, sample_domain=np.where(codes < 0, -1, 1))
            decides: Any = getattr(self.model, "estimator_", self.model)
            self.model._target_sample = decides._target_sample = None  # the pool keeps one for all
            self.temperature = float(decides._source_temperature)
        else:
            Xs, ys = X[:n_source], codes[:n_source]
            self.temperature = _fitted_temperature(_quietly(self.model.fit, Xs, ys), Xs, ys)

    def probabilities(self, rows: Any) -> Probabilities:
        """Return calibrated probabilities of target rows, a column for each class."""
        rows = _with_short_indices(rows)
        rows = rows if self.scaler is None else self.scaler.transform(rows)
        return softmax(_scores(self.model, rows) / self.temperature, axis=1)


def _fit_all(
    group: Sequence[Candidate],
    X: Any,
    codes: NDArray[np.intp],
    deadline: float,
    max_seconds: float | None,
) -> list[Attempt]:
    attempts: list[Attempt] = []
    for candidate in group:
        start, error = monotonic(), None
        try:
            if start > deadline:
                raise OutOfTime
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NoTargetWarning)  # AutoAdapter itself warns
                candidate.fit(X, codes, deadline)
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


def _fitted_temperature(model: Any, X: Any, y: NDArray[np.intp]) -> float:
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
            copy = _quietly(clone(model).fit, X[~out], y[~out])
            tables.append(_scores(copy, X[out]))
            codes.append(y[out])
    return temperature(np.concatenate(tables), np.concatenate(codes)) if codes else 1.0


def _quietly(fit: Callable[..., Any], X: Any, y: NDArray[np.intp]) -> Any:
    """Fit a scikit-learn model without convergence warnings; it is calibrated as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        return fit(X, y)


def _scores(model: Any, rows: Any) -> NDArray[np.float64]:
    """Return scores whose softmax, at some temperature, gives the model's probabilities."""
    scores = class_scores(model, rows)
    return scores if hasattr(model, "decision_function") else _log(scores)


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
