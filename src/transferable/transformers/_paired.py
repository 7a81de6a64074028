"""Methods with a map for each domain: coefficients of the source's over those of the target's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transferable.domains import Domains
from transferable.engines.spectral.features import Features
from transferable.linalg.eigen import Matrix
from transferable.transformers._pseudo_labels import PseudoLabelTransformer
from transferable.transformers._spectral import Solution, Times

__all__ = ["PairedMapsTransformer"]


class PairedMapsTransformer(PseudoLabelTransformer):
    """Base of JGSA and LPJT.

    The first pseudo-labels come from the rows as they are, so a solver always receives some.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the shared space. None means 30, or as many as there are features if
        fewer. The two maps have twice as many components: those beyond tell the domains apart and
        cost accuracy, but a number may be given that takes them in. One that is too large is
        reduced with a warning.
    regularization : float, default=1.0
        lambda: penalty on the maps' difference, relative to the mean squared length of the rows (of
        their kernel features), so that it means the same in any unit.
    scaling : {"unit", "constraint"}, default="unit"
        "unit" gives each column of W the length 1, as published results need; "constraint" scales
        it so that the numerator is I, as the objective is printed.
    target_variance : float, default=1.0
        mu: weight of the target's variance, and of ||B||^2.
    """

    _needs_factor = True
    _starts_from_rows = True

    def _learn(self, domains: Domains, features: Features) -> Solution:
        values, W = super()._learn(domains, features)
        if domains.n_target == 0:  # rows of one domain have one map
            W[features.rank :] = W[: features.rank]
        return values, W

    def _project(self, times: Times, W: Matrix, source: NDArray[np.bool_]) -> Matrix:
        as_source, as_target = np.split(times(np.concatenate(np.split(W, 2), axis=1)), 2, axis=1)
        return np.where(source[:, None], as_source, as_target)
