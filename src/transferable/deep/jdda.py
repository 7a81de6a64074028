"""JDDA: covariances of the domains, and source features that keep classes apart.

Chen, Chen, Jiang and Jin, "Joint domain alignment and discriminative feature learning for
unsupervised deep domain adaptation", 2019.
"""

from __future__ import annotations

from numbers import Real

from torch import Tensor

from transferable._sklearn import Interval
from transferable.deep._parameters import WEIGHT
from transferable.deep._penalised import PenalisedClassifier, estimator
from transferable.deep._training import Batch, Losses, Training
from transferable.deep.coral import covariance_distance

__all__ = ["JDDA", "pair_margins"]


def pair_margins(f: Tensor, y: Tensor, near: float, far: float) -> Tensor:
    """Mean over pairs of max(0, D - near)^2 in one class and max(0, far - D)^2 across classes.

    D is the squared distance.
    """
    squares = f.square().sum(dim=1)
    D = (squares[:, None] + squares[None, :] - 2 * f @ f.T).clamp_min(0.0)
    same = (y[:, None] == y[None, :]).to(f.dtype)
    within = (D - near).clamp_min(0.0).square()
    across = (far - D).clamp_min(0.0).square()
    return (same * within + (1 - same) * across).mean()


@estimator
class JDDA(PenalisedClassifier):
    """Joint domain alignment and discriminative features, in the form that compares pairs of rows.

    Adds ``weight ||Cov f_s - Cov f_t||_F^2 / (4 d^2)`` and ``discriminative / n`` times the mean
    over pairs of a batch's n source rows of ``max(0, D - near)^2`` (one class) and
    ``max(0, far - D)^2`` (two classes), D their features' squared distance, to the source's
    cross-entropy.

    Parameters
    ----------
    weight : float, default=100
        Weight of the covariances.
    discriminative : float, default=0.0001
        Weight of the pairs. The authors' code has 0.03 and divides by n^2 once more.
    near : float, default=0
        The squared distance to which rows of one class are brought.
    far : float, default=100
        The same for rows of two classes.

    References
    ----------
    C. Chen, Z. Chen, B. Jiang and X. Jin, "Joint domain alignment and discriminative feature
    learning for unsupervised deep domain adaptation", AAAI 2019.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import JDDA
    >>> task = load_printed_to_handwritten()
    >>> model = JDDA(epochs=3).adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    weight: float = 100.0
    discriminative: float = 1e-4
    near: float = 0.0
    far: float = 100.0

    _parameter_constraints = PenalisedClassifier._parameter_constraints | {
        "discriminative": [WEIGHT],
        "near": [Interval(Real, 0, None, closed="left")],
        "far": [Interval(Real, 0, None, closed="left")],
    }

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        pairs = pair_margins(batch.fs, batch.ys, self.near, self.far) / len(batch.fs)
        return {
            "covariances": self.weight * covariance_distance(batch.fs, batch.ft),
            "pairs": self.discriminative * pairs,
        }
