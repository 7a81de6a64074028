"""Circular validation: adapt back from the labels that were predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transferable.classifiers._risk import RiskClassifier
from transferable.model_selection._scorer import Evidence, LabelFreeScorer, fit_domains

__all__ = ["CircularScore"]


@dataclass(frozen=True)
class CircularScore(LabelFreeScorer):
    """Accuracy on the source of a copy fitted from the predicted target, the source as its target.

    Assumes that the way back is as hard as the way there, and that wrong labels do not lead back.
    Fails where a model confuses classes in a way that the reverse model undoes, so that the circle
    closes around a wrong labelling, and where only few classes are predicted. If all target rows
    get one label, the score is the share of source rows with that label.

    TFDF, TFDF-V, MEDA and ARTL go back by one linear system with the features, ridge and graph of
    the model that is judged, unaligned, which in a search costs a fraction of a fit. For other
    estimators it is one more fit.

    References
    ----------
    E. Zhong, W. Fan, Q. Yang, O. Verscheure and J. Ren, "Cross validation framework to choose
    amongst models and datasets for transfer learning", ECML PKDD 2010; L. Bruzzone and
    M. Marconcini, "Domain adaptation problems: a DASVM classification technique and a circular
    validation strategy", IEEE TPAMI 2010.

    Examples
    --------
    >>> from transferable.model_selection import CircularScore
    >>> CircularScore()
    CircularScore()
    """

    labels_only: ClassVar[bool] = True

    def score(self, evidence: Evidence) -> float:
        """Accuracy of the way there and back."""
        labels = evidence.labels
        if len(np.unique(labels)) < 2:
            return float(np.mean(evidence.ys == labels[0]))
        domains, model = evidence.domains, evidence.estimator
        if isinstance(model, RiskClassifier):
            codes = np.searchsorted(domains.classes, labels)
            return float(np.mean(model._way_back(domains, codes) == domains.y))
        reverse = fit_domains(model, evidence.Xt, labels, evidence.Xs)
        return float(np.mean(np.asarray(reverse.predict(evidence.Xs)) == evidence.ys))
