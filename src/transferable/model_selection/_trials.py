"""Trying settings on rows, one after another: in an order that reuses most."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from transferable._files import parse_line
from transferable._sklearn import safe_indexing
from transferable.domains import Domains, Reordered, without_target_labels
from transferable.events import silence
from transferable.model_selection._scorer import Evidence, LabelFreeScorer
from transferable.routing import call_with_marks, takes_marks
from transferable.threads import n_processes
from transferable.workspace import sharing

__all__ = [
    "DEFAULT_GRID",
    "StackedRows",
    "Trial",
    "digest_of",
    "held_out_accuracy",
    "keyed_trial",
    "run_trials",
    "settings_of",
    "trial_key",
    "warn_of_gaps",
]

Scorers = Mapping[str, Callable[..., float]]

# Of TFDF and TFDF-V; what docs/selection.md reports is about this grid.
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


def settings_of(param_grid: Any, estimator: Any) -> list[dict[str, Any]]:
    """Every setting of a grid, of the default one if it is None; an error if there is none."""
    param_grid = _default_grid(estimator) if param_grid is None else param_grid
    grids = _grids(param_grid)
    empty = [name for grid in grids for name, values in grid.items() if not len(values)]
    if empty or not grids:
        what = f"no value for {empty[0]!r}" if empty else "no settings"
        raise ValueError(
            f"param_grid={param_grid!r} holds {what}; give at least one value for each parameter."
        )
    return list(ParameterGrid(param_grid))


def _default_grid(estimator: Any) -> dict[str, list[float]]:
    """The default grid under the names of the estimator, or of the step of it that has them."""
    names = estimator.get_params()
    first = next(iter(DEFAULT_GRID))
    for prefix in (name.removesuffix(first) for name in names if name.endswith(first)):
        if all(prefix + name in names for name in DEFAULT_GRID):
            return {prefix + name: values for name, values in DEFAULT_GRID.items()}
    raise ValueError(
        f"{type(estimator).__name__} has no default param_grid, which is for TFDF and TFDF-V, by "
        "themselves or in a pipeline; give one."
    )


def _grids(param_grid: Any) -> list[Mapping[str, Any]]:
    grids = [param_grid] if isinstance(param_grid, Mapping) else list(param_grid)
    return [grid for grid in grids if grid]


@dataclass(frozen=True)
class StackedRows:
    """Rows of both domains in the order of the input; labels of target rows mean nothing.

    Attributes
    ----------
    X : table of shape (n, n_features)
        The rows.
    y : ndarray of shape (n,)
        Labels.
    sample_domain : ndarray of shape (n,) or None
        1 for source rows and -1 for target rows; None where there are no target rows.
    """

    X: Any
    y: NDArray[Any]
    sample_domain: NDArray[np.intp] | None

    @classmethod
    def of(cls, domains: Domains) -> StackedRows:
        """The rows as they were given."""
        in_place = isinstance(domains.X, Reordered)
        X = domains.X.table if in_place else domains.X[np.argsort(domains.order)]
        y = domains.classes[domains.restore(domains.with_target(np.zeros(domains.n_target, int)))]
        marks = np.where(np.arange(len(y)) < domains.n_source, 1, -1)
        return cls(X, y, domains.restore(marks) if domains.n_target else None)

    def take(self, rows: NDArray[np.intp]) -> StackedRows:
        """The rows at these positions."""
        marks = None if self.sample_domain is None else self.sample_domain[rows]
        return StackedRows(safe_indexing(self.X, rows), self.y[rows], marks)

    def some(self, domains: Domains, share: float, seed: int) -> StackedRows:
        """A share of the rows of each source class and of the target."""
        if share == 1.0:
            return self
        rng = np.random.default_rng(seed)
        groups = [np.flatnonzero(domains.y == code) for code in range(domains.n_classes)]
        groups.append(np.arange(domains.n_source, len(domains.order)))
        parts = [rng.choice(g, max(1, round(share * len(g))), replace=False) for g in groups]
        return self.take(np.sort(domains.order[np.concatenate(parts)]))

    def fit(self, model: Any) -> Any:
        """The model, fitted to the rows; target rows are unlabelled for one that takes no marks."""
        _refuse_target_labels(model)
        if self.sample_domain is None or takes_marks(model):
            return call_with_marks(model.fit, self.X, self.y, self.sample_domain)
        return model.fit(self.X, without_target_labels(self.y, self.sample_domain))


def _refuse_target_labels(model: Any) -> None:
    """Settings are compared without target labels: a model that learns from some is no match."""
    for name, value in model.get_params().items():
        if name.split("__")[-1] == "target_labels" and value == "use":
            raise ValueError(
                f"{name}='use' is not for a search, whose scores see no target label and whose "
                "fits are given none; take 'ignore', and use them with the setting that it finds."
            )


def digest_of(domains: Domains) -> str:
    """A name for the rows and the source's labels, whatever their order."""
    content = domains.X.toarray() if hasattr(domains.X, "toarray") else domains.X
    text = hashlib.sha256(np.ascontiguousarray(content).tobytes() + domains.y.tobytes())
    text.update(repr(domains.classes.tolist()).encode())
    return text.hexdigest()


