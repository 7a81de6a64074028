"""Search over settings by scores that need no target label."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from transferable._files import LineStore
from transferable._sklearn import JOBS, HasMethods, Interval
from transferable.base import DomainClassifier
from transferable.domains import Domains
from transferable.events import rounds, stage
from transferable.linalg.arrays import like
from transferable.model_selection._results import (
    best_first,
    columns_of,
    named_scores,
    rows_of,
)
from transferable.model_selection._scorer import held_out_rows
from transferable.model_selection._trials import (
    StackedRows,
    Trial,
    digest_of,
    held_out_accuracy,
    keyed_trial,
    run_trials,
    settings_of,
    trial_key,
    warn_of_gaps,
)
from transferable.model_selection.ranking import (
    BESIDE_ANCHOR,
    RECOMMENDED,
    RankSum,
    Scoring,
    resolve,
)
from transferable.workspace import sharing

__all__ = ["LabelFreeSearch"]

_FEWEST_ROWS = 100  # of a domain, that a round of halving looks at
_BESIDE_ANCHOR = 5  # settings that answer beside an anchor, as docs/selection.md chose


def _if_best_has(method: Callable[..., Any]) -> Any:
    """Hide a method unless the estimator that is searched has one of the same name."""
    name = method.__name__
    return available_if(
        lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name)
    )(method)


class LabelFreeSearch(MetaEstimatorMixin, DomainClassifier):
    """Try every setting of a grid and take the best by a score that needs no target label.

    Settings that agree in their features, kernel or graph share them, and those that agree in
    all fixed weights share the factorisation too, so that a grid costs a fraction of its fits.

    Parameters
    ----------
    estimator : classifier
        One of this library, any whose ``fit`` takes ``sample_domain``, or a pipeline with such.
    param_grid : dict, list of dict or None, default=None
        Values to try by parameter, as in :class:`sklearn.model_selection.GridSearchCV`. None is
        for TFDF and TFDF-V, in a pipeline too: 54 settings of the weights and neighbours that
        matter most.
    scoring : str, callable, RankSum or dict of these, default="recommended"
        A name ("circular", "neighbors", "agreement", "information", "entropy", "confusion",
        "density", "silhouette", "importance_weighted", "dev"), "recommended" (the rank sum of
        "circular" and "neighbors", with an `anchor` "neighbors"), or a
        ``scorer(estimator, X, y, sample_domain)``. Several scores by name are all reported;
        `refit` says which one decides.
    refit : str or None, default=None
        Name of the score that decides, needed if there are several.
    average : int or None, default=None
        How many of the best settings answer together, by the mean of their probabilities, as far
        as there are so many. One wrong choice matters less among several. None takes one, with an
        `anchor` five.
    anchor : classifier or None, default=None
        A model that owes nothing to the grid, ``AutoAdapter(effort="fast")`` say. It is fitted to
        the same rows, and its probabilities count half in the answer, beside those of the best
        settings: a bad grid, or a score that is wrong, matters less.
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
    top_estimators_ : list of classifiers
        The `average` best, the best first, whose mean probabilities are the answer of the search.
    anchor_ : classifier or None
        The fitted `anchor`.
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
    No score is reliable everywhere: docs/selection.md says how far each is from the best setting,
    and recommends an anchor. Settings without a score are left out with a warning; if none has
    one, that is an error. Where there are no target rows, nothing can be judged by them: settings
    are then compared by accuracy on a fifth of the source rows, held out, which is warned of.

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

    _without_target = "compares settings by accuracy on source rows that are held out"
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "estimator": [HasMethods(["fit", "predict"])],
        "param_grid": [dict, list, None],
        "scoring": [str, callable, RankSum, dict],
        "refit": [str, None],
        "average": [Interval(Integral, 1, None, closed="left"), None],
        "anchor": [HasMethods(["fit", "predict_proba"]), None],
        "halving": [Interval(Integral, 2, None, closed="left"), None],
        "n_jobs": JOBS,
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
        average: int | None = None,
        anchor: Any = None,
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
        self.average = average
        self.anchor = anchor
        self.halving = halving
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self.estimator).input_tags.sparse)

    def _fit_domains(self, domains: Domains) -> None:
        self._check_probabilities()
        settings = settings_of(self.param_grid, self.estimator)
        scorers, columns = self._judges(domains)
        decisive = self._decisive(columns)
        rows = StackedRows.of(domains)
        rows = replace(rows, X=self._named(rows.X))
        with sharing():
            tried, top = self._search(rows, domains, settings, scorers, columns, decisive)
            self.top_estimators_ = [
                rows.fit(clone(self.estimator).set_params(**setting)) for setting in top
            ]
            self.anchor_ = None if self.anchor is None else rows.fit(clone(self.anchor))
        self.best_estimator_ = self.top_estimators_[0]
        self.cv_results_ = columns_of(tried)
        self.classes_ = domains.classes
        labels = getattr(self.best_estimator_, "transduction_", None)
        if labels is None or self._answer_together:
            labels = self.classes_[self._predict_codes(rows.X)]
        self.transduction_ = labels

    def _named(self, rows: Any) -> Any:
        """Validated rows with the names of their columns, where they came with such."""
        if not hasattr(self, "feature_names_in_"):
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=self.feature_names_in_, copy=False)

    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        if self._answer_together:
            return self._mean_probabilities(self._named(rows)).argmax(axis=1)
        return np.searchsorted(self.classes_, self.best_estimator_.predict(self._named(rows)))

    @property
    def _n_top(self) -> int:
        return self.average or (1 if self.anchor is None else _BESIDE_ANCHOR)

    def _check_probabilities(self) -> None:
        together = self._n_top > 1 or self.anchor is not None
        if together and not hasattr(self.estimator, "predict_proba"):
            asked = f"average={self.average}" if self.anchor is None else "an anchor"
            raise ValueError(
                f"{asked} takes the mean of probabilities, which {type(self.estimator).__name__} "
                "does not give; take average=1 and no anchor."
            )

    @property
    def _answer_together(self) -> bool:
        return self.anchor_ is not None or len(self.top_estimators_) > 1

    def _mean_probabilities(self, rows: Any) -> NDArray[np.float64]:
        mean = np.mean([model.predict_proba(rows) for model in self.top_estimators_], axis=0)
        return mean if self.anchor_ is None else (mean + self.anchor_.predict_proba(rows)) / 2

    @_if_best_has
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes by the best estimator, or the mean of the best ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            A distribution over ``classes_`` for each row.
        """
        return like(X, self._mean_probabilities(self._named(self._validate_rows(X))))

    @_if_best_has
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            As the best estimator gives them; where several answer, their mean probabilities, with
            two classes the second's minus the first's.
        """
        rows = self._named(self._validate_rows(X))
        if not self._answer_together:
            return like(X, self.best_estimator_.decision_function(rows))
        scores = self._mean_probabilities(rows)
        return like(X, scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores)

    def _judges(
        self, domains: Domains
    ) -> tuple[Mapping[str, Callable[..., float]], Mapping[str, RankSum | str]]:
        """The scorers that must be asked, and what each named score is made of."""
        recommended = RECOMMENDED if self.anchor is None else BESIDE_ANCHOR
        scorers, columns = resolve(self.scoring, recommended=recommended)
        if domains.n_target:
            return scorers, columns
        judge = partial(held_out_accuracy, domains.order[held_out_rows(domains.y)])
        return {"held_out": judge}, dict.fromkeys(columns, "held_out")

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
        stacked: StackedRows,
        domains: Domains,
        settings: Sequence[Mapping[str, Any]],
        scorers: Mapping[str, Callable[..., float]],
        columns: Mapping[str, RankSum | str],
        decisive: str,
    ) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
        """Try the settings, round by round if they are halved; what became of each, and the top."""
        file = None if self.checkpoint is None else LineStore(self.checkpoint, keyed_trial)
        known = {} if file is None else file.load()
        digest = digest_of(domains)
        rows: list[dict[str, Any]] = []
        shares = self._rounds(len(settings), domains)
        for iteration, share in enumerate(shares):
            subset = stacked.some(domains, share, self.random_state)
            name = f"{digest} {share} {self.random_state if share < 1 else 0}"
            keys = [trial_key(self.estimator, setting, scorers, name) for setting in settings]
            trials = self._run(subset, settings, keys, scorers, known, file)
            warn_of_gaps(settings, trials)
            scores = named_scores(trials, scorers, columns)
            order = best_first(scores[decisive], trials)
            self.best_index_ = len(rows) + order[0]
            top = [settings[i] for i in order[: self._n_top]]
            self.best_params_ = dict(top[0])
            self.best_score_ = float(scores[decisive][order[0]])
            rows += rows_of(settings, trials, scores, iteration, len(subset.y))
            kept = order[: -(-len(settings) // int(self.halving or 1))]
            settings = [settings[i] for i in sorted(kept)]
        return rows, top

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
        rows: StackedRows,
        settings: Sequence[Mapping[str, Any]],
        keys: Sequence[str],
        scorers: Mapping[str, Callable[..., float]],
        known: dict[str, Trial],
        file: LineStore[Trial] | None,
    ) -> list[Trial]:
        """Trials of all settings, from the file or made now."""
        new = [i for i, key in enumerate(keys) if key not in known]
        asked = [settings[i] for i in new]
        answers = run_trials(self.estimator, rows, asked, scorers, self.n_jobs)
        stage("Trying settings")
        for (position, trial), _ in zip(answers, rounds(len(new), "Trying settings"), strict=True):
            key = keys[new[position]]
            known[key] = trial
            if file is not None:
                file.append(trial.to_line(key))
        return [known[key] for key in keys]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())  # which is the estimator's own otherwise
        if self.checkpoint is not None:  # saved models hold known objects only
            state["checkpoint"] = os.fspath(self.checkpoint)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "best_estimator_" in state:  # saved when one model answered, or when it had no labels
            best = self.best_estimator_
            for name in ("classes_", "transduction_", "n_features_in_"):
                self.__dict__.setdefault(name, getattr(best, name, None))
            self.__dict__.setdefault("top_estimators_", [best])
            self.__dict__.setdefault("anchor_", None)
