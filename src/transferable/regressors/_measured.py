"""What is known of predicted numbers: what can be seen without labels, and errors by measured rows.

The error of numbers cannot be estimated without labels, so :class:`Unmeasured` states that and what
can be seen. With some rows measured, :class:`MeasuredError` has the median error with an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, wilcoxon

from transferable.domains import Domains
from transferable.trust import RowsToLabel, overlap, percent

LEAST_MEASURED = 8  # rows with a number, for an audit
LEVEL = 0.9  # of intervals
_CERTAIN = 0.1  # p-value at which one prediction is called better
_SHOWN = 3  # columns
_OUT = 0.01  # share of target rows out of the source's range from which a column is named


@dataclass(frozen=True)
class Unmeasured:
    """What can be seen of predicted numbers without a label, which is not how far off they are.

    After an audit it also has the error of the corrected numbers.

    Attributes
    ----------
    rows : int
        Target rows.
    overlap : float
        Mean share of values that columns of both domains have in common, if normal.
    columns : list of tuple
        Columns with target values out of the source's range, by name or number, and the share of
        the target rows; the largest first.
    unfamiliar : int
        Target rows that are farther from all source rows than those are from one another.
    measured : str
        What measured rows show, after an audit.
    """

    rows: int
    overlap: float
    columns: list[tuple[Any, float]]
    unfamiliar: int
    measured: str = ""

    state, shown = "check", False

    @property
    def title(self) -> str:
        """The state in words."""
        done = "These numbers are corrected by measured rows"
        return done if self.measured else "Measure some rows before these numbers are used"

    @property
    def lines(self) -> list[str]:
        """That the error is unknown, and what can be seen."""
        shown = [
            f"{name if isinstance(name, str) else f'column {name}'} ({percent(part)} % of the rows)"
            for name, part in self.columns[:_SHOWN]
        ]
        rest = len(self.columns) - _SHOWN
        more = f" and {rest} other columns" if rest > 0 else ""
        return [
            self.measured
            or "How far off these numbers are cannot be known without labels; measure "
            f"{min(20, self.rows)} rows",
            f"The columns of both domains have {percent(self.overlap)} % of their values in common",
            f"Out of the source's range: {', '.join(shown)}{more}"
            if shown
            else "No column leaves the source's range",
            f"Rows unlike any source row: {self.unfamiliar:,} of {self.rows:,}",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def seen_of(
    domains: Domains, unfamiliar: NDArray[np.bool_], names: Sequence[Any] | None
) -> Unmeasured:
    """Return what can be seen of a target without labels."""
    Xs, Xt = domains.Xs, domains.Xt
    out = ((Xt < Xs.min(axis=0)) | (Xt > Xs.max(axis=0))).mean(axis=0)
    order = [k for k in np.argsort(-out, kind="stable") if out[k] >= _OUT]
    columns = [(int(k) if names is None else str(names[k]), float(out[k])) for k in order]
    common = float(np.nanmean(overlap(Xs, Xt)))
    return Unmeasured(domains.n_target, common, columns, int(unfamiliar.sum()))


@dataclass(frozen=True)
class MeasuredError:
    """Errors of predicted numbers by some rows that were measured.

    The error is the median of the absolute ones: half of the predictions are off by less. A few
    rows can carry most of a mean of squares, so that twenty rows hardly show it.

    Attributes
    ----------
    rows : int
        Measured rows.
    error, low, high : float
        Median absolute error of the audited predictions, and its interval, at 90 %.
    source_only : float
        That of the best model of the source alone.
    better : {"predicted", "corrected", "source-only"} or None
        The better numbers, of those of the source alone and the corrected ones, or, without a
        correction, the predicted ones, by Wilcoxon's test; None where that cannot be decided.
    corrected : tuple of float or None
        Median absolute error of the corrected predictions and its interval, by measured rows that
        are left out in turn.
    interval : float or None
        Half of the width of the corrected model's interval for a row, at 90 %.
    labels : ndarray of shape (n_target,) or None
        Corrected predictions of all target rows; measured rows have the given numbers.
    model : AutoRegressor or TableRegressor or None
        The corrected model. Numbers that are compared without one are not corrected.
    """

    rows: int
    error: float
    low: float
    high: float
    source_only: float
    better: str | None
    corrected: tuple[float, float, float] | None = None
    interval: float | None = None
    labels: NDArray[np.float64] | None = None
    model: Any = None

    @classmethod
    def of(
        cls,
        given: NDArray[np.float64],
        predicted: NDArray[np.float64],
        alone: NDArray[np.float64],
        **corrected: Any,
    ) -> MeasuredError:
        """Compare measured numbers with those predicted, and those by the source alone."""
        if len(given) < LEAST_MEASURED and not corrected:
            raise ValueError(
                f"{len(given)} measured rows are too few; measure at least {LEAST_MEASURED}."
            )
        return cls(
            len(given),
            *median_error(given - predicted),
            source_only=float(np.median(np.abs(given - alone))),
            **{"better": better_of(given - predicted, given - alone, "predicted"), **corrected},
        )

    @property
    def lines(self) -> list[str]:
        """The error before and after the correction, the interval and the better prediction."""
        found = [
            f"Half of the predictions are off by less than {self.error:.3g} ({self.low:.3g} to "
            f"{self.high:.3g}, 90 % interval), by {self.rows} measured rows",
            f"By the source alone: by less than {self.source_only:.3g}; "
            + (
                "which is better cannot be decided"
                if self.better is None
                else f"the {self.better} numbers are better"
            ),
        ]
        if self.corrected is None:
            return found
        error, low, high = self.corrected
        return [
            *found,
            f"Half of the corrected predictions are off by less than {error:.3g} ({low:.3g} to "
            f"{high:.3g}), and nine in ten by less than {self.interval:.3g}, by measured rows that "
            "are left out in turn",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines)


def rows_to_measure(
    predictions: NDArray[np.float64], n_rows: int, random_state: int = 0
) -> RowsToLabel:
    """Draw every n-th row by its prediction, from a random start."""
    n, rng = len(predictions), np.random.default_rng(random_state)
    size = min(n_rows, n)
    order = np.lexsort((rng.random(n), predictions))
    rows = order[((np.arange(size) + rng.random()) * n / max(size, 1)).astype(np.intp)]
    return RowsToLabel(rng.permutation(rows), np.full(size, n / max(size, 1)))


def median_error(errors: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the median absolute error, and its interval by order statistics."""
    size = np.sort(np.abs(errors))
    k = len(size)
    # Ranks below which the median lies with at most half of the rest; none assumes a distribution.
    below = max(0, int(binom.ppf((1 - LEVEL) / 2, k, 0.5)) - 1)
    return float(np.median(size)), float(size[below]), float(size[k - 1 - below])


def better_of(ours: NDArray[np.float64], alone: NDArray[np.float64], name: str) -> str | None:
    """Return whose errors are smaller, None if that is not significant."""
    gap = np.abs(alone) - np.abs(ours)
    if not gap.any() or wilcoxon(gap).pvalue > _CERTAIN:
        return None
    return name if np.median(gap) > 0 else "source-only"
