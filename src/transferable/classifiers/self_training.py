"""Self-training: a classifier trained on its most confident pseudo-labels, class by class."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from transferable._sklearn import Interval
from transferable.base import DomainClassifier, class_scores
from transferable.domains import Domains
from transferable.events import iterate, rounds


class SelfTraining(DomainClassifier, example=""):
    """Self-training with class-balanced confidence, for any scikit-learn classifier.

    The classifier is trained on the source and labels the target. In round t of T it is trained on
    the source and on the share ``t / T * trusted`` of each predicted class, its most confident
    rows. Equal shares keep the easy classes from crowding out the others.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Anything with ``decision_function`` or ``predict_proba``; None is a linear SVM.
    trusted : float, default=1.0
        Share of the target rows of each predicted class that the last round trains on.
    max_iter : int, default=10
        Rounds (T).

    Attributes
    ----------
    estimator_ : classifier
        The classifier as of the last round; its classes are positions in `classes_`.
    n_iter_ : int
        Rounds run; 1 without a target.

    Notes
    -----
    :class:`sklearn.semi_supervised.SelfTrainingClassifier` takes rows above one threshold, or the
    most confident of all classes together, and never revises a pseudo-label; with domains apart it
    often takes one class only. Here every round starts from the source again. The idea is
    Yarowsky's [1]_; the balance over classes and the growing share are those of class-balanced
    self-training [2]_, which trains networks, with one share for all T rounds.

    References
    ----------
    .. [1] D. Yarowsky (1995). Unsupervised word sense disambiguation rivaling supervised methods.
       ACL.
    .. [2] Y. Zou, Z. Yu, B. V. K. Vijaya Kumar, J. Wang (2018). Unsupervised domain adaptation for
       semantic segmentation via class-balanced self-training. ECCV.
    """

    family = "pseudo-labels"
    estimator: ClassifierMixin | None = field(default=None, kw_only=False)
    trusted: float = 1.0
    max_iter: int = 10

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "trusted": [Interval(Real, 0, 1, closed="right")],
    }

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]
        return bool(get_tags(self._learner()).input_tags.sparse)

    def _learner(self) -> Any:
        return LinearSVC(dual=False, random_state=0) if self.estimator is None else self.estimator

    def _fit_domains(self, domains: Domains) -> None:
        self.estimator_ = clone(self._learner()).fit(domains.Xs, domains.y)
        self.n_iter_ = self.max_iter if domains.n_target else 1
        for t in rounds(self.n_iter_):
            scores = class_scores(self.estimator_, domains.X)
            iterate(scores.argmax(axis=1), scores)
            share = self.trusted * (t + 1) / self.max_iter
            codes = domains.with_target(most_confident(scores[domains.n_source :], share))
            self.estimator_ = clone(self._learner()).fit(domains.X[codes >= 0], codes[codes >= 0])

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        return class_scores(self.estimator_, rows)


def most_confident(scores: NDArray[np.float64], share: float) -> NDArray[np.intp]:
    """Return codes of the most confident rows, this share of each predicted class; -1 for others.

    A row's highest score is its confidence. A class keeps the largest whole number of rows that is
    not above its share.
    """
    codes = scores.argmax(axis=1)
    trusted = np.full(len(codes), -1)
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        order = np.argsort(-scores[rows, code], kind="stable")
        # 0.3 * 10 is just below 3: rounding must not lose a row.
        chosen = rows[order[: int(share * len(rows) + 1e-9)]]
        trusted[chosen] = code
    return trusted
