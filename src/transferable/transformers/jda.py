"""Joint distribution adaptation."""

from __future__ import annotations

from typing import Literal

from transferable._sklearn import StrOptions
from transferable.base import Takes
from transferable.transformers._pseudo_labels import ClassSharesTransformer
from transferable.transformers._spectral import AligningTransformer


class JDA(AligningTransformer, ClassSharesTransformer):
    """Joint distribution adaptation: the means of the domains and of each class meet.

    TCA with class means beside domain means, compared by pseudo-labels of the target that are
    renewed in each round:

        min tr(W'K M K W) + lambda ||W||^2   subject to   W'K H K W = I

    with M = C M_0 + sum_c M_c, divided by its Frobenius norm. The first round has no pseudo-labels
    yet and compares the marginals.

    Parameters
    ----------
    target_labels : {"ignore", "use"}, default="ignore"
        "use" takes labels of target rows other than -1, NaN and None as known, if ``sample_domain``
        is given: they train the classifier that labels the others, and are kept in every round and
        in ``transduction_``. "ignore" never reads them.

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

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.transformers import JDA
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> Xt = rng.normal(size=(30, 5)) + 3 * np.repeat([0, 1], 15)[:, None] + 1
    >>> model = JDA(n_components=2).adapt(Xs, ys, Xt)
    >>> model.transform(Xt).shape
    (30, 2)
    """

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _published = {"n_components": 100, "kernel": "linear", "regularization": 1.0, "normalize": True}  # noqa: RUF012
    _parameter_constraints = {"target_labels": [StrOptions({"ignore", "use"})]}  # noqa: RUF012

    target_labels: Literal["ignore", "use"] = "ignore"
