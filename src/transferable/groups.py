"""Rows by domain and class: all that terms ask of them besides their scores or features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.linalg.row_order import digest

__all__ = ["Groups"]


@dataclass(frozen=True)
class Groups:
    """Every row by its domain and class, for one labelling of the target.

    Terms speak of groups, not of rows: group ``k * n_classes + c`` holds the rows of source ``k``
    and class ``c``, and the last ``n_classes`` groups hold the target rows by class. A row of
    weight w counts as w rows.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Class codes of all rows, source rows first.
    n_source, n_classes : int
        How many rows are the sources', how many classes there are.
    ratios : ndarray of shape (n_classes,) or float
        How many times as frequent as in the source each class is taken to be in the target.
    sources : ndarray of shape (n_source,) or None
        Which source each of their rows is of, None if there is one.
    source_weights : ndarray of shape (n_sources,)
        What each source counts where it is compared with the target.
    weights : ndarray of shape (n,) or None
        Weights of the rows, None if all count alike.
    """

    codes: NDArray[np.intp]
    n_source: int
    n_classes: int
    ratios: NDArray[np.float64] | float = 1.0
    sources: NDArray[np.intp] | None = None
    source_weights: NDArray[np.float64] | tuple[float, ...] = (1.0,)
    weights: NDArray[np.float64] | None = None

    @property
    def n_sources(self) -> int:
        """How many sources there are."""
        return len(self.source_weights)

    @cached_property
    def index(self) -> NDArray[np.intp]:
        """The group of each row."""
        index = self.codes.copy()
        if self.sources is not None:
            index[: self.n_source] += self.n_classes * self.sources
        index[self.n_source :] += self.n_classes * self.n_sources
        return index

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Rows by class of each source, then of the target: of shape (n_sources + 1, n_classes)."""
        shape = self.n_sources + 1, self.n_classes
        if self.sources is None and self.weights is None:  # the index of many rows takes time
            sides = self.codes[: self.n_source], self.codes[self.n_source :]
            return np.array(
                [np.bincount(codes, minlength=self.n_classes) for codes in sides], np.float64
            )
        counts = np.bincount(self.index, self.weights, minlength=shape[0] * shape[1])
        return counts.reshape(shape).astype(np.float64)

    @cached_property
    def key(self) -> bytes:
        """The same for the same labelling, ratios of shares and weights of sources."""
        ratios = np.asarray(self.ratios)
        return digest(self.codes, ratios, *([np.asarray(self.source_weights)] * self._several))

    @property
    def _several(self) -> bool:
        return self.n_sources > 1

    @property
    def class_trust(self) -> NDArray[np.float64]:
        """What each class counts where domains are compared class by class, at most 1.

        The rows that are taken for a class of which the target has less than the source are wrong
        more often.
        """
        return np.minimum(1.0, self.ratios * np.ones(self.n_classes))

    def ratios_in(self, source: int) -> NDArray[np.float64] | float:
        """How the rows of a source count by class, so that it has the shares of the target."""
        if not self._several or isinstance(self.ratios, float):
            return self.ratios
        pooled, own = self.counts[:-1].sum(axis=0), self.counts[source]
        wanted = np.where(own > 0, self.ratios * pooled, 0.0)
        wanted *= own.sum() / max(wanted.sum(), 1e-300)
        return np.divide(wanted, own, out=np.zeros_like(own), where=own > 0)

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values, one for each group, as one for each row."""
        return values[self.index]

    def members(
        self, code: int, most: int | None = None, source: int | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of a class's rows, or of the first, in one source or all, and in the target."""
        codes, target = self.codes[: self.n_source], self.codes[self.n_source :]
        if source is not None and self.sources is not None:
            codes = np.where(self.sources == source, codes, -1)
        return _first(codes, code, most), self.n_source + _first(target, code, most)

    def whole(self, source: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of all rows of a source and of the target."""
        first = np.arange(self.n_source)
        if self.sources is not None:
            first = np.flatnonzero(self.sources == source)
        return first, np.arange(self.n_source, len(self.codes))


def _first(codes: NDArray[np.intp], code: int, most: int | None) -> NDArray[np.intp]:
    """Positions of the first so many of a code, None for all, from no more rows than it takes."""
    size = len(codes) if most is None else 16 * most
    while True:
        found = np.flatnonzero(codes[:size] == code)[:most]
        if len(found) == most or size >= len(codes):
            return found
        size *= 4
