"""Settings ranked by several scores at once, and the scorers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from transferable.model_selection._scorer import LabelFreeScorer
from transferable.model_selection.agreement import AgreementScore
from transferable.model_selection.circular import CircularScore
from transferable.model_selection.confidence import (
    ConfusionScore,
    EntropyScore,
    InformationScore,
)
from transferable.model_selection.importance import (
    DevScore,
    ImportanceWeightedScore,
)
from transferable.model_selection.neighborhood import (
    DensityScore,
    NeighborsScore,
    SilhouetteScore,
)

__all__ = ["BESIDE_ANCHOR", "RECOMMENDED", "SCORERS", "RankSum", "Scoring", "resolve"]

SCORERS: dict[str, LabelFreeScorer] = {
    "importance_weighted": ImportanceWeightedScore(),
    "dev": DevScore(),
    "entropy": EntropyScore(),
    "information": InformationScore(),
    "density": DensityScore(),
    "circular": CircularScore(),
    "confusion": ConfusionScore(),
    "silhouette": SilhouetteScore(),
    "neighbors": NeighborsScore(),
    "agreement": AgreementScore(),
}


@dataclass(frozen=True)
class RankSum:
    """The sum of a setting's ranks under several scores.

    Single scores fail in different places; a setting that several of them rank high is seldom bad.
    Ranks need more than one setting: use it as the ``scoring`` of
    :class:`~transferable.model_selection.LabelFreeSearch`. It assumes that the parts fail
    independently, and fails where most of them do.

    Parameters
    ----------
    parts : tuple of str
        Names of scorers.

    References
    ----------
    J. de Borda, "Memoire sur les elections au scrutin", 1781, for adding up ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.model_selection import RankSum
    >>> scores = {"circular": np.array([0.5, 0.9, 0.8]), "neighbors": np.array([0.1, 0.2, 0.7])}
    >>> RankSum(("circular", "neighbors")).combine(scores)
    array([2., 5., 5.])
    """

    parts: tuple[str, ...]

    def combine(self, scores: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The sum of ranks, 1 for the lowest score; NaN for settings that lack a score.

        Parameters
        ----------
        scores : mapping of str to ndarray of shape (n_settings,)
            Scores of all settings by the name of the scorer.

        Returns
        -------
        total : ndarray of shape (n_settings,)
            Higher is better.
        """
        table = np.column_stack([scores[part] for part in self.parts])
        total = np.full(len(table), np.nan)
        whole = np.isfinite(table).all(axis=1)
        if whole.any():
            total[whole] = rankdata(table[whole], axis=0).sum(axis=1)
        return total


Scoring = str | Callable[..., float] | RankSum

# Held against other combinations on 28 real tasks in docs/selection.md, alone and, over several
# grids, beside an anchor.
RECOMMENDED = RankSum(("circular", "neighbors"))
BESIDE_ANCHOR = "neighbors"


def resolve(
    scoring: Scoring | Mapping[str, Scoring], *, recommended: RankSum | str = RECOMMENDED
) -> tuple[dict[str, Callable[..., float]], dict[str, RankSum | str]]:
    """The scorers that must be asked, and what each named score is made of."""
    named = dict(scoring) if isinstance(scoring, Mapping) else {"score": scoring}
    scorers: dict[str, Callable[..., float]] = {}
    columns: dict[str, RankSum | str] = {}
    for name, wanted in named.items():
        wanted = recommended if wanted == "recommended" else wanted
        if isinstance(wanted, RankSum):
            scorers |= {part: _known(part) for part in wanted.parts}
            columns[name] = wanted
        elif isinstance(wanted, str):
            scorers[wanted] = _known(wanted)
            columns[name] = wanted
        elif callable(wanted):
            scorers[name] = wanted
            columns[name] = name
        else:
            raise TypeError(
                f"scoring={wanted!r} is no scorer; give a name, a callable "
                "scorer(estimator, X, y, sample_domain), a RankSum or a dict of such."
            )
    return scorers, columns


def _known(name: str) -> Any:
    if name not in SCORERS:
        raise ValueError(f"{name!r} is no scorer; choose from recommended, {', '.join(SCORERS)}.")
    return SCORERS[name]
