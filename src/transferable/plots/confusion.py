"""Confusion matrices side by side, as Fig. 1 of the TFDF paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import confusion_matrix
from sklearn.utils.multiclass import unique_labels

from transferable.plots._style import GRID, INK, Display, plain

# Rows that keep their class in blue, rows that lose it in orange: a pair distinct for colour-blind
# readers and in print without colour. Errors reach full orange at half. Colours fade into the
# paper, whatever its colour.
_COLOURS = LinearSegmentedColormap.from_list(
    "kept_or_confused",
    [(0, "#a63603ff"), (0.5, "#d9541000"), (0.5, "#2171b500"), (1, "#08519cff")],
)
_SCALE = TwoSlopeNorm(vcenter=0, vmin=-0.5, vmax=1)
_MOST_CLASSES_WITH_VALUES = 20


class ConfusionDisplay(Display):
    """Confusion matrices of several methods, one panel each.

    Cells show the per cent of the rows of a true class that were given each class. Build it with
    :meth:`from_predictions`.

    Parameters
    ----------
    matrices : mapping of str to array-like of shape (n_classes, n_classes)
        For each panel, the count of rows by true class (rows) and predicted class (columns).
    labels : array-like of shape (n_classes,)
        The name of each class.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels, once drawn.
    figure_ : matplotlib Figure
        The figure that holds them.
    images_ : list of matplotlib AxesImage
        The matrices as drawn.

    Examples
    --------
    >>> from transferable.plots import ConfusionDisplay
    >>> y_true = ["cat", "cat", "dog", "dog"]
    >>> display = ConfusionDisplay.from_predictions(
    ...     y_true, {"before": ["cat", "dog", "dog", "cat"], "after": ["cat", "cat", "dog", "cat"]}
    ... )
    >>> display.matrices["after"]
    array([[2., 0.],
           [1., 1.]])
    >>> display.figure_.savefig("confusion.png")  # doctest: +SKIP
    """

    images_: list[AxesImage]

    def __init__(self, matrices: Mapping[str, ArrayLike], labels: ArrayLike) -> None:
        if not matrices:
            raise ValueError("There is no confusion matrix to draw; give at least one.")
        self.matrices = {name: np.asarray(m, dtype=float) for name, m in matrices.items()}
        self.labels = np.asarray(labels)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Mapping[str, ArrayLike],
        y_pred: Mapping[str, ArrayLike],
        *,
        labels: ArrayLike | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the confusion matrix of each method.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,), or mapping of str to such
            True labels; a mapping where panels are about different rows.
        y_pred : mapping of str to array-like of shape (n_samples,)
            Predicted labels, by the title of their panel.
        labels : array-like of shape (n_classes,), default=None
            Which classes to show, in which order; None shows all that occur, sorted.
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each method; None makes a figure.

        Returns
        -------
        display : ConfusionDisplay
            The drawn display.
        """
        pairs = {
            name: (
                np.asarray(y_true[name] if isinstance(y_true, Mapping) else y_true),
                np.asarray(p),
            )
            for name, p in y_pred.items()
        }
        if labels is None:
            labels = unique_labels(*(y for pair in pairs.values() for y in pair))
        matrices = {name: confusion_matrix(*pair, labels=labels) for name, pair in pairs.items()}
        return cls(matrices, labels).plot(ax=ax)

    def plot(self, *, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each panel; None makes a figure, with the panels in a row.

        Returns
        -------
        display : ConfusionDisplay
            The display itself.
        """
        names = [plain(label) for label in self.labels]
        margin = 0.08 * max(map(len, names))
        extra = (margin + 0.2, margin + 0.4)
        what = "confusion matrices"
        self._make_axes(ax, len(self.matrices), what, panel=(3.8, 4.0), extra=extra, sharey=True)
        self.images_ = [
            _draw(panel, name, matrix, names)
            for panel, (name, matrix) in zip(self.axes_, self.matrices.items(), strict=True)
        ]
        self.axes_[0].set_ylabel("true class (a row sums to 100 %)", color=INK)
        return self


def _draw(ax: Axes, name: str, counts: NDArray[np.float64], classes: list[str]) -> AxesImage:
    n_classes = len(classes)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    signed = np.where(np.eye(n_classes, dtype=bool), share, -share)
    image = ax.imshow(signed, cmap=_COLOURS, norm=_SCALE)
    accuracy = np.trace(counts) / max(counts.sum(), 1)
    ax.set_title(plain(name), loc="left", color=INK, fontsize=11, fontweight="bold", pad=22)
    subtitle = f"{100 * accuracy:.1f} % correct"
    ax.annotate(subtitle, (0, 1), (0, 7), "axes fraction", "offset points", color=INK)
    ax.set_xlabel("predicted class", color=INK)
    upright = max(map(len, classes)) <= 2 and n_classes <= 20
    size = min(10, 220 / n_classes)
    ax.set_xticks(range(n_classes), classes, rotation=0 if upright else 90, fontsize=size)
    ax.set_yticks(range(n_classes), classes, fontsize=size)
    ax.tick_params(length=0, colors=INK)
    ax.spines[:].set_visible(False)
    # White lines between the cells.
    ax.set_xticks(np.arange(n_classes + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n_classes + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=GRID, linewidth=0.8)
    ax.tick_params(which="minor", length=0)
    if n_classes <= _MOST_CLASSES_WITH_VALUES:
        centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        for i, j in np.argwhere(share >= 0.005):
            dark = share[i, j] > (0.6 if i == j else 0.35)
            colour = "white" if dark else INK
            ax.text(j, i, f"{100 * share[i, j]:.0f}", color=colour, **centred)
    return image
