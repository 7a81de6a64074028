"""Rows of both domains in the plane, as Fig. 4 of the TFDF paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from transferable._linalg.arrays import dense
from transferable.diagnostics import shared_space
from transferable.domains import marked_ids
from transferable.events import rounds
from transferable.plots._style import CLASS_COLOURS, DOMAIN_COLOURS, INK, Display, plain

_MOST_CLASSES_IN_LEGEND = 20


class DomainScatterDisplay(Display):
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
            Of more rows, so many are drawn, spread evenly over domains and classes.
        random_state : int, default=0
            Seed of the map.
        by : {"class", "domain"}, default="class"
            Meaning of the colours.
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
            Meaning of the colours; without labels, the domain.
        ax : matplotlib Axes or sequence of them, default=None
            Where to draw, one for each map; None makes a figure, with the panels in a row.

        Returns
        -------
        display : DomainScatterDisplay
            The display itself.
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
        ax.set_title(plain(title), loc="left", color=INK, fontsize=11)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_color("#999999")


def _mark(marker: str, colour: str, name: Any) -> Line2D:
    style: dict[str, Any] = {
        "linestyle": "",
        "marker": marker,
        "color": colour,
        "fillstyle": "none" if marker == "^" else "full",
    }
    return Line2D([], [], label=plain(name), **style)


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
