"""Search over settings by scores that need no target label."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.progress import track
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transferable._sklearn import HasMethods, Interval, validate_parameter_constraints
from transferable._store import LineStore
from transferable.base import _stack
from transferable.domains import Domains
from transferable.model_selection._problem import Problem, digest_of, settings_of
from transferable.model_selection._results import (
    best_first,
    columns_of,
    named_scores,
    rows_of,
)
from transferable.model_selection._scorer import read_domains
from transferable.model_selection._trials import Trial, keyed_trial, run_trials, warn_of_gaps
from transferable.model_selection.ranking import RankSum, Scoring, resolve
from transferable.workspace import sharing

__all__ = ["LabelFreeSearch"]

_FEWEST_ROWS = 100  # of a domain, that a round of halving looks at


def _if_best_has(method: Callable[..., Any]) -> Any:
    """Hide a method unless the estimator that is searched has one of the same name."""
    name = method.__name__
    return available_if(
        lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name)
    )(method)


class LabelFreeSearch(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Try every setting of a grid and take the best by a score that needs no target label.

    Settings that agree in their features, kernel or graph share them, and those that agree in
    all fixed weights share the factorisation too, so that a grid costs a fraction of its fits.

    Parameters
    ----------
    estimator : classifier
        One of this library, or any whose ``fit`` takes ``sample_domain``.
    param_grid : dict, list of dict or None, default=None
        Values to try by parameter, as in :class:`sklearn.model_selection.GridSearchCV`. None is
        for TFDF and TFDF-V: 54 settings of the weights and neighbours that matter most.
    scoring : str, callable, RankSum or dict of these, default="recommended"
        A name ("circular", "neighbors", "agreement", "information", "entropy", "confusion",
        "density", "silhouette", "importance_weighted", "dev"), "recommended" (the rank sum of
        "circular" and "neighbors"), or a
        ``scorer(estimator, X, y, sample_domain)``. Several scores by name are all reported;
        `refit` says which one decides.
    refit : str or None, default=None
        Name of the score that decides, needed if there are several.
    halving : int or None, default=None
        Successive halving: settings are first compared on few rows, then one in `halving` of them
        on as many times more rows, and so on; the last ones on all rows. None tries all settings
        on all rows.
    n_jobs : int or None, default=None
        Worker processes. Each takes groups of settings that share what is costly.
    checkpoint : path-like or None, default=None
        File of JSON lines to which finished settings are added, and from which a search that was
        stopped goes on. Trials of other rows, estimators or scorers in it do no harm.
    random_state : int, default=0
        Seed of the rows that halving looks at.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    best_estimator_ : classifier
        Fitted on all rows with the best setting.
    best_params_ : dict
        The best setting.
    best_index_ : int
        Its position in ``cv_results_``.
    best_score_ : float
        Its score.
    cv_results_ : dict of arrays
        For each setting (with halving, in each round) ``params``, ``param_*``,
        ``mean_test_<score>``, ``rank_test_<score>``, ``score_<scorer>`` for the parts of rank
        sums, ``mean_fit_time``, ``mean_score_time``, ``error``, and ``iter`` and ``n_resources``.
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_samples,)
        The label of every fitted row, in input order.

    Notes
    -----
    No score is reliable everywhere: see docs/selection.md for how far each is from the best
    setting. Settings without a score are left out with a warning; if none has one, that is an
    error.

    References
    ----------
    K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter
    optimization", AISTATS 2016, for successive halving.

    Examples
    --------
    >>> from transferable import TFDFV
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.model_selection import LabelFreeSearch
    >>> task = load_printed_to_handwritten()
    >>> grid = {"alignment": [0.1, 10.0], "manifold": [0.1, 1.0]}
    >>> search = LabelFreeSearch(TFDFV(max_iter=3), grid)
    >>> search = search.adapt(task.Xs[::5], task.ys[::5], task.Xt[::5])
    >>> sorted(search.best_params_)
    ['alignment', 'manifold']
    """

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "estimator": [HasMethods(["fit", "predict"])],
        "param_grid": [dict, list, None],
        "scoring": [str, callable, RankSum, dict],
        "refit": [str, None],
        "halving": [Interval(Integral, 2, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "checkpoint": [str, os.PathLike, None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "verbose": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]]
        | Sequence[Mapping[str, Sequence[Any]]]
        | None = None,
        *,
        scoring: Scoring | Mapping[str, Scoring] = "recommended",
        refit: str | None = None,
        halving: int | None = None,
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.refit = refit
        self.halving = halving
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, sample_domain: ArrayLike | None = None) -> Self:
        """Try the settings on stacked rows and fit the best one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows of both domains.
        y : array-like of shape (n_samples,)
            Labels; those of target rows are never looked at.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows; None reads the unlabelled marks.

        Returns
        -------
        self : object
            The fitted search.
        """
        validate_parameter_constraints(
            self._parameter_constraints, self.get_params(deep=False), type(self).__name__
        )
        settings = settings_of(self.param_grid)
        scorers, columns = resolve(self.scoring)
        decisive = self._decisive(columns)
        marks = None if sample_domain is None else np.asarray(sample_domain)
        problem = Problem(self.estimator, X, np.asarray(y), marks)
        domains = read_domains(X, y, sample_domain)
        with sharing():
            rows = self._search(problem, domains, settings, scorers, columns, decisive)
            best = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_ = (
                best.fit(X, y) if marks is None else best.fit(X, y, sample_domain=marks)
            )
        self.cv_results_ = columns_of(rows)
        return self

    def adapt(self, Xs: Any, ys: ArrayLike, Xt: Any) -> Self:
        """Try the settings on source rows, their labels and target rows; fit the best one.

        Parameters
        ----------
        Xs : array-like or sparse matrix of shape (n_source, n_features)
            Source rows.
        ys : array-like of shape (n_source,)
            Their labels.
        Xt : array-like or sparse matrix of shape (n_target, n_features)
            Target rows.

        Returns
        -------
        self : object
            The fitted search.
        """
        X, y, sample_domain = _stack(Xs, ys, Xt)
        return self.fit(X, y, sample_domain=sample_domain)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the source."""
        return self._best.classes_

    @property
    def transduction_(self) -> NDArray[Any]:
        """The label of every fitted row, in input order."""
        return self._best.transduction_

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in ``fit``."""
        return self._best.n_features_in_

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of rows by the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The label of each row.
        """
        return self._best.predict(X)

    @_if_best_has
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes by the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            A distribution over ``classes_`` for each row.
        """
        return self._best.predict_proba(X)

    @_if_best_has
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows by the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            As the best estimator gives them.
        """
        return self._best.decision_function(X)

    @property
    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _decisive(self, columns: Mapping[str, Any]) -> str:
        if self.refit is None and len(columns) == 1:
            return next(iter(columns))
        if self.refit not in columns:
            raise ValueError(
                f"refit={self.refit!r} names none of the scores {', '.join(columns)}; say which of "
                "them decides."
            )
        return str(self.refit)

    def _search(
        self,
        problem: Problem,
        domains: Domains,
        settings: Sequence[Mapping[str, Any]],
        scorers: Mapping[str, Any],
        columns: Mapping[str, RankSum | str],
        decisive: str,
    ) -> list[dict[str, Any]]:
        """Try the settings, round by round if they are halved; what became of each in each."""
        file = None if self.checkpoint is None else LineStore(self.checkpoint, keyed_trial)
        known = {} if file is None else file.load()
        digest = digest_of(domains)
        rows: list[dict[str, Any]] = []
        shares = self._rounds(len(settings), domains)
        for iteration, share in enumerate(shares):
            subset = problem.subset(domains, share, self.random_state)
            name = f"{digest} {share} {self.random_state if share < 1 else 0}"
            keys = [problem.key(setting, scorers, name) for setting in settings]
            trials = self._run(subset, settings, keys, scorers, known, file)
            warn_of_gaps(settings, trials)
            scores = named_scores(trials, scorers, columns)
            order = best_first(scores[decisive], trials)
            self.best_index_ = len(rows) + order[0]
            self.best_params_ = dict(settings[order[0]])
            self.best_score_ = float(scores[decisive][order[0]])
            rows += rows_of(settings, trials, scores, iteration, len(subset.y))
            kept = order[: -(-len(settings) // int(self.halving or 1))]
            settings = [settings[i] for i in sorted(kept)]
        return rows

    def _rounds(self, n_settings: int, domains: Domains) -> list[float]:
        """The share of rows that each round looks at."""
        shares = [1.0]
        fewest = min(domains.n_source, domains.n_target)
        while self.halving and self.halving ** len(shares) <= n_settings:
            share = shares[0] / self.halving
            if share * fewest < _FEWEST_ROWS:
                break
            shares.insert(0, share)
        return shares

    def _run(
        self,
        problem: Problem,
        settings: Sequence[Mapping[str, Any]],
        keys: Sequence[str],
        scorers: Mapping[str, Any],
        known: dict[str, Trial],
        file: LineStore[Trial] | None,
    ) -> list[Trial]:
        """Trials of all settings, from the file or made now."""
        new = [i for i, key in enumerate(keys) if key not in known]
        answers = run_trials(problem, [settings[i] for i in new], scorers, self.n_jobs)
        bar = track(
            answers,
            description="settings",
            total=len(new),
            disable=not self.verbose,
        )
        for position, trial in bar:
            key = keys[new[position]]
            known[key] = trial
            if file is not None:
                file.append(trial.to_line(key))
        return [known[key] for key in keys]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if self.checkpoint is not None:  # saved models hold no objects but known ones
            state["checkpoint"] = os.fspath(self.checkpoint)
        return state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
