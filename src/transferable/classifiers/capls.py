"""CAPLS and SPL: a supervised subspace grown with the most confident pseudo-labels.

Wang, Bu and Breckon, IJCNN 2019, and the structured prediction of Wang and Breckon, AAAI 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from transferable._linalg.arrays import unit_rows
from transferable._linalg.systems import leading_dense, principal_basis, row_basis
from transferable._sklearn import COUNT, POSITIVE
from transferable.base import DomainClassifier
from transferable.classifiers.self_training import most_confident
from transferable.domains import Domains
from transferable.events import iterate, rounds
from transferable.exceptions import warn_of_fewer

_ROUNDING = 1e-12
_MOST_COMPONENTS = 128  # as published; beyond the rank there is nothing to keep
_LLOYD_STEPS = 100


class CAPLS(DomainClassifier, example=""):
    """Confidence-aware pseudo-label selection.

    Rows of unit length are projected by P, the leading solutions of the supervised locality
    preserving projection [1]_

        max tr(P' X' D X P)   subject to   P' (X' L X + ridge I) P = I,

    where W joins labelled rows of equal class, D holds its degrees and L = D - W. A row is
    labelled by the nearest mean of a source class among projected, centred and normalised rows,
    with probabilities softmax(-distance). In round t of T the share t / T of each predicted
    class, its most confident rows, joins the labelled rows.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions that P keeps (d). None keeps as many as the labelled rows span, at most the
        published 128. More than there are is reduced to their number, with a warning.
    pca_components : int or None, default=128
        Principal directions of the rows of both domains that are kept beforehand, at most as many
        as there are, with rows brought to unit length again. None keeps all features. The authors
        keep 128 of SURF's features, and for SPL 512 of deep ones.
    ridge : float, default=1.0
        Regularisation of the projection (alpha); 1 as published.
    max_iter : int, default=10
        Rounds of pseudo-label selection (T); 10 as published.

    Attributes
    ----------
    n_components_ : int
        Directions in use.
    n_iter_ : int
        Rounds run; 1 without a target.

    Notes
    -----
    The authors' code leaves the least confident row of each class out of its selection; here the
    share is exact, so that the last round trusts all pseudo-labels but those of the last decision.
    Eigenvectors keep the scale that the constraint gives them: unit vectors are worse.
    :class:`SPL` adds the target's clusters.

    References
    ----------
    .. [1] Q. Wang, P. Bu, T. P. Breckon (2019). Unifying unsupervised domain adaptation and
       zero-shot visual recognition. IJCNN.
    """

    family = "pseudo-labels"
    n_components: int | None = field(default=None, kw_only=False)
    pca_components: int | None = 128
    ridge: float = 1.0
    max_iter: int = 10

    _structured: ClassVar[bool] = False
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_components": [COUNT, None],
        "pca_components": [COUNT, None],
        "ridge": [POSITIVE],
    }

    def _fit_domains(self, domains: Domains) -> None:
        X = unit_rows(domains.X.astype(np.float64))
        basis = self._choose_basis(X, domains.weights)
        Phi = self._embed(domains.X, basis)
        trusted = np.full(domains.n_target, -1)
        self.n_iter_ = self.max_iter if domains.n_target else 1
        for t in rounds(self.n_iter_):
            P = self._project(Phi, domains.with_target(trusted), domains)
            space = Directions(basis, P, (Phi @ P).mean(axis=0), [])
            Z = space.of(Phi)
            means = [unit_rows(_group_means(Z[domains.source], domains.y, domains.n_classes))]
            if self._structured and domains.n_target:
                means.append(unit_rows(_k_means(Z[domains.target], means[0])))
            self._space = replace(space, means=means)
            scores = self._space.log_probabilities(Z)
            iterate(scores.argmax(axis=1), scores)
            trusted = most_confident(scores[domains.target], (t + 1) / self.max_iter)
        self.n_components_ = P.shape[1]
        self.transduction_ = domains.restore(domains.classes[scores.argmax(axis=1)])

    def _choose_basis(
        self, X: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return principal directions, or any basis of the span of the rows; None for neither."""
        if self.pca_components is not None:
            basis = principal_basis(X, self.pca_components, weights)
        elif X.shape[1] > X.shape[0]:
            # P lies in the span of the rows, and these are shorter in a basis of it.
            basis, _ = row_basis(X)
        else:
            return None
        return basis if basis.shape[1] else None

    def _embed(self, rows: Any, basis: NDArray[np.float64] | None) -> NDArray[np.float64]:
        X = unit_rows(rows.astype(np.float64))
        if basis is None:
            return X
        return unit_rows(X @ basis) if self.pca_components is not None else X @ basis

    def _project(
        self, Phi: NDArray[np.float64], codes: NDArray[np.intp], domains: Domains
    ) -> NDArray[np.float64]:
        """Return P for the rows that have a code; -1 marks the others."""
        labelled = Phi[codes >= 0]
        members = np.eye(domains.n_classes)[codes[codes >= 0]]
        sums = members.T @ labelled
        # A row's degree is the size of its class, so X'WX needs no more than the classes' sums.
        degrees = (members.sum(axis=0) * members).sum(axis=1)
        Sd = labelled.T @ (degrees[:, None] * labelled)
        Sl = Sd - sums.T @ sums
        Sl.flat[:: len(Sl) + 1] += self.ridge
        P = leading_dense(Sd, Sl, self.n_components or _MOST_COMPONENTS)[1]
        rank = P.shape[1]
        if self.n_components is not None and rank < self.n_components:
            warn_of_fewer(self.n_components, rank)
        return P if rank else np.zeros((len(Sd), 1))

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        Phi = self._embed(rows, self._space.basis)
        return self._space.log_probabilities(self._space.of(Phi))


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions from the centre of projected rows, and the means of classes among them."""

    basis: NDArray[np.float64] | None  # directions of the rows that are kept beforehand
    projection: NDArray[np.float64]  # P, and the mean of the projected rows
    centre: NDArray[np.float64]
    # (n_classes, n_components): means of the source's classes and, for SPL, of the target's
    # clusters
    means: list[NDArray[np.float64]]

    def of(self, Phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return projected rows as directions from the centre; a row at the centre has none."""
        Z = Phi @ self.projection - self.centre
        apart = np.linalg.norm(Z, axis=1) > _ROUNDING * np.linalg.norm(self.centre)
        return unit_rows(Z * apart[:, None])

    def log_probabilities(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log-probabilities by the largest over the means of classes and of clusters."""
        return np.max([log_softmax(-_distances(Z, m), axis=1) for m in self.means], axis=0)


class SPL(CAPLS, example=""):
    """Selective pseudo-labelling by structured prediction: CAPLS that sees the target's clusters.

    In each round target rows of the projected space are clustered by k-means from the means of the
    source classes, so that a cluster stands for a class, and a row takes the surer of two votes:
    that of the nearest class mean and that of the nearest cluster [1]_. The rest is
    :class:`CAPLS`.

    Notes
    -----
    The paper matches clusters to classes by a linear program; starting k-means from the class
    means, as its authors' code does, makes each cluster that of the class it started from. A
    cluster that loses its rows keeps its mean.

    References
    ----------
    .. [1] Q. Wang, T. P. Breckon (2020). Unsupervised domain adaptation via structured prediction
       based selective pseudo-labeling. AAAI.
    """

    _structured = True


def _distances(Z: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    squared = np.sum(Z**2, axis=1)[:, None] - 2 * Z @ means.T + np.sum(means**2, axis=1)
    return np.sqrt(np.maximum(squared, 0.0))


def _group_means(
    Z: NDArray[np.float64], codes: NDArray[np.intp], n_groups: int
) -> NDArray[np.float64]:
    members = np.eye(n_groups)[codes]
    return (members.T @ Z) / np.maximum(members.sum(axis=0), 1)[:, None]


def _k_means(Z: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Run Lloyd's algorithm from the given means; a mean that loses all its rows stays."""
    codes = np.full(len(Z), -1)
    for _ in range(_LLOYD_STEPS):
        nearest = _distances(Z, means).argmin(axis=1)
        if np.array_equal(nearest, codes):
            break
        codes = nearest
        taken = np.bincount(codes, minlength=len(means)) > 0
        means = np.where(taken[:, None], _group_means(Z, codes, len(means)), means)
    return means
