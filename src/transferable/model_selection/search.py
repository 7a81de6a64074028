"""Search over settings by scores that need no target label."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.ma import MaskedArray
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags

from transferable._linalg.arrays import Reordered, like
from transferable._sklearn import (
    COUNT,
    HasMethods,
    Interval,
    StrOptions,
    call_with_marks,
    safe_indexing,
    takes_marks,
)
from transferable.base import DomainAdapter, DomainClassifier
from transferable.classifiers import AutoAdapter
from transferable.domains import Domains, Store, without_target_labels
from transferable.events import silence, stage
from transferable.exceptions import NoTargetWarning
from transferable.model_selection.scorers import (
    BESIDE_ANCHOR,
    RECOMMENDED,
    Evidence,
    LabelFreeScorer,
    RankSum,
    Scoring,
    held_out_rows,
    resolve,
    split_rows,
)
from transferable.wrapping import Wrapper

Scorers = Mapping[str, Callable[..., float]]
Setting = Mapping[str, Any]

# Grid of TFDF and TFDF-V, on which benchmarks/records/selection reports.
DEFAULT_GRID: dict[str, list[float]] = {
    "ridge": [0.01, 0.1, 1.0],
    "alignment": [0.1, 1.0, 10.0],
    "manifold": [0.1, 1.0, 10.0],
    "n_neighbors": [5, 20],
}

# Settings that agree in these share kernels, graphs and factorisations; the later the finer.
_COSTLY = (
    *("manifold_dim", "kernel", "gamma", "degree", "coef0", "n_components"),
    *("n_neighbors", "manifold", "variance", "ridge"),
)
_BESIDE_ANCHOR = 5  # settings that answer beside an anchor, chosen in benchmarks/records/selection


class LabelFreeSearch(Wrapper, MetaEstimatorMixin, DomainClassifier):
    """Search over a grid by a score that needs no target label.

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
        "circular" and "neighbors", with an `anchor` "neighbors"), or a ``scorer(estimator, X, y,
        sample_domain)``. Several scores by name are all reported; `refit` selects one.
    refit : str or None, default=None
        Name of the score that decides, needed if there are several.
    average : int or None, default=None
        Number of the best settings whose probabilities are averaged, or fewer if there are fewer.
        One wrong choice matters less among several. None takes one, with an `anchor` five.
    anchor : classifier, "auto" or None, default="auto"
        A model independent of the grid. It is fitted to the same rows, and its probabilities count
        half in the average with those of the best settings: a bad grid, or a score that is wrong,
        matters less. "auto" is ``AutoAdapter(effort="fast")``, or none if the estimator has no
        ``predict_proba``; its fit and those of the best settings come on top of the search. None
        has the best setting answer alone.
    n_jobs : int or None, default=None
        Worker processes. Each takes groups of settings that share costly results.
    random_state : int, default=0
        Seed of the anchor "auto".

    Attributes
    ----------
    best_estimator_ : classifier
        Fitted on all rows with the best setting.
    top_estimators_ : list of classifiers
        The `average` best, the best first, whose probabilities are averaged.
    anchor_ : classifier or None
        The fitted `anchor`.
    best_params_ : dict
        The best setting.
    best_index_ : int
        Its position in ``cv_results_``.
    best_score_ : float
        Its score.
    cv_results_ : dict of arrays
        For each setting ``params``, ``param_*``, ``mean_test_<score>``, ``rank_test_<score>``,
        ``score_<scorer>`` for the parts of rank sums, ``mean_fit_time``, ``mean_score_time`` and
        ``error``.

    Notes
    -----
    No score is reliable everywhere: ``docs/settings.md`` has the distance of each from the best
    setting, with an anchor and without. Settings without a score are left out with a warning; if
    none has one, an error is raised. Without target rows, settings are compared by accuracy on a
    held-out fifth of the source rows, with a warning.

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

    estimator: Any = field(kw_only=False)
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = field(
        default=None, kw_only=False
    )
    scoring: Scoring | Mapping[str, Scoring] = "recommended"
    refit: str | None = None
    average: int | None = None
    anchor: Any = "auto"
    n_jobs: int | None = None
    random_state: int = 0
    verbose: bool = False

    _without_target = "compares settings by accuracy on source rows that are held out"
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "estimator": [HasMethods(["fit", "predict"])],
        "param_grid": [dict, list, None],
        "scoring": [str, callable, RankSum, dict],
        "refit": [str, None],
        "average": [COUNT, None],
        "anchor": [HasMethods(["fit", "predict_proba"]), StrOptions({"auto"}), None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    @property
    def _wrapped(self) -> Any:
        return getattr(self, "best_estimator_", self.estimator)

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self.estimator).input_tags.sparse)

    def _fit_domains(self, domains: Domains) -> None:
        anchor = self._anchor
        together = self._n_top > 1 or anchor is not None
        if together and not hasattr(self.estimator, "predict_proba"):
            asked = f"average={self.average}" if anchor is None else "an anchor"
            raise ValueError(
                f"{asked} takes the mean of probabilities, which {type(self.estimator).__name__} "
                "does not give; take average=1 and no anchor."
            )
        rows = _StackedRows.of(domains)
        rows = replace(rows, X=self._named(rows.X))
        top = self._search(rows, domains)
        self.top_estimators_ = [
            rows.fit(clone(self.estimator).set_params(**setting)) for setting in top
        ]
        self.anchor_ = None if anchor is None else rows.fit(clone(anchor))
        self.best_estimator_ = self.top_estimators_[0]
        labels = getattr(self.best_estimator_, "transduction_", None)
        if labels is None or self._answer_together:
            labels = self.classes_[self._predict_codes(rows.X)]
        self.transduction_ = labels

    def _named(self, rows: Any) -> Any:
        """Return validated rows with their column names, if they have any."""
        if not hasattr(self, "feature_names_in_"):
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=self.feature_names_in_, copy=False)

    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        if self._answer_together:
            return self._mean_probabilities(self._named(rows)).argmax(axis=1)
        return np.searchsorted(self.classes_, self.best_estimator_.predict(self._named(rows)))

    @property
    def _anchor(self) -> Any:
        """The unfitted model that answers beside the settings; None without one."""
        if not isinstance(self.anchor, str):
            return self.anchor
        able = hasattr(self.estimator, "predict_proba")
        return AutoAdapter(effort="fast", random_state=self.random_state) if able else None

    @property
    def _n_top(self) -> int:
        return self.average or (1 if self._anchor is None else _BESIDE_ANCHOR)

    @property
    def _answer_together(self) -> bool:
        return self.anchor_ is not None or len(self.top_estimators_) > 1

    def _mean_probabilities(self, rows: Any) -> NDArray[np.float64]:
        mean = np.mean([model.predict_proba(rows) for model in self.top_estimators_], axis=0)
        return mean if self.anchor_ is None else (mean + self.anchor_.predict_proba(rows)) / 2

    def _answers(self, method: str, X: Any) -> NDArray[np.float64]:
        rows, scores = self._named(self._validate_rows(X)), method == "decision_function"
        if scores and not self._answer_together:
            return like(X, self.best_estimator_.decision_function(rows))
        P = self._mean_probabilities(rows)
        return like(X, P[:, 1] - P[:, 0] if scores and P.shape[1] == 2 else P)

    def _search(self, rows: _StackedRows, domains: Domains) -> list[Setting]:
        """Try all settings and return the best, best first."""
        settings = _settings(self.param_grid, self.estimator)
        scorers, columns, decisive = self._judges(domains)
        trials = self._run(rows, settings, scorers)
        _warn_of_gaps(settings, trials)
        parts = {part: np.array([trial.scores[part] for trial in trials]) for part in scorers}
        scores = {
            score: made_of.combine(parts) if isinstance(made_of, RankSum) else parts[made_of]
            for score, made_of in columns.items()
        }
        order = _best_first(scores[decisive], trials)
        self.best_index_, self.best_params_ = order[0], settings[order[0]]
        self.best_score_ = float(scores[decisive][order[0]])
        self.cv_results_ = _results(settings, trials, parts, scores)
        return [settings[i] for i in order[: self._n_top]]

    def _judges(self, domains: Domains) -> tuple[Scorers, Mapping[str, RankSum | str], str]:
        """Return the scorers, the parts of each named score, and the score that decides."""
        recommended = RECOMMENDED if self._anchor is None else BESIDE_ANCHOR
        scorers, columns = resolve(self.scoring, recommended=recommended)
        if not domains.n_target:
            judge = partial(_held_out_accuracy, domains.order[held_out_rows(domains.y)])
            scorers, columns = {"held_out": judge}, dict.fromkeys(columns, "held_out")
        decisive = next(iter(columns)) if self.refit is None and len(columns) == 1 else self.refit
        if decisive not in columns:
            raise ValueError(
                f"refit={self.refit!r} names none of the scores {', '.join(columns)}; name the "
                "one that decides."
            )
        return scorers, columns, decisive

    def _run(
        self, rows: _StackedRows, settings: Sequence[Setting], scorers: Scorers
    ) -> list[_Trial]:
        """Return the trials of all settings, tried by groups that share most."""
        groups: dict[str, list[int]] = {}
        alone = effective_n_jobs(self.n_jobs) == 1  # one process reports each setting
        for i in sorted(range(len(settings)), key=lambda i: _group(settings[i])):
            groups.setdefault(str(i) if alone else _group(settings[i]), []).append(i)
        jobs = self.n_jobs and min(self.n_jobs, len(groups))
        parallel = Parallel(n_jobs=jobs, return_as="generator")
        stage("Trying settings")
        labels_only = all(getattr(scorer, "labels_only", False) for scorer in scorers.values())
        # Processes have a copy each, groups of one process share one.
        store = Store(labels_only=labels_only)
        answers = parallel(
            delayed(_try_group)(self.estimator, rows, [settings[i] for i in group], scorers, store)
            for group in groups.values()
        )
        done: dict[int, _Trial] = {}
        for group, trials in zip(groups.values(), answers, strict=True):
            done |= zip(group, trials, strict=True)
            stage("Trying settings", len(done) / len(settings), f"{len(done)} of {len(settings)}")
        return [done[i] for i in range(len(settings))]


