"""What became of the settings of a search, as scores and as the table ``cv_results_``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from numpy.typing import NDArray

from transferable.model_selection._trials import Trial
from transferable.model_selection.ranking import RankSum

__all__ = ["best_first", "columns_of", "named_scores", "rows_of"]

_PART = "part "  # before the names of scores that others are made of


def named_scores(
    trials: Sequence[Trial], scorers: Mapping[str, Any], columns: Mapping[str, RankSum | str]
) -> dict[str, NDArray[np.float64]]:
    """Scores of all settings by name, those of the parts of rank sums included."""
    table = {name: np.array([trial.scores[name] for trial in trials]) for name in scorers}
    named = {
        name: part.combine(table) if isinstance(part, RankSum) else table[part]
        for name, part in columns.items()
    }
    return {f"{_PART}{name}": values for name, values in table.items()} | named


def best_first(scores: NDArray[np.float64], trials: Sequence[Trial]) -> list[int]:
    """Positions of the settings that have a score, best first; an error if none has."""
    finite = np.flatnonzero(np.isfinite(scores))
    if len(finite) == 0:
        why = next((trial.error for trial in trials if trial.error), "all scores are NaN")
        raise ValueError(f"None of the {len(trials)} settings has a score; the first says: {why}.")
    return [int(i) for i in finite[np.argsort(-scores[finite], kind="stable")]]


def rows_of(
    settings: Sequence[Mapping[str, Any]],
    trials: Sequence[Trial],
    scores: Mapping[str, NDArray[np.float64]],
    iteration: int,
    n_rows: int,
) -> list[dict[str, Any]]:
    """What `cv_results_` tells of each setting in one round."""
    return [
        {
            "params": dict(setting),
            "scores": {name: float(values[i]) for name, values in scores.items()},
            "mean_fit_time": trial.fit_time,
            "mean_score_time": trial.score_time,
            "error": trial.error,
            "iter": iteration,
            "n_resources": n_rows,
        }
        for i, (setting, trial) in enumerate(zip(settings, trials, strict=True))
    ]


def columns_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The rows as columns, under scikit-learn's names."""
    plain = ("mean_fit_time", "mean_score_time", "error", "iter", "n_resources")
    results: dict[str, Any] = {name: np.array([row[name] for row in rows]) for name in plain}
    results["params"] = [row["params"] for row in rows]
    for name in sorted({name for row in rows for name in row["params"]}):
        column = MaskedArray(np.empty(len(rows), dtype=object), mask=True)
        for i, row in enumerate(rows):
            if name in row["params"]:
                column[i] = row["params"][name]
        results[f"param_{name}"] = column
    for name in rows[0]["scores"]:
        values = np.array([row["scores"][name] for row in rows])
        if name.startswith(_PART):
            results[f"score_{name.removeprefix(_PART)}"] = values
            continue
        results[f"mean_test_{name}"] = values
        results[f"rank_test_{name}"] = _ranks(values, results["iter"])
    return results


def _ranks(scores: NDArray[np.float64], rounds: NDArray[np.intp]) -> NDArray[np.intp]:
    """1 for the best. Whoever got into a later round is ahead; those without a score are last."""
    known = np.where(np.isnan(scores), -np.inf, scores)
    first_of_equals = -np.arange(len(scores))
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[np.lexsort((first_of_equals, known, rounds))] = np.arange(len(scores), 0, -1)
    return ranks
