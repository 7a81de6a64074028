"""Balanced distribution adaptation, plain and class-weighted."""

from __future__ import annotations

from numbers import Real

from transferable._sklearn import Interval
from transferable.transformers.jda import JDA


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
