"""Weights chosen inside a fit, without target labels: ``ridge="auto"`` and ``alignment="auto"``.

A model is fitted with each candidate, and each is ranked by two scores that fail in different
places: whether its labels of the target lead back to those of the source, and whether neighbouring
target rows get the same label. The sum of ranks decides. Candidates share kernel, graph and, where
only the alignment differs, the factorisation.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone

from transferable.classifiers._circle import way_back
from transferable.classifiers._temperature import uncalibrated
from transferable.events import silence
from transferable.linalg.reuse import reusing
from transferable.metrics import neighbor_consistency

if TYPE_CHECKING:
    from transferable.classifiers._base import RiskClassifier
    from transferable.domains import Domains

__all__ = ["CHOSEN", "choose_weights"]

# Those that are tried, the default first: of equals the first is taken.
CHOSEN: dict[str, tuple[float, ...]] = {
    "ridge": (0.1, 0.01, 1.0),
    "alignment": (10.0, 1.0, 3.0, 30.0),
}


def choose_weights(model: RiskClassifier, domains: Domains) -> dict[str, float]:
    """The best candidate for each weight that is "auto"; without target rows, the defaults."""
    wanted = {name: values for name, values in CHOSEN.items() if getattr(model, name) == "auto"}
    candidates = [dict(zip(wanted, values, strict=True)) for values in product(*wanted.values())]
    if domains.n_target == 0:
        return candidates[0]
    with reusing(), silence(), uncalibrated():
        scores = [_scores(model, domains, candidate) for candidate in candidates]
    return candidates[int(np.argmax(rankdata(scores, axis=0).sum(axis=1)))]


def _scores(
    model: RiskClassifier, domains: Domains, candidate: dict[str, float]
) -> tuple[float, float]:
    """How far a candidate's labels lead back to the source, and agree among neighbours."""
    fitted = clone(model).set_params(**candidate, record_history=False)
    fitted._fit_domains(domains)
    codes = _target_codes(fitted, domains)
    circle = float(np.mean(way_back(fitted, domains, codes) == domains.y))
    return circle, neighbor_consistency(domains.Xt, codes)


def _target_codes(fitted: RiskClassifier, domains: Domains) -> NDArray[np.intp]:
    labels = fitted.transduction_[domains.order[domains.n_source :]]
    return np.searchsorted(domains.classes, labels)
