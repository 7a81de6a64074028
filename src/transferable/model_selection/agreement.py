"""Agreement with other methods that saw the same rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from transferable.classifiers import AdaptedClassifier
from transferable.model_selection._scorer import Evidence, LabelFreeScorer, fit_domains
from transferable.transformers import GFK, JDA, SubspaceAlignment
from transferable.workspace import Same

__all__ = ["AgreementScore", "default_panel"]


def default_panel(most: int) -> tuple[Any, ...]:
    """Methods unlike each other: a linear model of the source, and three adapted spaces.

    The spaces have 20 or 30 directions, or `most` if the rows do not span as many.
    """
    few, many = min(20, most), min(30, most)
    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
    return (
        AdaptedClassifier(None, linear),
        AdaptedClassifier(GFK(n_components=few), KNeighborsClassifier(1)),
        AdaptedClassifier(SubspaceAlignment(n_components=many), LogisticRegression(max_iter=500)),
        AdaptedClassifier(JDA(n_components=many), KNeighborsClassifier(1)),
    )


@dataclass(frozen=True)
class AgreementScore(LabelFreeScorer):
    """Mean share of target rows on which a model agrees with each of a panel of other methods.

    Assumes that methods unlike each other err on different rows. Fails where they share an error,
    as all that start from the source do under a large shift: it then prefers models that adapt
    little. The panel is fitted once for all settings of a search.

    Parameters
    ----------
    panel : tuple of estimators or None, default=None
        Unfitted. None takes a logistic regression of the source, GFK and JDA with the nearest
        neighbour, and subspace alignment with logistic regression.

    References
    ----------
    O. Madani, D. Pennock and G. Flake, "Co-validation: using model disagreement on unlabeled data
    to validate classification algorithms", NeurIPS 2004.

    Examples
    --------
    >>> from transferable.model_selection import AgreementScore
    >>> AgreementScore()
    AgreementScore(panel=None)
    """

    panel: tuple[Any, ...] | None = None

    def score(self, evidence: Evidence) -> float:
        """Mean agreement over the panel."""
        domains = evidence.domains
        votes = domains.share(
            "votes",
            (Same(self.panel), domains.labels_key),
            lambda: _votes(self.panel, domains.X, domains.y),
        )
        own = np.searchsorted(evidence.domains.classes, evidence.labels)
        return float(np.mean(votes == own[:, None]))


def _votes(panel: tuple[Any, ...] | None, X: Any, codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Labels of the target rows, a column for each method of the panel."""
    Xs, Xt = X[: len(codes)], X[len(codes) :]
    most = max(1, min(Xs.shape[0] - 1, Xt.shape[0] - 1, X.shape[1]))
    methods = default_panel(most) if panel is None else panel
    with warnings.catch_warnings():
        # Rows may span less than their number allows; the spaces are then as large as can be.
        warnings.filterwarnings("ignore", message="n_components=")
        return np.column_stack(
            [np.asarray(fit_domains(method, Xs, codes, Xt).predict(Xt)) for method in methods]
        )