def trial_key(estimator: Any, setting: Mapping[str, Any], scorers: Scorers, rows: str) -> str:
    """Name of a trial: the same rows, estimator, setting and scorers give the same."""
    model = clone(estimator).set_params(**setting)
    parameters = sorted((name, repr(value)) for name, value in model.get_params().items())
    asked = sorted((name, repr(scorer)) for name, scorer in scorers.items())
    text = json.dumps([type(model).__name__, parameters, asked, rows])
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Trial:
    """What became of one setting.

    Attributes
    ----------
    scores : dict
        By the name of the scorer; NaN if it has none.
    fit_time, score_time : float
        Seconds.
    error : str
        What the fit or a scorer raised; empty if nothing.
    """

    scores: dict[str, float]
    fit_time: float
    score_time: float
    error: str = ""

    def to_line(self, key: str) -> str:
        """The trial under its key as one line of JSON, without the line's end."""
        values = asdict(self)
        values["scores"] = {k: v if math.isfinite(v) else None for k, v in self.scores.items()}
        return json.dumps({"key": key, **values}, allow_nan=False)


def keyed_trial(line: bytes) -> tuple[str, Trial]:
    """Read a trial and its key back; ValueError if the line holds none."""
    values = parse_line(line)
    try:
        key = values.pop("key")
        scores = {k: math.nan if v is None else float(v) for k, v in values.pop("scores").items()}
        return str(key), Trial(scores=scores, **values)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the line holds no trial: {error}") from error


def run_trials(
    estimator: Any,
    rows: StackedRows,
    settings: Sequence[Mapping[str, Any]],
    scorers: Scorers,
    n_jobs: int | None,
) -> Iterator[tuple[int, Trial]]:
    """Try every setting; yields its position and what became of it, group by group."""
    groups: dict[str, list[int]] = {}
    for position in sorted(range(len(settings)), key=lambda i: _group(settings[i])):
        groups.setdefault(_group(settings[position]), []).append(position)
    parallel = Parallel(n_jobs=n_processes(n_jobs, len(groups)), return_as="generator")
    with sharing():
        answers = parallel(
            delayed(_try_group)(estimator, rows, [settings[i] for i in group], scorers)
            for group in groups.values()
        )
        for group, trials in zip(groups.values(), answers, strict=True):
            yield from zip(group, trials, strict=True)


def _group(setting: Mapping[str, Any]) -> str:
    """What settings have in common that share all that is costly."""
    costly = {name: value for name, value in setting.items() if name.split("__")[-1] in _COSTLY}
    rank = {name: _COSTLY.index(name.split("__")[-1]) for name in costly}
    return repr([(name, costly[name]) for name in sorted(costly, key=lambda n: (rank[n], n))])


def _try_group(
    estimator: Any, rows: StackedRows, settings: Sequence[Mapping[str, Any]], scorers: Scorers
) -> list[Trial]:
    labels_only = all(getattr(scorer, "labels_only", False) for scorer in scorers.values())
    with sharing(labels_only=labels_only), silence():
        return [_try(estimator, rows, setting, scorers) for setting in settings]


def _try(estimator: Any, rows: StackedRows, setting: Mapping[str, Any], scorers: Scorers) -> Trial:
    """Fit one setting and ask every scorer; what goes wrong is kept, not raised."""
    start = perf_counter()
    scores, errors = dict.fromkeys(scorers, math.nan), []
    try:
        model = rows.fit(_without_history(estimator).set_params(**setting))
    except Exception as error:
        return Trial(scores, perf_counter() - start, 0.0, f"{type(error).__name__}: {error}")
    fitted = perf_counter()
    given = (model, rows.X, rows.y, rows.sample_domain)
    evidence = None if rows.sample_domain is None else Evidence(*given, just_fitted=True)
    for name, scorer in scorers.items():
        try:
            scores[name] = float(
                scorer.score(evidence)
                if evidence is not None and isinstance(scorer, LabelFreeScorer)
                else scorer(*given)
            )
        except Exception as error:
            errors.append(f"{name}: {type(error).__name__}: {error}")
    return Trial(scores, fitted - start, perf_counter() - fitted, "; ".join(errors))


def _without_history(estimator: Any) -> Any:
    """A copy that keeps no history of its rounds, which nobody would see."""
    model = clone(estimator)
    names = (name for name in model.get_params() if name.split("__")[-1] == "record_history")
    return model.set_params(**dict.fromkeys(names, False))


def warn_of_gaps(settings: Sequence[Mapping[str, Any]], trials: Sequence[Trial]) -> None:
    """Say which settings have no score, and why."""
    for setting, trial in zip(settings, trials, strict=True):
        missing = [name for name, value in trial.scores.items() if not np.isfinite(value)]
        if missing:
            why = trial.error or f"no finite score of {', '.join(missing)}"
            warnings.warn(
                f"The setting {dict(setting)} is left out: {why}.", UserWarning, stacklevel=6
            )


def held_out_accuracy(
    rows: NDArray[np.intp], model: Any, X: Any, y: NDArray[Any], sample_domain: None = None
) -> float:
    """Accuracy on these source rows of a copy that is fitted without them; 0 if there are none."""
    everything = StackedRows(X, y, sample_domain)
    kept = np.setdiff1d(np.arange(len(y)), rows)
    copy, held_out = everything.take(kept).fit(clone(model)), everything.take(rows)
    return float(np.mean(copy.predict(held_out.X) == held_out.y)) if len(rows) else 0.0
