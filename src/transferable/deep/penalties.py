"""Methods that add a penalty on features or scores of a batch to the source's cross-entropy."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from transferable.deep._training import Batch, Losses, Training
from transferable.deep.base import COUNT, POSITIVE, WEIGHT, PenalisedClassifier

_FLAT = 1e-12  # under the root: a norm has no slope at zero


def mean_distance(fs: Tensor, ft: Tensor) -> Tensor:
    """Return ||mean fs - mean ft||^2."""
    return (fs.mean(dim=0) - ft.mean(dim=0)).square().sum()


class DDC(PenalisedClassifier, example="epochs=3"):
    """Deep domain confusion: bring the mean features of the domains together.

    Adds ``weight ||mean f_s - mean f_t||^2`` of the features of a batch to the cross-entropy.

    Parameters
    ----------
    weight : float, default=0.1
        Weight of the distance. It is not scale-free: the more and the larger the features, the
        smaller it has to be. Published for one layer of 256: 0.25.

    References
    ----------
    E. Tzeng, J. Hoffman, N. Zhang, K. Saenko and T. Darrell, "Deep domain confusion: maximizing for
    domain invariance", 2014.
    """

    weight: float = 0.1

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        return {"means": self.weight * mean_distance(batch.fs, batch.ft)}


def covariance_distance(fs: Tensor, ft: Tensor) -> Tensor:
    """Return ||Cov fs - Cov ft||_F^2 / (4 d^2)."""
    difference = _covariance(fs) - _covariance(ft)
    return difference.square().sum() / (4 * fs.shape[1] ** 2)


def _covariance(f: Tensor) -> Tensor:
    centred = f - f.mean(dim=0)
    return centred.T @ centred / max(len(f) - 1, 1)


class DeepCORAL(PenalisedClassifier, example="epochs=3"):
    """Deep CORAL: bring the covariances of the domains' features together.

    Adds ``weight ||Cov f_s - Cov f_t||_F^2 / (4 d^2)`` to the source's cross-entropy, over the d
    features of a batch.

    Parameters
    ----------
    weight : float, default=100
        Weight of the distance. With 500 features the factor 1 / (4 d^2) is 1e-6, so that weights
        near 1 do nothing.

    References
    ----------
    B. Sun and K. Saenko, "Deep CORAL: correlation alignment for deep domain adaptation", ECCV
    workshops 2016. Theirs compares the scores; ours the features below them, which adapts better.
    """

    weight: float = 100.0

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        return {"covariances": self.weight * covariance_distance(batch.fs, batch.ft)}


def _squared_distances(rows: Tensor) -> Tensor:
    squares = rows.square().sum(dim=1)
    return (squares[:, None] + squares[None, :] - 2 * rows @ rows.T).clamp_min(0.0)


def kernel_distance(a: Tensor, b: Tensor, factors: tuple[float, ...]) -> Tensor:
    """Return MMD^2 of two samples under the mean of Gaussian kernels exp(-d^2 / (factor m)).

    m is the mean squared distance of all pairs of rows of the joint batch, without gradient.
    """
    rows = torch.cat([a, b])
    distances = _squared_distances(rows)
    n = len(rows)
    mean = (distances.detach().sum() / (n * n - n)).clamp_min(torch.finfo(rows.dtype).tiny)
    kernels = [torch.exp(-distances / (factor * mean)) for factor in factors]
    K = torch.stack(kernels).mean(dim=0)
    m = len(a)
    return K[:m, :m].mean() + K[m:, m:].mean() - 2 * K[:m, m:].mean()


class DAN(PenalisedClassifier, example="epochs=3"):
    """Deep adaptation network: maximum mean discrepancy under several kernels, on two layers.

    Adds ``weight (MMD^2(f_s, f_t) + MMD^2(z_s, z_t))`` of the features f and the scores z of a
    batch to the source's cross-entropy.

    Parameters
    ----------
    weight : float, default=1
        Weight of the distances; ten times as much collapsed on digits.
    kernel_factors : tuple of float, default=(0.25, 0.5, 1, 2, 4)
        Bandwidths of the Gaussian kernels, of which the mean is taken, in units of the mean squared
        distance of the rows of a batch.

    References
    ----------
    M. Long, Y. Cao, J. Wang and M. I. Jordan, "Learning transferable features with deep adaptation
    networks", ICML 2015.
    """

    kernel_factors: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)

    _parameter_constraints = {  # noqa: RUF012
        "kernel_factors": [tuple, list],
    }

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        factors = tuple(self.kernel_factors)
        return {
            "features": self.weight * kernel_distance(batch.fs, batch.ft, factors),
            "scores": self.weight * kernel_distance(batch.zs, batch.zt, factors),
        }


def moment_distance(fs: Tensor, ft: Tensor, n_moments: int) -> Tensor:
    """Return ||mean fs - mean ft|| + sum of ||c_k(fs) - c_k(ft)|| for k = 2 .. n_moments.

    c_k are the central moments of each feature, which must lie in an interval of length 1.
    """
    ms, mt = fs.mean(dim=0), ft.mean(dim=0)
    cs, ct = fs - ms, ft - mt
    central = (cs.pow(k).mean(dim=0) - ct.pow(k).mean(dim=0) for k in range(2, n_moments + 1))
    return torch.stack([_norm(ms - mt), *map(_norm, central)]).sum()


def _norm(x: Tensor) -> Tensor:
    return (x.square().sum() + _FLAT).sqrt() - _FLAT**0.5


class CMD(PenalisedClassifier, example="epochs=3"):
    """Central moment discrepancy: bring the moments of every feature together.

    Adds ``weight (||m_s - m_t|| + sum_k ||c_k,s - c_k,t||)`` of the features' means m and central
    moments c_k to the source's cross-entropy. It is a distance on bounded features only: these are
    taken through ``tanh(f) / 2``, of length 1.

    Parameters
    ----------
    weight : float, default=0.1
        Weight of the distance; 1 collapsed with 500 features.
    n_moments : int, default=5
        The highest moment.

    References
    ----------
    W. Zellinger, T. Grubinger, E. Lughofer, T. Natschlaeger and S. Saminger-Platz, "Central moment
    discrepancy (CMD) for domain-invariant representation learning", ICLR 2017.
    """

    weight: float = 0.1
    n_moments: int = 5

    _parameter_constraints = {"n_moments": [COUNT]}  # noqa: RUF012

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        fs, ft = torch.tanh(batch.fs) / 2, torch.tanh(batch.ft) / 2
        return {"moments": self.weight * moment_distance(fs, ft, self.n_moments)}


def pair_margins(f: Tensor, y: Tensor, near: float, far: float) -> Tensor:
    """Return the mean of max(0, D - near)^2 over pairs of a class and max(0, far - D)^2 across.

    D is the squared distance.
    """
    D = _squared_distances(f)
    same = (y[:, None] == y[None, :]).to(f.dtype)
    within = (D - near).clamp_min(0.0).square()
    across = (far - D).clamp_min(0.0).square()
    return (same * within + (1 - same) * across).mean()


class JDDA(PenalisedClassifier, example="epochs=3"):
    """Joint domain alignment and discriminative features, in the form that compares pairs.

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
        Squared distance below which pairs of rows of one class cost nothing.
    far : float, default=100
        Squared distance above which pairs of rows of two classes cost nothing.

    References
    ----------
    C. Chen, Z. Chen, B. Jiang and X. Jin, "Joint domain alignment and discriminative feature
    learning for unsupervised deep domain adaptation", AAAI 2019.
    """

    weight: float = 100.0
    discriminative: float = 1e-4
    near: float = 0.0
    far: float = 100.0

    _parameter_constraints = {  # noqa: RUF012
        "discriminative": [WEIGHT],
        "near": [WEIGHT],
        "far": [WEIGHT],
    }

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        pairs = pair_margins(batch.fs, batch.ys, self.near, self.far) / len(batch.fs)
        return {
            "covariances": self.weight * covariance_distance(batch.fs, batch.ft),
            "pairs": self.discriminative * pairs,
        }


def class_confusion(z: Tensor, temperature: float) -> Tensor:
    """Return the share of the rows of P'WP off its diagonal, a mean over classes.

    P = softmax(z / temperature); W weighs row i with n (1 + exp(-H_i)) / sum, H_i its entropy,
    without gradient.
    """
    P = functional.softmax(z / temperature, dim=1)
    with torch.no_grad():
        entropy = -torch.xlogy(P, P).sum(dim=1)
        certainty = 1.0 + torch.exp(-entropy)
        w = len(P) * certainty / certainty.sum()
    confusion = (w[:, None] * P).T @ P
    confusion = confusion / confusion.sum(dim=1, keepdim=True)
    n_classes = z.shape[1]
    return (confusion.sum() - confusion.trace()) / n_classes


class MCC(PenalisedClassifier, example="epochs=3"):
    """Minimum class confusion: target rows should not lie between classes.

    Adds ``weight`` times the off-diagonal share of the class correlations of target predictions to
    the source's cross-entropy. It assumes that the target has every class.

    A batch should hold several rows of every class. Rows that have become confident have no slope
    any more: the first epochs with the penalty decide whether a group of rows that the source
    mistakes joins its class or stays where it is. Where warm-up takes half of the epochs, and the
    learning rate has decayed, it often stays.

    Parameters
    ----------
    weight : float, default=1
        Weight of the confusion.
    temperature : float, default=2.5
        Divides the scores before the softmax.
    warmup_epochs : int, default=0
        Epochs, of those given, before the penalty is added. A network that begins with random
        weights needs some, or it becomes confident of wrong classes.

    References
    ----------
    Y. Jin, X. Wang, M. Long and J. Wang, "Minimum class confusion for versatile domain adaptation",
    ECCV 2020.
    """

    temperature: float = 2.5

    _parameter_constraints = {  # noqa: RUF012
        "temperature": [POSITIVE]
    }

    def _penalty(self, training: Training, batch: Batch) -> Losses:
        return {"confusion": self.weight * class_confusion(batch.zt, self.temperature)}
