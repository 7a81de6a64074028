"""Pictures of rows and gaps as Display objects, in scikit-learn's manner.

Colours are distinct for any kind of colour vision and stand out from white and from black paper
alike, so that a picture can be shown on either. Shape or place repeats their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from transferable._linalg.arrays import dense
from transferable.diagnostics import MEASURES, DomainGap, domain_gap, shared_space
from transferable.domains import marked_ids
from transferable.events import rounds

__all__ = ["DomainGapDisplay", "DomainScatterDisplay"]

INK, GRID = "#222222", "#e4e4e4"
DOMAIN_COLOURS = ("#0072b2", "#d55e00")
CLASS_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#c4679a", "#8c6d31"),
    *("#7a5fd0", "#808080", "#c22f2f", "#0a8fa3", "#7f8500"),
)
_LINES = {"color": ("#0072b2", "#d55e00", INK, "#009e73", "#c4679a"), "marker": "osD^v"}
_LONGEST_TEXT = 28
_MOST_CLASSES = 30  # with a line of their own
_MOST_CLASSES_IN_LEGEND = 20


def _plain(text: Any) -> str:
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


class _Display:
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


def _before_and_after(
    estimator: Any, Xs: Any, ys: ArrayLike, Xt: Any, yt: ArrayLike | None
) -> tuple[NDArray[Any], ...]:
    """Return the rows of both domains, their domains and labels, and the rows once adapted."""
    X = np.concatenate([dense(Xs), dense(Xt)])
    domain = np.repeat([1, -1], [np.shape(Xs)[0], np.shape(Xt)[0]])
    labels = np.concatenate([ys, estimator.predict(Xt) if yt is None else yt])
    return X, domain, labels, shared_space(estimator, X, domain)


class DomainGapDisplay(_Display):
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
    >>> from transferable import TFDF
    >>> from transferable.datasets import make_shifted
    >>> from transferable.plots import DomainGapDisplay
    >>> task = make_shifted()
    >>> model = TFDF().adapt(task.Xs, task.ys, task.Xt)
    >>> display = DomainGapDisplay.from_estimator(model, task.Xs, task.ys, task.Xt)
    >>> [ax.get_title(loc="left") for ax in display.axes_]
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
            Axes to draw into, one for each measure; None makes a figure.
        """
        X, domain, labels, after = _before_and_after(estimator, Xs, ys, Xt, yt)
        parts = domain > 0, domain < 0
        gaps = {
            name: domain_gap(*(Z[part] for part in parts), *(labels[part] for part in parts))
            for name, Z in (("before", X), ("after", after))
        }
        return cls(gaps).plot(ax=ax)

    def plot(self, *, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the panels into axes, one for each measure, or into a new figure."""
        classes = self._classes()
        size = (3.0, 0.28 * (len(classes) + 1) + 0.6)
        self._make_axes(ax, len(MEASURES), "measures", panel=size, extra=(1.0, 0.7), sharey=True)
        self.lines_ = []
        for panel, measure in zip(self.axes_, MEASURES, strict=True):
            self._draw(panel, measure, classes)
        names = ["all rows", *(_plain(c) for c in classes)]
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
            self.lines_ += ax.plot(values, places, label=_plain(name), **style)
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        right = 2.05 if measure == "A-distance" else ax.get_xlim()[1]
        ax.set_xlim(-0.04 * right, right)  # a marker at 0 keeps clear of the names


class DomainScatterDisplay(_Display):
    """Rows of both domains in the plane, coloured by class or by domain, a panel for each map.

    Source rows are filled circles, target rows hollow triangles. Build it with
    :meth:`from_estimator` or :meth:`from_tables`, or give the points.

    Parameters
    ----------
    points : mapping of str to array-like of shape (n_samples, 2)
        The rows' places, by the title of the panel.
    sample_domain : array-like of shape (n_samples,)
        Positive for source rows, negative for target rows.
    labels : array-like of shape (n_samples,), default=None
        Class of every row; None if none is known.
    domain_names : tuple of two str, default=("source", "target")
        Names for the legend.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels, once drawn.
    figure_ : matplotlib Figure
        The figure that holds them.
    collections_ : list of matplotlib PathCollection
        The source rows and the target rows as drawn, panel by panel.

    Examples
    --------
    >>> from transferable import TFDF
    >>> from transferable.datasets import make_shifted
    >>> from transferable.plots import DomainScatterDisplay
    >>> task = make_shifted()
    >>> model = TFDF().adapt(task.Xs, task.ys, task.Xt)
    >>> display = DomainScatterDisplay.from_estimator(model, task.Xs, task.ys, task.Xt)
    >>> [len(rows.get_offsets()) for rows in display.collections_]
    [200, 200, 200, 200]
    """

    collections_: list[PathCollection]

    def __init__(
        self,
        points: Mapping[str, ArrayLike],
        sample_domain: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        domain_names: tuple[str, str] = ("source", "target"),
    ) -> None:
        if not points:
            raise ValueError("There is no map to draw; give at least one.")
        self.points = {title: np.asarray(p, dtype=float) for title, p in points.items()}
        n = len(next(iter(self.points.values())))
        self.source = marked_ids(sample_domain, n) > 0
        self.labels = None if labels is None else np.asarray(labels)
        self.domain_names = domain_names

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, ArrayLike],
        sample_domain: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        method: Literal["pca", "tsne"] = "pca",
        max_rows: int = 2000,
        random_state: int = 0,
        by: Literal["class", "domain"] = "class",
        domain_names: tuple[str, str] = ("source", "target"),
        ax: Axes | Sequence[Axes] | None = None,
    ) -> DomainScatterDisplay:
        """Map the rows of one or several tables onto the plane and draw them.

        Parameters
        ----------
        tables : mapping of str to array-like of shape (n_samples, n_features)
            The rows, by the title of the panel.
        sample_domain : array-like of shape (n_samples,)
            Positive for source rows, negative for target rows.
        labels : array-like of shape (n_samples,), default=None
            Class of every row.
        method : {"pca", "tsne"}, default="pca"
            Principal components, which keep distances as well as a plane can, or t-SNE [1]_, which
            keeps neighbourhoods.
        max_rows : int, default=2000
            Most rows that are drawn, spread evenly over domains and classes.
        random_state : int, default=0
            Seed of the map.
        by : {"class", "domain"}, default="class"
            Meaning of the colours.
        domain_names : tuple of two str, default=("source", "target")
            Names for the legend.
        ax : matplotlib Axes or sequence of them, default=None
            Axes to draw into, one for each table; None makes a figure.

        References
        ----------
        .. [1] L. van der Maaten, G. Hinton (2008). Visualizing data using t-SNE. JMLR 9.
        """
        arrays = {title: np.asarray(dense(table)) for title, table in tables.items()}
        domain = np.asarray(sample_domain)
        named = None if labels is None else np.asarray(labels)
        rows = _spread_rows(domain > 0, named, max_rows)
        points = {
            title: _planar_map(arrays[title][rows], method, random_state)
            for title, _ in zip(arrays, rounds(len(arrays), "Mapping rows"), strict=True)
        }
        shown = None if named is None else named[rows]
        return cls(points, domain[rows], shown, domain_names=domain_names).plot(by=by, ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        Xs: Any,
        ys: ArrayLike,
        Xt: Any,
        yt: ArrayLike | None = None,
        **options: Any,
    ) -> DomainScatterDisplay:
        """Draw the rows as given, and in the space of a fitted estimator.

        Parameters
        ----------
        estimator, Xs, ys, Xt, yt
            As for :meth:`DomainGapDisplay.from_estimator`.
        **options
            Further arguments of :meth:`from_tables`.
        """
        X, domain, labels, after = _before_and_after(estimator, Xs, ys, Xt, yt)
        tables = {"before adaptation": X, f"after {type(estimator).__name__}": after}
        return cls.from_tables(tables, domain, labels, **options)

    def plot(
        self,
        *,
        by: Literal["class", "domain"] = "class",
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the panels into axes, one for each map, or into a new figure.

        Parameters
        ----------
        by, ax
            As for :meth:`from_tables`; without labels, colours are the domains.
        """
        if by not in ("class", "domain"):
            raise ValueError(f"by={by!r} is unknown; choose 'class' or 'domain'.")
        self._make_axes(ax, len(self.points), "maps", panel=(3.2, 3.3), extra=(0.0, 0.6))
        self.collections_ = []
        shown: list[Any] = []
        if by == "domain" or self.labels is None:
            colours = to_rgba_array(DOMAIN_COLOURS)[np.where(self.source, 0, 1)]
            marks = DOMAIN_COLOURS
        else:
            classes, codes = np.unique(self.labels, return_inverse=True)
            colours = to_rgba_array(CLASS_COLOURS)[codes % len(CLASS_COLOURS)]
            marks = (INK, INK)
            shown = classes.tolist() if len(classes) <= _MOST_CLASSES_IN_LEGEND else []
        for panel, (title, points) in zip(self.axes_, self.points.items(), strict=True):
            self._draw(panel, title, points, colours)
        key = [("s", colour, name) for colour, name in zip(2 * CLASS_COLOURS, shown, strict=False)]
        key += zip("o^", marks, self.domain_names, strict=True)
        self._add_legend([_mark(*entry) for entry in key], ours=ax is None)
        return self

    def _draw(
        self, ax: Axes, title: str, points: NDArray[np.float64], colours: NDArray[np.float64]
    ) -> None:
        for domain, marker in zip((self.source, ~self.source), "o^", strict=True):
            drawn = ax.scatter(
                points[domain, 0],
                points[domain, 1],
                s=11,
                marker=marker,
                facecolors=colours[domain] if marker == "o" else "none",
                edgecolors=[tuple(colour) for colour in colours[domain]],
                linewidths=0.6,
                rasterized=True,
            )
            self.collections_.append(drawn)
        ax.set_title(_plain(title), loc="left", color=INK, fontsize=11)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_color("#999999")


def _mark(marker: str, colour: str, name: Any) -> Line2D:
    style: dict[str, Any] = {"linestyle": "", "marker": marker, "color": colour}
    fill: Any = "none" if marker == "^" else "full"
    return Line2D([], [], label=_plain(name), fillstyle=fill, **style)


def _spread_rows(
    source: NDArray[np.bool_], labels: NDArray[Any] | None, most: int
) -> NDArray[np.intp]:
    """Return positions of at most `most` rows, keeping the shares of domains and classes."""
    n = len(source)
    if n <= most:
        return np.arange(n)
    codes = np.zeros(n, dtype=int) if labels is None else np.unique(labels, return_inverse=True)[1]
    order = np.lexsort((codes, source))
    return np.sort(order[np.linspace(0, n - 1, most).astype(np.intp)])


def _planar_map(table: NDArray[Any], method: str, seed: int) -> NDArray[np.float64]:
    """Map rows onto the plane.

    A table with a single column needs no map: it becomes the first axis, and rows are spread along
    the second at random so that they do not hide each other.
    """
    if table.shape[1] == 1:
        spread = np.random.default_rng(seed).uniform(-1, 1, size=len(table))
        return np.column_stack([table[:, 0], spread])
    if np.ptp(table, axis=0).max() == 0:
        return np.zeros((len(table), 2))
    if method == "pca":
        return np.asarray(PCA(2, random_state=seed).fit_transform(table), dtype=np.float64)
    perplexity = min(30.0, (len(table) - 1) / 3)
    map_ = TSNE(perplexity=perplexity, init="pca", random_state=seed)
    return np.asarray(map_.fit_transform(table), dtype=np.float64)
