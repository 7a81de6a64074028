"""DeepTFDF: a network and TFDF's closed form, trained in turn.

TFDF-V is solved on the network's features of all rows, and its soft labels of the target then train
the network for an epoch; a few such rounds.

The class prior of the target is kept or free. Kept, every class of the source is expected in the
target, the domains are aligned marginally and by class, and all source rows count. That fails where
classes are absent. Free, a class has the frequency of the current labels, at most the source's: its
source rows are subsampled to that share and, if hardly any target row has its label, left out; only
classes are aligned. That fails where a poor start has lost real classes. "auto" solves both and
compares the agreement of neighbouring target rows; the less confident the network, the larger the
required gain.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from torch import Tensor
from torch.nn import functional

from transferable._linalg.arrays import Arrays, to_numpy
from transferable._linalg.search import nearest
from transferable._sklearn import Interval, StrOptions
from transferable.classifiers import TFDFV
from transferable.deep._data import Rows
from transferable.deep._training import Batch, Losses, Phase, Training, outputs
from transferable.deep.base import COUNT, POSITIVE, WEIGHT, DeepClassifier
from transferable.deep.networks import Domain
from transferable.domains import Domains
from transferable.events import silence, stage

_ABSENT = 0.3  # a class with less than this share of an even one is taken to be absent
# Required gain in the agreement of neighbours for a free class prior, by the network's confidence:
# linear between these points, and constant below the first.
_CONFIDENCES = (0.5, 0.77, 0.91, 0.96)
_GAINS = (0.03, 0.03, 0.016, 0.004)
_NEIGHBORS = 10
_FEWEST_ROWS = 30  # of the target, whose neighbours are compared
_LANDMARKS = 2000
_EXACT_ROWS = 1000


def information(z: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean entropy of the predictions, and KL(mean prediction || shares)."""
    p = functional.softmax(z, dim=1)
    entropy = -torch.xlogy(p, p).sum(dim=1).mean()
    mean = p.mean(dim=0)
    shares = shares.clamp_min(1e-6)  # a class without any label costs much, not infinitely much
    return entropy, (torch.xlogy(mean, mean) - mean * shares.log()).sum()


