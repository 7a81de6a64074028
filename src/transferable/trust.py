"""Whether labels can be relied on: agreement of models, and audits of a few labelled rows.

Without labels, :class:`Trust` combines the confidence of a consensus and the agreement of three
views of the target. With some rows that a person labels, :class:`Audit` has an unbiased accuracy,
and :func:`correction` improves the labels of the other rows. :func:`label_table` is the table of
labels that files hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc
from scipy.stats import beta, binomtest

from transferable._kernel.class_shares import agreement
from transferable.domains import as_labels, labelled_rows
from transferable.labelling import UNKNOWN_CLASS

if TYPE_CHECKING:
    import pandas as pd

Codes = NDArray[np.intp]
Probabilities = NDArray[np.float64]

_LEAST_AGREEMENT = 0.01
# Of the interval [1 - slack - most d - e, 1 + slack - least d] with doubt d, one minus the mean
# confidence, and e, by which a class's share is beyond it; fitted to nine in ten of the development
# cases of docs/trust.md.
_SLACK, _LEAST, _MOST = 0.08, 0.35, 1.35
_USABLE = 0.75  # lower end from which labels can be used
_SUPPORTED, _AGREED = 0.2, 0.7  # support below which they cannot, and from which they can
_TELLING = 0.4  # widest interval that tells more than anybody knows without it
_MOVED = 0.15  # change of a class's share that is worth a sentence
_LEVEL = 0.9  # of intervals
_DRAWS = 4000  # of the accuracy, given the audited rows
_END = 0.25  # 0 is Clopper and Pearson's interval, 0.5 that of Jeffreys, too short near 0 and 1
_CERTAIN = 0.1  # p-value at which one labelling is called better
_ALPHAS = (0.8, 0.9, 0.95, 0.99)  # weight of neighbours at each step of the correction
_STEPS, _SETTLED = 300, 1e-4
_COUNTED = 5.0  # rows that all known labels together count as, where they weight the members
_SMALLEST = 0.01  # probability of a label, so that one row cannot rule a member out
_CHANGES_SHOWN = 3
LEAST_AUDITED = 10  # rows with a label, for an audit of classes

TITLES = {
    "use": "These labels can be used",
    "check": "Check a sample of these labels first",
    "reject": "Do not use these labels",
    "measured": "These labels have been measured",
}
_COLOURS = {"use": "#2e8b57", "check": "#c98500", "reject": "#c0392b", "measured": "#0072b2"}
_VIEWS = {
    "source-only": "models of the source alone",
    "as given": "those of rows as given",
    "per domain": "those of rows scaled by domain",
    "denoised": "those of denoised words",
    "no flow": "those without a flow",
}
UNSEEN = (
    "Unlabelled rows cannot show that classes have changed places or meaning, nor that the target "
    "has classes that the source lacks."
)
_UNKNOWN = (
    "the accuracy cannot be estimated without labels; 30 labelled rows measure it to about 12 "
    "points, 21 at worst"
)
_NARROWER = "More labelled rows make the interval narrower."


@dataclass(frozen=True)
class Trust:
    """Whether the labels of target rows can be used, estimated without a label.

    Attributes
    ----------
    state : {"use", "check", "reject", "measured"}
        The labels can be used, a sample should be checked first, or they should not be used; those
        of a corrected model are measured by an audit.
    low, high : float
        Interval of the accuracy, wider the less confident the consensus is; 0 and 1 with "reject".
        That of an audit if the labels are measured.
    support : float
        Agreement of models of the source alone, of rows as given and of rows scaled by domain (of
        flags: without a flow), their mean Cohen's kappa, or the confidence beyond chance if less.
    rows : int
        Target rows.
    changed : int
        Rows with another label than a model of the source alone gives.
    changes : list of tuple
        Label by the source alone, label now, and rows of that change; most frequent first.
    reasons : tuple of str
        Why the state is not a better one, or what supports "use".
    moved : tuple of tuple
        Up to three columns, by name or number, whose values in both domains have less than a half
        in common, and that share; the least first.

    Examples
    --------
    >>> from transferable.diagnostics import Trust
    >>> trust = Trust("check", 0.62, 0.97, 0.55, 200, 0, [])
    >>> trust.title, trust.shown
    ('Check a sample of these labels first', True)
    """

    state: Literal["use", "check", "reject", "measured"]
    low: float
    high: float
    support: float
    rows: int
    changed: int
    changes: list[tuple[Any, Any, int]] = field(repr=False)
    reasons: tuple[str, ...] = field(default=(), repr=False)
    moved: tuple[tuple[Any, float], ...] = field(default=(), repr=False)

    @property
    def shown(self) -> bool:
        """Whether the interval is informative: measured, or at most 40 points wide."""
        narrow = self.high - self.low <= _TELLING
        return self.state == "measured" or (self.state != "reject" and narrow)

    def measured(
        self,
        rows: int,
        accuracy: tuple[float, float, float],
        changes: list[tuple[Any, Any, int]],
    ) -> Trust:
        """Return what replaces the estimate once labelled rows have given accuracy and interval."""
        why = [f"{rows} labelled rows, each left out in turn, give the interval"]
        if self.shown and self.state != "measured":
            before = f"{percent(self.low)} to {percent(self.high)} %"
            why.append(f"it replaces the estimate without labels, {before}")
        changed = sum(some for *_, some in changes)
        found = replace(self, state="measured", low=accuracy[1], high=accuracy[2])
        return replace(found, reasons=tuple(why), changed=changed, changes=changes)

    @property
    def title(self) -> str:
        """The state in words."""
        return TITLES[self.state]

    @property
    def lines(self) -> list[str]:
        """The state, its reasons, the labels that adapting changed, and what stays unknown."""
        pairs = [f"{rows:,} from {alone} to {adapted}" for alone, adapted, rows in self.changes]
        rest = len(pairs) - _CHANGES_SHOWN
        more = f" and {rest} other kinds" if rest > 0 else ""
        changes = f"{', '.join(pairs[:_CHANGES_SHOWN])}{more}"
        changed = (
            f"Adapting changed {self.changed:,} of {self.rows:,} labels of a model of the source "
            f"alone: {changes}; only labelled rows can show whether it helped"
        )
        interval = f"{percent(self.low)} to {percent(self.high)} %"
        moved = [f"{k} ({percent(part)} %)" for k, part in self.moved if isinstance(k, str)]
        apart = f"columns with few values in common: {', '.join(moved)}"
        if self.state == "measured":
            estimate, limits = f"the accuracy is {interval}, a 90 % interval", _NARROWER
        elif self.shown:
            estimate, limits = f"without labels, the accuracy is estimated at {interval}", UNSEEN
        else:
            estimate, limits = _UNKNOWN, UNSEEN
        return [
            f"{self.title}: {estimate}",
            "; ".join(
                [*self.reasons, apart] if moved and self.state != "measured" else self.reasons
            ),
            changed if pairs else "Adapting changed no label of a model of the source alone",
            limits,
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        return _box(_COLOURS[self.state], self.lines)


def _box(colour: str, lines: list[str]) -> str:
    """Return lines, the first of them large, as a box for notebooks, light or dark."""
    first, *rest = map(escape, lines)
    return (
        f'<div style="border-left: .5rem solid {colour}; padding: .2rem 1rem; margin: .5rem 0">'
        f'<p style="font-size: 1.2em; font-weight: bold">{first}</p>'
        + "".join(f"<p>{line}</p>" for line in rest)
        + "</div>"
    )


def percent(share: float) -> str:
    """Return a share in whole per cent."""
    return f"{100 * share:.0f}"


def assess(
    consensus: Probabilities,
    views: Mapping[str, Codes],
    alone: Codes,
    classes: NDArray[Any],
    prior: NDArray[np.float64],
    *,
    one_column: bool = False,
    moved: tuple[tuple[Any, float], ...] = (),
) -> Trust:
    """Return the trust in the most probable labels.

    Parameters
    ----------
    consensus : ndarray of shape (n_target, n_classes)
        Probabilities.
    views : mapping of str to ndarray of shape (n_target,)
        Codes by models of the source alone, of rows as given, of rows scaled by domain and of
        denoised words, as far as there are any; with fewer than three of them, or a single
        column, no label can be used unseen.
    alone : ndarray of shape (n_target,)
        Codes by the source alone.
    classes : ndarray of shape (n_classes,)
        Labels of the codes.
    prior : ndarray of shape (n_classes,)
        Shares of the classes in the source.
    one_column : bool, default=False
        Whether the rows have a single column.
    moved : tuple of tuple
        Columns that moved, as in :class:`Trust`.
    """
    n, n_classes = consensus.shape
    codes = consensus.argmax(axis=1)
    confidence = float(consensus.max(axis=1).mean())
    slack = float(np.hypot(_SLACK, 0.5 / np.sqrt(n)))  # few rows are a sample of few
    shares = np.bincount(codes, minlength=n_classes) / n
    beyond = max(0.0, float(shares.max()) - confidence)  # saying one class for all is as sure
    low = max(0.0, 1 - slack - _MOST * (1 - confidence) - beyond)
    high = min(1.0, 1 + slack - _LEAST * (1 - confidence))
    pairs = [(agreement(views[a], views[b]), a, b) for a, b in combinations(views, 2)]
    chance = 1 / n_classes
    certainty = (confidence - chance) / (1 - chance)
    support = min(float(np.mean([kappa for kappa, *_ in pairs])) if pairs else 1.0, certainty)
    changes = changes_of(classes[alone], classes[codes])
    changed = sum(rows for *_, rows in changes)
    counts = (float(support), n, changed, changes)
    reasons = [f"the mean confidence is {percent(confidence)} %"]
    if pairs:
        _, one, other = min(pairs)
        apart = float(np.mean(views[one] != views[other]))
        reasons.insert(
            0, f"{_VIEWS[one]} and {_VIEWS[other]} disagree on {percent(apart)} % of rows"
        )
    if len(views) < 3:
        reasons.append(f"of three views of the rows, {len(views)} can be compared")
    if one_column:
        reasons.append("the rows have a single column")
    if shares.max() > max(low, chance):
        reasons.append(f"{percent(shares.max())} % of rows get {classes[shares.argmax()]!s}")
    most = int(np.abs(shares - prior).argmax())
    if abs(shares[most] - prior[most]) > _MOVED:
        way = "rises" if shares[most] > prior[most] else "falls"
        reasons.append(
            f"{classes[most]!s} {way} from {percent(prior[most])} % of the source to "
            f"{percent(shares[most])} %"
        )
    reasons[0] = reasons[0][0].upper() + reasons[0][1:]
    if support < _SUPPORTED:
        return Trust("reject", 0.0, 1.0, *counts, tuple(reasons), moved)
    usable = low >= max(_USABLE, chance, shares.max()) and support >= _AGREED
    if usable and len(views) >= 3 and not one_column:
        several = "three" if len(views) > 3 else "two"
        agreed = f"Models of the source alone and of {several} views of both domains agree"
        return Trust("use", low, high, *counts, (f"{agreed}, and are confident",))
    return Trust("check", low, high, *counts, tuple(reasons), moved)


def changes_of(before: NDArray[Any], after: NDArray[Any]) -> list[tuple[Any, Any, int]]:
    """Return the changes from one label to another with their rows, most frequent first."""
    pairs = zip(before.tolist(), after.tolist(), strict=True)
    counts = Counter(pair for pair in pairs if pair[0] != pair[1])
    return [(*pair, rows) for pair, rows in counts.most_common()]


def consensus_weights(
    tables: NDArray[np.float64], prior: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the candidates' weights, and the agreement of each with all others together.

    `tables` are the candidates' probabilities of the same rows, `prior` their prior weights.
    Weights sum to 1: the prior times the square of the agreement. Labels of a single class agree
    by chance alone.
    """
    kappas = np.ones(len(tables))
    if len(tables) > 1 and tables.shape[1]:
        for k, table in enumerate(tables):
            others = np.delete(prior, k)
            others = others if others.any() else np.ones_like(others)
            rest = np.tensordot(others, np.delete(tables, k, axis=0), axes=1).argmax(axis=1)
            kappas[k] = agreement(table.argmax(axis=1), rest)
    weights = prior * np.maximum(kappas, _LEAST_AGREEMENT) ** 2
    return weights / weights.sum(), kappas


