"""Whether to trust the labels of a fitted model: beside those of a model of the source alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transferable.diagnostics.comparison import source_only_methods
from transferable.diagnostics.transfer import TransferEstimate, Verdict, estimate_transfer

__all__ = ["Change", "Trust", "assess_trust"]

_ROUNDS = 200


class Change(NamedTuple):
    """So many rows to which a model of the source gives one label and the adapted one another."""

    source_only: Any
    adapted: Any
    rows: int


@dataclass(frozen=True)
class Trust:
    """What is known of the labels of an adapted model, without a true one.

    Attributes
    ----------
    labels : ndarray of shape (n_target,)
        What the adapted model says.
    source_only : ndarray of shape (n_target,)
        What logistic regression on the source alone says.
    estimate : TransferEstimate
        The accuracies of both, estimated.
    shares : dict
        The estimated share of each class among the target rows.
    """

    labels: NDArray[Any]
    source_only: NDArray[Any]
    estimate: TransferEstimate
    shares: dict[Any, float]

    @property
    def changed(self) -> int:
        """Rows that the two models label differently."""
        return int(np.sum(self.labels != self.source_only))

    @property
    def changes(self) -> list[Change]:
        """From which label to which, the most frequent first."""
        pairs = zip(self.source_only.tolist(), self.labels.tolist(), strict=True)
        counts = Counter(pair for pair in pairs if pair[0] != pair[1])
        return [Change(*pair, rows) for pair, rows in counts.most_common()]

    @property
    def warning(self) -> str:
        """What to be wary of; empty if adapting seems to have paid."""
        return self.estimate.warning

    @property
    def verdict(self) -> Verdict:
        """Whether the labels may be relied upon, as far as estimates tell."""
        return self.estimate.verdict


def assess_trust(
    model: Any,
    Xs: Any,
    ys: ArrayLike,
    Xt: Any,
    *,
    plain: tuple[Any, Any] | None = None,
    random_state: int = 0,
) -> Trust:
    """Set the labels of a fitted model beside those of a model of the source alone.

    Parameters
    ----------
    model : classifier
        Fitted to these rows.
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows, as the model takes them.
    plain : tuple of two array-likes or None, default=None
        The rows as the model of the source alone takes them, made without any target row; None
        takes `Xs` and `Xt`.
    random_state : int, default=0
        Seed of the rows that are drawn for estimates where there are many.

    Returns
    -------
    trust : Trust
        Both models' labels, their estimated accuracies, the target's estimated class shares, and a
        warning where adapting does not seem to pay.

    Notes
    -----
    Class shares are those under which the probabilities of the source-only model explain the
    target rows best, by expectation maximisation. They hold where the classes look alike in both
    domains and only their shares differ.

    References
    ----------
    M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.diagnostics import assess_trust
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 2
    >>> X = rng.normal(size=(120, 4)) + 3 * y[:, None]
    >>> Xs, ys, Xt = X[:60], y[:60], X[60:]
    >>> trust = assess_trust(TFDFV().adapt(Xs, ys, Xt), Xs, ys, Xt)
    >>> trust.changed < 10
    True
    """
    labels, (As, At) = np.asarray(ys), plain or (Xs, Xt)
    alone = source_only_methods()["logistic regression"].adapt(As, labels, At)
    classes, counts = np.unique(labels, return_counts=True)
    shares = _shares(alone.predict_proba(At), counts / counts.sum())
    estimate = estimate_transfer(
        Xs, labels, Xt, estimator=model, plain=(As, At), random_state=random_state
    )
    return Trust(
        np.asarray(model.predict(Xt)),
        alone.predict(At),
        estimate,
        dict(zip(classes.tolist(), shares.tolist(), strict=True)),
    )


def _shares(P: NDArray[np.float64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Class shares under which probabilities, learnt under `prior`, explain the rows best."""
    shares = prior
    for _ in range(_ROUNDS):
        posterior = P * (shares / prior)
        new = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(new - shares).max() < 1e-6:
            return new
        shares = new
    return shares
