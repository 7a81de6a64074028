"""Domain adaptation support vector machines: target rows replace source rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from transferable._linalg.kernels import KernelFunction
from transferable._linalg.memory import refuse_if_too_large
from transferable._sklearn import POSITIVE, StrOptions
from transferable.base import DomainClassifier
from transferable.domains import Domains
from transferable.events import rounds

Matrix = NDArray[np.float64]
Codes = NDArray[np.intp]


class DASVM(DomainClassifier, example=""):
    """Domain adaptation SVM: machines, one for each class, that move from source to target.

    They start from the source. In each of T rounds, of the target rows predicted as each class, one
    T-th, those nearest to the margin's bound, is added with that label, and one T-th of the class's
    source rows, those farthest from the border, is dropped. Added rows now predicted as another
    class are removed. The last machines are trained on target rows only.

    Parameters
    ----------
    C : float, default=10.0
        Penalty of margin violations.
    kernel : {"linear", "rbf"}, default="rbf"
        Kernel of the machines.
    gamma : float or "scale", default="scale"
        Coefficient of "rbf"; "scale" is 1 / (n_features * variance of the rows).
    max_iter : int, default=10
        Rounds (T).

    Attributes
    ----------
    n_iter_ : int
        Rounds run; 1 without a target.

    Notes
    -----
    Published for two classes, where this is one machine with two sides, and the same number of rows
    is taken on each, inside the margin alone. Here it is a share of each side, and rows beyond the
    bound follow those inside by their distance from it. For more classes the paper runs a machine
    for each by itself; here all share their rows and a row goes to the class that scores highest,
    since one class against many soon takes in too few of its own. The penalty of source rows
    falls, and that of target rows rises, linearly with the rounds; it is quadratic in the paper. A
    class that no row is given to has its source rows back. That machines share rows, and C, were
    chosen by target accuracy on four tasks of Office-Caltech10 SURF and on COIL20.

    References
    ----------
    .. [1] L. Bruzzone, M. Marconcini (2010). Domain adaptation problems: a DASVM classification
       technique and a circular validation strategy. IEEE TPAMI 32(5).
    """

    family = "pseudo-labels"
    C: float = field(default=10.0, kw_only=False)
    kernel: str = "rbf"
    gamma: float | str = "scale"
    max_iter: int = 10
    max_memory: int | str | None = None

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "C": [POSITIVE],
        "kernel": [StrOptions({"linear", "rbf"})],
        "gamma": [POSITIVE, StrOptions({"scale"})],
    }

    def _fit_domains(self, domains: Domains) -> None:
        n, n_source = len(domains.order), domains.n_source
        refuse_if_too_large("DASVM", 24 * n**2, n_source, domains.n_target, self.max_memory)
        X = np.asarray(domains.X, dtype=np.float64)
        scale = 1.0 / (X.shape[1] * (float(X.var()) or 1.0))
        gamma = scale if isinstance(self.gamma, str) else float(self.gamma)
        none = np.zeros((n, 0))
        machines = Machines(KernelFunction(self.kernel, gamma, 1, 0.0), X, none, none[0])
        K = machines.products(X)
        codes = domains.with_target(np.full(domains.n_target, -1))
        machines = self._trained(machines, K, codes, np.ones(n), domains.n_classes)
        self.n_iter_ = self.max_iter if domains.n_target else 1
        for t in rounds(self.max_iter if domains.n_target else 0):
            scores = machines.scores(K)
            codes = self._exchange(scores, codes, domains, (t + 1) / self.max_iter)
            weights = np.full(n, (t + 1) / self.max_iter)
            weights[:n_source] = 1.0 - t / self.max_iter
            machines = self._trained(machines, K, codes, weights, domains.n_classes)
        self._machines = machines

    def _exchange(self, scores: Matrix, codes: Codes, domains: Domains, share: float) -> Codes:
        """Return codes of the rows to train on, -1 for others: more target rows, fewer source rows.

        `share` is the share of each class's original source rows that is gone after this round.
        """
        given = scores.argmax(axis=1)
        source = np.arange(len(codes)) < domains.n_source
        kept = np.where(source | (codes == given), codes, -1)
        for c in range(domains.n_classes):
            here = ~source & (given == c)
            own = np.pad(domains.y == c, (0, domains.n_target))
            if not here.any():
                kept[own] = c
                continue
            part = int(np.ceil(here.sum() / self.max_iter))
            kept[_first(here & (kept < 0), np.abs(scores[:, c] - 1.0), part)] = c
            gone = int(np.ceil(share * own.sum()))
            n_dropped = gone - int(np.sum(own & (kept < 0)))
            kept[_first(own & (kept >= 0), -scores[:, c], n_dropped)] = -1
        return kept

    def _trained(
        self, machines: Machines, K: Matrix, codes: Codes, weights: Matrix, n_classes: int
    ) -> Machines:
        """Return a machine for each class against the others; one for two classes."""
        rows = np.flatnonzero(codes >= 0)
        inner = K[np.ix_(rows, rows)]
        positive = [1] if n_classes == 2 else range(n_classes)
        coefficients, intercepts = np.zeros((len(K), len(positive))), np.zeros(len(positive))
        for m, c in enumerate(positive):
            svm = SVC(C=self.C, kernel="precomputed", random_state=0)
            svm.fit(inner, codes[rows] == c, sample_weight=weights[rows])
            coefficients[rows[svm.support_], m] = svm.dual_coef_[0]
            intercepts[m] = svm.intercept_[0]
        return replace(machines, coefficients=coefficients, intercepts=intercepts)

    def _scores(self, rows: Any) -> Matrix:
        scores = self._machines.scores(self._machines.products(rows))
        return scores / 2 if scores.shape[1] == 2 else scores


@dataclass(frozen=True, eq=False)
class Machines:
    """Support vector machines over the same rows, a column of coefficients for each."""

    kernel: KernelFunction
    rows: Matrix
    coefficients: Matrix
    intercepts: Matrix

    def products(self, rows: Any) -> Matrix:
        """Return the kernel matrix of any rows with those of the machines."""
        return np.asarray(self.kernel(np.asarray(rows, dtype=np.float64), self.rows))

    def scores(self, K: Matrix) -> Matrix:
        """Return scores from a kernel matrix, of both sides where there is one machine."""
        scores = K @ self.coefficients + self.intercepts
        return np.column_stack([-scores, scores]) if scores.shape[1] == 1 else scores


def _first(among: NDArray[np.bool_], order: Matrix, count: int) -> Codes:
    """Return the positions of the first `count` of these rows."""
    rows = np.flatnonzero(among)
    return rows[np.argsort(order[rows], kind="stable")[: max(count, 0)]]
