"""Comparison of methods, and of adapted and source-only accuracies estimated without labels.

No target label is used. A pool of adapted and source-only models, AutoAdapter's, labels the target
rows; from its consensus, :func:`estimate_transfer` estimates the accuracies of an adapted model and
of a model of the source alone. `diagnose`, `adapt` and the report repeat its verdict.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from time import perf_counter, time
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import NotFittedError, check_is_fitted

from transferable._sklearn import safe_indexing
from transferable.classifiers import TFDF, AdaptedClassifier, AutoAdapter
from transferable.classifiers._consensus import MARGIN, expected_accuracy
from transferable.events import Event, listen, stage
from transferable.model_selection import AccuracyEstimate

Verdict = Literal["good", "fair", "doubtful"]
_Named = tuple[str, Any]

_MOST_ROWS = 1000  # of each domain: the pool is six fits
_GOOD = 0.75  # estimated accuracy from which labels are called good
_ROUNDS = 200  # of expectation maximisation, at most


@dataclass(frozen=True)
class MethodOutcome:
    """Labels of the target rows by one method.

    Attributes
    ----------
    name : str
        The method.
    predicted : ndarray of shape (n_target,) or None
        The labels it gave; None if it failed.
    seconds : float
        Time to fit and predict.
    failure : str
        Why there are no labels; empty if there are.
    left_out : bool
        Whether it could not be run, for lack of time or of an extra, rather than failed.
    """

    name: str
    predicted: NDArray[Any] | None
    seconds: float
    failure: str = ""
    left_out: bool = False


def source_only_methods() -> dict[str, Any]:
    """Return models of the source alone, which an adapted one should beat."""
    return {
        "1-NN": AdaptedClassifier(None, KNeighborsClassifier(1)),
        "logistic regression": AdaptedClassifier(None, LogisticRegression(max_iter=1000)),
    }


def compare_methods(
    methods: Mapping[str, Any],
    Xs: Any,
    ys: ArrayLike,
    Xt: Any,
    *,
    track: Callable[[Iterable[_Named]], Iterable[_Named]] = iter,
    max_seconds: float | None = None,
    n_jobs: int = 1,
) -> list[MethodOutcome]:
    """Adapt with each method and label the target rows.

    A method that fails does not stop the others.

    Parameters
    ----------
    methods : mapping of str to estimator
        Methods by name, unfitted. A transformer is followed by one nearest neighbour.
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows.
    track : callable, default=iter
        Goes through the methods while they are fitted, for a progress bar.
    max_seconds : float or None, default=None
        Time for all of them together. Methods not begun by then are left out; a running one is
        stopped at its next round, if it has rounds.
    n_jobs : int, default=1
        Methods that are fitted at a time, each in a process of its own.

    Returns
    -------
    outcomes : list of MethodOutcome
        In the order of the methods.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.diagnostics import compare_methods, vote
    >>> from transferable.transformers import CORAL
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat(["cat", "dog"], 20)
    >>> Xs = rng.normal(size=(40, 3)) + 5 * (ys == "dog")[:, None]
    >>> outcomes = compare_methods({"TFDF-V": TFDFV(), "CORAL": CORAL()}, Xs, ys, Xs + 0.1)
    >>> bool(np.all(vote(outcomes) == ys))
    True
    """
    deadline = inf if max_seconds is None else time() + max_seconds
    given = methods.items()
    if n_jobs == 1:
        return [_outcome(name, method, Xs, ys, Xt, deadline) for name, method in track(given)]
    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_outcome)(name, method, Xs, ys, Xt, deadline) for name, method in given
    )
    return [outcome for _, outcome in zip(track(given), found, strict=True)]


class _OutOfTime(Exception):  # noqa: N818 (it is no error)
    """Time limit exceeded."""


def _outcome(
    name: str, method: Any, Xs: Any, ys: ArrayLike, Xt: Any, deadline: float
) -> MethodOutcome:
    def stop_when_late(event: Event | None = None) -> None:
        if time() >= deadline:
            raise _OutOfTime

    model = AdaptedClassifier(method) if hasattr(method, "transform") else clone(method)
    start = perf_counter()
    try:
        with warnings.catch_warnings(), listen(stop_when_late):
            warnings.simplefilter("ignore")
            stop_when_late()
            predicted = model.adapt(Xs, ys, Xt).predict(Xt)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
        return MethodOutcome(name, None, perf_counter() - start, str(error) or repr(error))
    except _OutOfTime:
        return MethodOutcome(name, None, perf_counter() - start, "no time was left", left_out=True)
    except ImportError as error:
        return MethodOutcome(name, None, perf_counter() - start, str(error), left_out=True)
    return MethodOutcome(name, predicted, perf_counter() - start)


def vote(outcomes: Iterable[MethodOutcome]) -> NDArray[Any]:
    """Return the label that most methods give each target row; of equals, the first in order.

    Parameters
    ----------
    outcomes : iterable of MethodOutcome
        Those that failed have no vote.

    Returns
    -------
    labels : ndarray of shape (n_target,)
        One label for each row.
    """
    table = np.array([outcome.predicted for outcome in outcomes if outcome.predicted is not None])
    if not len(table):
        raise ValueError("No method succeeded; there is no vote to count.")
    classes, codes = np.unique(table, return_inverse=True)
    codes = codes.reshape(table.shape)
    counts = np.stack([np.sum(codes == k, axis=0) for k in range(len(classes))])
    return classes[counts.argmax(axis=0)]


@dataclass(frozen=True)
class TransferEstimate:
    """Target accuracies of two models, estimated without labels.

    Attributes
    ----------
    adapted : AccuracyEstimate
        Accuracy of the method that adapts.
    source_only : AccuracyEstimate
        Accuracy of logistic regression on the source alone.
    method : str
        The method that adapts.
    changed : float
        Share of target rows that the two label differently.
    """

    adapted: AccuracyEstimate
    source_only: AccuracyEstimate
    method: str = "TFDF"
    changed: float = 1.0

    @property
    def gain(self) -> float:
        """Estimated accuracy of the adapted model minus that of the source-only one."""
        return self.adapted.accuracy - self.source_only.accuracy

    @property
    def verdict(self) -> Verdict:
        """Whether the labels are reliable; "doubtful" if the source-only ones seem as good."""
        if self.changed and self.gain <= 0:
            return "doubtful"
        return "good" if self.adapted.accuracy >= _GOOD else "fair"

    @property
    def warning(self) -> str:
        """Warning; empty if the adapted model seems the better one."""
        if self.verdict != "doubtful":
            return ""
        return (
            f"adapting may do harm: estimated without labels, {self.method} gets {self.adapted} "
            "of the target rows right, logistic regression on the source alone "
            f"{self.source_only}; label a few target rows to decide between them."
        )


def estimate_transfer(
    Xs: Any,
    ys: ArrayLike,
    Xt: Any,
    *,
    estimator: Any = None,
    plain: tuple[Any, Any] | None = None,
    random_state: int = 0,
) -> TransferEstimate:
    """Estimate target accuracies of a method and of a source-only model, without labels.

    Both are compared with the consensus of a pool of models, :class:`~transferable.AutoAdapter`'s,
    whose confidence is corrected by its relation to accuracy on other data. docs/safety.md reports
    how far that can be trusted.

    Parameters
    ----------
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows. Beyond 1000 rows in a domain, that many are
        drawn at random, stratified by class in the source.
    estimator : classifier or None, default=None
        The method that adapts; None is TFDF with its defaults. A fitted one is used as it is,
        unless rows had to be drawn, to which a copy is fitted.
    plain : tuple of two array-likes or None, default=None
        Source and target rows for the pool and for the source-only model, where `Xs` and `Xt` were
        made with the help of target rows, as when each domain is scaled by itself.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    estimate : TransferEstimate
        Both estimates, a verdict, and a warning if the adapted model does not seem better.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.diagnostics import estimate_transfer
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 2
    >>> X = rng.normal(size=(120, 4)) + 3 * y[:, None]
    >>> found = estimate_transfer(X[:60], y[:60], X[60:] + 0.5)
    >>> found.adapted.low <= found.adapted.accuracy <= found.adapted.high
    True
    """
    rng = np.random.default_rng(random_state)
    labels = np.asarray(ys)
    rows, others = draw_rows(labels, rng), draw_rows(np.zeros(np.shape(Xt)[0]), rng)
    y, whole = labels[rows], len(rows) == len(labels) and len(others) == np.shape(Xt)[0]
    own, bare = (
        (safe_indexing(source, rows), safe_indexing(target, others))
        for source, target in ((Xs, Xt), plain or (Xs, Xt))
    )
    stage("Estimating the accuracy of an adapted model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits on parts of the rows
        if estimator is None:
            n_neighbors = min(TFDF().n_neighbors, len(y) + len(others) - 1)
            estimator = TFDF(n_neighbors=n_neighbors)
        model = estimator
        if not (whole and _is_fitted(estimator)):
            model = clone(estimator).adapt(own[0], y, own[1])
        alone = clone(source_only_methods()["logistic regression"]).adapt(bare[0], y, bare[1])
        if isinstance(model, AutoAdapter):
            consensus = model.predict_proba(own[1])
        else:
            consensus = AutoAdapter(random_state=random_state).adapt(bare[0], y, bare[1])
            consensus = consensus.predict_proba(bare[1])
    adapted, source_only = (
        np.searchsorted(np.unique(y), fitted.predict(target))
        for fitted, target in ((model, own[1]), (alone, bare[1]))
    )
    named = getattr(estimator, "transformer", None) or estimator
    return TransferEstimate(
        _estimate(adapted, consensus),
        _estimate(source_only, consensus),
        type(named).__name__,
        float(np.mean(adapted != source_only)),
    )


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _estimate(codes: NDArray[np.intp], consensus: NDArray[np.float64]) -> AccuracyEstimate:
    """Return the accuracy of labels estimated from a consensus."""
    accuracy = expected_accuracy(codes, consensus)
    low, high = max(0.0, accuracy - MARGIN), min(1.0, accuracy + MARGIN)
    agreed = float(np.mean(consensus.argmax(axis=1) == codes))
    return AccuracyEstimate(accuracy, low, high, {"agreement_with_consensus": agreed})


def draw_rows(
    groups: NDArray[Any], rng: np.random.Generator, most: int = _MOST_ROWS
) -> NDArray[np.intp]:
    """Return positions of all rows, or of about `most`, the same share of every group."""
    share = min(1.0, most / max(1, len(groups)))
    if share == 1.0:
        return np.arange(len(groups))
    members = (np.flatnonzero(groups == group) for group in np.unique(groups))
    drawn = [rng.choice(m, max(1, round(share * len(m))), replace=False) for m in members]
    return np.sort(np.concatenate(drawn))


class Change(NamedTuple):
    """Number of rows with one label by the source-only model and another by the adapted one."""

    source_only: Any
    adapted: Any
    rows: int


@dataclass(frozen=True)
class Trust:
    """Labels of an adapted model and estimates of their accuracy, without a true label.

    Attributes
    ----------
    labels : ndarray of shape (n_target,)
        Labels by the adapted model.
    source_only : ndarray of shape (n_target,)
        Labels by logistic regression on the source alone.
    estimate : TransferEstimate
        Estimated accuracies of both.
    shares : dict
        Estimated class prior of the target.
    """

    labels: NDArray[Any]
    source_only: NDArray[Any]
    estimate: TransferEstimate
    shares: dict[Any, float]

    @property
    def changed(self) -> int:
        """Number of rows that the two models label differently."""
        return int(np.sum(self.labels != self.source_only))

    @property
    def changes(self) -> list[Change]:
        """Changes from one label to another, most frequent first."""
        pairs = zip(self.source_only.tolist(), self.labels.tolist(), strict=True)
        counts = Counter(pair for pair in pairs if pair[0] != pair[1])
        return [Change(*pair, rows) for pair, rows in counts.most_common()]

    @property
    def warning(self) -> str:
        """Warning; empty if adapting seems to have paid."""
        return self.estimate.warning

    @property
    def verdict(self) -> Verdict:
        """Whether the labels are reliable, by the estimates."""
        return self.estimate.verdict


def assess_trust(
    model: Any,
    Xs: Any,
    ys: ArrayLike,
    Xt: Any,
    *,
    plain: tuple[Any, Any] | None = None,
    random_state: int = 0,
) -> Trust:
    """Compare the labels of a fitted model with those of a model of the source alone.

    Parameters
    ----------
    model : classifier
        Fitted to these rows.
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows, as the model takes them.
    plain : tuple of two array-likes or None, default=None
        The rows for the source-only model, made without any target row; None takes `Xs` and `Xt`.
    random_state : int, default=0
        Seed of the rows that are drawn for estimates where there are many.

    Returns
    -------
    trust : Trust
        Both models' labels, their estimated accuracies, the estimated class prior of the target,
        and a warning where adapting does not seem to pay.

    Notes
    -----
    The class prior maximises the likelihood of the target rows under the source-only model's
    probabilities, by expectation maximisation. It holds under label shift: where classes look alike
    in both domains and only their shares differ.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.diagnostics import assess_trust
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 2
    >>> X = rng.normal(size=(120, 4)) + 3 * y[:, None]
    >>> Xs, ys, Xt = X[:60], y[:60], X[60:]
    >>> trust = assess_trust(TFDFV().adapt(Xs, ys, Xt), Xs, ys, Xt)
    >>> trust.changed < 10
    True
    """
    labels, (As, At) = np.asarray(ys), plain or (Xs, Xt)
    alone = source_only_methods()["logistic regression"].adapt(As, labels, At)
    classes, counts = np.unique(labels, return_counts=True)
    shares = _shares(alone.predict_proba(At), counts / counts.sum())
    estimate = estimate_transfer(
        Xs, labels, Xt, estimator=model, plain=(As, At), random_state=random_state
    )
    return Trust(
        np.asarray(model.predict(Xt)),
        alone.predict(At),
        estimate,
        dict(zip(classes.tolist(), shares.tolist(), strict=True)),
    )


def _shares(P: NDArray[np.float64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate the class prior under which probabilities, learnt under `prior`, fit best."""
    shares = prior
    for _ in range(_ROUNDS):
        posterior = P * (shares / prior)
        new = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(new - shares).max() < 1e-6:
            return new
        shares = new
    return shares
