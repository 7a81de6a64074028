"""Small random adaptation problems that several test files share."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch


def small_problem(
    seed: int = 0,
    *,
    n_source: int = 24,
    n_target: int = 18,
    n_features: int = 6,
    n_classes: int = 3,
    shift: float = 0.7,
) -> Bunch:
    """Gaussian classes; the target's are moved and turned. Every class has rows on both sides."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(n_classes, n_features))
    turn = np.eye(n_features) + 0.15 * rng.normal(size=(n_features, n_features))
    ys, yt = np.arange(n_source) % n_classes, np.arange(n_target) % n_classes
    Xs = centres[ys] + rng.normal(size=(n_source, n_features))
    Xt = (centres[yt] + rng.normal(size=(n_target, n_features))) @ turn + shift
    return Bunch(Xs=Xs, ys=ys, Xt=Xt, yt=yt, X=np.vstack([Xs, Xt]))


def random_codes(seed: int, n_source: int, n_target: int, n_classes: int) -> np.ndarray:
    """Class codes, source rows first; the last class has no target row, the others have some."""
    rng = np.random.default_rng(seed)
    source = np.concatenate(
        [np.arange(n_classes), rng.integers(n_classes, size=n_source - n_classes)]
    )
    target = np.concatenate(
        [np.arange(n_classes - 1), rng.integers(n_classes - 1, size=n_target - n_classes + 1)]
    )
    return np.concatenate([source, target])