class DeepTFDF(DeepClassifier, example="epochs=3, n_rounds=1"):
    """DeepTFDF: TFDF's closed form on the network's features, and training on its labels, in turn.

    First the network is trained on the source. In each round :class:`~transferable.TFDFV` is solved
    on the features of all rows, starting from the network's labels; its scores F give soft labels
    ``q = softmax(F / temperature)``. Then the network is trained for one epoch on

        CE(source) + weight CE(q, target) + information (H(p) + KL(mean p || mean q))

    where a target row counts ``max q``, or 0 unless that is above ``threshold``, and H is the
    entropy of the predictions p on target rows. The network gives the final labels.

    Parameters
    ----------
    weight : float, default=1
        Weight of the target's cross-entropy.
    information : float, default=1
        Weight of entropy and class prior.
    threshold : float, default=0.5
        Least confidence of a soft label that is trained on.
    temperature : float, default=0.1
        Divides TFDF's scores before the softmax.
    n_rounds : int, default=6
        Rounds after the source epochs, each of one epoch.
    class_shares : {"auto", "kept", "free"}, default="auto"
        "kept" assumes the source's class prior, approximately; "free" any, with absent classes.
        "auto" solves both until it selects "free", if neighbouring target rows then agree clearly
        more often, and the more so the less confident the network is; it needs no target label.
        With fewer than 30 target rows the prior is kept.
    closed_form : TFDFV or None, default=None
        The classifier on the features; None takes ``TFDFV(manifold=5, n_neighbors=10,
        manifold_dim=None)``, over landmarks if there are more than 1,000 rows: a quarter of them,
        at most 2,000.
    epochs : int, default=20
        Epochs on the source, before the rounds.

    Attributes
    ----------
    history_ : list of dict
        As in :class:`SourceOnly`; rounds also have the ``class_shares``, the ``agreement`` of the
        network's labels with those of the closed form, and that of neighbours.
    classes_, transduction_, network_, input_shape_
        As in :class:`SourceOnly`.
    """

    weight: float = 1.0
    information: float = 1.0
    threshold: float = 0.5
    temperature: float = 0.1
    n_rounds: int = 6
    class_shares: str = "auto"
    closed_form: BaseEstimator | None = None

    _parameter_constraints = {  # noqa: RUF012
        "weight": [WEIGHT],
        "information": [WEIGHT],
        "threshold": [Interval(Real, 0, 1, closed="both")],
        "temperature": [POSITIVE],
        "n_rounds": [COUNT],
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
        """Solve for the target's labels, and restart the optimiser."""
        stage("Solving the closed form")
        device = "cpu" if self.deterministic else training.device.type
        problem = _FeatureProblem(training, self.closed_form, device)
        # A class prior once set free stays free.
        freed = any(entry.get("class_shares") == "free" for entry in training.history)
        found = problem.solve("free" if freed else self.class_shares)
        q = softmax(found.scores / self.temperature, axis=1)
        labels = torch.as_tensor(q, dtype=torch.float32).to(training.device)
        sure = labels.amax(dim=1)
        trust = torch.where(sure > self.threshold, sure, 0.0)  # 0 where no class stands out
        class_weights = torch.as_tensor(found.class_weights).to(labels)
        training.guide = labels, trust, labels.mean(dim=0), class_weights
        training.notes = {
            "class_shares": found.class_shares,
            "agreement": float(np.mean(found.codes == problem.first)),
            "neighbors": found.neighbors,
            "confidence": problem.confidence,
        }
        self._begin(training)

    def _follow(self, training: Training, batch: Batch) -> Losses:
        """Descend the loss of the source, the soft labels, and the information in predictions."""
        training.forward(batch)
        labels, trust, shares, class_weights = training.guide
        each = functional.cross_entropy(batch.zs, batch.ys, reduction="none")
        q = labels[batch.index]
        from_labels = -(q * functional.log_softmax(batch.zt, dim=1)).sum(dim=1)
        entropy, divergence = information(batch.zt, shares)
        losses = {
            "source": (class_weights[batch.ys] * each).mean(),
            "labels": self.weight * (trust[batch.index] * from_labels).mean(),
            "entropy of target": self.information * entropy,
            "shares of target": self.information * divergence,
        }
        training.descend(losses)
        return losses


def _unit_features(
    training: Training, rows: Rows, domain: Domain
) -> tuple[NDArray[np.float32], NDArray[np.intp], float]:
    """Return features of unit length, the network's labels, and their confidence."""
    features, codes, sure = [], [], []
    for f, z in outputs(training.network, rows, domain, autocast=training.autocast):
        features.append(functional.normalize(f, dim=1).cpu().numpy())
        top = functional.softmax(z, dim=1).max(dim=1)
        codes.append(top.indices.cpu().numpy())
        sure.append(top.values.cpu().numpy())
    training.network.train()
    return np.concatenate(features), np.concatenate(codes), float(np.concatenate(sure).mean())


@dataclass(frozen=True)
class _Solution:
    """Scores of the target rows, the weight of each source class, and how it was found."""

    scores: NDArray[np.float64]  # minus infinity for classes that were left out
    class_weights: NDArray[np.float64]
    class_shares: str
    neighbors: dict[str, float] = field(default_factory=dict)  # agreement of neighbours

    @property
    def codes(self) -> NDArray[np.intp]:
        """Classes by the highest score."""
        return self.scores.argmax(axis=1)


class _Given(ClassifierMixin, BaseEstimator):
    """Known first labels of the target rows, in the form of an estimator."""

    def __init__(self, labels: NDArray[np.intp]) -> None:
        self.labels = labels

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        return self.labels


class _FeatureProblem:
    """Unit features of both domains, and the network's labels of the target.

    `first` are these labels, `confidence` is their mean probability.
    """

    def __init__(self, training: Training, model: Any, device: str) -> None:
        self.model, self.device = model, device
        self.ys, self.n_classes = training.domains.y, training.domains.n_classes
        self.Zs, _, _ = _unit_features(training, training.source, "source")
        target = _unit_features(training, training.target, training.domain)
        self.Zt, self.first, self.confidence = target

    def solve(self, class_shares: str) -> _Solution:
        """Solve with the requested class prior, or with the one that neighbours support."""
        few = len(self.Zt) < _FEWEST_ROWS and class_shares == "auto"
        if class_shares == "kept" or few:
            return self._kept()
        if class_shares == "free":
            return self._free()
        kept, free = self._kept(), self._free()
        rows = Arrays.on(self.device).table(self.Zt)
        neighbors = to_numpy(nearest(rows, k=_NEIGHBORS).indices)
        labels = {"network": self.first, "kept": kept.codes, "free": free.codes}
        agreement = {
            name: float(np.mean(codes[neighbors] == codes[:, None]))
            for name, codes in labels.items()
        }
        wanted = np.interp(self.confidence, _CONFIDENCES, _GAINS, left=np.inf)
        chosen = free if agreement["free"] - agreement["kept"] > wanted else kept
        return replace(chosen, neighbors=agreement)

    def _kept(self) -> _Solution:
        """Solve with all rows of the source."""
        scores = self._scores(np.arange(len(self.ys)), self.first, balance=0.9)
        return _Solution(scores, np.ones(self.n_classes), "kept")

    def _free(self) -> _Solution:
        """Solve with as many source rows of each class as the labels have."""
        in_source = np.bincount(self.ys, minlength=self.n_classes) / len(self.ys)
        shares = np.bincount(self.first, minlength=self.n_classes) / len(self.first)
        present = shares >= _ABSENT / self.n_classes
        present[np.argsort(shares)[-2:]] = True  # a classifier needs two
        weights = np.minimum(1.0, shares / in_source)
        rng = np.random.default_rng(0)
        kept = []
        for c, share in enumerate(np.where(present, np.maximum(weights, 1e-9), 0.0)):
            rows = np.flatnonzero(self.ys == c)
            kept.append(rng.permutation(rows)[: int(np.ceil(share * len(rows)))])
        first = np.where(present[self.first], self.first, np.argmax(shares))
        scores = self._scores(np.sort(np.concatenate(kept)), first, balance=1.0)
        return _Solution(scores, weights, "free")

    def _scores(
        self, rows: NDArray[np.intp], first: NDArray[np.intp], *, balance: float
    ) -> NDArray[np.float64]:
        """Return TFDF-V's scores of the target rows, from these source rows and first labels."""
        present, codes = np.unique(self.ys[rows], return_inverse=True)
        n_source = len(rows)
        X = np.concatenate([self.Zs[rows], self.Zt])
        y = np.concatenate([codes, np.zeros(len(self.Zt), dtype=codes.dtype)])
        marks = np.repeat([1, -1], [n_source, len(self.Zt)])
        # The classifier gets rows in the order of Domains, and so must the labels.
        order = Domains.from_stacked(X, y, marks).order[n_source:] - n_source
        start = _Given(np.searchsorted(present, first)[order])
        if self.model is not None:
            model = clone(self.model)
        else:
            n = len(X)
            model = TFDFV(
                manifold=5.0,
                manifold_dim=None,
                n_neighbors=min(10, n - 1),
                n_landmarks=min(_LANDMARKS, n // 4) if n > _EXACT_ROWS else None,
                class_shares="source",  # the class prior is kept or freed here, by the rule above
                device=self.device,
            )
        model.set_params(estimator=start, balance=balance)
        with silence():
            scores = model.fit(X, y, sample_domain=marks).decision_function(self.Zt)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores]) / 2
        out = np.full((len(self.Zt), self.n_classes), -np.inf)
        out[:, present] = scores
        return out
