"""TFDF-V and TFDF transcribed from the paper's equations, matrix by matrix.

The slow reference: tests compare the library with it, ``bench_literal.py`` times the library
against it. Every matrix is dense and n x n, products are taken in the order they are printed in,
and nothing here uses the library's terms or solvers. Rows are rows (in the paper they are
columns), those of the source come first, and labels are the codes 0 .. C - 1.

Du, Zhang, Zhang, Yao, Lu and Wang, "Learning transferable and discriminative features for
unsupervised domain adaptation".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.spatial.distance import cdist

Matrix = NDArray[np.float64]
Codes = NDArray[np.intp]
Step = Callable[[Matrix], Matrix]  # from V to the next coefficients


@dataclass(frozen=True)
class Settings:
    """Parameters, named as the library's. The defaults are the printed form of every equation."""

    ridge: float = 0.1  # eta
    alignment: float = 10.0  # lambda
    manifold: float = 1.0  # rho
    variance: float = 0.01  # delta
    confusion: float = 0.1  # xi
    second_order: float = 1.0  # gamma of MMCD
    balance: float | str = 0.5  # mu
    alignment_form: str = "printed"
    confusion_form: str = "printed"
    n_neighbors: int = 10  # p
    manifold_dim: int | None = None
    max_iter: int = 10  # T of Algorithm 1
    confusion_iter: int = 100  # T of Algorithm 2
    learning_rate: float = 0.0005  # alpha
    solver: str = "adam"  # of Algorithm 2; also "closed_form"
    start: str = "neighbor"  # first pseudo-labels: 1-NN, or "source": the fit to the source alone
    self_loops: bool = False  # in the graph, as MEDA's and ARTL's code has them
    centred: bool = False  # rows, with a further coordinate of their deviation in two columns


def rbf(A: Matrix, B: Matrix) -> Matrix:
    """exp(-d^2 / 2)."""
    return np.exp(-0.5 * cdist(A, B, "sqeuclidean"))


def principal_basis(X: Matrix, k: int) -> Matrix:
    """Leading k principal directions of the rows, as columns."""
    return np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:k].T


def geodesic_flow_matrix(Ps: Matrix, Pt: Matrix, n_nodes: int = 24) -> Matrix:
    """G of GFK: the integral over t in [0, 1] of P(t) P(t)' along the geodesic, by quadrature.

    With Ps'Pt = U cos(theta) V' and R the unit vectors along the part of Pt V outside Ps's span,
    the geodesic is P(t) = Ps U cos(t theta) + R sin(t theta).
    """
    U, cosines, Vt = np.linalg.svd(Ps.T @ Pt)
    angles = np.arccos(np.clip(cosines, -1.0, 1.0))
    outside = null_space(Ps.T)
    R = outside @ (outside.T @ Pt @ Vt.T)
    lengths = np.linalg.norm(R, axis=0)
    R = R / np.where(lengths > 1e-12, lengths, np.inf)
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    G = np.zeros((len(Ps), len(Ps)))
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        P = Ps @ U * np.cos(t * angles) + R * np.sin(t * angles)
        G += weight * P @ P.T
    return G


def square_root(G: Matrix) -> Matrix:
    """The symmetric root of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(G)
    return vectors @ np.diag(np.sqrt(np.clip(values, 0.0, None))) @ vectors.T


def unit_rows(X: Matrix) -> Matrix:
    """Rows of length one; rows of zeros stay."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1.0)


def features(Xs: Matrix, Xt: Matrix, manifold_dim: int | None, *, centred: bool = False) -> Matrix:
    """All rows, mapped by the root of G where a dimension is given, at unit length."""
    X = np.vstack([Xs, Xt])
    deviation = np.sqrt(X.var(axis=0).mean() * min(2, X.shape[1]))
    X = X - X.mean(axis=0) if centred else X
    if manifold_dim is not None:
        Ps, Pt = principal_basis(Xs, manifold_dim), principal_basis(Xt, manifold_dim)
        X = X @ square_root(geodesic_flow_matrix(Ps, Pt))
    return unit_rows(np.c_[X, np.full(len(X), deviation)] if centred else X)


