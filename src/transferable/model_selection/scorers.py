"""Scorers of fitted models without target labels, alone and by the sum of their ranks."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, softmax
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import silhouette_samples
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRequest

from transferable._linalg.arrays import dense, unit_rows
from transferable._sklearn import call_with_marks, safe_indexing, takes_marks
from transferable.base import class_scores
from transferable.classifiers import AdaptedClassifier
from transferable.classifiers._kernel import KernelClassifier
from transferable.domains import Domains, Store, stack_domains
from transferable.metrics import consistency_along, neighbor_edges
from transferable.ratios import RATIOS
from transferable.transformers import GFK, JDA, SubspaceAlignment

_HELD_OUT = 5  # one source row in so many is held out
_MOST_ROWS = 3000  # target rows whose pairwise distances are compared; their order is random


def fit_domains(estimator: Any, Xs: Any, ys: NDArray[Any], Xt: Any) -> Any:
    """Fit a copy: adapt it to the target if it can, else train it on the source."""
    model = clone(estimator)
    if hasattr(model, "adapt"):
        return model.adapt(Xs, ys, Xt)
    if takes_marks(model):
        return call_with_marks(model.fit, *stack_domains(Xs, ys, Xt))
    return model.fit(Xs, ys)


_EXAMPLE = """

Examples
--------
>>> import numpy as np
>>> from transferable import TFDFV
>>> from transferable.datasets import make_shifted
>>> from transferable.model_selection import {name}
>>> task = make_shifted(n_source=60, n_target=60)
>>> X, y = np.r_[task.Xs, task.Xt], np.r_[task.ys, np.full(60, -1)]
>>> settings = [TFDFV(alignment=weight).fit(X, y) for weight in (0.1, 10.0)]
>>> best = max(settings, key=lambda model: {name}()(model, X, y))
"""


class LabelFreeScorer(ABC):
    """Callable ``scorer(estimator, X, y, sample_domain=None)``; higher is better.

    Rows and their marks are those of the library's ``fit``: unlabelled rows, or those with a
    negative ``sample_domain``, are the target, and their labels are never used. It can be given to
    scikit-learn as ``scoring=``, which passes ``sample_domain`` with metadata routing; else target
    rows must be unlabelled in `y`.
    """

    labels_only: ClassVar[bool] = False  # whether it uses predicted labels only

    def __init_subclass__(cls) -> None:
        cls.__doc__ = cleandoc(cls.__doc__ or "") + _EXAMPLE.format(name=cls.__name__)

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_domain: ArrayLike | None = None
    ) -> float:
        """Score a fitted estimator.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows of both domains.
        y : array-like of shape (n_samples,)
            Labels of source rows; those of target rows are never used.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows; None reads the unlabelled marks.

        Returns
        -------
        score : float
            Higher is better.
        """
        return self.score(Evidence(estimator, X, y, sample_domain))

    def get_metadata_routing(self) -> MetadataRequest:
        """Request ``sample_domain`` from scikit-learn's metadata routing.

        Returns
        -------
        routing : MetadataRequest
            ``sample_domain``.
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_domain", alias=True)
        return request

    @abstractmethod
    def score(self, evidence: Evidence) -> float:
        """Return the score of an estimator, given the evidence about it."""


SplitRows = tuple[Domains, Any, Any]


