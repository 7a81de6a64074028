"""Kernel features from landmarks of both domains."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from transferable._linalg.kernels import Kernel, draw_landmarks
from transferable._linalg.systems import gram_basis
from transferable._sklearn import Interval
from transferable.base import Takes
from transferable.domains import Domains
from transferable.transformers._features import KernelParameters, RowMap, Spread


class LandmarkFeatures(KernelParameters):
    """Kernel features from landmarks, with which linear methods act as kernel methods.

    Rows are mapped to K(x, L) K(L, L)^-1/2, where the landmarks L are rows drawn from both domains
    alike. Inner products of the features approximate the kernel within the span of the landmarks,
    and equal it between landmarks. The domains are not aligned: a linear method such as CORAL does
    that in a pipeline.

    Parameters
    ----------
    n_landmarks : int, default=1000
        Rows that are drawn, half of them from each domain as far as it has rows, and number of
        features; all rows if there are no more.
    kernel : {"rbf", "linear", "poly"} or callable, default="rbf"
        The kernel; a callable receives two tables and returns their kernel matrix.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks, n_features)
        The rows that were drawn.

    Notes
    -----
    Time and memory grow with the number of rows and not with its square. Directions that the
    landmarks span by rounding errors only are left out of the inverse root. Labels are not used.

    Published: rows drawn uniformly. Ours draws as many from either domain, so that a small one is
    not lost in a large one.

    References
    ----------
    .. [1] C. K. I. Williams, M. Seeger (2001). Using the Nystrom method to speed up kernel
       machines. NIPS 13.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from transferable.classifiers import AdaptedClassifier
    >>> from transferable.transformers import CORAL, LandmarkFeatures
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> Xt = rng.normal(size=(30, 5)) + 3 * np.repeat([0, 1], 15)[:, None] + 1
    >>> LandmarkFeatures(n_landmarks=10).adapt(Xs, ys, Xt).transform(Xt).shape
    (30, 10)
    >>> steps = make_pipeline(LandmarkFeatures(n_landmarks=10), CORAL(regularization=0.01))
    >>> AdaptedClassifier(steps).adapt(Xs, ys, Xt).predict(Xt).shape
    (30,)
    """

    family = "parts"
    takes = Takes(no_labels=True)
    _parameter_constraints = {"n_landmarks": [Interval(Integral, 2, None, closed="left")]}  # noqa: RUF012

    n_landmarks: int = field(default=1000, kw_only=False)
    kernel: Kernel | None = "rbf"

    def _fit_domains(self, domains: Domains) -> None:
        kernel = self._kernel(Spread.of_rows(domains.X, domains.weights))
        rng = check_random_state(self.random_state)
        drawn = draw_landmarks(domains.X, domains.n_source, self.n_landmarks, rng)
        self.landmarks_ = domains.X[drawn]
        landmarks = np.ascontiguousarray(self.landmarks_, dtype=np.float64)
        V, roots = gram_basis(np.asarray(kernel(landmarks, landmarks)))
        # The symmetric one of all inverse roots: it does not depend on how eigenvectors are turned.
        self._map = RowMap(kernel, landmarks, (V / roots) @ V.T)
        self._n_features_out = self._widest = len(drawn)

    def _transform_block(self, rows: Any, ids: NDArray[Any]) -> NDArray[np.floating]:
        return self._map(rows) @ self._map.coefficients
