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