def affinity(Z: Matrix, p: int, *, self_loops: bool = False) -> Matrix:
    """W: cosines of rows that are among each other's p nearest; obtuse angles are left out."""
    cosines = unit_rows(Z) @ unit_rows(Z).T
    n = len(Z)
    W = np.zeros((n, n))
    for i in range(n):
        others = [j for j in np.argsort(-cosines[i], kind="stable") if j != i]
        for j in others[:p]:
            W[i, j] = W[j, i] = max(cosines[i, j], 0.0)
    return W + np.eye(n) if self_loops else W


def laplacian(W: Matrix) -> Matrix:
    """L = I - G^-1/2 W G^-1/2, with nothing on rows that have no edge."""
    degrees = W.sum(axis=1)
    connected = degrees > 0
    root = np.diag(1.0 / np.sqrt(np.where(connected, degrees, np.inf)))
    return np.diag(connected.astype(float)) - root @ W @ root


def centring(n: int) -> Matrix:
    """H = I - 11' / n."""
    return np.eye(n) - np.ones((n, n)) / n


def mean_matrix(source: NDArray[np.bool_], target: NDArray[np.bool_]) -> Matrix:
    """M_0 or M_c of Eq. 11, for masks of the two groups of rows."""
    n_s, n_t = source.sum(), target.sum()
    return (
        np.outer(source, source) / n_s**2
        + np.outer(target, target) / n_t**2
        - np.outer(source, target) / (n_s * n_t)
        - np.outer(target, source) / (n_s * n_t)
    )


def covariance_matrix(source: NDArray[np.bool_], target: NDArray[np.bool_]) -> Matrix:
    """Z_0 or Z_c of Eq. 12, for masks of the two groups of rows."""
    n_s, n_t = source.sum(), target.sum()
    Z_source = np.diag(source / n_s) - np.outer(source, source) / n_s**2
    Z_target = np.outer(target, target) / n_t**2 - np.diag(target / n_t)
    return Z_source + Z_target


def group_masks(
    labels: Codes, n_source: int, n_classes: int
) -> tuple[list[tuple[Matrix, Matrix]], list[tuple[Matrix, Matrix]]]:
    """Masks of both domains, and those of each class that has rows in both."""
    in_source = np.arange(len(labels)) < n_source
    whole = [(in_source, ~in_source)]
    classes = [(in_source & (labels == c), ~in_source & (labels == c)) for c in range(n_classes)]
    return whole, [(s, t) for s, t in classes if s.any() and t.any()]


def mean_part(labels: Codes, n_source: int, n_classes: int, mu: float, form: str) -> Matrix:
    """(1 - mu) M_0 + mu sum_c M_c; normalised: M_0 C times, and over the Frobenius norm."""
    [whole], classes = group_masks(labels, n_source, n_classes)
    times = n_classes if form == "normalised" else 1
    M = (1 - mu) * times * mean_matrix(*whole)
    for group in classes:
        M = M + mu * mean_matrix(*group)
    return M / np.linalg.norm(M) if form == "normalised" else M


def covariance_part(
    K: Matrix, labels: Codes, n_source: int, n_classes: int, mu: float, form: str
) -> Matrix:
    """(1 - mu) Z_0 K K Z_0 + mu sum_c Z_c K K Z_c; normalised: Z_0 C times, over the trace."""
    [whole], classes = group_masks(labels, n_source, n_classes)
    times = n_classes if form == "normalised" else 1
    Z_0 = covariance_matrix(*whole)
    S = (1 - mu) * times * (Z_0 @ K @ K @ Z_0)
    for group in classes:
        Z_c = covariance_matrix(*group)
        S = S + mu * (Z_c @ K @ K @ Z_c)
    return S / np.trace(S) if form == "normalised" else S


