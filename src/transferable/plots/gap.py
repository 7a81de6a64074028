"""Gap between domains before and after adaptation, overall and per class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from transferable._linalg.arrays import dense
from transferable.diagnostics import MEASURES, DomainGap, domain_gap, shared_space
from transferable.plots._style import GRID, Display, finish, line_style, plain

_MOST_CLASSES = 30


class DomainGapDisplay(Display):
    """A-distance, MMD and MMCD between two domains, a panel each; a line for each class.

    Build it with :meth:`from_estimator`, or give the gaps. Of more than 30 classes, those that
    are furthest apart at first are shown.

    Parameters
    ----------
    gaps : mapping of str to DomainGap
        The gap at each stage, as :func:`transferable.diagnostics.domain_gap` gives it.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels, once drawn.
    figure_ : matplotlib Figure
        The figure that holds them.
    lines_ : list of matplotlib Line2D
        The marks of each stage, panel by panel.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.diagnostics import domain_gap
    >>> from transferable.plots import DomainGapDisplay
    >>> Xs = np.random.default_rng(0).normal(size=(40, 3))
    >>> gaps = {"before": domain_gap(Xs, Xs + 9), "after": domain_gap(Xs, Xs + 0.1)}
    >>> [ax.get_title(loc="left") for ax in DomainGapDisplay(gaps).plot().axes_]
    ['A-distance', 'MMD', 'MMCD']
    """

    lines_: list[Line2D]

    def __init__(self, gaps: Mapping[str, DomainGap]) -> None:
        if not gaps:
            raise ValueError("There is no gap to draw; give at least one.")
        self.gaps = dict(gaps)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        Xs: Any,
        ys: ArrayLike,
        Xt: Any,
        yt: ArrayLike | None = None,
        *,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> DomainGapDisplay:
        """Draw the gap between the rows as given, and in the space of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted to these rows.
        Xs, ys, Xt : array-like
            Source rows, their labels, and target rows.
        yt : array-like of shape (n_target,), default=None
            Labels of the target rows; None takes those that the estimator predicts.
        ax : sequence of matplotlib Axes, default=None
            Where to draw, one for each measure; None makes a figure.

        Returns
        -------
        display : DomainGapDisplay
            The drawn display.
        """
        labels = estimator.predict(Xt) if yt is None else yt
        before = np.asarray(dense(Xs)), np.asarray(dense(Xt))
        n_source, n_target = map(len, before)
        domain = np.repeat([1, -1], [n_source, n_target])
        after = shared_space(estimator, np.concatenate(before), domain)
        gaps = {
            "before": domain_gap(*before, ys, labels),
            "after": domain_gap(after[:n_source], after[n_source:], ys, labels),
        }
        return cls(gaps).plot(ax=ax)

    def plot(self, *, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, default=None
            Where to draw, one for each measure; None makes a figure, with the panels in a row.

        Returns
        -------
        display : DomainGapDisplay
            The display itself.
        """
        classes = self._classes()
        size = (3.0, 0.28 * (len(classes) + 1) + 0.6)
        self._make_axes(ax, len(MEASURES), "measures", panel=size, extra=(1.0, 0.7), sharey=True)
        self.lines_ = []
        for panel, measure in zip(self.axes_, MEASURES, strict=True):
            self._draw(panel, measure, classes)
        names = ["all rows", *(plain(c) for c in classes)]
        self.axes_[0].set_yticks(range(len(names)), names)
        self.axes_[0].set_ylim(len(names) - 0.4, -0.6)
        if len(self.gaps) > 1:
            self._add_legend(self.lines_[: len(self.gaps)], ours=ax is None)
        return self

    def _classes(self) -> list[Any]:
        first = next(iter(self.gaps.values()))
        classes = list(first.by_class)
        if len(classes) <= _MOST_CLASSES:
            return classes
        by_gap = sorted(classes, key=lambda c: -np.nan_to_num(first.by_class[c]["A-distance"]))
        return [c for c in classes if c in set(by_gap[:_MOST_CLASSES])]

    def _draw(self, ax: Axes, measure: str, classes: list[Any]) -> None:
        missing = {measure: np.nan}
        table = np.array(
            [
                [gap.overall[measure], *(gap.by_class.get(c, missing)[measure] for c in classes)]
                for gap in self.gaps.values()
            ]
        )
        places = np.arange(table.shape[1])
        finish(ax, measure)
        ax.hlines(places, table.min(axis=0), table.max(axis=0), color=GRID, linewidth=4)
        for position, (name, values) in enumerate(zip(self.gaps, table, strict=True)):
            last = position == len(self.gaps) - 1
            style = line_style(position) | {"linestyle": "", "markersize": 7}
            style |= {"markeredgewidth": 1.6, "clip_on": False}
            style["fillstyle"] = "full" if last else "none"
            self.lines_ += ax.plot(values, places, label=plain(name), **style)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        right = 2.05 if measure == "A-distance" else ax.get_xlim()[1]
        ax.set_xlim(-0.04 * right, right)  # a marker at 0 keeps clear of the names
