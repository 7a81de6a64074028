"""Rows of both domains in the plane, as Fig. 4 of the TFDF paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from transferable.diagnostics import shared_space
from transferable.domains import marked_source
from transferable.events import rounds
from transferable.linalg.rows import dense
from transferable.plots._maps import MapMethod, planar_map, spread_rows
from transferable.plots._style import (
    CLASS_COLOURS,
    DOMAIN_COLOURS,
    INK,
    add_legend,
    new_axes,
    plain,
)

__all__ = ["DomainScatterDisplay"]

_MARKERS = "o^"
_MOST_CLASSES_IN_LEGEND = 20


class DomainScatterDisplay:
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
    >>> import numpy as np
    >>> from transferable.plots import DomainScatterDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> domain = np.repeat([1, -1], 30)
    >>> display = DomainScatterDisplay.from_tables({"as given": X}, domain, np.arange(60) % 3)
    >>> [len(rows.get_offsets()) for rows in display.collections_]
    [30, 30]
    """

    axes_: NDArray[np.object_]
    figure_: Figure
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
        self.source = marked_source(sample_domain, n)
        self.labels = None if labels is None else np.asarray(labels)
        self.domain_names = domain_names

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, ArrayLike],
        sample_domain: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        method: MapMethod = "pca",
        max_rows: int = 2000,
        random_state: int = 0,
        by: Literal["class", "domain"] = "class",
        domain_names: tuple[str, str] = ("source", "target"),
        ax: Axes | Sequence[Axes] | None = None,
    ) -> DomainScatterDisplay:
        """Map the same rows, described by one or several tables, onto the plane and draw them.

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
            Of more rows, so many are drawn, spread evenly over domains and classes.
        random_state : int, default=0
            Seed of the map.
        by : {"class", "domain"}, default="class"
            What colours stand for.
        domain_names : tuple of two str, default=("source", "target")
            Names for the legend.
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each table; None makes a figure.

        Returns
        -------
        display : DomainScatterDisplay
            The drawn display.

        References
        ----------
        .. [1] L. van der Maaten, G. Hinton (2008). Visualizing data using t-SNE. JMLR 9.
        """
        arrays = {title: np.asarray(dense(table)) for title, table in tables.items()}
        domain = np.asarray(sample_domain)
        named = None if labels is None else np.asarray(labels)
        rows = spread_rows(domain > 0, named, max_rows)
        points = {
            title: planar_map(arrays[title][rows], method, random_state)
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
        """Draw the rows as given, and as a fitted estimator sees them.

        Parameters
        ----------
        estimator : estimator
            Fitted to these rows.
        Xs, ys, Xt : array-like
            Source rows, their labels, and target rows.
        yt : array-like of shape (n_target,), default=None
            Labels of the target rows; None takes those that the estimator predicts.
        **options
            Further arguments of :meth:`from_tables`.

        Returns
        -------
        display : DomainScatterDisplay
            The drawn display.
        """
        X = np.concatenate([dense(Xs), dense(Xt)])
        domain = np.repeat([1, -1], [np.shape(Xs)[0], np.shape(Xt)[0]])
        labels = np.concatenate([ys, estimator.predict(Xt) if yt is None else yt])
        after = f"after {type(estimator).__name__}"
        tables = {"before adaptation": X, after: shared_space(estimator, X, domain)}
        return cls.from_tables(tables, domain, labels, **options)

    def plot(
        self,
        *,
        by: Literal["class", "domain"] = "class",
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the panels.

        Parameters
        ----------
        by : {"class", "domain"}, default="class"
            What colours stand for; without labels, the domain.
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each map; None makes a figure, with the panels in a row.

        Returns
        -------
        display : DomainScatterDisplay
            The display itself.
        """
        if by not in ("class", "domain"):
            raise ValueError(f"by={by!r} is unknown; choose 'class' or 'domain'.")
        self.axes_ = new_axes(ax, len(self.points), "maps", panel=(3.2, 3.3), extra=(0.0, 0.6))
        self.figure_ = self.axes_[0].figure
        classes, codes = self._coded(by)
        colours = self._colours(codes)
        self.collections_ = []
        for panel, (title, points) in zip(self.axes_, self.points.items(), strict=True):
            self._draw(panel, title, points, colours)
        add_legend(self.axes_, self._legend(classes), ours=ax is None)
        return self

    def _coded(self, by: str) -> tuple[NDArray[Any] | None, NDArray[np.intp] | None]:
        if by == "domain" or self.labels is None:
            return None, None
        classes, codes = np.unique(self.labels, return_inverse=True)
        return classes, codes

    def _colours(self, codes: NDArray[np.intp] | None) -> NDArray[np.float64]:
        if codes is None:
            return to_rgba_array(DOMAIN_COLOURS)[np.where(self.source, 0, 1)]
        return to_rgba_array(CLASS_COLOURS)[codes % len(CLASS_COLOURS)]

    def _draw(
        self, ax: Axes, title: str, points: NDArray[np.float64], colours: NDArray[np.float64]
    ) -> None:
        for domain, marker in zip((self.source, ~self.source), _MARKERS, strict=True):
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
        ax.set_title(plain(title), loc="left", color=INK, fontsize=11)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_color("#999999")

    def _legend(self, classes: NDArray[Any] | None) -> list[Line2D]:
        named = [] if classes is None else classes.tolist()
        if len(named) > _MOST_CLASSES_IN_LEGEND:
            named = []
        swatches = [
            _mark("s", colour, "full", name)
            for colour, name in zip(2 * CLASS_COLOURS, named, strict=False)
        ]
        first, second = DOMAIN_COLOURS if classes is None else (INK, INK)
        source, target = self.domain_names
        return [*swatches, _mark("o", first, "full", source), _mark("^", second, "none", target)]


def _mark(marker: str, colour: str, fill: Literal["full", "none"], name: Any) -> Line2D:
    return Line2D(
        [], [], linestyle="", marker=marker, color=colour, fillstyle=fill, label=plain(name)
    )
