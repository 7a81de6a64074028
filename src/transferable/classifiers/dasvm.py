"""Domain adaptation support vector machines: target rows come in while source rows go."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from transferable._sklearn import Interval, StrOptions
from transferable.classifiers._scores import ScoreClassifier
from transferable.domains import Domains
from transferable.events import rounds
from transferable.linalg.kernels import kernel_matrix
from transferable.linalg.memory import refuse_if_too_large

__all__ = ["DASVM"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


class DASVM(ScoreClassifier):
    """Domain adaptation SVM, one machine for each class against the others.

    A machine starts from the source. In each of T rounds, on each side of its border, one T-th of
    the target rows there, those nearest to the margin's bound, are taken in with the machine's
    label, and one T-th of the source rows, those farthest from the border, are dropped. Rows that
    were taken in and have changed sides are given back. The last machine has seen target rows only.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of margin violations.
    kernel : {"linear", "rbf"}, default="rbf"
        Kernel of the machines.
    gamma : float or "scale", default="scale"
        Coefficient of "rbf"; "scale" is 1 / (n_features * variance of the rows).
    max_iter : int, default=10
        Rounds (T).
    max_memory : int, str or None, default=None
        Bytes, or a text such as "4GB", that a fit may take besides its rows; None is half of the
        free memory. What does not fit is refused before it is allocated.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_samples,)
        The predicted label of every fitted row, in input order.
    n_iter_ : int
        Rounds run; 1 without a target.

    Notes
    -----
    Published for two classes, and for more by one machine for each, as here. There, the same number
    of rows is taken on both sides, inside the margin alone; with one class against many that number
    would make half of all rows the one class's, so that here it is a share of each side, and rows
    beyond the bound follow those inside by their distance from it. The penalty of source rows
    falls, and that of target rows rises, linearly with the rounds; it is quadratic in the paper. A
    side that would be left without rows ends the rounds of its machine.

    References
    ----------
    .. [1] L. Bruzzone, M. Marconcini (2010). Domain adaptation problems: a DASVM classification
       technique and a circular validation strategy. IEEE TPAMI 32(5).

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.classifiers import DASVM
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat(["cat", "dog"], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 4 * (ys == "dog")[:, None]
    >>> Xt = Xs + 0.5
    >>> model = DASVM().adapt(Xs, ys, Xt)
    >>> float(np.mean(model.predict(Xt) == ys))
    1.0
    """

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"linear", "rbf"})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        max_iter: int = 10,
        max_memory: int | str | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.max_iter = max_iter
        self.max_memory = max_memory

    def _fit_domains(self, domains: Domains) -> None:
        n, n_source = len(domains.order), domains.n_source
        refuse_if_too_large("DASVM", 24 * n**2, n_source, domains.n_target, self.max_memory)
        self._rows = np.asarray(domains.X, dtype=np.float64)
        scale = 1.0 / (self._rows.shape[1] * (float(self._rows.var()) or 1.0))
        self._gamma = scale if isinstance(self.gamma, str) else float(self.gamma)
        K = self._kernel(self._rows)
        self.n_iter_ = self.max_iter if domains.n_target else 1
        # Of two classes, one machine tells both.
        machines = [1] if domains.n_classes == 2 else range(domains.n_classes)
        fitted = [
            self._machine(K, np.where(domains.y == machines[i], 1.0, -1.0))
            for i in rounds(len(machines))
        ]
        self._coefficients, self._intercepts = map(np.array, zip(*fitted, strict=True))
        self.classes_ = domains.classes
        self.transduction_ = domains.restore(self.classes_[self._predict_codes(domains.X)])

    def _kernel(self, rows: Any) -> Matrix:
        X = np.asarray(rows, dtype=np.float64)
        K = kernel_matrix(X, self._rows, self.kernel, gamma=self._gamma, degree=1, coef0=0.0)
        return np.asarray(K)

    def _machine(self, K: Matrix, sides: Matrix) -> tuple[Matrix, float]:
        """Coefficients of all rows, and the intercept, for the source's sides of 1 and -1."""
        n, n_source, T = len(K), len(sides), self.n_iter_
        labels = np.concatenate([sides, np.zeros(n - n_source)])
        source = np.arange(n) < n_source
        kept, ages = source.copy(), np.zeros(n)
        machine = self._trained(K, labels, kept, np.ones(n))
        for t in range(1, T + 1 if n > n_source else 1):
            scores = K @ machine[0] + machine[1]
            changed = ~source & kept & (scores * labels <= 0)
            kept &= ~changed
            ages[changed] = 0
            for side in (1.0, -1.0):
                here = ~source & (scores * side > 0)
                kept |= _first(here & ~kept, np.abs(np.abs(scores) - 1.0), _part(here, T))
                own = source & (labels == side)
                n_dropped = int(np.ceil(own.sum() * t / T)) - int((own & ~kept).sum())
                kept &= ~_first(own & kept, -scores * side, n_dropped)
            labels[~source] = np.where(kept, np.sign(scores), 0.0)[~source]
            ages += ~source & kept
            if len(np.unique(labels[kept])) < 2:
                break
            weights = np.where(source, 1.0 - (t - 1) / T, np.minimum(ages / T + 1.0 / T, 1.0))
            machine = self._trained(K, labels, kept, weights)
        return machine

    def _trained(
        self, K: Matrix, labels: Matrix, kept: Mask, weights: Matrix
    ) -> tuple[Matrix, float]:
        rows = np.flatnonzero(kept)
        svm = SVC(C=self.C, kernel="precomputed").fit(
            K[np.ix_(rows, rows)], labels[rows], sample_weight=weights[rows]
        )
        coefficients = np.zeros(len(K))
        coefficients[rows[svm.support_]] = svm.dual_coef_[0]
        return coefficients, float(svm.intercept_[0])

    def _scores(self, rows: Any) -> Matrix:
        scores = self._kernel(rows) @ self._coefficients.T + self._intercepts
        return np.column_stack([-scores, scores]) / 2 if scores.shape[1] == 1 else scores


def _part(rows: Mask, T: int) -> int:
    """How many are one T-th, at least one."""
    return int(np.ceil(rows.sum() / T))


def _first(among: Mask, order: Matrix, count: int) -> Mask:
    """The `count` of these rows that come first."""
    rows = np.flatnonzero(among)
    chosen = np.zeros(len(among), dtype=bool)
    chosen[rows[np.argsort(order[rows], kind="stable")[: max(count, 0)]]] = True
    return chosen