def overlap(source: Any, target: Any) -> NDArray[np.float64]:
    """Return the share of values that each column of two domains has in common, if normal."""
    moments = []
    for rows in (source, target):
        mean = np.asarray(rows.mean(axis=0)).ravel()
        squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
        moments.append((mean, np.asarray(squares.mean(axis=0)).ravel() - mean**2))
    spread = np.sqrt(np.maximum(moments[0][1] + moments[1][1], 0) / 2)
    moved = np.abs(moments[0][0] - moments[1][0])
    varies = spread > 1e-9 * np.maximum(np.abs(moments[0][0]), moved)
    common = np.full(len(moved), np.nan)  # of constant columns
    common[varies] = erfc(moved[varies] / spread[varies] / np.sqrt(8))
    return common if varies.any() else np.ones(len(moved))


# -- labels ------------------------------------------------------------------------------------


def label_table(
    classes: NDArray[Any],
    probabilities: Probabilities,
    source_only: Codes | None = None,
    unfamiliar: NDArray[np.bool_] | None = None,
    *,
    prediction: NDArray[Any] | None = None,
) -> pd.DataFrame:
    """Return the table of labels, with the columns and values of ``predictions.csv``.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels of the codes.
    probabilities : ndarray of shape (n_rows, n_classes)
        Probabilities of the classes.
    source_only : ndarray of shape (n_rows,), optional
        Codes by models of the source alone.
    unfamiliar : ndarray of shape (n_rows,), optional
        Whether rows are unlike any source row.
    prediction : ndarray of shape (n_rows,), optional
        Labels of the rows, if they need not be the most probable ones.

    Returns
    -------
    table : DataFrame
        The columns prediction, confidence (the largest probability, to six digits), runner_up (the
        most probable other label, empty if all others are impossible), and source_only and
        unfamiliar if they are given.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.trust import label_table
    >>> P = np.array([[0.9, 0.1], [0.0, 1.0]])
    >>> label_table(np.array(["cat", "dog"]), P).to_numpy().tolist()
    [['cat', 0.9, 'dog'], ['dog', 1.0, '']]
    """
    import pandas as pd

    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
    best, second = np.take_along_axis(probabilities, order, axis=1).T
    labels = classes[order[:, 0]] if prediction is None else prediction
    other = classes[np.where(classes[order[:, 0]] == labels, order[:, 1], order[:, 0])]
    columns: dict[str, Any] = {
        "prediction": labels,
        "confidence": best.round(6).astype(float),
        "runner_up": pd.Series(other).astype(object).where(second > 0, ""),
    }
    columns |= {} if source_only is None else {"source_only": classes[source_only]}
    columns |= {} if unfamiliar is None else {"unfamiliar": unfamiliar}
    return pd.DataFrame(columns)