@dataclass(frozen=True)
class _StackedRows:
    """Rows of both domains in the order of the input; labels of target rows are ignored.

    `sample_domain` is 1 for source rows and -1 for target rows; None without target rows.
    """

    X: Any
    y: NDArray[Any]
    sample_domain: NDArray[np.intp] | None

    @classmethod
    def of(cls, domains: Domains) -> _StackedRows:
        """Return the rows as given."""
        in_place = isinstance(domains.X, Reordered)
        X = domains.X.table if in_place else domains.X[np.argsort(domains.order)]
        y = domains.classes[domains.restore(domains.with_target(np.zeros(domains.n_target, int)))]
        marks = np.where(np.arange(len(y)) < domains.n_source, 1, -1)
        return cls(X, y, domains.restore(marks) if domains.n_target else None)

    def take(self, rows: NDArray[np.intp]) -> _StackedRows:
        """Return the rows at these positions."""
        marks = None if self.sample_domain is None else self.sample_domain[rows]
        return _StackedRows(safe_indexing(self.X, rows), self.y[rows], marks)

    def fit(self, model: Any) -> Any:
        """Fit the model; target rows are unlabelled for one that takes no marks."""
        for name, value in model.get_params().items():
            if name.split("__")[-1] == "target_labels" and value == "use":
                raise ValueError(
                    f"{name}='use' is not for a search, whose scores see no target label and whose "
                    "fits are given none; take 'ignore', and use them with the setting that it "
                    "finds."
                )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoTargetWarning)  # the search warns of that itself
            if self.sample_domain is None or takes_marks(model):
                return call_with_marks(model.fit, self.X, self.y, self.sample_domain)
            return model.fit(self.X, without_target_labels(self.y, self.sample_domain))


