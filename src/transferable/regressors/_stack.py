"""Stack of fitted regressors: their weighted mean, held near a forest, corrected by known rows.

Members are candidates with left-out predictions. A :class:`Stack` is frozen: a fit and a correction
return new ones. It takes rows and gives numbers as they are; its members, and all that it holds,
are of rows and numbers standardised by the source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from transferable._linalg.systems import gram_basis, row_basis
from transferable._pool import Candidate, Codes
from transferable.base import DomainAdapter
from transferable.domains import Domains
from transferable.limits import LIMITS
from transferable.regressors._measured import LEAST_MEASURED, LEVEL

Numbers = NDArray[np.float64]

_LINEAR = 10.0 ** np.arange(-3, 6)
_GAUSSIAN = 10.0 ** np.arange(-4, 2.1, 0.5)
_WIDTHS = 0.25, 1.0, 4.0  # of the kernel's exponent, in those of the median squared distance
_COMPARED = 500  # rows by which widths are compared

_FOLDS = 5
_ANCHORS = 800  # target rows at the forest's predictions
_MARGIN = 0.1  # of the source's range, by which answers may leave it
_SHARES = {"source-only": 0.5, "per domain": 0.25, "as given": 0.25}  # of views in the answer
_COMPARED = 1000  # source rows that tell which others are unfamiliar
_FAR = 1.5  # factor of the distance within which 99 % of source rows have another one
_BY_DOMAIN = ("ridge", "boosting", "forest")  # which see the target by its own scale, too
_LEADING = 0.95  # of the variance of the source


# -- ridge ------------------------------------------------------------------------------------


class LeftOutRidge(RegressorMixin, BaseEstimator):
    """Ridge whose penalty, and width of a kernel, have the least exact leave-one-out error.

    Parameters
    ----------
    kernel : bool, default=False
        Whether a Gaussian kernel compares the rows; else the answer is linear in the columns.
    n_landmarks : int, default=1000
        Rows that a kernel compares all others with; fewer rows are all of them.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_coefficients,)
        Of the columns, or of the kernel's values.
    intercept_ : float
        The constant.
    landmarks_ : ndarray of shape (n_kept, n_features) or None
        The rows that a kernel compares with.
    width_ : float
        Factor of squared distances in the kernel's exponent.
    left_out_ : ndarray of shape (n_samples,)
        Prediction of each fitted row by all others.
    """

    def __init__(self, kernel: bool = False, n_landmarks: int = 1000) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows, their numbers and weights."""
        X, y = np.asarray(X, float), np.asarray(y, float)
        w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        self.landmarks_, self.width_, self.n_features_in_ = None, 0.0, X.shape[1]
        root: Any = None
        if self.kernel:
            chosen = np.random.default_rng(0).permutation(len(y))[: self.n_landmarks]
            some = chosen[:_COMPARED]
            D = euclidean_distances(X[some], squared=True)
            median = np.median(D[D > 0]) if (D > 0).any() else 1.0
            errors = []
            for c in _WIDTHS:
                V, s = gram_basis(np.exp(-c / median * D))
                errors.append(_fitted(V * s, y[some], w[some], _GAUSSIAN).error)
            self.landmarks_ = X[chosen]
            self.width_ = float(_WIDTHS[int(np.argmin(errors))] / median)
            K = self._features(X)
            V, s = gram_basis(K[chosen])
            root = V / s
            F = K @ root
            del K
        else:
            if X.shape[1] > len(y):
                root = row_basis(X - X.mean(axis=0))[0]
            F = X.copy() if root is None else X @ root
        found = _fitted(F, y, w, _GAUSSIAN if self.kernel else _LINEAR)
        self.intercept_, self.left_out_ = found.intercept, found.left_out
        self.coefficients_ = found.coefficients if root is None else root @ found.coefficients
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return a number for each row."""
        size = max(1, LIMITS.block_values // max(1, len(self.coefficients_)))
        starts = range(0, max(1, len(X)), size)
        parts = [self._features(X[k : k + size]) @ self.coefficients_ for k in starts]
        return np.concatenate(parts) + self.intercept_

    def _features(self, X: Any) -> NDArray[np.float64]:
        if self.landmarks_ is None:
            return np.asarray(X, float)
        return np.exp(-self.width_ * euclidean_distances(X, self.landmarks_, squared=True))


class _Fitted(NamedTuple):
    coefficients: NDArray[np.float64]
    intercept: float
    left_out: NDArray[np.float64]
    error: float


def _fitted(F: Any, y: Any, w: Any, penalties: Any) -> _Fitted:
    """Return weighted ridge with the penalty of the least leave-one-out error; F is overwritten."""
    share, root = w / w.sum(), np.sqrt(w)
    centre, level = share @ F, float(share @ y)
    F -= centre
    F *= root[:, None]
    b = root * (y - level)
    V, s = gram_basis(F.T @ F)
    T = F @ V
    ours, shrunk = T.T @ b, 1 / (s[:, None] ** 2 + penalties)
    fits = T @ (shrunk * ours[:, None])
    # Without a row, its error grows by its own part in the fit; the constant is fitted too.
    kept = 1 - np.square(T, out=T) @ shrunk - share[:, None]
    E = (b[:, None] - fits) / np.maximum(kept, 1e-6)
    errors = (E**2).sum(axis=0) / w.sum()
    best = int(errors.argmin())
    coefficients = V @ (shrunk[:, best] * ours)
    intercept = level - float(centre @ coefficients)
    return _Fitted(coefficients, intercept, y - E[:, best] / root, float(errors[best]))


# -- members -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Member(Candidate):
    """A candidate that predicts numbers, with predictions of source rows that were left out.

    Attributes
    ----------
    anchor : float
        Weight, in that of the source, of target rows at the forest's predictions, to which a smooth
        model is fitted once more so that it does not extrapolate; 0 for models that cannot.
    left_out : ndarray of shape (n_source,)
        Predictions of the source rows by models that have not seen them.
    anchored : estimator or None
        The model fitted with these target rows.
    """

    anchor: float = 0.0
    left_out: Any = None
    anchored: Any = None

    def _calibrated(self, X: Any, y: Numbers, weights: Any) -> Self:
        for name in ("left_out_", "oob_prediction_"):
            if hasattr(self.model, name):
                return replace(self, left_out=getattr(self.model, name))
        if isinstance(self.model, DomainAdapter):
            return self
        left_out = np.empty(len(y))
        folds = KFold(min(_FOLDS, len(y)), shuffle=True, random_state=0)
        for kept, out in folds.split(X):
            own = None if weights is None else weights[kept]
            model = clone(self.model).fit(X[kept], y[kept], sample_weight=own)
            left_out[out] = model.predict(X[out])
        return replace(self, left_out=left_out)

    def held(self, X: Any, y: Numbers, w: Numbers, rows: Any, guess: Numbers, of: Numbers) -> Self:
        """Return the member with its model fitted to target rows too, at these guesses."""
        heavy = of * (self.anchor * w.sum() / of.sum())
        every = np.concatenate([X, rows]), np.append(y, guess), np.append(w, heavy)
        return replace(self, anchored=clone(self.model).fit(*every))

    def numbers(self, rows: Any) -> Numbers:
        """Return predictions of target rows."""
        return (self.model if self.anchored is None else self.anchored).predict(self.seen(rows))


def leaves_the_source(domains: Domains) -> float:
    """Return the target's deviation outside of the source's leading directions, in the source's.

    The directions are those of half of the source rows, which the other half and the target are
    compared in; each half in turn.
    """
    order = np.random.default_rng(0).permutation(domains.n_source)
    halves, found = np.array_split(order, 2), []
    for one, other in (halves, halves[::-1]):
        mean = domains.X[one].mean(axis=0)
        V, s = row_basis(domains.X[one] - mean)
        leading = np.searchsorted(np.cumsum(s**2), _LEADING * (s**2).sum()) + 1
        V = V[:, : min(leading, max(1, V.shape[1] - 1))]
        shares = []
        for rows in (domains.X[other] - mean, domains.Xt - mean):
            total = (rows**2).sum()
            outside = max(0.0, float(total - ((rows @ V) ** 2).sum()))
            shares.append(outside / total if total else 0.0)
        found.append(shares)
    source, target = np.mean(found, axis=0)
    return float(target / max(source, 1e-4))


# -- stack -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stack:
    """Weighted mean of fitted regressors, with what known rows of the target add to it.

    Attributes
    ----------
    members : list of Member
        The models, those of the source alone first.
    weights : ndarray of shape (n_members,)
        Their weights, non-negative and summing to 1.
    best : int
        The member with the least left-out error, which a careful person would use.
    errors : ndarray of shape (n_members,)
        Root mean squared left-out error of each on the source, NaN where none is known.
    lowest, highest : float
        What answers are clipped to, without known rows of the target.
    source : ndarray of shape (n_kept, n_features)
        Some source rows in single precision.
    far : float
        Distance from all of these beyond which rows are unfamiliar.
    rows : ndarray of shape (n_target, n_features)
        The fitted target rows in single precision, in the order of the input.
    tables : ndarray of shape (n_members, n_target)
        Their numbers by each member.
    scale : ndarray of shape (n_features,)
        Deviation of each column over both domains.
    units : Units
        The mean and deviation of each column and of the numbers, on the source.
    known : ndarray of shape (n_known,)
        Target rows with a known number.
    given : ndarray of shape (n_known,)
        These numbers.
    correction : Correction or None
        What they add.
    """

    members: list[Member]
    weights: Numbers
    best: int
    errors: Numbers
    lowest: float
    highest: float
    source: Any
    far: float
    rows: Any
    tables: Numbers
    scale: Numbers
    units: Units
    known: Codes
    given: Numbers
    correction: Any = None

    @classmethod
    def of(cls, members: list[Member], domains: Domains, y: Numbers, units: Units) -> Stack:
        """Weight fitted members by their left-out predictions, and anchor the smooth ones.

        Rows and numbers are standardised.
        """
        if any(m.view == "as given" for m in members):  # the target's own scale counts too
            scaler = StandardScaler().fit(domains.Xt)
            members = members + [
                replace(m, name=f"{m.name} per domain", view="per domain", scaler=scaler)
                for m in members
                if m.name in _BY_DOMAIN
            ]
        X, w = domains.Xs, domains.weights[domains.source]
        target = domains.weights[domains.target]
        forests = [m for m in members if isinstance(m.model, RandomForestRegressor)]
        if domains.n_target and forests:
            some = np.random.default_rng(0).permutation(domains.n_target)[:_ANCHORS]
            rows = domains.Xt[some]
            held = X, y, w, rows, forests[0].numbers(rows), target[some]
            members = [m.held(*held) if m.anchor else m for m in members]
        errors = np.full(len(members), np.nan)
        weights = np.zeros(len(members))
        for view in dict.fromkeys(m.view for m in members):
            own = [k for k, m in enumerate(members) if m.view == view]
            known = [k for k in own if members[k].left_out is not None]
            for k in known:
                errors[k] = np.sqrt(np.average((members[k].left_out - y) ** 2, weights=w))
            left_out = np.array([members[k].left_out for k in known])
            weights[known or own] = _SHARES[view] * (stacking(left_out, y, w) if known else 1.0)
        margin = _MARGIN * np.ptp(y)
        kept = np.random.default_rng(0).permutation(len(X))[:_COMPARED]
        source = X[kept].astype(np.float32)
        apart = euclidean_distances(source)
        np.fill_diagonal(apart, np.inf)
        alone = [k for k, m in enumerate(members) if m.view == "source-only"]
        order = np.argsort(domains.order[domains.target])
        found = cls(
            members=[replace(m, left_out=None) for m in members],
            weights=weights / weights.sum(),
            best=min(alone, key=lambda k: errors[k]),
            errors=errors,
            lowest=float(y.min() - margin),
            highest=float(y.max() + margin),
            source=source,
            far=_FAR * float(np.quantile(apart.min(axis=1), 0.99)),
            rows=domains.Xt[order].astype(np.float32),
            tables=np.empty((len(members), 0)),
            scale=np.maximum(domains.X[:].std(axis=0), 1e-12),
            units=units,
            known=np.zeros(0, dtype=np.intp),
            given=np.zeros(0),
        )
        return replace(found, tables=found.by_member(domains.Xt[order]))

    @property
    def answers(self) -> Numbers:
        """The numbers of the fitted target rows, standardised and without a correction."""
        return self.weights @ self.tables

    def by_member(self, rows: Any) -> Numbers:
        """Return the numbers of rows by each member, none far out of the source's range."""
        found = [m.numbers(rows) for m in self.members] if len(rows) else []
        return np.clip(np.reshape(found, (len(self.members), -1)), self.lowest, self.highest)

    def predict(self, rows: Any) -> Numbers:
        """Return the numbers of rows, corrected if any are known."""
        rows = self.units.standardised(rows)
        answers = self.weights @ self.by_member(rows)
        return self.units.restored(answers + self.added(rows, answers))

    def source_only(self, rows: Any) -> Numbers:
        """Return the numbers of rows by the best model of the source alone."""
        model, rows = self.members[self.best].model, self.units.standardised(rows)
        return self.units.restored(model.predict(rows)) if len(rows) else np.zeros(0)

    def label(self, rows: Any, tables: Any = None) -> dict[str, NDArray[Any]]:
        """Return what a table of labels is made of; `tables` are the members' numbers if known."""
        own = self.units.standardised(rows)
        tables = self.by_member(own) if tables is None else tables
        answers = self.weights @ tables
        return self.with_interval(
            {
                "prediction": self.units.restored(answers + self.added(own, answers)),
                "spread": tables.std(axis=0) * self.units.deviation,
                "source_only": self.source_only(rows),
                "unfamiliar": self.unfamiliar(own),
            }
        )

    def with_interval(self, found: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return a table with the ends of an interval of each row, if enough rows are known."""
        if len(self.known) < LEAST_MEASURED:
            return found
        half = self.half_width(LEVEL)
        return found | {"low": found["prediction"] - half, "high": found["prediction"] + half}

    def half_width(self, coverage: float) -> float:
        """Return half of the width of an interval of one row, by known rows left out in turn."""
        left, k = self.correction.left_out, len(self.known)
        # A few residuals are a sample of few.
        deviation = np.sqrt(np.mean(left**2)) * (1 + 1 / np.sqrt(2 * k))
        return float(norm.ppf((1 + coverage) / 2) * deviation * self.units.deviation)

    def added(self, rows: Any, answers: Numbers) -> Numbers:
        """Return what known rows of the target add to the answers."""
        if self.correction is None:
            return np.zeros(len(answers))
        return self.correction.at(rows.astype(np.float32) / self.scale, answers)

    def unfamiliar(self, rows: Any) -> NDArray[np.bool_]:
        """Return whether rows are farther from all source rows than those are from one another."""
        near = [
            euclidean_distances(rows[k : k + 4096], self.source).min(axis=1)
            for k in range(0, len(rows), 4096)
        ]
        return np.concatenate([np.zeros(0), *near]) > self.far

    def with_rows(self, rows: Any, places: Codes) -> Stack:
        """Return the stack with these target rows, among which the fitted ones have places."""
        own = self.units.standardised(rows)
        tables = self.by_member(own)
        return replace(self, rows=own.astype(np.float32), tables=tables, known=places[self.known])

    def are(self, rows: Any) -> bool:
        """Return whether these are the fitted target rows, in the order of the input."""
        same = rows.shape == self.rows.shape
        return same and np.allclose(self.units.standardised(rows), self.rows, 1e-5, 1e-5)

    def corrected(self, rows: Codes, given: Numbers) -> Stack:
        """Learn from known numbers of target rows, those of earlier corrections included."""
        before = ~np.isin(self.known, rows)
        known = np.append(self.known[before], rows)
        given = np.append(self.given[before], (given - self.units.level) / self.units.deviation)
        found = Correction.of(self.rows / self.scale, self.answers, known, given)
        return replace(self, known=known, given=given, correction=found)


@dataclass(frozen=True)
class Units:
    """Means and deviations on the source, which standardise rows and numbers.

    Attributes
    ----------
    means, deviations : ndarray of shape (n_features,)
        Of the columns; the deviation of a constant one is 1.
    level, deviation : float
        Of the numbers.
    """

    means: Numbers
    deviations: Numbers
    level: float
    deviation: float

    @classmethod
    def of(cls, rows: Any, numbers: Numbers, weights: Numbers) -> Units:
        """Measure weighted rows and numbers."""
        share = weights / weights.sum()
        found = []
        for table in (np.asarray(rows, dtype=np.float64), numbers[:, None]):
            mean = share @ table
            deviation = np.sqrt(share @ (table - mean) ** 2)
            found += [mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)]
        return cls(found[0], found[1], float(found[2][0]), float(found[3][0]))

    def standardised(self, rows: Any) -> Numbers:
        """Return rows by the source's means and deviations."""
        return (np.asarray(rows, dtype=np.float64) - self.means) / self.deviations

    def restored(self, numbers: Numbers) -> Numbers:
        """Return standardised numbers in their own unit."""
        return numbers * self.deviation + self.level


def stacking(left_out: Numbers, y: Numbers, w: Numbers) -> Numbers:
    """Return non-negative weights that sum to one, by least squares on left-out predictions."""
    mean, root = np.average(y, weights=w), np.sqrt(w)
    heavy = np.sqrt(w @ (y - mean) ** 2)
    table = np.vstack([(left_out - mean).T * root[:, None], np.full((1, len(left_out)), heavy)])
    found = nnls(table, np.append((y - mean) * root, heavy))[0]
    return found / found.sum()


# -- correction --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Correction:
    """Gaussian process on the residuals of known rows: a constant, a line and a smooth part.

    The line is over the answers. The parts' shares have the least leave-one-out error; there is no
    correction unless that is 2 % less than without one.

    Attributes
    ----------
    constant, line, smooth : float
        Share of each part in the covariance.
    width : float
        Factor of squared distances in the smooth part.
    mean, deviation : float
        Scale of the answers for the line.
    rows : ndarray of shape (n_known, n_features)
        The known rows, scaled by both domains.
    answers : ndarray of shape (n_known,)
        Their answers without a correction.
    coefficients : ndarray of shape (n_known,)
        Of the covariances with these.
    left_out : ndarray of shape (n_known,)
        The residual of each known row, corrected by all others.
    """

    constant: float
    line: float
    smooth: float
    width: float
    mean: float
    deviation: float
    rows: Any
    answers: Numbers
    coefficients: Numbers
    left_out: Numbers

    @classmethod
    def of(cls, rows: Any, answers: Numbers, known: Codes, given: Numbers) -> Correction:
        """Choose the shares by the known rows, each left out in turn."""
        residuals, own, k = given - answers[known], rows[known].astype(np.float64), len(known)
        D = euclidean_distances(own, squared=True)
        median = float(np.median(D[D > 0])) if (D > 0).any() else 1.0
        mean, deviation = float(answers[known].mean()), max(float(answers.std()), 1e-12)
        found = cls(
            *(0.0, 0.0, 0.0, 1 / median, mean, deviation),
            *(own, answers[known], np.zeros(k), residuals),
        )
        u, best = (found.answers - mean) / deviation, float(np.mean(residuals**2))
        shares = [
            (constant, line, smooth, g)
            for constant in (0.0, 0.3, 1.0, 3.0)
            for line in (0.0, 0.3, 1.0)
            for g in (0.3, 1.0)
            for smooth in (0.0, 0.3, 1.0)
            if constant + line + smooth and (smooth or g == 0.3)
        ]
        for constant, line, smooth, g in shares:
            K = constant + line * np.outer(u, u) + smooth * np.exp(-g / median * D)
            for noise in (0.3, 1.0, 3.0):
                inverse = np.linalg.inv(K + noise * np.eye(k))
                e = inverse @ residuals / np.diag(inverse)
                error = float(np.mean(e**2))
                if error < 0.98 * best:
                    best = error
                    found = replace(
                        found,
                        constant=constant,
                        line=line,
                        smooth=smooth,
                        width=g / median,
                        coefficients=inverse @ residuals,
                        left_out=e,
                    )
        return found

    def at(self, rows: Any, answers: Numbers) -> Numbers:
        """Return what is added to the answers of rows."""
        if not self.coefficients.any():
            return np.zeros(len(answers))
        u, own = ((a - self.mean) / self.deviation for a in (answers, self.answers))
        added = self.constant * self.coefficients.sum() + self.line * u * (own @ self.coefficients)
        if self.smooth:
            K = np.exp(-self.width * euclidean_distances(rows, self.rows, squared=True))
            added = added + self.smooth * (K @ self.coefficients)
        return added
