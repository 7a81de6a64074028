"""DeepTFDF: a network and TFDF's closed form teach each other.

The network's features of all rows go into TFDF-V, whose soft labels of the target then train the
network for an epoch; a few such rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor
from torch.nn import functional

from transferable._sklearn import Interval, StrOptions
from transferable.deep._base import DeepClassifier
from transferable.deep._closed_form import FeatureProblem
from transferable.deep._data import Rows
from transferable.deep._parameters import WEIGHT, estimator
from transferable.deep._training import Batch, Losses, Phase, Training, outputs
from transferable.deep.networks import Domain
from transferable.events import stage

__all__ = ["DeepTFDF", "information"]


def information(z: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Mean entropy of the predictions, and KL(mean prediction || shares)."""
    p = functional.softmax(z, dim=1)
    entropy = -torch.xlogy(p, p).sum(dim=1).mean()
    mean = p.mean(dim=0)
    shares = shares.clamp_min(1e-6)  # a class that nobody is labelled with costs much, not all
    return entropy, (torch.xlogy(mean, mean) - mean * shares.log()).sum()


@dataclass(frozen=True)
class _Guide:
    """What a round teaches: labels of the target rows, weights of the source's classes."""

    labels: Tensor  # soft, n_target x n_classes
    trust: Tensor  # of each row; 0 where no class stands out
    shares: Tensor  # of the classes among the labels
    class_weights: Tensor


@estimator
class DeepTFDF(DeepClassifier):
    """DeepTFDF: TFDF's closed form on the network's features, and training on its labels, in turn.

    First the network is trained on the source. In each round :class:`~transferable.TFDFV` is solved
    on the features of all rows, starting from the network's labels; its scores F give soft labels
    ``q = softmax(F / temperature)``. Then the network is trained for one epoch on

        CE(source) + weight CE(q, target) + information (H(p) + KL(mean p || mean q))

    where a target row counts ``max q``, and nothing unless that is above ``threshold``, H is the
    entropy of the predictions p on target rows. The network labels rows in the end.

    Parameters
    ----------
    weight : float, default=1
        Weight of the target's cross-entropy.
    information : float, default=1
        Weight of entropy and class shares.
    threshold : float, default=0.5
        How sure a soft label must be to be learnt from.
    temperature : float, default=0.1
        Divides TFDF's scores before the softmax.
    n_rounds : int, default=6
        Rounds after the source epochs, each of one epoch.
    class_shares : {"auto", "kept", "free"}, default="auto"
        Whether the target is taken to have the source's classes in about the source's shares
        ("kept"), or any shares, classes that are absent among them ("free"). "auto" solves both
        until it takes "free", if neighbouring target rows then agree clearly more often, and the
        more so the less sure the network is; no target label is needed for that. Fewer than 30
        target rows keep the shares.
    closed_form : TFDFV or None, default=None
        The classifier on the features; None takes ``TFDFV(manifold=5, n_neighbors=10,
        manifold_dim=None)``, over landmarks if there are more than 1,000 rows: a quarter of them,
        at most 2,000.
    epochs : int, default=20
        Epochs on the source, before the rounds.

    Attributes
    ----------
    history_ : list of dict
        As in :class:`SourceOnly`; rounds tell also the ``class_shares`` taken, the ``agreement`` of
        the network's labels with those of the closed form, and how often neighbours agree.
    classes_, transduction_, network_, input_shape_
        As in :class:`SourceOnly`.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> from transferable.deep import DeepTFDF
    >>> task = load_printed_to_handwritten()
    >>> model = DeepTFDF(epochs=10, n_rounds=1)
    >>> model = model.adapt(task.Xs[::7], task.ys[::7], task.Xt[::7])
    >>> model.predict(task.Xt).shape
    (1797,)
    """

    weight: float = 1.0
    information: float = 1.0
    threshold: float = 0.5
    temperature: float = 0.1
    n_rounds: int = 6
    class_shares: str = "auto"
    closed_form: BaseEstimator | None = None

    _parameter_constraints = DeepClassifier._parameter_constraints | {
        "weight": [WEIGHT],
        "information": [WEIGHT],
        "threshold": [Interval(Real, 0, 1, closed="both")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
        "class_shares": [StrOptions({"auto", "free", "kept"})],
        "closed_form": [BaseEstimator, None],
    }

    def _phases(self, has_target: bool) -> list[Phase]:
        source = super()._phases(has_target)
        if not has_target:
            return source
        rounds = [
            Phase(f"round {k + 1}", 1, self._follow, True, self._begin_round)
            for k in range(self.n_rounds)
        ]
        return source + rounds

    def _begin_round(self, training: Training) -> None:
        """Solve for the target's labels, and begin anew with the optimiser."""
        stage("Solving the closed form")
        Zs, _, _ = _unit_features(training, training.source, "source")
        Zt, first, confidence = _unit_features(training, training.target, training.domain)
        problem = FeatureProblem(
            Zs=Zs,
            ys=training.codes.cpu().numpy(),
            Zt=Zt,
            first=first,
            confidence=confidence,
            n_classes=training.n_classes,
            model=self.closed_form,
            device="cpu" if self.deterministic else training.device.type,
        )
        found = problem.solve(self._wanted_shares(training))
        labels = torch.as_tensor(found.soft_labels(self.temperature), dtype=torch.float32)
        labels = labels.to(training.device)
        sure = labels.amax(dim=1)
        training.guide = _Guide(
            labels=labels,
            trust=torch.where(sure > self.threshold, sure, 0.0),
            shares=labels.mean(dim=0),
            class_weights=torch.as_tensor(found.class_weights).to(labels),
        )
        training.notes = {
            "class_shares": found.class_shares,
            "agreement": float(np.mean(found.codes == first)),
            "neighbors": found.neighbors,
            "confidence": confidence,
        }
        self._begin(training)

    def _wanted_shares(self, training: Training) -> str:
        """What was asked for; shares that a round has set free stay so."""
        freed = any(entry.get("class_shares") == "free" for entry in training.history)
        return "free" if freed else self.class_shares

    def _follow(self, training: Training, batch: Batch) -> Losses:
        """A step on the source, the soft labels, and the information in the predictions."""
        training.forward(batch)
        guide: _Guide = training.guide
        each = functional.cross_entropy(batch.zs, batch.ys, reduction="none")
        q, trust = guide.labels[batch.index], guide.trust[batch.index]
        from_labels = -(q * functional.log_softmax(batch.zt, dim=1)).sum(dim=1)
        entropy, divergence = information(batch.zt, guide.shares)
        losses = {
            "source": (guide.class_weights[batch.ys] * each).mean(),
            "labels": self.weight * (trust * from_labels).mean(),
            "entropy of target": self.information * entropy,
            "shares of target": self.information * divergence,
        }
        training.descend(losses)
        return losses


def _unit_features(
    training: Training, rows: Rows | None, domain: Domain
) -> tuple[NDArray[np.float32], NDArray[np.intp], float]:
    """Features of rows, of unit length, the network's labels, and how sure it is of them."""
    if rows is None:
        raise ValueError("a round needs target rows")
    features, codes, sure = [], [], []
    for f, z in outputs(training.network, rows, domain):
        features.append(functional.normalize(f, dim=1).cpu().numpy())
        top = functional.softmax(z, dim=1).max(dim=1)
        codes.append(top.indices.cpu().numpy())
        sure.append(top.values.cpu().numpy())
    training.network.train()
    return np.concatenate(features), np.concatenate(codes), float(np.concatenate(sure).mean())
