"""Kernel features from landmarks of both domains."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from transferable._sklearn import NUMBER, POSITIVE, Interval, StrOptions
from transferable.base import Takes
from transferable.domains import Domains
from transferable.engines.spectral.features import RowMap
from transferable.engines.spectral.spread import Spread
from transferable.linalg.eigen import gram_basis
from transferable.linalg.kernels import KERNELS, Kernel, KernelFunction, is_scale_free
from transferable.linalg.nystrom import draw_landmarks
from transferable.transformers._blocks import BlockwiseTransformer

__all__ = ["LandmarkFeatures"]


class LandmarkFeatures(BlockwiseTransformer):
    """Kernel features from landmarks, with which linear methods act as kernel methods.

    Rows are mapped to K(x, L) K(L, L)^-1/2, where the landmarks L are rows drawn from both domains
    alike. Inner products of the features are the kernel, as far as the landmarks span it, and
    equal to it between landmarks. The domains are not brought any closer: a linear method that
    does so, such as CORAL, follows in a pipeline.

    Parameters
    ----------
    n_landmarks : int, default=1000
        Rows that are drawn, half of them from each domain as far as it has rows, and number of
        features; all rows if there are no more.
    kernel : {"rbf", "linear", "poly"} or callable, default="rbf"
        The kernel; a callable receives two tables and returns their kernel matrix.
    gamma : float or "scale", default="scale"
        Coefficient of "rbf" and "poly"; "scale" is 1 / (n_features * variance of the rows).
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=1.0
        Constant of "poly".
    random_state : int, RandomState instance or None, default=0
        Draws the landmarks.

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

    takes = Takes(no_labels=True)
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "n_landmarks": [Interval(Integral, 2, None, closed="left")],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [POSITIVE, StrOptions({"scale"})],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [NUMBER],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_landmarks: int = 1000,
        *,
        kernel: Kernel = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        random_state: int | RandomState | None = 0,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.random_state = random_state

    @property
    def _scale_free(self) -> bool:
        return is_scale_free(self.kernel, self.gamma)

    def _fit_domains(self, domains: Domains) -> None:
        gamma = Spread.of(domains.X).gamma if isinstance(self.gamma, str) else float(self.gamma)
        kernel = KernelFunction(self.kernel, gamma, self.degree, self.coef0)
        rng = check_random_state(self.random_state)
        drawn = draw_landmarks(domains.X, domains.n_source, self.n_landmarks, rng)
        landmarks = np.ascontiguousarray(domains.X[drawn], dtype=np.float64)
        self.landmarks_ = np.ldexp(domains.X[drawn], self._exponent)
        V, roots = gram_basis(np.asarray(kernel(landmarks, landmarks)))
        # The symmetric one of all inverse roots: it does not depend on how eigenvectors are turned.
        self._inverse_root = (V / roots) @ V.T
        self._map = RowMap(kernel, landmarks)
        self._n_features_out = len(drawn)

    def _transform_block(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        return self._map(rows) @ self._inverse_root

    def _width(self, n_features: int) -> int:
        return self._map.width(n_features)
