"""TFDF-V on a network's features, with the target's class shares kept or free.

Kept, every class of the source is looked for in the target, the domains are aligned as wholes as
well as by class, and all source rows count. That fails where classes are absent. Free, a class
counts as often as the present labels say, at most as in the source: its source rows are thinned
out to that share and, if next to no target row has its label, left out; only classes are aligned.
That fails where a poor start has lost real classes. :meth:`FeatureProblem.solve` tries both and
asks the target's neighbourhoods; the less sure the network is, the more they must gain.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from transferable.classifiers import TFDFV
from transferable.domains import Domains
from transferable.events import silence
from transferable.linalg.arrays import Arrays, to_numpy
from transferable.linalg.search import nearest

__all__ = ["FeatureProblem", "Solution"]

_ABSENT = 0.3  # a class with less than this share of an even one is taken to be absent
# By how much more often neighbours must agree for shares to be free, by the network's confidence:
# between these points along a line, and never below the first confidence.
_CONFIDENCES = (0.5, 0.77, 0.91, 0.96)
_GAINS = (0.03, 0.03, 0.016, 0.004)
_NEIGHBORS = 10
_FEWEST_ROWS = 30  # of the target, on which neighbours are asked
_LANDMARKS = 2000
_EXACT_ROWS = 1000


@dataclass(frozen=True)
class Solution:
    """Scores of the target rows, the weight of each class of the source, and how it was found."""

    scores: NDArray[np.float64]  # minus infinity for classes that were left out
    class_weights: NDArray[np.float64]
    class_shares: str
    neighbors: dict[str, float] = field(default_factory=dict)  # how often neighbours agree

    @property
    def codes(self) -> NDArray[np.intp]:
        """Classes by the highest score."""
        return self.scores.argmax(axis=1)

    def soft_labels(self, temperature: float) -> NDArray[np.float64]:
        """Scores as distributions over the classes."""
        return softmax(self.scores / temperature, axis=1)


class _Given(ClassifierMixin, BaseEstimator):
    """First labels of the target rows that are known already."""

    def __init__(self, labels: NDArray[np.intp]) -> None:
        self.labels = labels

    def fit(self, X: Any, y: Any) -> Self:
        """Nothing to learn."""
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The labels, of rows in the order they were given for."""
        return self.labels


@dataclass(frozen=True)
class FeatureProblem:
    """Features of both domains, of unit length, and the labels a network gave the target's.

    Attributes
    ----------
    Zs, Zt : ndarray of shapes (n_source, d) and (n_target, d)
        Features.
    ys, first : ndarray of shapes (n_source,) and (n_target,)
        The source's classes and the target's present labels.
    confidence : float
        Mean probability that the network gave these labels.
    n_classes : int
        Number of classes.
    model : TFDFV or None
        Whose settings are used.
    device : str
        Where to compute.
    """

    Zs: NDArray[np.float32]
    ys: NDArray[np.intp]
    Zt: NDArray[np.float32]
    first: NDArray[np.intp]
    confidence: float
    n_classes: int
    model: Any
    device: str

    def solve(self, class_shares: str) -> Solution:
        """The solution with shares as asked for, or with those that neighbours prefer."""
        few = len(self.Zt) < _FEWEST_ROWS and class_shares == "auto"
        if class_shares == "kept" or few:
            return self.kept()
        if class_shares == "free":
            return self.free()
        kept, free = self.kept(), self.free()
        labels = {"network": self.first, "kept": kept.codes, "free": free.codes}
        agreement = self.neighbor_agreement(labels)
        wanted = np.interp(self.confidence, _CONFIDENCES, _GAINS, left=np.inf)
        chosen = free if agreement["free"] - agreement["kept"] > wanted else kept
        return replace(chosen, neighbors=agreement)

    def neighbor_agreement(self, labels: dict[str, NDArray[np.intp]]) -> dict[str, float]:
        """Share of a target row's nearest target rows with its label, for several labellings."""
        rows = Arrays.on(self.device).table(self.Zt)
        neighbors = to_numpy(nearest(rows, k=_NEIGHBORS).indices)
        return {
            name: float(np.mean(codes[neighbors] == codes[:, None]))
            for name, codes in labels.items()
        }

    def kept(self) -> Solution:
        """With all rows of the source."""
        scores = self._scores(np.arange(len(self.ys)), self.first, balance=0.9)
        return Solution(scores, np.ones(self.n_classes), "kept")

    def free(self) -> Solution:
        """With as many source rows of each class as the labels say."""
        in_source = np.bincount(self.ys, minlength=self.n_classes) / len(self.ys)
        shares = np.bincount(self.first, minlength=self.n_classes) / len(self.first)
        present = shares >= _ABSENT / self.n_classes
        present[np.argsort(shares)[-2:]] = True  # a classifier needs two
        weights = np.minimum(1.0, shares / in_source)
        rows = self._thinned(np.where(present, np.maximum(weights, 1e-9), 0.0))
        first = np.where(present[self.first], self.first, np.argmax(shares))
        return Solution(self._scores(rows, first, balance=1.0), weights, "free")

    def _thinned(self, weights: NDArray[np.float64]) -> NDArray[np.intp]:
        """Positions of source rows, of each class the share that its weight says."""
        rng = np.random.default_rng(0)
        kept = []
        for c, weight in enumerate(weights):
            rows = np.flatnonzero(self.ys == c)
            kept.append(rng.permutation(rows)[: int(np.ceil(weight * len(rows)))])
        return np.sort(np.concatenate(kept))

    def _scores(
        self, rows: NDArray[np.intp], first: NDArray[np.intp], *, balance: float
    ) -> NDArray[np.float64]:
        """TFDF-V's scores of the target rows, from these source rows and first labels."""
        present, codes = np.unique(self.ys[rows], return_inverse=True)
        n_source = len(rows)
        X = np.concatenate([self.Zs[rows], self.Zt])
        y = np.concatenate([codes, np.zeros(len(self.Zt), dtype=codes.dtype)])
        marks = np.repeat([1, -1], [n_source, len(self.Zt)])
        # The classifier sees rows in the order of Domains, and so must the labels stand.
        order = Domains.from_stacked(X, y, marks).order[n_source:] - n_source
        start = _Given(np.searchsorted(present, first)[order])
        model = self._model(len(X)).set_params(estimator=start, balance=balance)
        with silence():
            scores = model.fit(X, y, sample_domain=marks).decision_function(self.Zt)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores]) / 2
        out = np.full((len(self.Zt), self.n_classes), -np.inf)
        out[:, present] = scores
        return out

    def _model(self, n_rows: int) -> Any:
        if self.model is not None:
            return clone(self.model)
        return TFDFV(
            manifold=5.0,
            manifold_dim=None,
            n_neighbors=min(10, n_rows - 1),
            n_landmarks=min(_LANDMARKS, n_rows // 4) if n_rows > _EXACT_ROWS else None,
            class_shares="source",  # shares are kept or freed here, by the rule above
            record_history=False,
            device=self.device,
        )
