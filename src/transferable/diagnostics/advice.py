"""Diagnosis of whether adaptation is likely to pay, without target labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from transferable.classifiers import TFDFV
from transferable.diagnostics.gap import FEWEST_ROWS, DomainGap, domain_gap
from transferable.diagnostics.transfer import TransferEstimate, draw_rows, estimate_transfer
from transferable.events import rounds, stage
from transferable.linalg.arrays import dense
from transferable.metrics import proxy_a_distance

Verdict = Literal["likely", "uncertain", "unlikely"]

# With 19 random splits, the largest of their distances is exceeded by chance in one case of 20.
_SPLITS = 19
_MOST_ROWS = 1500  # of each domain, enough for these estimates
_SLIGHT = 0.01
_FAR = 0.8  # standard deviations between the means of a column that has moved


@dataclass(frozen=True)
class Diagnosis:
    """Distance between two domains, and a verdict on adapting.

    Attributes
    ----------
    gap : DomainGap
        The gap between the domains, overall and per class. Without target labels, classes are those
        predicted by a model trained on the source alone.
    chance : float
        The largest A-distance of 19 random splits of all rows into parts of the same sizes.
    within, within_chance : float
        Mean A-distance between rows of the same predicted class, and the largest such mean of 19
        random splits of each class. NaN where no class has enough rows.
    home_accuracy : float
        Cross-validated accuracy of a linear model in the source; NaN if a class has one row.
    majority : float
        Share of the most frequent class of the source, the accuracy of a constant prediction.
    changed : float
        Share of target labels that the adapting terms of TFDF-V change, which bounds its gain.
    transfer : TransferEstimate
        Target accuracies of TFDF and of a model of the source alone, estimated without labels, and
        a warning where TFDF does not seem the better one, as in ``adapt`` and the report.
    moved : float
        Share of columns whose means are more than 0.8 standard deviations apart.
    verdict : {"likely", "uncertain", "unlikely"}
        Whether adaptation is likely to pay. Never "likely" where `transfer` warns.
    reason : str
        The reason.
    """

    gap: DomainGap
    chance: float
    within: float
    within_chance: float
    home_accuracy: float
    majority: float
    changed: float
    transfer: TransferEstimate
    moved: float
    verdict: Verdict
    reason: str

    @property
    def kind(self) -> Literal["alike", "seen differently", "other things"]:
        """Kind of shift; "seen differently" are the same concepts in another form.

        Other sensors, styles and fonts show the same concepts; other people and other markets are
        other concepts, which alignment takes for the same. A judgement by the expected gain, no
        proof.
        """
        if not self._differ:
            return "alike"
        return "other things" if self.transfer.warning else "seen differently"

    @property
    def _differ(self) -> bool:
        return self.gap.overall["A-distance"] > self.chance or self.within > self.within_chance


def diagnose(
    Xs: Any,
    ys: ArrayLike,
    Xt: Any,
    yt: ArrayLike | None = None,
    *,
    estimator: Any = None,
    plain: tuple[Any, Any] | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Measure the gap between two domains and judge whether adaptation is likely to pay.

    The judgement is a rule of thumb from four observations without target labels: a gap beyond
    chance, between all rows or between rows of the same predicted class; a source that can be
    learnt; labels that adaptation changes; and an adapted model that, by estimate, is better than
    one of the source alone (:func:`estimate_transfer`). docs/report.md evaluates the first three,
    docs/safety.md the last.

    Parameters
    ----------
    Xs, ys, Xt : array-like
        Source rows, their labels, and target rows, with columns of comparable scale. Beyond 1500
        rows in a domain, that many are drawn at random for all but the gap.
    yt : array-like of shape (n_target,), default=None
        True labels of the target, used only for the gap per class.
    estimator : classifier or None, default=None
        The adapting method, as for :func:`estimate_transfer`.
    plain : tuple of two array-likes or None, default=None
        The rows for a model of the source alone, as for :func:`estimate_transfer`.
    random_state : int, default=0
        Seed of the random draws.

    Returns
    -------
    diagnosis : Diagnosis
        The measurements and the verdict.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.diagnostics import diagnose
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(120) % 2
    >>> X = rng.normal(size=(120, 4)) + 3 * y[:, None]
    >>> diagnose(X[:60], y[:60], X[60:]).verdict
    'unlikely'
    """
    rng = np.random.default_rng(random_state)
    source, target, labels = np.asarray(dense(Xs)), np.asarray(dense(Xt)), np.asarray(ys)
    rows, others = (draw_rows(np.zeros(len(X)), rng, _MOST_ROWS) for X in (source, target))
    A, y, B = source[rows], labels[rows], target[others]
    stage("Learning the source at home")
    model = LogisticRegression(max_iter=1000).fit(A, y)
    found = model.predict(target)
    gap = domain_gap(source, target, labels, found if yt is None else yt)

    at_home = _left_out_labels(A, y)
    home = float("nan") if at_home is None else float(np.mean(at_home == y))
    codes = np.concatenate([y if at_home is None else at_home, found[others]])
    pooled, domain = np.concatenate([A, B]), np.repeat([True, False], [len(A), len(B)])
    distance, chance = _beyond_chance(pooled, np.zeros(len(domain)), domain, rng)
    within, within_chance = _beyond_chance(pooled, codes, domain, rng)

    changed = _changed_by_adapting(A, y, B)
    majority = float(np.unique(y, return_counts=True)[1].max() / len(y))
    transfer = estimate_transfer(
        Xs, labels, Xt, estimator=estimator, plain=plain, random_state=random_state
    )
    bare_s, bare_t = (np.asarray(dense(X)) for X in plain or (Xs, Xt))
    spread = np.sqrt((bare_s.var(axis=0) + bare_t.var(axis=0)) / 2)
    moved = float(np.mean(np.abs(bare_s.mean(axis=0) - bare_t.mean(axis=0)) > _FAR * spread))
    differ, pays = distance > chance or within > within_chance, not transfer.warning
    gaps = (
        f"A-distance {distance:.1f} overall and {within:.1f} within classes, by chance "
        f"{chance:.1f} and {within_chance:.1f}"
    )
    verdict, reason = _judge(differ, gaps, home, majority, changed, moved, pays)
    measured = gap, chance, within, within_chance, home, majority, changed
    return Diagnosis(*measured, transfer, moved, verdict, reason)