@dataclass
class _Trial:
    """Scores of one setting by scorer, NaN where missing, with seconds and errors."""

    scores: dict[str, float]
    fit_time: float
    score_time: float
    error: str = ""


def _settings(param_grid: Any, estimator: Any) -> list[dict[str, Any]]:
    """Return every setting of a grid, of the default one if it is None; raise if there is none."""
    param_grid = _default_grid(estimator) if param_grid is None else param_grid
    grids = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    empty = [name for grid in grids for name, values in grid.items() if not len(values)]
    if empty or not any(grids):
        what = f"no value for {empty[0]!r}" if empty else "no settings"
        raise ValueError(
            f"param_grid={param_grid!r} holds {what}; give at least one value for each parameter."
        )
    return list(ParameterGrid(param_grid))


def _default_grid(estimator: Any) -> dict[str, list[float]]:
    """Return the default grid under the parameter names of the estimator or of one of its steps."""
    names = estimator.get_params()
    first = next(iter(DEFAULT_GRID))
    for prefix in (name.removesuffix(first) for name in names if name.endswith(first)):
        if all(prefix + name in names for name in DEFAULT_GRID):
            return {prefix + name: values for name, values in DEFAULT_GRID.items()}
    raise ValueError(
        f"{type(estimator).__name__} has no default param_grid, which is for TFDF and TFDF-V, by "
        "themselves or in a pipeline; give one."
    )


def _group(setting: Setting) -> str:
    """Return the key of settings that share all costly results."""
    costly = {name: value for name, value in setting.items() if name.split("__")[-1] in _COSTLY}
    rank = {name: _COSTLY.index(name.split("__")[-1]) for name in costly}
    return repr([(name, costly[name]) for name in sorted(costly, key=lambda n: (rank[n], n))])


