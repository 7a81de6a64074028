"""What iterations come to, one panel for each quantity."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transferable.diagnostics import TERM_TITLES, history_of
from transferable.plots._style import INK, finish, line_style, new_axes, plain

__all__ = ["ConvergenceDisplay"]

_COLUMNS = 3


class ConvergenceDisplay:
    """Curves over iterations of one or several methods, a panel for each quantity.

    Build it with :meth:`from_estimator`, or give the curves.

    Parameters
    ----------
    curves : mapping of str to mapping of str to sequence of float
        For each panel's title the curve of each method.
    settled : collection of str, default=()
        Methods that stopped because nothing would change any more: their curves go on, dotted, to
        the end of the longest.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels, once drawn.
    figure_ : matplotlib Figure
        The figure that holds them.
    lines_ : list of matplotlib Line2D
        The curves as drawn, panel by panel.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import TFDFV
    >>> from transferable.plots import ConvergenceDisplay
    >>> rng = np.random.default_rng(0)
    >>> ys = np.arange(30) % 3
    >>> Xs = rng.normal(size=(30, 5)) + 3 * np.eye(3, 5)[ys]
    >>> model = TFDFV(manifold_dim=None).adapt(Xs, ys, Xs + 0.5)
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> display.axes_[0].get_title(loc="left")
    'objective (sum of terms)'
    """

    axes_: NDArray[np.object_]
    figure_: Figure
    lines_: list[Line2D]

    def __init__(
        self, curves: Mapping[str, Mapping[str, Sequence[float]]], settled: Collection[str] = ()
    ) -> None:
        if not curves or not all(curves.values()):
            raise ValueError("There is no curve to draw; give at least one for each panel.")
        self.curves = {title: dict(panel) for title, panel in curves.items()}
        self.settled = frozenset(settled)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | Sequence[Axes] | None = None
    ) -> ConvergenceDisplay:
        """Draw the objective and each of its terms after each round of a fit.

        Parameters
        ----------
        estimator : estimator, or mapping of str to estimator
            Fitted, with a ``history_``; a mapping draws several methods in the same panels.
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each entry of the history; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
            The drawn display.
        """
        named = (
            estimator if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
        )
        curves: dict[str, dict[str, list[float]]] = {}
        for name, fitted in named.items():
            history = history_of(fitted)
            if history is None:
                raise ValueError(
                    f"{type(fitted).__name__} has no history_; fit a method that iterates, such as "
                    "TFDF, with record_history=True."
                )
            for key in history[0]:
                panel = curves.setdefault(TERM_TITLES.get(key, key), {})
                panel[name] = [entry[key] for entry in history]
        return cls(curves).plot(ax=ax)

    def plot(self, *, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each panel; None makes a figure.

        Returns
        -------
        display : ConvergenceDisplay
            The display itself.
        """
        self.axes_ = new_axes(
            ax, len(self.curves), "quantities", panel=(3.3, 2.5), columns=_COLUMNS
        )
        self.figure_ = self.axes_[0].figure
        self.lines_ = []
        for panel, (title, curves) in zip(self.axes_, self.curves.items(), strict=True):
            self._draw(panel, title, curves)
        if any(len(curves) > 1 for curves in self.curves.values()):
            self.axes_[0].legend(frameon=False, labelcolor=INK)
        return self

    def _draw(self, ax: Axes, title: str, curves: Mapping[str, Sequence[float]]) -> None:
        longest = max(len(curve) for curve in curves.values())
        for position, (name, curve) in enumerate(curves.items()):
            style = line_style(position)
            self.lines_ += ax.plot(range(1, len(curve) + 1), curve, label=plain(name), **style)
            if name in self.settled:
                ends = (len(curve), longest)
                dotted = {"color": style["color"], "linestyle": ":", "linewidth": 1.2}
                ax.plot(ends, [curve[-1]] * 2, **dotted)
        finish(ax, title, "iteration")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
