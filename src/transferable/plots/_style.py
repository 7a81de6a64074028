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
        extra: tuple[float, float] = (0.2, 0.5),
        columns: int | None = None,
        sharey: bool = False,
    ) -> None:
        """Set one axes for each panel; `what` names them in the error if their number is wrong.

        `panel` and `extra` are width and height of a panel and of the surroundings of all of them,
        in inches. Without `columns`, all panels of a new figure are in a row.
        """
        if ax is None:
            columns = min(columns or n_panels, n_panels)
            rows = -(-n_panels // columns)
            figure = Figure(
                figsize=(panel[0] * columns + extra[0], panel[1] * rows + extra[1]),
                layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1),
            )
            axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel()
            for unused in axes[n_panels:]:
                unused.remove()
            axes = axes[:n_panels]
        else:
            axes = np.array([ax] if isinstance(ax, Axes) else ax, dtype=object).ravel()
        if len(axes) != n_panels:
            raise ValueError(
                f"There are {n_panels} {what} but {len(axes)} axes; give as many axes, or none to "
                "get a new figure."
            )
        self.axes_, self.figure_ = axes, axes[0].figure

    def _add_legend(self, handles: Sequence[Artist], *, ours: bool, place: str = "lower") -> None:
        """Explain marks: outside the panels of a new figure, in the last panel of a given one."""
        style: dict[str, Any] = {"frameon": False, "labelcolor": INK, "fontsize": 9}
        if not ours:
            self.axes_[-1].legend(handles=handles, **style)
            return
        columns = min(len(handles), 4 * len(self.axes_))
        style |= {"loc": f"outside {place} center", "ncols": columns, "columnspacing": 1.0}
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