class Evidence:
    """A fitted estimator and the rows of its evaluation; costly values are computed once.

    `Xs` with the labels `ys`, and `Xt`, are rows in their original container, sorted by content so
    that no score depends on how they were stacked. `just_fitted` states that the estimator was
    fitted with these rows in the given order; `split` is the known result of :func:`split_rows`.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        *,
        just_fitted: bool = False,
        split: SplitRows | None = None,
    ) -> None:
        self.estimator = estimator
        self.just_fitted = just_fitted
        self.domains, self.Xs, self.Xt = split or split_rows(X, y, sample_domain)
        self.ys = self.domains.classes[self.domains.y]

    @cached_property
    def labels(self) -> NDArray[Any]:
        """Predicted labels of the target rows."""
        if self.just_fitted and hasattr(self.estimator, "transduction_"):
            return self.estimator.transduction_[self.domains.order[self.domains.n_source :]]
        return np.asarray(self.estimator.predict(self.Xt))

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Predicted class codes of the target rows, in 0 .. n_predicted - 1."""
        return np.unique(self.labels, return_inverse=True)[1]

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Predicted distributions over the classes, of the target rows."""
        return class_probabilities(self.estimator, self.Xt)

    @cached_property
    def held_out(self) -> tuple[Any, NDArray[np.intp]]:
        """A copy fitted without a fifth of the source rows of each class, and those rows."""
        rows = held_out_rows(self.domains.y)
        kept = np.setdiff1d(np.arange(self.domains.n_source), rows)
        model = fit_domains(self.estimator, safe_indexing(self.Xs, kept), self.ys[kept], self.Xt)
        return model, rows


def split_rows(X: Any, y: ArrayLike, sample_domain: Any, store: Store | None = None) -> SplitRows:
    """Return the domains of stacked rows, and the rows of each in their original container."""
    rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    domains = Domains.from_stacked(rows, y, sample_domain, store=store)
    if domains.n_target == 0:
        raise ValueError(
            f"None of the {len(domains.order)} rows is a target row, and without target labels it "
            "is by target rows that a model is judged; mark them with -1 in y or a negative "
            "sample_domain."
        )
    source, target = np.split(domains.order, [domains.n_source])
    return domains, safe_indexing(X, source), safe_indexing(X, target)


def held_out_rows(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the first fifth of each class; a class of one row keeps it."""
    groups = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    firsts = [rows[: (len(rows) + _HELD_OUT - 2) // _HELD_OUT] for rows in groups]
    return np.sort(np.concatenate(firsts))


def class_probabilities(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return distributions over the classes by any method that the estimator offers."""
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if hasattr(estimator, "decision_function"):
        return softmax(class_scores(estimator, X), axis=1)
    labels, classes = np.asarray(estimator.predict(X)), np.asarray(estimator.classes_)
    return (labels[:, None] == classes[None, :]).astype(np.float64)


@dataclass(frozen=True)
class ImportanceWeightedScore(LabelFreeScorer):
    """Accuracy on held-out source rows, each weighted by the ratio of the domains' densities.

    A copy is fitted without a fifth of the source rows, which are then predicted. Assumes covariate
    shift (labels depend on rows alike in both domains) and a source that covers the target. Fails
    where it does not: then a few rows carry all weight, and where domains are perfectly separable
    the score is noise.

    Parameters
    ----------
    ratio : {"kliep", "kmm", "logistic", "nearest", "rulsif", "ulsif"}, default="logistic"
        Estimator of the ratio, a function of :mod:`transferable.ratios`. "logistic" is an
        out-of-fold regression of the domain, in at most 50 leading directions.

    References
    ----------
    M. Sugiyama, M. Krauledat and K.-R. Mueller, "Covariate shift adaptation by importance weighted
    cross validation", JMLR 2007.
    """

    ratio: str = "logistic"

    def score(self, evidence: Evidence) -> float:
        hits, weights = _weighted_hits(evidence, self.ratio)
        return float(np.average(hits, weights=weights))


@dataclass(frozen=True)
class DevScore(LabelFreeScorer):
    """Importance-weighted accuracy with a control variate that lowers its variance (DEV).

    The mean of weight times error is corrected by the weights' own deviation from one, times the
    regression coefficient of the former on the latter. Assumes what
    :class:`ImportanceWeightedScore` does and fails where that fails, with less variance; on few
    held-out rows the estimate can lie outside [0, 1]. The authors measure densities in the features
    learnt by the model, which estimators here do not expose: rows are used.

    Parameters
    ----------
    ratio : {"kliep", "kmm", "logistic", "nearest", "rulsif", "ulsif"}, default="logistic"
        Estimator of the ratio, a function of :mod:`transferable.ratios`.

    References
    ----------
    K. You, X. Wang, M. Long and M. Jordan, "Towards accurate model selection in deep unsupervised
    domain adaptation", ICML 2019.
    """

    ratio: str = "logistic"

    def score(self, evidence: Evidence) -> float:
        hits, weights = _weighted_hits(evidence, self.ratio)
        losses = weights * (1.0 - hits)
        spread = float(np.var(weights))
        slope = float(np.mean((losses - losses.mean()) * (weights - weights.mean())))
        slope = slope / spread if spread > 0 else 0.0
        return 1.0 - float(losses.mean() - slope * (weights.mean() - 1.0))


def _weighted_hits(
    evidence: Evidence, ratio: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return whether held-out source rows are predicted correctly, and weights, 1 on average.

    NaN if no class has a row to spare.
    """
    domains = evidence.domains
    model, rows = evidence.held_out
    if len(rows) == 0:
        return np.array([np.nan]), np.ones(1)
    hits = np.asarray(model.predict(safe_indexing(evidence.Xs, rows))) == evidence.ys[rows]
    if ratio not in RATIOS:
        raise ValueError(f"ratio={ratio!r} is unknown; choose from {', '.join(RATIOS)}.")
    weights = domains.share(("density ratio", ratio), RATIOS[ratio], domains.Xs, domains.Xt)
    return hits.astype(np.float64), weights[rows]


@dataclass(frozen=True)
class EntropyScore(LabelFreeScorer):
    """Minus the mean entropy of the predicted distributions, in nats.

    Assumes that a model which suits the target is confident. Fails where a model is confident and
    wrong: one that predicts a single class gets the best score of all, and models calibrated
    differently cannot be compared.

    References
    ----------
    Y. Grandvalet and Y. Bengio, "Semi-supervised learning by entropy minimization", NeurIPS 2004;
    P. Morerio, J. Cavazza and V. Murino, "Minimal-entropy correlation alignment for unsupervised
    deep domain adaptation", ICLR 2018, for its use to choose parameters.
    """

    def score(self, evidence: Evidence) -> float:
        return -float(_entropies(evidence.probabilities).mean())


@dataclass(frozen=True)
class InformationScore(LabelFreeScorer):
    """Entropy of the mean prediction minus the mean entropy: confident rows, diverse classes.

    Assumes, beyond :class:`EntropyScore`, that the classes of the target are about equally
    frequent. Fails where they are not, and where a model is confident and wrong while using all
    classes, as one that aligns the wrong groups with each other is.

    References
    ----------
    J. Bridle, A. Heading and D. MacKay, "Unsupervised classifiers, mutual information and phantom
    targets", NeurIPS 1991; Y. Shi and F. Sha, "Information-theoretical learning of discriminative
    clusters for unsupervised domain adaptation", ICML 2012.
    """

    def score(self, evidence: Evidence) -> float:
        P = evidence.probabilities
        return float(entr(P.mean(axis=0)).sum() - _entropies(P).mean())


@dataclass(frozen=True)
class ConfusionScore(LabelFreeScorer):
    """Minus the mean confusion between pairs of classes in the predicted distributions.

    Predictions are softened by a temperature; rows are weighted by confidence; the matrix of joint
    predictions is normalised row by row, and its off-diagonal part is confusion. Assumes that a
    good model confuses few classes. Fails as :class:`EntropyScore` does, less so where classes
    differ in size.

    Parameters
    ----------
    temperature : float, default=2.5
        Exponent 1 / temperature softens the distributions; the value of the authors.

    References
    ----------
    Y. Jin, X. Wang, M. Long and J. Wang, "Minimum class confusion for versatile domain
    adaptation", ECCV 2020.
    """

    temperature: float = 2.5

    def score(self, evidence: Evidence) -> float:
        P = np.maximum(evidence.probabilities, 1e-12) ** (1.0 / self.temperature)
        P /= P.sum(axis=1, keepdims=True)
        weights = 1.0 + np.exp(-_entropies(P))
        joint = P.T @ (P * (weights / weights.mean())[:, None])
        joint /= joint.sum(axis=1, keepdims=True)
        return -float(1.0 - np.trace(joint) / len(joint))


def _entropies(P: NDArray[np.float64]) -> NDArray[np.float64]:
    return entr(P).sum(axis=1)


@dataclass(frozen=True)
class CircularScore(LabelFreeScorer):
    """Accuracy on the source of a copy fitted from the predicted target, the source as its target.

    Assumes that the way back is as hard as the way there, and that wrong labels do not lead back.
    Fails where the reverse model undoes a confusion of classes, so that the circle closes around a
    wrong labelling, and where only few classes are predicted. If all target rows get one label, the
    score is the share of source rows with that label.

    TFDF, TFDF-V, MEDA and ARTL go back by one linear system with the features, ridge and graph of
    the evaluated model, unaligned, which in a search costs a fraction of a fit. For other
    estimators it is one more fit.

    References
    ----------
    E. Zhong, W. Fan, Q. Yang, O. Verscheure and J. Ren, "Cross validation framework to choose
    amongst models and datasets for transfer learning", ECML PKDD 2010; L. Bruzzone and
    M. Marconcini, "Domain adaptation problems: a DASVM classification technique and a circular
    validation strategy", IEEE TPAMI 2010.
    """

    labels_only: ClassVar[bool] = True

    def score(self, evidence: Evidence) -> float:
        labels = evidence.labels
        if len(np.unique(labels)) < 2:
            return float(np.mean(evidence.ys == labels[0]))
        domains, model = evidence.domains, evidence.estimator
        if isinstance(model, KernelClassifier):
            codes = np.searchsorted(domains.classes, labels)
            return float(np.mean(model._way_back(domains, codes) == domains.y))
        reverse = fit_domains(model, evidence.Xt, labels, evidence.Xs)
        return float(np.mean(np.asarray(reverse.predict(evidence.Xs)) == evidence.ys))


@dataclass(frozen=True)
class NeighborsScore(LabelFreeScorer):
    """Share of a target row's neighbours that get its label, beyond what chance gives.

    With a the share of edges of the cosine neighbour graph whose ends get the same label and e the
    share expected of random labels with the same frequencies, the score is (a - e) / (1 - e): 1 if
    every neighbourhood agrees, 0 for constant or random predictions. Assumes that classes form
    clusters in the space of the rows. Fails where they do not, and prefers models that smooth along
    the same graph, right or wrong.

    Parameters
    ----------
    n_neighbors : int, default=5
        Neighbours of each row, fewer if there are fewer rows.

    References
    ----------
    The assumption is that of X. Zhu, Z. Ghahramani and J. Lafferty, "Semi-supervised learning
    using Gaussian fields and harmonic functions", ICML 2003; the correction for chance is that of
    J. Cohen, "A coefficient of agreement for nominal scales", 1960.
    """

    labels_only: ClassVar[bool] = True
    n_neighbors: int = 5

    def score(self, evidence: Evidence) -> float:
        domains, k = evidence.domains, self.n_neighbors
        if domains.n_target < 2:
            return 0.0
        edges = domains.share(("edges", k), neighbor_edges, domains.Xt, k)
        return consistency_along(edges, evidence.codes)


@dataclass(frozen=True)
class SilhouetteScore(LabelFreeScorer):
    """Mean silhouette of the target rows, by cosine distance, grouped by predicted class.

    Assumes that classes are compact and apart in the space of the rows. Fails where a class has
    several clusters or where irrelevant directions dominate the distances. Constant predictions
    have no silhouette and get -1, the worst.

    References
    ----------
    P. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", Journal of Computational and Applied Mathematics, 1987.
    """

    def score(self, evidence: Evidence) -> float:
        codes = evidence.codes[:_MOST_ROWS]
        if not 2 <= len(np.unique(codes)) < len(codes):
            return -1.0
        domains = evidence.domains
        distances = domains.share("cosine distances", _cosine_distances, domains.Xt)
        return float(silhouette_samples(distances, codes, metric="precomputed").mean())


def _cosine_distances(X: Any) -> NDArray[np.float64]:
    unit = unit_rows(X[:_MOST_ROWS])
    distances = np.clip(1.0 - dense(unit @ unit.T), 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    return distances


@dataclass(frozen=True)
class DensityScore(LabelFreeScorer):
    """Mean entropy of the similarities between the predictions of target rows.

    Rows' predicted distributions, at unit length, are compared by inner product; a softmax turns
    each row's similarities to all others into a distribution, whose entropy is high if many rows
    are predicted alike. Assumes features trained to separate classes on the source. Fails badly
    elsewhere: it is highest where all rows are predicted alike, and on digits it picked settings 25
    points below the best.

    Parameters
    ----------
    temperature : float, default=0.05
        Temperature of the softmax; the value of the authors.

    References
    ----------
    K. Saito, D. Kim, P. Teterwak, S. Sclaroff, T. Darrell and K. Saenko, "Tune it the right way:
    unsupervised validation of domain adaptation via soft neighborhood density", ICCV 2021.
    """

    temperature: float = 0.05

    def score(self, evidence: Evidence) -> float:
        P = unit_rows(evidence.probabilities[:_MOST_ROWS])
        if len(P) < 2:
            return 0.0
        similarity = P @ P.T / self.temperature
        np.fill_diagonal(similarity, -np.inf)
        return float(_entropies(softmax(similarity, axis=1)).mean())


@dataclass(frozen=True)
class AgreementScore(LabelFreeScorer):
    """Mean share of target rows on which a model agrees with each of a panel of other methods.

    Assumes that different methods err on different rows. Fails where they share an error, as all
    that start from the source do under a large shift: it then prefers models that adapt little. The
    panel is fitted once for all settings of a search.

    Parameters
    ----------
    panel : tuple of estimators or None, default=None
        Unfitted. None takes a logistic regression of the source, GFK and JDA with the nearest
        neighbour, and subspace alignment with logistic regression.

    References
    ----------
    O. Madani, D. Pennock and G. Flake, "Co-validation: using model disagreement on unlabeled data
    to validate classification algorithms", NeurIPS 2004.
    """

    panel: tuple[Any, ...] | None = None

    def score(self, evidence: Evidence) -> float:
        domains = evidence.domains
        key = "votes", id(self.panel), domains.y.tobytes()
        votes = domains.share(key, _votes, self.panel, domains.X, domains.y)
        own = np.searchsorted(domains.classes, evidence.labels)
        return float(np.mean(votes == own[:, None]))


def _votes(panel: tuple[Any, ...] | None, X: Any, codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return labels of the target rows, a column for each method of the panel."""
    Xs, Xt = X[: len(codes)], X[len(codes) :]
    if panel is None:  # methods unlike each other, in no more directions than the rows may span
        most = max(1, min(Xs.shape[0] - 1, Xt.shape[0] - 1, X.shape[1]))
        few, many = min(20, most), min(30, most)
        linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
        logistic = LogisticRegression(max_iter=500)
        panel = (
            AdaptedClassifier(None, linear),
            AdaptedClassifier(GFK(n_components=few), KNeighborsClassifier(1)),
            AdaptedClassifier(SubspaceAlignment(n_components=many), logistic),
            AdaptedClassifier(JDA(n_components=many), KNeighborsClassifier(1)),
        )
    with warnings.catch_warnings():
        # Rows may span less than their number allows; the spaces are then as large as can be.
        warnings.filterwarnings("ignore", message="n_components=")
        return np.column_stack(
            [np.asarray(fit_domains(method, Xs, codes, Xt).predict(Xt)) for method in panel]
        )


SCORERS: dict[str, LabelFreeScorer] = {
    "importance_weighted": ImportanceWeightedScore(),
    "dev": DevScore(),
    "entropy": EntropyScore(),
    "information": InformationScore(),
    "density": DensityScore(),
    "circular": CircularScore(),
    "confusion": ConfusionScore(),
    "silhouette": SilhouetteScore(),
    "neighbors": NeighborsScore(),
    "agreement": AgreementScore(),
}


@dataclass(frozen=True)
class RankSum:
    """Sum of a setting's ranks under several scores.

    Single scores fail in different places; a setting that several of them rank high is rarely bad.
    Ranks need more than one setting: use it as the ``scoring`` of
    :class:`~transferable.model_selection.LabelFreeSearch`. It assumes that the parts fail
    independently, and fails where most of them do.

    Parameters
    ----------
    parts : tuple of str
        Names of scorers.

    References
    ----------
    J. de Borda, "Memoire sur les elections au scrutin", 1781, for adding up ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.model_selection import RankSum
    >>> scores = {"circular": np.array([0.5, 0.9, 0.8]), "neighbors": np.array([0.1, 0.2, 0.7])}
    >>> RankSum(("circular", "neighbors")).combine(scores)
    array([2., 5., 5.])
    """

    parts: tuple[str, ...]

    def combine(self, scores: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the sum of ranks, 1 for the lowest score; NaN for settings that lack a score.

        Parameters
        ----------
        scores : mapping of str to ndarray of shape (n_settings,)
            Scores of all settings by the name of the scorer.

        Returns
        -------
        total : ndarray of shape (n_settings,)
            Higher is better.
        """
        table = np.column_stack([scores[part] for part in self.parts])
        total = np.full(len(table), np.nan)
        whole = np.isfinite(table).all(axis=1)
        if whole.any():
            total[whole] = rankdata(table[whole], axis=0).sum(axis=1)
        return total


Scoring = str | Callable[..., float] | RankSum

# Compared with other combinations on 28 real tasks in benchmarks/records/selection, alone and,
# over several grids, beside an anchor.
RECOMMENDED = RankSum(("circular", "neighbors"))
BESIDE_ANCHOR = "neighbors"


def resolve(
    scoring: Scoring | Mapping[str, Scoring], *, recommended: RankSum | str = RECOMMENDED
) -> tuple[dict[str, Callable[..., float]], dict[str, RankSum | str]]:
    """Return the scorers by name, and the scorer or rank sum of each score."""
    scorers: dict[str, Callable[..., float]] = {}
    columns: dict[str, RankSum | str] = {}
    for name, wanted in (scoring if isinstance(scoring, Mapping) else {"score": scoring}).items():
        wanted = recommended if wanted == "recommended" else wanted
        if isinstance(wanted, RankSum | str):
            for part in wanted.parts if isinstance(wanted, RankSum) else (wanted,):
                if part not in SCORERS:
                    known = ", ".join(SCORERS)
                    raise ValueError(f"{part!r} is not a scorer; choose from recommended, {known}.")
                scorers[part] = SCORERS[part]
            columns[name] = wanted
        elif callable(wanted):
            scorers[name], columns[name] = wanted, name
        else:
            raise TypeError(
                f"scoring={wanted!r} is not a scorer; give a name, a callable "
                "scorer(estimator, X, y, sample_domain), a RankSum or a dict of such."
            )
    return scorers, columns
