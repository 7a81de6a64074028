"""Trying one setting after another: in an order that reuses most, kept as they finish."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from transferable._store import parse_line
from transferable.events import silence
from transferable.model_selection._problem import Problem, Scorers
from transferable.model_selection._scorer import Evidence, LabelFreeScorer
from transferable.workspace import sharing

__all__ = ["Trial", "keyed_trial", "run_trials", "warn_of_gaps"]

# Settings that agree in these share kernels, graphs and factorisations; the later the finer.
_COSTLY = (
    *("manifold_dim", "kernel", "gamma", "degree", "coef0", "n_components"),
    *("n_neighbors", "manifold", "variance", "ridge"),
)


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
    problem: Problem, settings: Sequence[Mapping[str, Any]], scorers: Scorers, n_jobs: int | None
) -> Iterator[tuple[int, Trial]]:
    """Try every setting; yields its position and what became of it, group by group."""
    groups: dict[str, list[int]] = {}
    for position in sorted(range(len(settings)), key=lambda i: _group(settings[i])):
        groups.setdefault(_group(settings[position]), []).append(position)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    with sharing():
        answers = parallel(
            delayed(_try_group)(problem, [settings[i] for i in group], scorers)
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
    problem: Problem, settings: Sequence[Mapping[str, Any]], scorers: Scorers
) -> list[Trial]:
    labels_only = all(getattr(scorer, "labels_only", False) for scorer in scorers.values())
    with sharing(labels_only=labels_only), silence():
        return [_try(problem, setting, scorers) for setting in settings]


def _try(problem: Problem, setting: Mapping[str, Any], scorers: Scorers) -> Trial:
    """Fit one setting and ask every scorer; what goes wrong is kept, not raised."""
    X, y, marks = problem.X, problem.y, problem.sample_domain
    start = perf_counter()
    nothing = dict.fromkeys(scorers, math.nan)
    try:
        model = _without_history(problem.estimator).set_params(**setting)
        model.fit(X, y) if marks is None else model.fit(X, y, sample_domain=marks)
    except Exception as error:
        return Trial(nothing, perf_counter() - start, 0.0, f"{type(error).__name__}: {error}")
    fitted = perf_counter()
    evidence = Evidence(model, X, y, marks, just_fitted=True)
    scores, errors = nothing, []
    for name, scorer in scorers.items():
        try:
            scores[name] = float(
                scorer.score(evidence)
                if isinstance(scorer, LabelFreeScorer)
                else scorer(model, X, y, sample_domain=marks)
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
                f"The setting {dict(setting)} is left out: {why}.", UserWarning, stacklevel=4
            )
