"""Two samples, perhaps with labels, as the discrepancies compare them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_consistent_length

from transferable.domains import Groups
from transferable.linalg.kernels import Kernel, kernel_matrix
from transferable.terms.base import Matrix

__all__ = ["Samples"]


class Samples:
    """Rows of both samples, the first sample's first, with class codes where labels are given.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        All rows.
    n_source, n_classes : int
        Rows of the first sample; classes, 0 without labels.
    groups : Groups
        The rows by sample and class, of one class without labels.
    """

    def __init__(
        self,
        Xs: Any,
        Xt: Any,
        ys: ArrayLike | None,
        yt: ArrayLike | None,
        *,
        kernel: Kernel,
        **parameters: Any,
    ) -> None:
        Xs, Xt = check_array(Xs, dtype=np.float64), check_array(Xt, dtype=np.float64)
        if Xs.shape[1] != Xt.shape[1]:
            raise ValueError(
                f"Xt has {Xt.shape[1]} features, but Xs has {Xs.shape[1]}; both samples must be "
                "described by the same features."
            )
        if (ys is None) != (yt is None):
            raise ValueError("Give the labels of both samples, ys and yt, or of neither.")
        self.X = np.concatenate([Xs, Xt])
        self.n_source = len(Xs)
        codes = np.zeros(len(self.X), dtype=np.intp)
        self.n_classes = 0
        if ys is not None:
            check_consistent_length(Xs, ys)
            check_consistent_length(Xt, yt)
            labels = np.concatenate([column_or_1d(ys), column_or_1d(yt)])
            classes, codes = np.unique(labels, return_inverse=True)
            self.n_classes = len(classes)
        self.groups = Groups(codes, self.n_source, max(self.n_classes, 1))
        self.linear = kernel == "linear"
        self._kernel, self._parameters = kernel, parameters

    def gram(self, rows: NDArray[np.intp] | slice) -> Matrix:
        """Kernel between the given rows."""
        X = self.X[rows]
        return kernel_matrix(X, X, self._kernel, **self._parameters)