# -- audit -------------------------------------------------------------------------------------


class RowsToLabel(NamedTuple):
    """Target rows for a person to label.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        Their numbers, from 0, in random order.
    weights : ndarray of shape (n_rows,)
        Number of target rows that each stands for.
    """

    rows: Codes
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Audit:
    """Comparison of labels with those that a person gave to some rows.

    Attributes
    ----------
    rows : int
        Audited rows.
    accuracy, low, high : float
        Accuracy of the audited labels over all target rows, and its interval, at 90 %.
    better : {"adapted", "source-only"} or None
        The better of the adapted labels and those of the source alone, by a sign test over the
        audited rows on which they differ; None where that cannot be decided.
    only_right : tuple of int
        Audited rows that only the adapted, and only the source-only label has right.
    unknown : dict
        For each given label that the source lacks, the numbers of the target rows near those that
        have it, these included; without a model these alone, and labels that are predicted nowhere.
    labels : ndarray of shape (n_target,) or None
        Labels of all target rows, corrected; audited rows have the given ones.
    corrected : tuple of float or None
        Accuracy of the corrected labels and its interval, by audited rows that are left out in
        turn.
    model : AutoAdapter or TableClassifier or None
        The model with the correction, for new rows. Labels that are compared without one are not
        corrected: then the last three are None.
    """

    rows: int
    accuracy: float
    low: float
    high: float
    better: Literal["adapted", "source-only"] | None
    only_right: tuple[int, int]
    unknown: dict[Any, Codes] = field(repr=False)
    labels: NDArray[Any] | None = field(default=None, repr=False)
    corrected: tuple[float, float, float] | None = None
    model: Any = field(default=None, repr=False)

    @property
    def lines(self) -> list[str]:
        """The accuracy, the better labelling, unknown classes, and the corrected accuracy."""
        found = [
            f"Accuracy by {self.rows} audited row{'s'[self.rows == 1 :]}: "
            f"{percent(self.accuracy)} % "
            f"({percent(self.low)} to {percent(self.high)} %, 90 % interval)",
            _better_line(self.better, *self.only_right),
        ]
        if self.corrected is None:
            return found + [
                f"{_class(label)} ({len(rows):,} of the audited rows) is predicted nowhere; the "
                "source may lack it"
                for label, rows in self.unknown.items()
            ]
        found += [
            f"{_class(label)} is not in the source; target rows near those that were given it: "
            f"{len(rows):,}"
            for label, rows in self.unknown.items()
        ]
        share, low, high = self.corrected
        return [
            *found,
            f"Accuracy of the corrected labels, by audited rows left out in turn: {percent(share)} "
            f"% ({percent(low)} to {percent(high)} %)",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        return _box(_COLOURS["measured"], self.lines)

    @classmethod
    def of(cls, consensus: Any, rows: ArrayLike, labels: ArrayLike, classes: NDArray[Any]) -> Audit:
        """Audit a consensus, which stays as it is.

        Parameters
        ----------
        consensus : Consensus
            What is audited.
        rows, labels : array-like of shape (n_rows,)
            Numbers of target rows in the order of the input, and their true labels.
        classes : ndarray of shape (n_classes,)
            Labels of the codes.

        Returns
        -------
        audit : Audit
            Its ``model`` is the corrected consensus, its ``labels`` those of the fitted target
            rows in the order of the consensus.
        """
        target = consensus.target
        at, given = checked_rows(rows, labels, target.places)
        earlier = np.setdiff1d(consensus.known[0], at)
        code = {label: position for position, label in enumerate(classes.tolist())}
        truth = np.array([code.get(label, -1) for label in given.tolist()], dtype=np.intp)
        strange = list(dict.fromkeys(given[truth < 0].tolist()))
        unknown = {
            label: np.sort(target.places[np.unique(target.near[at[given == label]])])
            for label in strange
        }
        weights = stratum_weights(consensus.strata, at)
        codes = consensus.P.argmax(axis=1)
        found = compared(
            codes, consensus.alone, at, truth, weights, unknown, n_earlier=len(earlier)
        )
        model = consensus.corrected(at, truth)
        corrected = left_out_accuracy(model.known[2, -len(at) :] == truth, weights)
        now = classes[model.P.argmax(axis=1)]
        if strange:  # the given labels may be longer, or of another kind
            now = now.astype(np.result_type(now, given))
        now[at] = given
        return replace(found, labels=now, corrected=corrected, model=model)


def checked_rows(rows: ArrayLike, labels: ArrayLike, places: Codes) -> tuple[Codes, NDArray[Any]]:
    """Return the positions of audited rows among the fitted ones, and their labels, checked."""
    if not len(places):
        raise ValueError("The model was fitted without a target; no label can be audited.")
    numbers, given = np.asarray(rows), as_labels(labels)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise ValueError("rows must be a list of numbers of target rows, from audit_rows.")
    if len(numbers) != len(given):
        raise ValueError(f"{len(numbers)} rows have {len(given)} labels; give one each.")
    missing = ~labelled_rows(given)
    if missing.any():
        raise ValueError(
            f"{missing.sum()} of the {len(given)} audited rows have no label; leave them out."
        )
    values, counts = np.unique(numbers, return_counts=True)
    if counts.max() > 1:
        raise ValueError(f"row {values[counts.argmax()]} is there {counts.max()} times.")
    order = np.argsort(places)
    at = order[np.searchsorted(places, numbers, sorter=order) % len(places)]
    strange = np.sort(numbers[places[at] != numbers])
    if len(strange):
        n = int(places.max()) + 1
        raise ValueError(f"{strange[0]} is not a fitted target row; rows are 0 to {n - 1}.")
    return at, given


def _class(label: Any) -> str:
    return "A class of no name" if label == UNKNOWN_CLASS else f"Class {label!r}"


def _better_line(better: str | None, adapted: int, alone: int) -> str:
    verb = "is" if adapted == 1 else "are"
    counts = (
        f"of the audited rows, {adapted} {verb} right only as adapted and {alone} only by the "
        "source alone"
    )
    if better is None:
        return f"Whether adapted or source-only labels are better cannot be decided: {counts}"
    return f"The {better} labels are better: {counts}"


def strata_of(adapted: Codes, alone: Codes, unfamiliar: NDArray[np.bool_]) -> Codes:
    """Return 0 for rows whose label adapting changed, 1 for other unfamiliar ones, else 2."""
    return np.where(adapted != alone, 0, 2 - unfamiliar.astype(np.intp))


def rows_to_label(
    strata: Codes, confidence: NDArray[np.float64], n_rows: int, rng: np.random.Generator
) -> RowsToLabel:
    """Draw rows, half of them of stratum 0, each part spread over confidence.

    Strata are numbered in the order of their claims: 0 may have a half, 1 a sixth, the last the
    rest. What one cannot use, the others get. Rows of stratum k stand for as many as it has by
    drawn row, so that weighted means are unbiased.
    """
    parts = [np.flatnonzero(strata == k) for k in range(3)]
    wanted = [min(n_rows // 2, len(parts[0])), min(n_rows // 6, len(parts[1]))]
    wanted.append(min(n_rows - sum(wanted), len(parts[2])))
    for k in (0, 1):  # rows that the last stratum lacks
        wanted[k] += min(n_rows - sum(wanted), len(parts[k]) - wanted[k])
    rows, weights = [], []
    for part, size in zip(parts, wanted, strict=True):
        order = part[np.lexsort((rng.random(len(part)), confidence[part]))]
        step = len(order) / max(size, 1)  # systematic: every row is as likely as any other
        rows.append(order[((np.arange(size) + rng.random()) * step).astype(np.intp)])
        weights.append(np.full(size, step))
    shuffled = rng.permutation(sum(wanted))
    return RowsToLabel(np.concatenate(rows)[shuffled], np.concatenate(weights)[shuffled])


def stratum_weights(strata: Codes, rows: Codes) -> NDArray[np.float64]:
    """Return the number of rows that each audited one stands for, however they were chosen.

    Audited rows stand for a stratum without any in proportion to their own.
    """
    audited, sizes = np.bincount(strata[rows], minlength=3), np.bincount(strata, minlength=3)
    weights = (sizes / np.maximum(audited, 1))[strata[rows]]
    return weights * (len(strata) / weights.sum())


def audited_accuracy(
    right: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return the weighted share of right labels, and its interval.

    Strata, known by their weights, have two beta distributions each, between those of Jeffreys and
    of Clopper and Pearson, for either end of the interval; their mixtures are simulated, with a
    fixed seed.
    """
    rng, ends, tail = np.random.default_rng(0), np.zeros((2, _DRAWS)), (1 - _LEVEL) / 2
    for weight in np.unique(weights):
        own = right[weights == weight]
        hits, misses, share = own.sum(), (~own).sum(), weight * len(own) / weights.sum()
        if hits:
            ends[0] += share * rng.beta(hits + _END, misses + 1 - _END, _DRAWS)
        ends[1] += share * (rng.beta(hits + 1 - _END, misses + _END, _DRAWS) if misses else 1.0)
    low, high = np.quantile(ends[0], tail), np.quantile(ends[1], 1 - tail)
    return float(np.average(right, weights=weights)), float(low), min(1.0, float(high))


def left_out_accuracy(
    right: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return the weighted share of right left-out labels, and Clopper and Pearson's interval.

    The rows are not independent, so that it takes their effective number for their number.
    """
    share, n = float(np.average(right, weights=weights)), weights.sum() ** 2 / (weights**2).sum()
    hits, tail = share * n, (1 - _LEVEL) / 2
    low = beta.ppf(tail, hits, n - hits + 1) if hits > 0 else 0.0
    high = beta.ppf(1 - tail, hits + 1, n - hits) if hits < n else 1.0
    return share, float(low), float(high)


def better_of(
    adapted: Codes, alone: Codes, truth: Codes
) -> tuple[Literal["adapted", "source-only"] | None, tuple[int, int]]:
    """Return the better of two labellings by an exact sign test, None if it is not significant."""
    ours = int(np.sum((adapted == truth) & (alone != truth)))
    theirs = int(np.sum((alone == truth) & (adapted != truth)))
    if not ours + theirs or binomtest(ours, ours + theirs).pvalue > _CERTAIN:
        return None, (ours, theirs)
    return ("adapted" if ours > theirs else "source-only"), (ours, theirs)


def compared(
    adapted: Codes,
    alone: Codes,
    rows: Codes,
    truth: Codes,
    weights: NDArray[np.float64],
    unknown: dict[Any, Codes],
    *,
    n_earlier: int = 0,
) -> Audit:
    """Return the audit of labels of all target rows by true ones of some, without correction.

    Of further rows, `n_earlier`, labels were known before.
    """
    n, least = len(rows) + n_earlier, min(LEAST_AUDITED, len(adapted))
    if n < least:
        raise ValueError(
            f"{n} row{'s'[n == 1 :]} with a label, all batches together, are too few for an audit; "
            f"label at least {least}."
        )
    accuracy = audited_accuracy(adapted[rows] == truth, weights)
    return Audit(len(rows), *accuracy, *better_of(adapted[rows], alone[rows], truth), unknown)


class Correction(NamedTuple):
    """Improvement of a consensus by known labels of some rows.

    Attributes
    ----------
    weights : ndarray of shape (n_members,)
        Weights of the members, by their probabilities of the known labels.
    alpha : float
        Factor of the neighbours' mean correction.
    influence : ndarray of shape (n_target, n_known)
        Weight of the error of each known row in the correction of every row.
    wanted : ndarray of shape (n_known, n_classes)
        One-hot known labels; zeros for a label of no class.
    left_out : ndarray of shape (n_known, n_classes)
        Predictions of the rows with a known label, each left out in turn.
    """

    weights: NDArray[np.float64]
    alpha: float
    influence: NDArray[np.float64]
    wanted: Probabilities
    left_out: Probabilities


def correction(
    tables: NDArray[np.float64],
    weights: NDArray[np.float64],
    neighbors: Codes,
    rows: Codes,
    truth: Codes,
    row_weights: NDArray[np.float64],
) -> Correction:
    """Weight the members by known labels, and pass the errors of those on to neighbours.

    The errors E of the known rows are the one-hot labels minus the consensus. Every other row's
    correction is alpha times the mean of its neighbours' (the first half of Correct and Smooth).
    The factor alpha is that with the least squared error on known rows, each left out in turn.

    Parameters
    ----------
    tables : ndarray of shape (n_members, n_target, n_classes)
        Probabilities by each member.
    weights : ndarray of shape (n_members,)
        Their weights.
    neighbors : ndarray of shape (n_target, k)
        Nearest target rows of each.
    rows, truth : ndarray of shape (n_known,)
        Rows with a known label, and its code, -1 for a label of no class.
    row_weights : ndarray of shape (n_known,)
        Number of rows that each stands for.

    References
    ----------
    Q. Huang, H. He, A. Singh, S.-N. Lim and A. Benson, "Combining label propagation and simple
    models out-performs graph neural networks", ICLR 2021.
    """
    known, m = tables[:, rows], len(rows)
    share = row_weights / row_weights.sum()
    logs = np.log(np.maximum(known[:, np.arange(m), truth] * (truth >= 0), _SMALLEST))

    def reweighted(share: NDArray[np.float64]) -> NDArray[np.float64]:
        exponents = _COUNTED * logs @ share
        found = weights * np.exp(exponents - exponents.max())
        return found / found.sum()

    wanted = np.eye(tables.shape[2])[truth] * (truth >= 0)[:, None]
    # For each row left out, the consensus of the known rows without it.
    apart = np.zeros((m, *wanted.shape))
    for i in range(m):
        others = np.where(np.arange(m) == i, 0.0, share)
        own = reweighted(others / others.sum()) if m > 1 else weights
        apart[i] = np.tensordot(own, known, axes=1)
    best: tuple[float, Any] = np.inf, None
    for alpha in _ALPHAS:
        spread = _influence(neighbors, rows, alpha)
        predicted = np.empty_like(wanted)
        for i, row in enumerate(rows):
            # Were the row free, its correction would be alpha times its neighbours' mean, in which
            # its own error stands for itself.
            share_of = alpha * spread[neighbors[row]].mean(axis=0)
            others = np.where(np.arange(m) == i, 0.0, share_of / max(1 - share_of[i], 1e-9))
            predicted[i] = apart[i, i] + others @ (wanted - apart[i])
        loss = float(share @ ((wanted - predicted) ** 2).sum(axis=1))
        if loss < best[0]:
            best = loss, (alpha, spread, wanted, predicted)
    return Correction(reweighted(share), *best[1])


def _influence(neighbors: Codes, rows: Codes, alpha: float) -> NDArray[np.float64]:
    """Return the weight of the error of each known row in the correction of every row."""
    n, k = neighbors.shape
    starts = np.arange(0, n * k + 1, k)
    walk = sp.csr_array((np.full(n * k, alpha / k), neighbors.ravel(), starts), shape=(n, n))
    spread = np.zeros((n, len(rows)))
    spread[rows] = np.eye(len(rows))
    for _ in range(_STEPS):
        new = walk @ spread
        new[rows] = np.eye(len(rows))
        change = np.abs(new - spread).max(initial=0.0)
        spread = new
        if change < _SETTLED:
            break
    return spread
