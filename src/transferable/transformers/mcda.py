"""Domain adaptation by the maximum mean and covariance discrepancy (McDA)."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
from sklearn.base import ClassifierMixin

from transferable._kernel.class_shares import ClassShares
from transferable._kernel.covariances import centred_moments, pairs_of_groups, squared_differences
from transferable._linalg.moments import Moments
from transferable._linalg.systems import Matrix, leading_dense
from transferable._sklearn import WEIGHT
from transferable.domains import Domains
from transferable.transformers._features import Features
from transferable.transformers._spectral import (
    Codes,
    Embed,
    Solution,
    Solver,
    SpectralTransformer,
    follow_shares,
    mean_columns,
)


class McDA(SpectralTransformer, example="n_components=2"):
    """McDA: JDA that compares covariances beside means.

    The maximum mean and covariance discrepancy (MMCD) adds to the distance of two groups' means
    that of their covariances, overall and for each class:

        min tr(W'K (M + beta sum_c Z_c K K Z_c) K W) + lambda ||W||^2   subject to   W'K H K W = I

    where Z_c centres and scales the rows of a class in both domains, Z_0 those of whole domains,
    which count C^2 times.

    Parameters
    ----------
    second_order : float, default=1.0
        beta: weight of the covariances, relative to the mean squared length of the rows.

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

    Notes
    -----
    K Z_c K K Z_c K is the square of the difference of two covariances of features, which are at
    most as many as rows or columns of X; nothing larger is formed.

    Published: 20 components, linear kernel, lambda and beta 1, 10 rounds, unit length of embedded
    rows. Ours takes linear maps: the linear kernel collapses on pixels.

    References
    ----------
    .. [1] W. Zhang, X. Zhang, L. Lan, Z. Luo (2020). Maximum mean and covariance discrepancy for
       unsupervised domain adaptation. Neural Processing Letters 51.
    """

    _needs_factor = True
    _published = {"n_components": 20, "kernel": "linear", "regularization": 1.0, "normalize": True}  # noqa: RUF012
    _parameter_constraints = {"second_order": [WEIGHT]}  # noqa: RUF012

    estimator: ClassifierMixin | None = None
    max_iter: int = 10
    class_shares: ClassShares = "source"
    second_order: float = 1.0

    def _learn(self, domains: Domains, features: Features) -> Solution:
        def prepare(domains: Domains) -> Embed:
            return partial(self._solved, self._solver(domains, features), features, domains)

        found = follow_shares(self.class_shares, domains, prepare, self.estimator, self.max_iter)
        self.n_iter_, codes = len(found.history), domains.with_target(found.codes)
        self.transduction_ = domains.restore(domains.classes[codes])
        self.class_shares_, self.class_shares_history_ = found.shares, np.array(found.history)
        return found.last.values, found.last.W

    def _solver(self, domains: Domains, features: Features) -> Solver:
        identity = np.eye(features.rank)
        B = features.total_scatter(identity)
        fixed = self.regularization * features.scale * identity
        # Covariances grow with the square of the rows, their squared difference with the fourth.
        weight = self.second_order / features.scale
        covariances = _Covariances(domains, features)
        if domains.n_target > 0:
            fixed += (weight * domains.n_classes**2) * covariances.of_domains()

        def solve(codes: Codes | None, k: int) -> Solution:
            means = features.transposed_times(mean_columns(domains, codes))
            A = fixed + means @ means.T
            if codes is not None:
                A += weight * covariances.of_classes(codes)
            return leading_dense(B, A, k)

        return solve


class _Covariances:
    """Squared differences of the domains' covariances of features, marginal or by class.

    Where classes have more rows than there are features, covariances are formed, from sums over
    blocks of rows. Otherwise products with all features are cheaper, and these are few.
    """

    def __init__(self, domains: Domains, features: Features) -> None:
        self.domains, self.features = domains, features
        self.many = features.table.n > domains.n_classes * features.rank
        self.Phi = None if self.many else features.times(np.eye(features.rank))

    def of_domains(self) -> Matrix:
        """Return (Cov_s - Cov_t)^2, the source weighted to the target's class prior."""
        domains = self.domains
        if self.Phi is not None:
            return self._squared(self.Phi, np.zeros(domains.n_target, dtype=np.intp), whole=True)
        D = centred_moments(self._source, domains.ratios)[0]
        D = D - self.features.scatter(1) / domains.n_target
        return D @ D

    def of_classes(self, codes: Codes) -> Matrix:
        """Return the sum of the squares over classes with rows in both domains.

        A class that is rarer in the target counts less: its pseudo-labels are wrong more often.
        """
        domains = self.domains
        if self.Phi is not None:
            return self._squared(self.Phi, codes, whole=False)
        every = domains.with_target(codes)
        target = self.features.moments_of(every, domains.n_classes, domains.target)
        total = np.zeros((self.features.rank, self.features.rank))
        for s, t, trust in zip(self._source, target, np.minimum(1.0, domains.ratios), strict=True):
            if s.count and t.count:
                D = trust * (s.covariance - t.covariance)
                total += D @ D
        return total

    def _squared(self, Phi: Matrix, codes: Codes, *, whole: bool) -> Matrix:
        """Return the sum of the squares over pairs of whole domains, or of classes."""
        pairs = pairs_of_groups(self.domains, codes, self.domains.ratios, np.asarray)
        weights = [weight for weight, is_whole, _ in pairs if is_whole == whole]
        groups = [group for _, is_whole, group in pairs if is_whole == whole]
        return squared_differences(groups, Phi, np.sqrt(weights))

    @cached_property
    def _source(self) -> list[Moments]:
        every = self.domains.with_target(np.zeros(self.domains.n_target, dtype=np.intp))
        return self.features.moments_of(every, self.domains.n_classes, self.domains.source)