def _judge(
    differ: bool, gaps: str, home: float, majority: float, changed: float, moved: float, pays: bool
) -> tuple[Verdict, str]:
    if not differ:
        return "unlikely", (
            f"the domains are as close as random parts of the same rows are ({gaps}); a model of "
            "the source will do."
        )
    if changed < _SLIGHT:
        return "unlikely", (
            f"the domains differ ({gaps}), but adapting changes only {changed:.1%} of the target's "
            "labels; a model of the source will do."
        )
    if home <= majority + _SLIGHT:
        return "uncertain", (
            f"the source's labels cannot be told from these columns even at home ({home:.1%} "
            f"correct; the most frequent class alone gives {majority:.1%}); look for columns that "
            "say more."
        )
    columns = f"{moved:.0%} of the columns have moved by most of their spread"
    if not pays:
        return "uncertain", (
            f"the domains differ ({gaps}; {columns}), but an adapted model does not seem better "
            "than one of the source alone: this looks like other things (other people, other "
            "markets) rather than the same things seen differently."
        )
    return "likely", (
        f"the domains differ ({gaps}; {columns}), the source can be learnt at home ({home:.1%} "
        f"correct), adapting changes {changed:.1%} of the target's labels and seems to pay: this "
        "looks like the same things seen differently (another sensor, style or font)."
    )


def _left_out_labels(X: NDArray[Any], y: NDArray[Any]) -> NDArray[Any] | None:
    """Return labels of rows by models not trained on them; None if a class has one row."""
    folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    if folds < 2:
        return None
    return cross_val_predict(LogisticRegression(max_iter=1000), X, y, cv=folds)


def _beyond_chance(
    X: NDArray[Any], codes: NDArray[Any], source: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean A-distance within groups, and its largest value over random splits.

    The groups of source rows must be left-out predictions, as those of the target are.
    """
    # In random order: consecutive rows of a file may be near copies of each other.
    groups = [rng.permutation(np.flatnonzero(codes == code)) for code in np.unique(codes)]
    groups = [rows for rows in groups if _smaller_part(source[rows]) >= FEWEST_ROWS]
    if not groups:
        return float("nan"), float("nan")
    splits = []
    for _ in rounds(_SPLITS, "Measuring the gap"):
        split = source.copy()
        for rows in groups:
            split[rows] = source[rng.permutation(rows)]
        splits.append(_mean_distance(X, groups, split))
    return _mean_distance(X, groups, source), max(splits)


def _mean_distance(
    X: NDArray[Any], groups: list[NDArray[np.intp]], source: NDArray[np.bool_]
) -> float:
    """Return the mean A-distance of groups, weighted by the rows of their smaller part."""
    distances = [proxy_a_distance(X[g[source[g]]], X[g[~source[g]]]) for g in groups]
    return float(np.average(distances, weights=[_smaller_part(source[g]) for g in groups]))


def _smaller_part(source: NDArray[np.bool_]) -> int:
    n_source = int(np.count_nonzero(source))
    return min(n_source, len(source) - n_source)


def _changed_by_adapting(Xs: NDArray[Any], ys: NDArray[Any], Xt: NDArray[Any]) -> float:
    """Return the share of target labels that TFDF-V's terms of the target change."""
    n_neighbors = min(5, len(Xs) + len(Xt) - 1)
    adapting = TFDFV(n_neighbors=n_neighbors)
    plain = clone(adapting).set_params(alignment=0, manifold=0, variance=0)
    labels = [model.adapt(Xs, ys, Xt).predict(Xt) for model in (adapting, plain)]
    return float(np.mean(labels[0] != labels[1]))
