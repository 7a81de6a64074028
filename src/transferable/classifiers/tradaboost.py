"""TrAdaBoost: boosting that reduces the weight of source rows it cannot fit (Dai et al., 2007)."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from transferable._sklearn import COUNT, HasMethods, Interval
from transferable.base import DomainClassifier, class_scores
from transferable.classifiers.self_training import most_confident
from transferable.domains import Domains
from transferable.events import rounds

_SPECK = 2.0**-300  # liblinear never ends if the squares of all values are too small to be numbers
_LEAST_ERROR = 1e-10


class TrAdaBoost(DomainClassifier, example=""):
    """Transfer boosting, with pseudo-labels in place of labelled target rows.

    A labeler trained on the source predicts the target's labels, and its most confident
    pseudo-labels replace the few labelled target rows of the published method [1]_. Every round
    then trains the estimator on these and on the source, with row weights. Misclassified rows are
    treated in opposite ways: a target row gains weight, as in AdaBoost, and a source row loses
    some, since it seems to follow another distribution. With e the weighted error on the target in
    round t of N, and n source rows,

        beta_t = e / ((1 - e) (C - 1)),       a wrong target row's weight is divided by beta_t,
        beta = 1 / (1 + sqrt(2 ln(n) / N)),   a wrong source row's weight is multiplied by beta,

    and the learners of the later half of the rounds vote with weight ln(1 / beta_t).

    Parameters
    ----------
    estimator : classifier or None, default=None
        Trained in every round; its ``fit`` must take ``sample_weight``. None is a linear support
        vector machine, as in the paper.
    labeler : classifier or None, default=None
        Trained on the source alone to pseudo-label the target; it must have ``decision_function``
        or ``predict_proba``. None is a copy of `estimator`.
    trusted : float, default=0.5
        Share of the target rows of each predicted class, the most confident, that is used.
    n_estimators : int, default=50
        Rounds (N); the paper uses 100. Boosting ends sooner if a learner makes no error on the
        trusted rows or is no better than chance.

    Attributes
    ----------
    estimators_ : list of classifiers
        The learners of all rounds, fitted on positions of labels in `classes_`.
    estimator_weights_ : ndarray of shape (n_rounds,)
        Their votes; 0 for the first half.
    sample_weight_ : ndarray of shape (n_samples,)
        The rows' weights after the last round, in input order; they sum to 1.

    Notes
    -----
    The published method is given labelled target rows. With pseudo-labels in their place the method
    can only be as good as the labeler on its most confident rows. Pseudo-labels of all rows
    (``trusted=1``) would be memorised and gain nothing; one half was the best of three shares by
    target accuracy on six tasks of Office-Caltech10 SURF. The published method is for two classes.
    The factor C - 1, of the multi-class AdaBoost (SAMME [2]_), is 1 there, and the vote is then the
    published one.

    References
    ----------
    .. [1] W. Dai, Q. Yang, G.-R. Xue, Y. Yu (2007). Boosting for transfer learning. ICML.
    .. [2] J. Zhu, H. Zou, S. Rosset, T. Hastie (2009). Multi-class AdaBoost. Statistics and Its
       Interface 2.
    """

    family = "weighting"
    estimator: ClassifierMixin | None = field(default=None, kw_only=False)
    labeler: ClassifierMixin | None = None
    trusted: float = 0.5
    n_estimators: int = 50

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "labeler": [HasMethods(["fit", "predict"]), None],
        "trusted": [Interval(Real, 0, 1, closed="right")],
        "n_estimators": [COUNT],
    }

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]
        learners = (self._learner(), self._learner() if self.labeler is None else self.labeler)
        return all(get_tags(learner).input_tags.sparse for learner in learners)

    def _learner(self) -> Any:
        return LinearSVC(dual=False, random_state=0) if self.estimator is None else self.estimator

    def _fit_domains(self, domains: Domains) -> None:
        learner = self._learner()
        if not has_fit_parameter(learner, "sample_weight"):
            raise ValueError(
                f"{type(learner).__name__} takes no sample_weight in fit, so it cannot be boosted; "
                "choose another estimator."
            )
        codes = domains.y
        if domains.n_target:  # pseudo-labels of the most confident rows, else -1
            labeler = clone(learner if self.labeler is None else self.labeler)
            labeler.fit(_without_specks(domains.Xs), domains.y)
            sure = most_confident(class_scores(labeler, domains.Xt), self.trusted)
            codes = domains.with_target(sure)
        labelled = codes >= 0
        weights = np.zeros(len(codes))
        weights[labelled] = self._boost(
            learner, _without_specks(domains.X[labelled]), codes[labelled], domains.n_source
        )
        self.sample_weight_ = domains.restore(weights)

    def _boost(
        self, learner: Any, X: Any, codes: NDArray[np.intp], n_source: int
    ) -> NDArray[np.float64]:
        """Run the published algorithm on rows with codes, source first; return final weights."""
        n_classes = len(self.classes_)
        shrink = 1.0 / (1.0 + np.sqrt(2.0 * np.log(n_source) / self.n_estimators))
        weights = np.full(len(codes), 1.0 / len(codes))
        learners: list[Any] = []
        votes: list[float] = []
        for _ in rounds(self.n_estimators if len(codes) > n_source else 1):
            # The paper's weights sum to one. scikit-learn's learners weigh their penalty against
            # rows of weight one, so these must have a mean of one.
            fitted = clone(learner).fit(X, codes, sample_weight=weights * len(weights))
            wrong = fitted.predict(X) != codes
            on_target = weights[n_source:]
            error = float(on_target[wrong[n_source:]].sum() / max(on_target.sum(), _LEAST_ERROR))
            clipped = min(max(error, _LEAST_ERROR), 1.0 - _LEAST_ERROR)
            vote = np.log((1.0 - clipped) * (n_classes - 1) / clipped)
            if vote <= 0.0 and learners:
                break
            learners.append(fitted)
            votes.append(max(vote, _LEAST_ERROR))
            if error == 0.0 or vote <= 0.0:
                break
            weights[:n_source][wrong[:n_source]] *= shrink
            weights[n_source:][wrong[n_source:]] *= np.exp(vote)
            weights /= weights.sum()
        self.estimators_ = learners
        self.estimator_weights_ = np.array(votes)
        self.estimator_weights_[: (len(votes) + 1) // 2 - 1] = 0.0
        return weights

    def _probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return scores / scores.sum(axis=1, keepdims=True)

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        scores = np.zeros((rows.shape[0], len(self.classes_)))
        for fitted, vote in zip(self.estimators_, self.estimator_weights_, strict=True):
            if vote > 0.0:
                scores[np.arange(len(scores)), fitted.predict(rows)] += vote
        return scores


def _without_specks(X: Any) -> Any:
    """Return rows with values negligible beside ordinary ones set to 0."""
    if not sp.issparse(X):
        return np.where(np.abs(X) < _SPECK, 0.0, X)
    X = X.copy()
    X.data[np.abs(X.data) < _SPECK] = 0.0
    return X
