"""Pseudo-labels that follow the target's class shares, given or found."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone

from transferable._sklearn import CLASS_SHARES
from transferable.domains import Domains
from transferable.engines.nearest_row import NearestRow
from transferable.engines.shares import (
    ClassShares,
    EstimatedShares,
    KnownShares,
    Labelling,
    View,
    find_shift,
    wanted_shares,
)
from transferable.engines.spectral.features import Features
from transferable.linalg.eigen import Matrix
from transferable.linalg.kernels import Kernel
from transferable.transformers._pseudo_labels import PseudoLabelTransformer, Round, trained
from transferable.transformers._spectral import Codes, Solution

__all__ = ["ClassSharesTransformer"]

_SMALLEST = 1e-12  # probability: that of no class is 0 for sure


class ClassSharesTransformer(PseudoLabelTransformer):
    """Base of JDA, BDA and McDA, whose means and covariances are weighted to the target's shares.

    Labels then come from the estimator's probabilities: of the source's classes corrected to the
    shares that the target is taken to have, or with offsets that meet known shares.

    Parameters
    ----------
    class_shares : {"auto", "source"} or mapping or array-like, default="source"
        What share of the target's rows each class has. "source" takes the classes to be as frequent
        as in the source, as the authors do. "auto" looks whether the nearest rows, without
        alignment, label target rows with other shares than left-out source rows, and follows a
        shift as far as it is sure of one. If you know the shares, give them, by label or in the
        order of the labels (in an :class:`~transferable.AdaptedClassifier` in this order): the
        source is weighted to them, and the labels of ``transduction_`` have them to within a row.
        A classifier that is trained on embedded rows does not know of them. They must be right: an
        error of a factor of 1.35 for each class costs TFDF 3 to 6 points.
    """

    _parameter_constraints = {  # noqa: RUF012
        **PseudoLabelTransformer._parameter_constraints,
        "class_shares": CLASS_SHARES,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Kernel | None = None,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        regularization: float = 0.1,
        scaling: str = "unit",
        normalize: bool = False,
        estimator: ClassifierMixin | None = None,
        max_iter: int = 10,
        n_landmarks: int | str | None = "auto",
        max_memory: int | str | None = None,
        random_state: int | RandomState | None = 0,
        class_shares: ClassShares = "source",
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
            n_landmarks=n_landmarks,
            max_memory=max_memory,
            random_state=random_state,
        )
        self.class_shares = class_shares

    def _learn(self, domains: Domains, features: Features) -> Solution:
        self.n_iter_ = 0
        shares = wanted_shares(self.class_shares, domains)
        if shares is not None and domains.n_target > 0:
            last = self._known_rounds(shares, domains, features)
        else:
            last = self._rounds(domains, features)
            if isinstance(self.class_shares, str) and self.class_shares == "auto":
                last = self._followed(last, domains, features)
        self.class_shares_ = last.shares[-1] if shares is None else shares
        self.class_shares_history_ = np.array(last.shares)
        return self._kept(domains, last)

    def _known_rounds(
        self, shares: NDArray[np.float64], domains: Domains, features: Features
    ) -> Round:
        """Rounds whose labels have these shares, at the end to within a row."""
        known = KnownShares(shares, softness=1.0)
        domains = domains.with_shares(known.in_solve(domains.source_shares))
        known = known.among(domains)
        last = self._rounds(domains, features, labelling=known)
        likely = self._log_probabilities(domains, last.Z)
        return last.labelled(
            domains.label_target(lambda rows: known.codes(likely[rows], settled=True))
        )

    def _followed(self, last: Round, domains: Domains, features: Features) -> Round:
        """The same rounds, or those that follow the shift of shares that rows and maps show."""
        if domains.n_target == 0:
            return last
        alone, aligned = self._view(domains, domains.X), self._view(domains, last.Z)
        shift = find_shift(alone, aligned.label_shares, domains)
        if shift is None:
            return last
        log_odds = (1.0 - shift.weight) * aligned.log_probabilities
        log_odds = log_odds + shift.weight * alone.log_probabilities
        codes = (log_odds + np.log(shift.shares / domains.source_shares)).argmax(axis=1)
        estimated, codes = EstimatedShares(shift, domains.source_shares), domains.fixed(codes)
        other = self._rounds(domains.with_shares(shift.shares), features, codes, estimated)
        return other.after(last)

    def _relabel(
        self, domains: Domains, Z: Matrix, weights: Matrix | None, labelling: Labelling | None
    ) -> Codes:
        if labelling is None or domains.n_target == 0:
            return super()._relabel(domains, Z, weights, labelling)
        likely = self._log_probabilities(domains, Z)
        return domains.label_target(lambda rows: labelling.codes(likely[rows]))

    def _log_probabilities(self, domains: Domains, Z: Matrix) -> Matrix:
        """Of the target rows, where classes have the shares that they are taken to have."""
        fitted: Any = NearestRow() if self.estimator is None else clone(self.estimator)
        if not hasattr(fitted, "predict_proba"):
            raise ValueError(
                f"class_shares needs an estimator with predict_proba, which {fitted!r} has not; "
                'give another, or leave class_shares at "source".'
            )
        weights = domains.row_weights
        own = None if weights is None else weights[domains.labelled]
        trained(fitted, Z[domains.labelled], domains.labels, own)
        probabilities = fitted.predict_proba(Z[domains.target])
        return np.log(np.maximum(probabilities, _SMALLEST)) + np.log(domains.ratios)

    @staticmethod
    def _view(domains: Domains, Z: Matrix) -> View:
        """What nearest rows tell of the target."""
        nearest = NearestRow()
        left_out = nearest.fit_left_out(Z[domains.source], domains.y)
        probabilities = nearest.predict_proba(Z[domains.target])
        return View.of(np.log(np.maximum(probabilities, _SMALLEST)), left_out, domains)
