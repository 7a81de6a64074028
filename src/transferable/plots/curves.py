"""Curves over iterations, and of the accuracy over each parameter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from sklearn.base import clone

from transferable.diagnostics import TERM_TITLES, history_of
from transferable.plots._style import INK, Display, finish, line_style, plain

# From this ratio of the largest to the smallest value on, values are spread over decades.
_DECADES = 50


class ConvergenceDisplay(Display):
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
                    "TFDF."
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
        self._make_axes(ax, len(self.curves), "quantities", panel=(3.3, 2.5), columns=3)
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


class SensitivityDisplay(Display):
    """Scores along the values of parameters, a panel for each parameter.

    Build it with :meth:`from_estimator`, or give the curves.

    Parameters
    ----------
    curves : mapping of str to mapping of str to mapping of float to float
        For each panel's label, and for each task or method, the score by the parameter's value.
    score_name : str, default="accuracy on the target (%)"
        Name of the scores.

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
    >>> from transferable.plots import SensitivityDisplay
    >>> curves = {"alignment": {"C → A": {0.1: 60.0, 1.0: 62.5, 10.0: 63.0}}}
    >>> display = SensitivityDisplay(curves).plot()
    >>> display.axes_[0].get_xscale()
    'log'
    """

    lines_: list[Line2D]

    def __init__(
        self,
        curves: Mapping[str, Mapping[str, Mapping[float, float]]],
        score_name: str = "accuracy on the target (%)",
    ) -> None:
        if not curves or not all(curves.values()):
            raise ValueError("There is no curve to draw; give at least one for each parameter.")
        self.curves = {label: dict(panel) for label, panel in curves.items()}
        self.score_name = score_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        Xs: Any,
        ys: ArrayLike,
        Xt: Any,
        yt: ArrayLike,
        *,
        param_ranges: Mapping[str, Sequence[float]],
        ax: Axes | Sequence[Axes] | None = None,
    ) -> SensitivityDisplay:
        """Fit the estimator once for each value, all other parameters as they are, and draw.

        Target labels score the fits and are used by none of them. A parameter chosen from the
        picture has been chosen by them, and its accuracy is an upper bound.

        Parameters
        ----------
        estimator : classifier
            The method with its other parameters; it is copied, not fitted.
        Xs, ys, Xt : array-like
            Source rows, their labels, and target rows.
        yt : array-like of shape (n_target,)
            True labels of the target rows.
        param_ranges : mapping of str to sequence of float
            Values to try, by the name of the parameter.
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each parameter; None makes a figure.

        Returns
        -------
        display : SensitivityDisplay
            The drawn display.
        """
        method, true = type(estimator).__name__, np.asarray(yt)
        curves: dict[str, dict[str, dict[float, float]]] = {}
        for parameter, values in param_ranges.items():
            curve = {}
            for value in values:
                model = clone(estimator).set_params(**{parameter: value}).adapt(Xs, ys, Xt)
                curve[value] = 100 * float(np.mean(model.predict(Xt) == true))
            curves[parameter] = {method: curve}
        return cls(curves).plot(ax=ax)

    def plot(self, *, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each parameter; None makes a figure, with the panels in a row.

        Returns
        -------
        display : SensitivityDisplay
            The display itself.
        """
        size, extra = (3.1, 3.1), (0.2, 0.3)
        self._make_axes(ax, len(self.curves), "parameters", panel=size, extra=extra, sharey=True)
        self.lines_ = []
        for panel, (label, curves) in zip(self.axes_, self.curves.items(), strict=True):
            self._draw(panel, label, curves)
        self.axes_[0].set_ylabel(self.score_name, color=INK)
        handles, _ = self.axes_[0].get_legend_handles_labels()
        if len(handles) > 1:
            self._add_legend(handles, ours=ax is None, place="upper")
        return self

    def _draw(self, ax: Axes, label: str, curves: Mapping[str, Mapping[float, float]]) -> None:
        for position, (name, curve) in enumerate(curves.items()):
            values = sorted(curve)
            scores = [curve[value] for value in values]
            self.lines_ += ax.plot(values, scores, label=plain(name), **line_style(position))
        values = [value for curve in curves.values() for value in curve]
        if values and min(values) > 0 and max(values) >= _DECADES * min(values):
            ax.set_xscale("log")
        finish(ax, "", label)
