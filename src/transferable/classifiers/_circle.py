"""The way back: from the classes a fitted model predicts for the target to those of the source.

The target rows with their predicted classes take the place of the source. Features, kernel, ridge
and graph are the model's own, so that one factorisation serves all models that agree in them.
Nothing is aligned: on real tasks, aligning too led to no better choices of settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from transferable.classifiers._risk import Alignment
from transferable.domains import Domains
from transferable.linalg.reuse import canonical, remember
from transferable.terms.base import LowRankTerm

if TYPE_CHECKING:
    from transferable.classifiers._base import RiskClassifier

__all__ = ["way_back"]


def way_back(model: RiskClassifier, domains: Domains, target: NDArray[np.intp]) -> NDArray[np.intp]:
    """Classes of the source rows, as the predicted classes of the target rows lead to them.

    Parameters
    ----------
    model : RiskClassifier
        Fitted to the domains.
    domains : Domains
        The rows.
    target : ndarray of shape (n_target,)
        Class codes of the target rows.

    Returns
    -------
    codes : ndarray of shape (n_source,)
        Class codes of the source rows.
    """
    copy = clone(model).set_params(alignment=0.0, manifold=model.manifold_)
    reverse = Domains(
        remember(_target_first, canonical(domains.X), domains.n_source),
        target,
        domains.classes,
        np.roll(domains.order, -domains.n_source),
    )
    problem = copy._problem(reverse, model._features)
    unaligned = Alignment(0.0, LowRankTerm(problem.Y[:, :0]), None)
    return problem.target_codes(problem.scores(problem.solve(unaligned)))


def _target_first(X: Any, n_source: int) -> Any:
    """The same rows, those of the target before those of the source."""
    return X[np.roll(np.arange(X.shape[0]), -n_source)]
