"""What a search is about: settings of an estimator, and rows to try them on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from transferable._sklearn import safe_indexing
from transferable.domains import Domains

__all__ = ["DEFAULT_GRID", "Problem", "Scorers", "digest_of", "settings_of"]

Scorers = Mapping[str, Callable[..., float]]

# Of TFDF and TFDF-V; what docs/selection.md reports is about this grid.
DEFAULT_GRID: dict[str, list[float]] = {
    "ridge": [0.01, 0.1, 1.0],
    "alignment": [0.1, 1.0, 10.0],
    "manifold": [0.1, 1.0, 10.0],
    "n_neighbors": [5, 20],
}


@dataclass(frozen=True)
class Problem:
    """An estimator and the rows that settings are tried on."""

    estimator: Any
    X: Any
    y: NDArray[Any]
    sample_domain: NDArray[Any] | None

    def key(self, setting: Mapping[str, Any], scorers: Scorers, digest: str) -> str:
        """Name of a trial: the same rows, estimator, setting and scorers give the same."""
        model = clone(self.estimator).set_params(**setting)
        parameters = sorted((name, repr(value)) for name, value in model.get_params().items())
        asked = sorted((name, repr(scorer)) for name, scorer in scorers.items())
        text = json.dumps([type(model).__name__, parameters, asked, digest])
        return hashlib.sha256(text.encode()).hexdigest()

    def subset(self, domains: Domains, share: float, seed: int) -> Problem:
        """A share of the rows of each source class and of the target."""
        if share == 1.0:
            return self
        rng = np.random.default_rng(seed)
        groups = [np.flatnonzero(domains.y == code) for code in range(domains.n_classes)]
        groups.append(np.arange(domains.n_source, len(domains.order)))
        parts = [rng.choice(g, max(1, round(share * len(g))), replace=False) for g in groups]
        rows = np.sort(domains.order[np.concatenate(parts)])
        marks = None if self.sample_domain is None else self.sample_domain[rows]
        return Problem(self.estimator, safe_indexing(self.X, rows), self.y[rows], marks)


def settings_of(param_grid: Any) -> list[dict[str, Any]]:
    """Every setting of a grid, of the default one if it is None; an error if there is none."""
    param_grid = DEFAULT_GRID if param_grid is None else param_grid
    grids = _grids(param_grid)
    empty = [name for grid in grids for name, values in grid.items() if not len(values)]
    if empty or not grids:
        what = f"no value for {empty[0]!r}" if empty else "no settings"
        raise ValueError(
            f"param_grid={param_grid!r} holds {what}; give at least one value for each parameter."
        )
    return list(ParameterGrid(param_grid))


def _grids(param_grid: Any) -> list[Mapping[str, Any]]:
    grids = [param_grid] if isinstance(param_grid, Mapping) else list(param_grid)
    return [grid for grid in grids if grid]


def digest_of(domains: Domains) -> str:
    """A name for the rows and the source's labels, whatever their order."""
    content = domains.X.toarray() if hasattr(domains.X, "toarray") else domains.X
    text = hashlib.sha256(np.ascontiguousarray(content).tobytes() + domains.y.tobytes())
    text.update(repr(domains.classes.tolist()).encode())
    return text.hexdigest()