def adaptive_balance(Z: Matrix, labels: Codes, n_source: int, n_classes: int, rule: str) -> float:
    """The balance mu of Eq. 24 ("printed") or of MEDA ("adaptive"), by the library's A-distance."""
    from transferable._kernel.choose import a_distance

    def distance(s: Matrix, t: Matrix) -> float:
        return a_distance(*(np.split(Z[i], [int(i.sum()) // 2]) for i in (s, t)), shrinkage=0.1)

    [(s, t)], classes = group_masks(labels, n_source, n_classes)
    d_M = distance(s, t)
    d_c = [distance(s, t) for s, t in classes if min(s.sum(), t.sum()) >= 2]
    if rule == "printed":
        top, bottom = d_M, d_M + sum(d_c)
    else:
        mean = sum(d_c) / len(d_c) if d_c else 0.0
        top, bottom = mean, mean + d_M
    return top / bottom if bottom > 0 else 0.5


def cosine_columns(F: Matrix) -> tuple[Matrix, Matrix]:
    """Columns of F at unit length, and their lengths."""
    lengths = np.linalg.norm(F, axis=0)
    return F / lengths, lengths


class Literal:
    """One problem: the matrices that stay, and Algorithms 1 and 2.

    Attributes
    ----------
    beta : ndarray of shape (n, C)
        Coefficients after the last iteration.
    labels : ndarray of shape (n,)
        Labels of the source rows and pseudo-labels of the target rows.
    history : list of float
        The objective after each iteration, for the pseudo-labels that the iteration used.
    seconds : list of float
        Processor time of each iteration, the objective left out.
    """

    def __init__(
        self,
        Xs: Matrix,
        ys: Codes,
        Xt: Matrix,
        settings: Settings,
        kernel: Callable[[Matrix, Matrix], Matrix] = rbf,
    ) -> None:
        self.Xs, self.Xt, self.settings = Xs, Xt, settings
        self.n_source, self.n_classes = len(Xs), int(ys.max()) + 1
        n = len(Xs) + len(Xt)
        self.Z = features(Xs, Xt, settings.manifold_dim, centred=settings.centred)
        self.K = kernel(self.Z, self.Z)
        self.A = np.diag((np.arange(n) < len(Xs)).astype(float))
        self.H = centring(n)
        self.L = laplacian(affinity(self.Z, settings.n_neighbors, self_loops=settings.self_loops))
        self.Y = np.zeros((n, self.n_classes))
        self.Y[np.arange(len(Xs)), ys] = 1.0
        self.beta = np.zeros_like(self.Y)
        self.labels = np.concatenate([ys, self._first_labels(ys)])
        self.history: list[float] = []
        self.seconds: list[float] = []

    def _first_labels(self, ys: Codes) -> Codes:
        n = self.n_source
        if self.settings.start == "source":
            inner = self.K[:n, :n] + self.settings.ridge * np.eye(n)
            scores = self.K[n:, :n] @ np.linalg.solve(inner, self.Y[:n])
            return scores.argmax(axis=1)
        return ys[cdist(self.Z[n:], self.Z[:n]).argmin(axis=1)]

    def mmcd(self) -> Matrix:
        """V, the MMCD matrix, for the current pseudo-labels."""
        s = self.settings
        mu = s.balance
        if isinstance(mu, str):
            mu = adaptive_balance(self.Z, self.labels, self.n_source, self.n_classes, mu)
        groups = (self.labels, self.n_source, self.n_classes, mu, s.alignment_form)
        V = mean_part(*groups)
        if s.second_order > 0:
            V = V + s.second_order * covariance_part(self.K, *groups)
        return V

    def objective(self, beta: Matrix, V: Matrix, *, with_confusion: bool = True) -> float:
        """J of Eq. 21, without the constant in its last term."""
        K, s = self.K, self.settings
        F = K @ beta
        J = np.linalg.norm(self.A @ (self.Y - F)) ** 2
        J += s.ridge * np.trace(beta.T @ K @ beta)
        J += s.alignment * np.trace(beta.T @ K @ V @ K @ beta)
        J += s.manifold * np.trace(beta.T @ K @ self.L @ K @ beta)
        J += s.variance * np.trace(beta.T @ K @ self.H @ K @ beta)
        if with_confusion:
            G = F if s.confusion_form == "printed" else cosine_columns(F)[0]
            J += s.confusion * np.linalg.norm(G.T @ G - np.eye(self.n_classes)) ** 2
        return float(J)

    def gradient(self, beta: Matrix, V: Matrix, *, factor: float = 2.0) -> Matrix:
        """Eq. 22. The derivative has `factor` 4 where the paper prints 2 before xi."""
        K, A, L, H, s = self.K, self.A, self.L, self.H, self.settings
        g = -2 * K @ A @ self.Y + 2 * K @ A @ K @ beta + 2 * s.ridge * K @ beta
        g += 2 * s.alignment * K @ V @ K @ beta
        g += 2 * s.manifold * K @ L @ K @ beta + 2 * s.variance * K @ H @ K @ beta
        if s.confusion_form == "printed":
            g += factor * s.confusion * K @ K @ beta @ beta.T @ K @ K @ beta
            return g - factor * s.confusion * K @ K @ beta
        return g + K @ self._cosine_slope(K @ beta)

    def _cosine_slope(self, F: Matrix) -> Matrix:
        """Derivative of xi ||B - I||^2 in F, with B the cosines between the columns of F."""
        G, lengths = cosine_columns(F)
        slope = np.zeros_like(F)
        for i in range(self.n_classes):
            along = sum(4 * (G[:, i] @ G[:, j]) * G[:, j] for j in range(self.n_classes) if j != i)
            slope[:, i] = (along - G[:, i] * (G[:, i] @ along)) / lengths[i]
        return self.settings.confusion * slope

    def solve(self, V: Matrix) -> Matrix:
        """Eq. 23."""
        return np.linalg.solve(self._system(V), self.A @ self.Y)

    def _system(self, V: Matrix) -> Matrix:
        s = self.settings
        S = self.A + s.alignment * V + s.manifold * self.L + s.variance * self.H
        return S @ self.K + s.ridge * np.eye(len(V))

    def _separate(self, V: Matrix) -> Matrix:
        """Eq. 23 with the quadratic w ||G'F - D||^2 in place of the class confusion.

        G and D are the last scores' columns and lengths, w makes the two slopes alike there. The
        printed form goes half way from the last coefficients.
        """
        F, w = self.K @ self.beta, 2 * self.settings.confusion
        if self.settings.confusion_form == "printed":
            G, D = F, np.eye(self.n_classes)
        else:
            G, lengths = cosine_columns(F)
            D = np.diag(lengths)
            w = w / np.mean(lengths**2)
        left = self._system(V) + w * G @ G.T @ self.K
        beta = np.linalg.solve(left, self.A @ self.Y + w * G @ D)
        return (self.beta + beta) / 2 if self.settings.confusion_form == "printed" else beta

    def _iterate(self, step: Step, *, with_confusion: bool) -> None:
        """V for the current pseudo-labels, new coefficients, new pseudo-labels."""
        start = process_time()
        V = self.mmcd()
        self.beta = step(V)
        self.labels = self.labels.copy()
        self.labels[self.n_source :] = self.scores()[self.n_source :].argmax(axis=1)
        self.seconds.append(process_time() - start)
        self.history.append(self.objective(self.beta, V, with_confusion=with_confusion))

    def scores(self) -> Matrix:
        """F = K beta."""
        return self.K @ self.beta

    def tfdf_v(self) -> Literal:
        """Algorithm 1."""
        for _ in range(self.settings.max_iter):
            self._iterate(self.solve, with_confusion=False)
        return self

    def tfdf(self) -> Literal:
        """Algorithm 2, or the same loop with another solver, from where Algorithm 1 ended."""
        steps = {"adam": self._adam(), "closed_form": self._separate}
        for _ in range(self.settings.confusion_iter):
            self._iterate(steps[self.settings.solver], with_confusion=True)
        return self

    def _adam(self) -> Step:
        """Steps of Adam as printed, with epsilon inside the root."""
        state = {"t": 0, "m": 0.0, "v": 0.0}

        def step(V: Matrix) -> Matrix:
            g = self.gradient(self.beta, V)
            state["t"] += 1
            state["m"] = 0.9 * state["m"] + (1 - 0.9) * g
            state["v"] = 0.999 * state["v"] + (1 - 0.999) * g**2
            m = state["m"] / (1 - 0.9 ** state["t"])
            v = state["v"] / (1 - 0.999 ** state["t"])
            return self.beta - self.settings.learning_rate * m / np.sqrt(v + 1e-8)

        return step
