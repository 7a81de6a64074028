"""Domain adaptation by the maximum mean and covariance discrepancy (McDA)."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin

from transferable.domains import Domains
from transferable.linalg.eigen import leading_dense
from transferable.linalg.kernels import Kernel
from transferable.terms.mmcd import GroupCentring, class_groups, squared_differences
from transferable.transformers._features import Features
from transferable.transformers._pseudo_labels import PseudoLabelTransformer
from transferable.transformers._spectral import (
    WEIGHT,
    Codes,
    Solution,
    Solver,
    mean_discrepancy,
)

__all__ = ["McDA"]


class McDA(PseudoLabelTransformer):
    """McDA: JDA that compares covariances beside means.

    The maximum mean and covariance discrepancy (MMCD) adds to the distance of two groups' means
    that of their covariances, overall and for each class:

        min tr(W'K (M + beta sum_c Z_c K K Z_c) K W) + lambda ||W||^2   subject to   W'K H K W = I

    where Z_c centres and scales the rows of a class in both domains, Z_0 those of whole domains,
    which counts C^2 times.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the shared space. None means 30, or as many as there are if fewer; a number
        that is too large is reduced with a warning.
    second_order : float, default=1.0
        beta: weight of the covariances, relative to the mean squared length of the rows.
    kernel : {"primal", "linear", "rbf", "poly"} or callable, default="primal"
        "primal" learns a linear map of the features. The others learn an expansion over the fitted
        rows in that kernel; a callable receives two tables and returns their kernel matrix.
    gamma : float or "scale", default="scale"
        Coefficient of "rbf" and "poly"; "scale" is 1 / (n_features * variance of the rows).
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=1.0
        Constant of "poly".
    regularization : float, default=0.1
        lambda: penalty on ||W||^2, relative to the mean squared length of the rows (of their kernel
        features), so that it means the same in any unit.
    scaling : {"unit", "constraint"}, default="unit"
        "unit" gives each column of W the length 1, as published results need; "constraint" scales
        it so that W'K H K W = I, as the objective is printed.
    normalize : bool, default=False
        Bring embedded rows to unit length. Helps nearest neighbours on histograms and deep
        features.
    estimator : classifier or None, default=None
        Labels the target in the embedded space, trained on the embedded source; None is one nearest
        neighbour.
    max_iter : int, default=10
        Most rounds of solving and relabelling; fewer if labels settle.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the two sides of the objective for each component, largest first.
    transduction_ : ndarray of shape (n_samples,)
        Labels of the source rows and last pseudo-labels of the target rows, in input order.
    n_iter_ : int
        Rounds that were run.

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

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.transformers import McDA
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> Xt = rng.normal(size=(30, 5)) + 3 * np.repeat([0, 1], 15)[:, None] + 1
    >>> model = McDA(n_components=2).adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (30, 2)
    """

    _needs_factor = True
    _parameter_constraints = {  # noqa: RUF012
        **PseudoLabelTransformer._parameter_constraints,
        "second_order": [WEIGHT],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        second_order: float = 1.0,
        kernel: Kernel = "primal",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        regularization: float = 0.1,
        scaling: str = "unit",
        normalize: bool = False,
        estimator: ClassifierMixin | None = None,
        max_iter: int = 10,
    ) -> None:
        super().__init__(
            n_components,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            regularization=regularization,
            scaling=scaling,
            normalize=normalize,
            estimator=estimator,
            max_iter=max_iter,
        )
        self.second_order = second_order

    def _solver(self, domains: Domains, features: Features) -> Solver:
        Phi, n_source, n_classes = features.Phi, domains.n_source, domains.n_classes
        identity = np.eye(features.rank)
        B = features.total_scatter(identity)
        fixed = self.regularization * features.scale * identity
        # Covariances grow with the square of the rows, their squared difference with the fourth.
        weight = self.second_order / features.scale
        if domains.n_target > 0:
            whole = GroupCentring(np.arange(n_source), np.arange(n_source, len(Phi)))
            fixed += (weight * n_classes**2) * squared_differences([whole], Phi)

        def solve(codes: Codes | None, k: int) -> Solution:
            A = fixed + mean_discrepancy(domains, codes).project(Phi)
            if codes is not None:
                groups = class_groups(domains.with_target(codes), n_source, n_classes)
                A += weight * squared_differences(groups, Phi)
            return leading_dense(B, A, k)

        return solve