def _try_group(
    estimator: Any,
    rows: _StackedRows,
    settings: Sequence[Setting],
    scorers: Scorers,
    store: Store,
) -> list[_Trial]:
    with silence():
        return [_try(estimator, rows, setting, scorers, store) for setting in settings]


def _try(
    estimator: Any, rows: _StackedRows, setting: Setting, scorers: Scorers, store: Store
) -> _Trial:
    """Fit one setting and apply every scorer; errors are recorded, not raised."""
    start = perf_counter()
    scores, errors = dict.fromkeys(scorers, math.nan), []
    try:
        model = clone(estimator).set_params(**setting)
        for part in (model, *model.get_params().values()):
            if isinstance(part, DomainAdapter):
                part._store = store
        rows.fit(model)
    except Exception as error:
        return _Trial(scores, perf_counter() - start, 0.0, f"{type(error).__name__}: {error}")
    fitted = perf_counter()
    given = (model, rows.X, rows.y, rows.sample_domain)
    evidence = None
    if rows.sample_domain is not None:
        key = "split rows", id(rows.X), id(rows.y)
        split = store.get(key, split_rows, *given[1:], store)
        evidence = Evidence(*given, just_fitted=True, split=split)
    for name, scorer in scorers.items():
        try:
            scores[name] = float(
                scorer.score(evidence)
                if evidence is not None and isinstance(scorer, LabelFreeScorer)
                else scorer(*given)
            )
        except Exception as error:
            errors.append(f"{name}: {type(error).__name__}: {error}")
    return _Trial(scores, fitted - start, perf_counter() - fitted, "; ".join(errors))


def _warn_of_gaps(settings: Sequence[Setting], trials: Sequence[_Trial]) -> None:
    """Warn of each setting that lacks a score, with the reason."""
    for setting, trial in zip(settings, trials, strict=True):
        missing = [name for name, value in trial.scores.items() if not np.isfinite(value)]
        if missing:
            why = trial.error or f"no finite score of {', '.join(missing)}"
            message = f"The setting {dict(setting)} is left out: {why}."
            warnings.warn(message, UserWarning, stacklevel=6)


def _held_out_accuracy(
    rows: NDArray[np.intp], model: Any, X: Any, y: NDArray[Any], sample_domain: None = None
) -> float:
    """Return the accuracy on these source rows of a copy fitted without them; 0 without rows."""
    everything = _StackedRows(X, y, sample_domain)
    kept = np.setdiff1d(np.arange(len(y)), rows)
    copy, held_out = everything.take(kept).fit(clone(model)), everything.take(rows)
    return float(np.mean(copy.predict(held_out.X) == held_out.y)) if len(rows) else 0.0


def _best_first(scores: NDArray[np.float64], trials: Sequence[_Trial]) -> list[int]:
    """Return positions of the settings that have a score, best first; raise if none has."""
    finite = np.flatnonzero(np.isfinite(scores))
    if len(finite) == 0:
        why = next((trial.error for trial in trials if trial.error), "all scores are NaN")
        raise ValueError(f"None of the {len(trials)} settings has a score; the first error: {why}.")
    return [int(i) for i in finite[np.argsort(-scores[finite], kind="stable")]]


def _results(
    settings: Sequence[Setting],
    trials: Sequence[_Trial],
    parts: Mapping[str, NDArray[np.float64]],
    scores: Mapping[str, NDArray[np.float64]],
) -> dict[str, Any]:
    """Return the columns of ``cv_results_``."""
    results: dict[str, Any] = {
        "mean_fit_time": np.array([trial.fit_time for trial in trials]),
        "mean_score_time": np.array([trial.score_time for trial in trials]),
        "error": np.array([trial.error for trial in trials]),
        "params": [dict(setting) for setting in settings],
    }
    for key in sorted(set().union(*settings)):
        column = MaskedArray(np.empty(len(settings), dtype=object), mask=True)
        for i, setting in enumerate(settings):
            if key in setting:
                column[i] = setting[key]
        results[f"param_{key}"] = column
    results |= {f"score_{part}": values for part, values in parts.items()}
    for score, values in scores.items():
        results[f"mean_test_{score}"] = values
        known = np.where(np.isnan(values), -np.inf, values)  # those without a score are last
        order = np.argsort(-known, kind="stable")
        ranks = np.empty(len(values), dtype=np.intp)
        ranks[order] = np.arange(1, len(values) + 1)
        results[f"rank_test_{score}"] = ranks
    return results
