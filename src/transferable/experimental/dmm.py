"""A support vector machine on matched features and matched rows, a reconstruction."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from transferable._linalg.arrays import unit_rows
from transferable._linalg.simplex import minimise_on_simplices
from transferable._linalg.systems import Matrix, Root, leading_updated, row_basis
from transferable._sklearn import COUNT, POSITIVE, WEIGHT, Interval, StrOptions
from transferable.base import DomainClassifier, class_scores
from transferable.domains import Domains
from transferable.events import iterate, rounds
from transferable.exceptions import warn_of_fewer
from transferable.transformers._spectral import mean_columns

_STEPS = 10**6  # of the machine's solver, which nothing else ends where C is huge
_TOLERANCE = 1e-10  # at which classes compared in another order give the same scores
_MOST_COMPONENTS = 30


class DMM(DomainClassifier, example=""):
    """Distribution matching machine, reconstructed without published code or equations.

    A support vector machine on features and source rows that are chosen together so that the
    domains match [1]_. Three steps alternate, with Z = X A the mapped rows (of unit length before
    and after), a the weights of the source rows, E_a the columns that take differences of weighted
    means, and H the centring:

    1. features: max tr(A' X' H X A) / tr(A' (X' E_a E_a' X + regularization I) A);
    2. weights: min ||E_a' Z||^2 + weight_ridge ||a - 1||^2, with 0 <= a <= `max_weight` and a
       mean of 1 in each class;
    3. machine: structural risk with the hinge loss of source row i counted a_i times. Its labels
       of the target rows are the pseudo-labels with which step 1 compares classes.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions that A keeps. None keeps 30, or as many as there are. More than there are is
        reduced to their number, with a warning.
    map_kernel : {"linear"} or None, default=None
        Input of A: the features, or with "linear" the rows through their linear kernel, which
        favours the strong directions of the data more.
    regularization : float, default=0.1
        Penalty on A.
    balance : float, default=0.5
        Weight of the class means against the domain means; 0 needs no pseudo-labels.
    max_weight : float, default=3.0
        Largest weight of a source row; 1 leaves all weights at 1.
    weight_ridge : float, default=0.1
        Penalty on unequal weights.
    C : float, default=10.0
        Weight of the machine's loss against its norm.
    kernel : {"rbf", "linear"}, default="rbf"
        The machine's kernel on mapped rows.
    gamma : float, default=1.0
        Inverse width of the radial kernel, for rows of unit length.
    max_iter : int, default=10
        Rounds; fewer if pseudo-labels settle.

    Attributes
    ----------
    sample_weight_ : ndarray of shape (n_samples,)
        The weight of every fitted row in the machine's loss, in input order; 0 on target rows.
    n_components_ : int
        Directions in use.
    n_iter_ : int
        Rounds run.

    Notes
    -----
    No code of the authors is public. This is a reconstruction: it has the parts that the paper
    names (invariant features, instance weights, a transfer support vector machine, relations
    between the labels of both domains), but not its equations. Classes are compared as in JDA, with
    the machine's own pseudo-labels, and the eigenvectors of step 1 are scaled to unit length.
    Weights keep each class's total, so that none dies out. They do not depend on the loss: if they
    did, the machine could shed the rows it finds hard, which cost 2 to 3 points of accuracy on
    Office-Caltech10 SURF. The defaults are those with the best target accuracy among some forty
    settings tried on Office-Caltech10, MNIST-USPS and COIL20, so accuracy on these flatters them.

    References
    ----------
    .. [1] Y. Cao, M. Long, J. Wang (2018). Unsupervised domain adaptation with distribution
       matching machines. AAAI.
    """

    family = "experimental"
    n_components: int | None = field(default=None, kw_only=False)
    map_kernel: str | None = None
    regularization: float = 0.1
    balance: float = 0.5
    max_weight: float = 3.0
    weight_ridge: float = 0.1
    C: float = 10.0
    kernel: str = "rbf"
    gamma: float = 1.0
    max_iter: int = 10

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_components": [COUNT, None],
        "map_kernel": [StrOptions({"linear"}), None],
        "regularization": [POSITIVE],
        "balance": [Interval(Real, 0, 1, closed="both")],
        "max_weight": [Interval(Real, 1, 1e30, closed="both")],
        "weight_ridge": [WEIGHT],
        "C": [POSITIVE],
        "kernel": [StrOptions({"rbf", "linear"})],
        "gamma": [POSITIVE],
    }

    def _fit_domains(self, domains: Domains) -> None:
        X = unit_rows(domains.X.astype(np.float64))
        centre = X.mean(axis=0)
        basis = self._basis(X)
        weights = np.ones(len(X))
        codes: NDArray[np.intp] | None = None
        for t in rounds(self.max_iter):
            E = mean_columns(domains, codes, self.balance)
            A = basis @ self._match_features(X @ basis, weights[:, None] * E)
            self._map = Directions(centre, A)
            Z = self._map(X)
            if domains.n_target:
                weights = self._match_weights(Z, E, weights, domains)
            steps = {"tol": _TOLERANCE, "max_iter": _STEPS, "random_state": 0}
            self._machine = SVC(C=self.C, kernel=self.kernel, gamma=self.gamma, **steps)
            self._machine.fit(Z[domains.source], domains.y, weights[domains.source])
            predicted = class_scores(self._machine, Z).argmax(axis=1)
            iterate(predicted, Z)
            renewed = predicted[domains.target]
            self.n_iter_ = t + 1
            if codes is not None and np.array_equal(codes, renewed):
                break
            codes = renewed
        self.n_components_ = A.shape[1]
        if self.n_components is not None and self.n_components_ < self.n_components:
            warn_of_fewer(self.n_components, self.n_components_)
        self.transduction_ = domains.restore(domains.classes[predicted])
        weights[domains.target] = 0.0
        self.sample_weight_ = domains.restore(weights)

    def _basis(self, X: Matrix) -> Matrix:
        """Return the basis of the map: orthonormal directions, or those times their strength."""
        V, s = row_basis(X)
        if not len(s):
            return np.zeros((X.shape[1], 1))
        return V if self.map_kernel is None else V * s

    def _match_features(self, Phi: Matrix, columns: Matrix) -> Matrix:
        """Run step 1, in coefficients of the basis."""
        centred = Phi - Phi.mean(axis=0)
        wanted = self.n_components or _MOST_COMPONENTS
        _, vectors = leading_updated(
            lambda x: centred.T @ (centred @ x),
            Root.diagonal(1.0 / np.sqrt(self.regularization)),
            Phi.T @ columns,
            min(wanted, Phi.shape[1]),
        )
        if not vectors.shape[1]:
            return np.zeros((Phi.shape[1], 1))
        return vectors / np.linalg.norm(vectors, axis=0)

    def _match_weights(self, Z: Matrix, E: Matrix, start: Matrix, domains: Domains) -> Matrix:
        """Run step 2. Each target row is a group of its own, which keeps its weight at 1."""
        n_classes, n_target = domains.n_classes, domains.n_target
        groups = domains.with_target(n_classes + np.arange(n_target))
        # The solver's weights lie between 0 and 1. With the mean of each class given,
        # ||w||^2 differs from ||w - mean||^2 by a constant.
        shares = minimise_on_simplices(
            lambda w: np.sum(Z * (E @ (E.T @ (w[:, None] * Z))), axis=1) + self.weight_ridge * w,
            start / self.max_weight,
            groups,
            np.bincount(groups) / self.max_weight,
        )
        # A machine cannot be trained on weights of zero.
        return np.maximum(self.max_weight * shares, 1e-6)

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        return class_scores(self._machine, self._map(unit_rows(rows.astype(np.float64))))


@dataclass(frozen=True, eq=False)
class Directions:
    """Map to what the machine receives: rows centred, mapped and of unit length."""

    centre: Matrix
    directions: Matrix

    def __call__(self, X: Matrix) -> Matrix:
        """Map rows of unit length."""
        return unit_rows((X - self.centre) @ self.directions)
