"""Marginalized denoising: the words that others in a text suggest, learnt from both domains."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from transferable._linalg.arrays import dense, unit_rows
from transferable._sklearn import COUNT, Interval
from transferable.base import DomainTransformer, Takes
from transferable.domains import Domains
from transferable.limits import LIMITS

_RIDGE = 1e-6  # for each row, so that words that always occur together leave a solution


class MarginalizedDenoising(DomainTransformer):
    """Marginalized denoising autoencoder: frequent words predicted from a few of the others.

    A linear map learns to restore rows of which a random share of the values was deleted, from rows
    of both domains and without labels. A word of one domain thereby counts as the words of both
    that stand beside it. Only words that occur in every domain, with a positive value, are used.
    Rows are scaled to unit length first, so that long and short texts are alike.

    Parameters
    ----------
    n_words : int, default=1000
        Words to restore: the most frequent ones, by the domain in which each is least frequent.
    noise : float in [0, 1), default=0.8
        Share of the values that is deleted.

    Attributes
    ----------
    words_ : ndarray of shape (n_components,)
        Columns of the words.
    means_ : ndarray of shape (n_components,)
        Mean of each over the rows of both domains.
    coefficients_ : ndarray of shape (n_components, n_components)
        What each word (a row) adds to the restored ones (columns).

    Notes
    -----
    With B the columns of the words and a column of ones, S = B'B, and q the chance of each to
    remain, the map is W = Q^-1 P for the expectations over all deletions, P = q * S, and Q = S *
    qq' off and q * S on the diagonal, plus 1e-6 on the diagonal for each row. That is one linear
    system of ``n_words`` unknowns; time and memory grow linearly with the rows, which are read in
    blocks. Restored rows are centred over both domains and have unit length. Train on them beside
    the words, in a union of both.

    Published: flags of the 5,000 most frequent words, all of which are restored, in several layers
    that end with tanh. Flags of 1,000 words, as measured on 23 pairs of domains of texts, let the
    length of texts count, and take 26 points where short messages teach long mails.

    References
    ----------
    .. [1] M. Chen, Z. Xu, K. Weinberger, F. Sha (2012). Marginalized denoising autoencoders for
       domain adaptation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.transformers import MarginalizedDenoising
    >>> words = ["good", "sturdy", "witty"]
    >>> tools = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    >>> books = np.array([[1, 0, 1], [1, 0, 1], [0, 0, 0], [1, 1, 0]])
    >>> model = MarginalizedDenoising().adapt(tools, None, books)
    >>> [words[k] for k in model.words_]
    ['good', 'sturdy']
    >>> model.transform([[0, 1, 0]]).shape
    (1, 2)
    """

    family = "components"
    takes = Takes(several_sources=True, sample_weight=True, no_labels=True)
    _accept_sparse = True
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_words": [COUNT],
        "noise": [Interval(Real, 0, 1, closed="left")],
    }

    n_words: int = field(default=1000, kw_only=False)
    noise: float = 0.8

    def _fit_domains(self, domains: Domains) -> None:
        weights, width = domains.weights, domains.X.shape[1]
        several = np.unique(np.maximum(domains.ids, -1), return_inverse=True)[1]
        counts = np.zeros((several.max() + 1, width))  # the rows with each word, by domain
        step = max(1, LIMITS.block_values // max(min(self.n_words, width), 1))
        for rows, X in domains.blocks(step):
            for k in range(len(counts)):
                own = several[rows] == k
                counts[k] += (X[own] > 0).T @ weights[rows][own]
        least = (counts / np.bincount(several, weights)[:, None]).min(axis=0)
        words = np.sort(np.argsort(-least, kind="stable")[: self.n_words])
        words = words[least[words] > 0]
        if not len(words):
            raise ValueError(
                "MarginalizedDenoising needs words of both domains, but no column has positive "
                "values in each; encode the texts of both together."
            )
        S = np.zeros((len(words) + 1,) * 2)
        for rows, X in domains.blocks(step):
            B = np.column_stack([_of_words(X, words), np.ones(X.shape[0])])
            B *= np.sqrt(weights[rows])[:, None]
            S += B.T @ B
        kept = np.full(len(S), 1.0 - self.noise)
        kept[-1] = 1.0
        Q = S * np.outer(kept, kept)
        Q[np.diag_indices_from(Q)] = kept * S.diagonal() + _RIDGE * S[-1, -1]
        W = solve(Q, (S[:-1] * kept).T, assume_a="pos")
        self.words_, self.coefficients_ = words, W[:-1]
        self.means_ = S[-1, :-1] / S[-1, -1]
        self._n_features_out = len(words)

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        return unit_rows((_of_words(rows, self.words_) - self.means_) @ self.coefficients_)


def _of_words(rows: Any, words: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return some columns of rows of unit length, dense."""
    return dense(unit_rows(rows)[:, words]).astype(np.float64)
