"""House style: colours, panels and text that every Display shares.

Colours are distinct for any kind of colour vision and stand out from white and from black paper
alike, so that a picture can be shown on either. Shape or place repeats their meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

INK, GRID = "#222222", "#e4e4e4"
DOMAIN_COLOURS = ("#0072b2", "#d55e00")
CLASS_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#c4679a", "#8c6d31"),
    *("#7a5fd0", "#808080", "#c22f2f", "#0a8fa3", "#7f8500"),
)
_LINES = {"color": ("#0072b2", "#d55e00", INK, "#009e73", "#c4679a"), "marker": "osD^v"}
_LONGEST_TEXT = 28


def plain(text: Any) -> str:
    """Return a name as text that is drawn literally, cut if it is long."""
    name = "".join(c if c.isprintable() else " " for c in str(text)).strip()
    if len(name) > _LONGEST_TEXT:
        name = name[: _LONGEST_TEXT - 1] + "…"
    # Dollars would begin a formula; a leading underscore would keep a name out of the legend.
    return " " * name.startswith("_") + name.replace("$", r"\$")


def line_style(position: int) -> dict[str, Any]:
    """Return the colour and mark of the line at some position."""
    style = {key: values[position % len(values)] for key, values in _LINES.items()}
    return {**style, "linewidth": 1.6, "markersize": 4.5}


class Display:
    """Base of the displays, which draw into panels: the axes given, or those of a new figure."""

    axes_: NDArray[np.object_]
    figure_: Figure

    def _make_axes(
        self,
        ax: Axes | Sequence[Axes] | None,
        n_panels: int,
        what: str,
        *,
        panel: tuple[float, float],
        extra: tuple[float, float],
        sharey: bool = False,
    ) -> None:
        """Set one axes for each panel; `what` names them in the error if their number is wrong.

        The panels of a new figure are in a row; `panel` and `extra` are width and height of a panel
        and of the surroundings of all of them, in inches.
        """
        if ax is None:
            figure = Figure(
                figsize=(panel[0] * n_panels + extra[0], panel[1] + extra[1]),
                layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1),
            )
            axes = figure.subplots(1, n_panels, squeeze=False, sharey=sharey).ravel()
        else:
            axes = np.array([ax] if isinstance(ax, Axes) else ax, dtype=object).ravel()
        if len(axes) != n_panels:
            raise ValueError(
                f"There are {n_panels} {what} but {len(axes)} axes; give as many axes, or none to "
                "get a new figure."
            )
        self.axes_, self.figure_ = axes, axes[0].figure

    def _add_legend(self, handles: Sequence[Artist], *, ours: bool) -> None:
        """Explain marks: outside the panels of a new figure, in the last panel of a given one."""
        style: dict[str, Any] = {"frameon": False, "labelcolor": INK, "fontsize": 9}
        if not ours:
            self.axes_[-1].legend(handles=handles, **style)
            return
        entry = 0.4 + 0.09 * max(len(str(handle.get_label())) for handle in handles)  # inches
        columns = max(1, min(4 * len(self.axes_), int(self.figure_.get_figwidth() / entry)))
        style |= {"loc": "outside lower center", "ncols": columns, "columnspacing": 1.0}
        self.figure_.legend(handles=handles, handletextpad=0.3, **style)


def finish(ax: Axes, title: str, x_label: str = "") -> None:
    """Set the title, label, ink and grid of a panel with axes."""
    ax.set_title(title, loc="left", color=INK, fontsize=11)
    ax.set_xlabel(x_label, color=INK)
    ax.tick_params(colors=INK)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[:].set_color(INK)
    ax.spines[["top", "right"]].set_visible(False)
