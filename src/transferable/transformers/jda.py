"""TCA, and JDA and BDA, which compare classes beside domains."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from transferable._kernel.choose import SourceWeights
from transferable._kernel.class_shares import ClassShares
from transferable._sklearn import Interval
from transferable.base import Takes
from transferable.domains import Domains, as_labels
from transferable.transformers._features import Features
from transferable.transformers._spectral import (
    Embed,
    Solution,
    SpectralTransformer,
    follow_shares,
    mean_columns,
    means_solver,
    predicted,
)


class TCA(SpectralTransformer, example="n_components=2"):
    """Transfer component analysis: one map under which the domains' means meet.

    Among maps W that keep the variance of all rows, it takes the one with the smallest maximum mean
    discrepancy between the domains:

        min tr(W'K M K W) + lambda ||W||^2   subject to   W'K H K W = I

    with M = e e' / ||e||^2, where e'K is the difference of the domains' means, and H the centring
    matrix; of several sources, M is the weighted sum of their e e' over its Frobenius norm. With
    ``kernel=None``, K is replaced by the rows themselves.

    Attributes
    ----------
    source_weights_ : ndarray of shape (n_sources,)
        Weight of each source, in the order of the ids, 1 on average over their rows.

    Notes
    -----
    M has rank one, so the inverse of the left side is that of a multiple of the identity and one
    correction (Sherman and Morrison), and Lanczos iterations find the components with products
    only. Labels are not used.

    Published: an RBF or linear kernel on rows of unit length and lambda 1; results depend on the
    kernel little. Ours is linear in the features because that map is cheap, exact for new rows and
    works in any unit of measurement.

    References
    ----------
    .. [1] S. J. Pan, I. W. Tsang, J. T. Kwok, Q. Yang (2011). Domain adaptation via transfer
       component analysis. IEEE Transactions on Neural Networks 22(2).
    """

    takes = Takes(several_sources=True, sample_weight=True, no_labels=True)
    _published = {"kernel": "linear", "regularization": 1.0}  # noqa: RUF012

    source_weights: SourceWeights = "auto"

    def _learn(self, domains: Domains, features: Features) -> Solution:
        solve = means_solver(domains, features, mean_columns, self.regularization)
        self.source_weights_ = domains.source_weights
        return self._scaled(*solve(None, self._wanted(features.rank)))


class JDA(SpectralTransformer, example="n_components=2"):
    """Joint distribution adaptation: the means of the domains and of each class meet.

    TCA with class means beside domain means, compared by pseudo-labels of the target that are
    renewed in each round:

        min tr(W'K M K W) + lambda ||W||^2   subject to   W'K H K W = I

    with M = C M_0 + sum_c M_c, divided by its Frobenius norm. The first round has no pseudo-labels
    yet and compares the marginals.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        Labels of the source rows and last pseudo-labels of the target rows, in input order.
    n_iter_ : int
        Rounds that were run.
    class_shares_ : ndarray of shape (n_classes,)
        Class prior assumed of the target.
    class_shares_history_ : ndarray of shape (n_iter, n_classes)
        Class prior of each round.
    source_weights_ : ndarray of shape (n_sources,)
        Weight of each source, in the order of the ids, 1 on average over their rows.

    Notes
    -----
    M has rank C + 1, so each round costs a small correction. A class without target rows in a round
    is left out of it on both sides.

    Published: 100 components, a linear kernel with lambda 1 on SURF histograms or linear maps with
    lambda 0.1 on pixels, 10 rounds, unit length of embedded rows. Ours takes linear maps
    throughout, and fewer components, which are better on most data.

    References
    ----------
    .. [1] M. Long, J. Wang, G. Ding, J. Sun, P. S. Yu (2013). Transfer feature learning with joint
       distribution adaptation. ICCV.
    """

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _published = {"n_components": 100, "kernel": "linear", "regularization": 1.0, "normalize": True}  # noqa: RUF012
    balance: ClassVar[float] = 0.5
    class_weighted: ClassVar[bool] = False

    estimator: ClassifierMixin | None = None
    max_iter: int = 10
    class_shares: ClassShares = "source"
    source_weights: SourceWeights = "auto"
    target_labels: Literal["ignore", "use"] = "ignore"

    def _learn(self, domains: Domains, features: Features) -> Solution:
        means = partial(mean_columns, balance=self.balance, class_weighted=self.class_weighted)

        def prepare(domains: Domains) -> Embed:
            solve = means_solver(domains, features, means, self.regularization)
            return partial(self._solved, solve, features, domains)

        found = follow_shares(self.class_shares, domains, prepare, self.estimator, self.max_iter)
        self.n_iter_, codes = len(found.history), domains.with_target(found.codes)
        self.transduction_ = domains.restore(domains.classes[codes])
        self.class_shares_, self.class_shares_history_ = found.shares, np.array(found.history)
        self.source_weights_ = domains.source_weights
        return found.last.values, found.last.W

    def _complete(
        self, rows: Any, ids: NDArray[Any], y: ArrayLike | None, kept: NDArray[np.intp]
    ) -> None:
        labels = as_labels(y).astype(self.transduction_.dtype)  # type: ignore[arg-type]
        labels[kept] = self.transduction_
        asked = np.setdiff1d(np.flatnonzero(ids < 0), kept)
        if len(asked):
            Z: Any = self._transform_rows(rows, ids)
            source = kept[ids[kept] > 0]
            classes, codes = np.unique(labels[source], return_inverse=True)
            ones = np.ones(len(codes))
            found = predicted(self.estimator, Z[source], codes, ones, Z[asked])
            labels[asked] = classes[found]
        self.transduction_ = labels


class BDA(JDA, example="n_components=2"):
    """Balanced distribution adaptation: JDA with a weight between domains and classes.

        min tr(W'K M K W) + lambda ||W||^2   subject to   W'K H K W = I

    with M = (1 - mu) C M_0 + mu sum_c M_c, divided by its Frobenius norm. At mu = 0.5 it is JDA, at
    mu = 0 TCA. Its class-weighted form (W-BDA) weights each class's mean by the root of the share
    of the class in its domain, for domains with different class priors.

    Parameters
    ----------
    balance : float, default=0.5
        mu: 0 compares the marginals only, 1 class by class only.
    class_weighted : bool, default=False
        Whether classes are weighted by their shares, from labels and pseudo-labels.

    Notes
    -----
    Published: mu searched over a grid with target labels, otherwise as JDA. Ours is 0.5: no
    unlabelled data determines a better value.

    References
    ----------
    .. [1] J. Wang, Y. Chen, S. Hao, W. Feng, Z. Shen (2017). Balanced distribution adaptation for
       transfer learning. ICDM.
    """

    _parameter_constraints = {  # noqa: RUF012
        "balance": [Interval(Real, 0, 1, closed="both")],
        "class_weighted": ["boolean"],
    }

    balance: float = 0.5  # type: ignore[misc]
    class_weighted: bool = False  # type: ignore[misc]
