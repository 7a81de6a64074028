"""One validated problem: labelled source rows, unlabelled target rows, in a canonical order.

Every method of the library receives its data as a :class:`Domains`. Rows are put into an order
that depends on their content alone, and hardly on its last digits, source rows first. No later
step, not even one that splits rows at random, can therefore depend on the order in which the user
stacked them, nor on the unit they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from transferable.groups import Groups
from transferable.limits import LIMITS
from transferable.linalg.moments import Moments
from transferable.linalg.reordered import Reordered
from transferable.linalg.row_order import content_order, digest, row_hash, row_place
from transferable.marks import (
    as_labels,
    class_codes,
    domain_ids,
    known_codes,
    known_labels,
    labelled_rows,
    marked_source,
    row_weights,
    source_mask,
)
from transferable.threads import taken_rows
from transferable.workspace import Workspace

__all__ = [
    "Domains",
    "Groups",
    "Reordered",
    "known_labels",
    "labelled_rows",
    "marked_source",
    "source_mask",
]

Value = TypeVar("Value")


@dataclass(frozen=True)
class Domains:
    """Rows of both domains, source first, with the source's labels as codes.

    Attributes
    ----------
    X : ndarray, CSR matrix or Reordered of shape (n, n_features)
        All rows in canonical order, the first ``n_source`` of them from the source.
    y : ndarray of shape (n_source,)
        Class codes ``0 .. n_classes - 1`` of the source rows.
    classes : ndarray of shape (n_classes,)
        The label that each code stands for.
    order : ndarray of shape (n,)
        ``order[i]`` is the position that row ``i`` had in the input.
    key : hashable
        The same for problems with the same rows in each domain, else another.
    workspace : Workspace
        What fits of these rows share.
    device : str or None
        The device of torch that the rows came from, None if they were an array of numpy.
    shares : ndarray of shape (n_classes,) or None
        What share of the target's rows each class is taken to have; None for that of the source.
    ids : ndarray of shape (n,) or None
        The id of each row's domain, positive for sources; None if there is one of each.
    weights : ndarray of shape (n,) or None
        Weights of the rows, all positive; None if all count alike.
    known : ndarray of shape (n_target,) or None
        Class codes of target rows whose label is known, -1 for the others; None if none is.
    source_weights : ndarray of shape (n_sources,) or None
        What each source counts, 1 on average over their rows; None if all count alike.
    n_source, n_target, n_classes : int
        Rows of the sources, rows of the target, classes of the sources.
    """

    X: Any
    y: NDArray[np.intp]
    classes: NDArray[Any]
    order: NDArray[np.intp]
    key: Hashable = field(default_factory=object)
    workspace: Workspace = field(default_factory=Workspace)
    device: str | None = None
    shares: NDArray[np.float64] | None = None
    ids: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    known: NDArray[np.intp] | None = None
    source_weights: NDArray[np.float64] | None = None
    n_source: int = field(init=False)
    n_target: int = field(init=False)
    n_classes: int = field(init=False)

    def __post_init__(self) -> None:
        sizes = len(self.y), len(self.order) - len(self.y), len(self.classes)
        for name, size in zip(("n_source", "n_target", "n_classes"), sizes, strict=True):
            object.__setattr__(self, name, size)

    @classmethod
    def from_stacked(
        cls,
        X: Any,
        y: ArrayLike | None,
        sample_domain: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        use_target_labels: bool = False,
        workspace: Workspace | None = None,
    ) -> Domains:
        """Read the domains off stacked rows; ``X`` must be a validated array already.

        Labels of target rows are looked at only if they are to be used. Without labels, for methods
        that look at none, all source rows are of one class. Weights must be positive.
        """
        unlabelled = y is None
        y = np.zeros(X.shape[0], dtype=np.intp) if y is None else y
        check_consistent_length(X, y)
        y = as_labels(y)
        ids = domain_ids(y, sample_domain, X.shape[0])
        source = ids > 0
        classes, codes = class_codes(y[source], fewest=1 if unlabelled else 2)
        all_codes = np.full(X.shape[0], -1, dtype=np.intp)
        all_codes[source] = codes
        if use_target_labels:
            all_codes[~source] = known_codes(y[~source], classes)
        weights = None if sample_weight is None else row_weights(sample_weight, X.shape[0])
        hashes = row_hash(X)
        ties = (ids,) if weights is None else (ids, weights)
        order = content_order(source, row_place(X), hashes, all_codes, *ties)
        n_source = len(codes)
        in_place = not sp.issparse(X) and X.nbytes > LIMITS.copied_bytes
        if in_place:
            rows: Any = Reordered(X, order)
        else:
            rows = X[order] if sp.issparse(X) else taken_rows(X, order)
        codes, ids, known = all_codes[order], ids[order], all_codes[order[n_source:]]
        further = {
            "ids": ids if len(np.unique(ids)) > 1 + (n_source < len(ids)) else None,
            "weights": None if weights is None else weights[order],
            "known": known if (known >= 0).any() else None,
        }
        told = tuple(digest(value) for value in further.values() if value is not None)
        key = (n_source, X.shape, str(X.dtype), digest(hashes[order]), *told)
        return cls(rows, codes[:n_source], classes, order, key, workspace or Workspace(), **further)

    @cached_property
    def labels_key(self) -> bytes:
        """The same for the same labels of the source."""
        return digest(self.y)

    @cached_property
    def source_shares(self) -> NDArray[np.float64]:
        """What share of the source's rows each class has."""
        if self.weights is None:
            return np.bincount(self.y, minlength=self.n_classes) / max(self.n_source, 1)
        weights = self.weights[self.source]
        return np.bincount(self.y, weights, self.n_classes) / weights.sum()

    @cached_property
    def source_ids(self) -> NDArray[Any]:
        """The ids of the sources, in order."""
        return np.array([1]) if self.ids is None else np.unique(self.ids[self.source])

    @property
    def n_sources(self) -> int:
        """How many sources there are."""
        return len(self.source_ids)

    @cached_property
    def sources(self) -> NDArray[np.intp] | None:
        """Which source each of their rows is of, None if there is one."""
        if self.n_sources == 1:
            return None
        return np.searchsorted(self.source_ids, self.marks[self.source])

    @property
    def source_groups(self) -> NDArray[np.intp]:
        """The group of each source row, by source and class."""
        return self.y if self.sources is None else self.y + self.n_classes * self.sources

    @property
    def marks(self) -> NDArray[Any]:
        """The id of each row's domain."""
        if self.ids is not None:
            return self.ids
        return np.repeat([1, -1], [self.n_source, self.n_target])

    @cached_property
    def labelled(self) -> slice | NDArray[np.intp]:
        """Where the rows are whose class is known: the sources', and such of the target."""
        if self.known is None:
            return self.source
        known = self.n_source + np.flatnonzero(self.known >= 0)
        return np.concatenate([np.arange(self.n_source), known])

    @cached_property
    def labels(self) -> NDArray[np.intp]:
        """Class codes of the labelled rows."""
        return self.y if self.known is None else self.with_target(self.known)[self.labelled]

    @cached_property
    def row_weights(self) -> NDArray[np.float64] | None:
        """What each row counts in a sum over rows, its source's weight included.

        None if all count alike.
        """
        if self.source_weights is None or self.sources is None:
            return self.weights
        weights = np.ones(len(self.order)) if self.weights is None else self.weights.copy()
        weights[self.source] *= self.source_weights[self.sources]
        return weights

    @property
    def ratios(self) -> NDArray[np.float64] | float:
        """How many times as frequent as in the source each class is taken to be in the target."""
        return 1.0 if self.shares is None else self.shares / self.source_shares

    @property
    def target_shares(self) -> NDArray[np.float64]:
        """What share of the target's rows each class is taken to have."""
        return self.source_shares if self.shares is None else self.shares

    @property
    def weights_of_sources(self) -> NDArray[np.float64]:
        """What each source counts, in the order of the ids."""
        return np.ones(self.n_sources) if self.source_weights is None else self.source_weights

    def with_source_weights(self, weights: NDArray[np.float64] | None) -> Domains:
        """The same rows, where sources count like this."""
        if weights is None or self.n_sources == 1:
            return self
        return replace(self, source_weights=weights, key=(self.key, weights.tobytes()))

    def with_shares(self, shares: NDArray[np.float64] | None) -> Domains:
        """The same rows, where the target's classes are taken to have these shares."""
        return replace(self, shares=shares)

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of source and target, of which those at hand may be the first only."""
        return self.n_source, self.n_target

    @property
    def moments(self) -> tuple[Moments, ...] | None:
        """Moments of source and target, where they are known or rows are read block by block."""
        if not isinstance(self.X, Reordered):
            return None
        width, weights = self.X.shape[1], self.row_weights
        source = target = Moments.none(width)
        for positions, rows in self.X.blocks(max(1, LIMITS.block_values // width)):
            inside = positions < self.n_source
            own = None if weights is None else weights[positions]
            source += _moments(rows, inside, own)
            target += _moments(rows, ~inside, own)
        return source, target

    @property
    def source(self) -> slice:
        """Where the source's entries are in whatever has one for each row."""
        return slice(0, self.n_source)

    @property
    def target(self) -> slice:
        """Where the target's are."""
        return slice(self.n_source, len(self.order))

    @property
    def Xs(self) -> Any:
        """The source rows."""
        return self.X[self.source]

    @property
    def Xt(self) -> Any:
        """The target rows."""
        return self.X[self.target]

    def blocks(self, n_rows: int) -> Iterator[tuple[slice | NDArray[np.intp], Any]]:
        """Positions in canonical order and the rows there, so many at a time, each row once."""
        if isinstance(self.X, Reordered):
            yield from self.X.blocks(n_rows)
            return
        for start in range(0, len(self.order), n_rows):
            rows = slice(start, start + n_rows)
            yield rows, self.X[rows]

    def share(self, slot: str, key: Hashable, make: Callable[..., Value], *arguments: Any) -> Value:
        """What fits of these rows have in common under a key, made now if none had it before."""
        return self.workspace.get(slot, (self.key, key), make, *arguments)

    @cached_property
    def loss_weights(self) -> NDArray[np.float64] | None:
        """What each row counts in the loss and in class confusion; None if all count alike.

        Source rows count by the ratio of their class's shares too.
        """
        if self.shares is None:
            return self.row_weights
        weights = np.ones(len(self.order)) if self.row_weights is None else self.row_weights.copy()
        weights[self.source] *= np.asarray(self.ratios)[self.y]
        return weights

    def groups(self, target: NDArray[np.intp] | None) -> Groups:
        """The rows by domain and class, for the given (pseudo-)labels of the target.

        None takes all target rows for one class, where whole domains are compared.
        """
        target = np.zeros(self.n_target, dtype=np.intp) if target is None else target
        return Groups(
            self.with_target(target),
            self.n_source,
            self.n_classes,
            self.ratios,
            sources=self.sources,
            source_weights=self.weights_of_sources,
            weights=self.weights,
        )

    def pairs(self) -> Iterator[Domains]:
        """Each source with the target."""
        if self.sources is None:
            yield self
            return
        for k, source in enumerate(self.source_ids.tolist()):
            own = np.flatnonzero(self.sources == k)
            rows = np.concatenate([own, np.arange(self.n_source, len(self.order))])
            yield self._of(rows, self.X[rows], self.y[own], (self.key, source))

    def _of(self, rows: NDArray[np.intp], X: Any, y: NDArray[np.intp], key: Hashable) -> Domains:
        """Some of the rows, in another order or not, as a problem with one source."""
        weights = None if self.weights is None else self.weights[rows]
        shared = self.workspace, self.device
        return Domains(X, y, self.classes, self.order[rows], key, *shared, weights=weights)

    def reversed(self, target: NDArray[np.intp]) -> Domains:
        """The same rows with the target, labelled as given, for the source, and the other way."""
        back = np.roll(np.arange(len(self.order)), -self.n_source)
        X = self.share("reversed rows", None, self.X.__getitem__, back)
        key = (self.key, "reversed")
        return self._of(back, X, target, key)

    def one_hot(self) -> NDArray[np.float64]:
        """Label matrix Y of the paper, transposed: n x C, zero on rows without a label."""
        Y = np.zeros((len(self.order), self.n_classes))
        rows = np.arange(len(self.order))[self.labelled]
        Y[rows, self.labels] = 1.0
        return Y

    def label_target(
        self, label: Callable[[slice | NDArray[np.intp]], NDArray[np.intp]]
    ) -> NDArray[np.intp]:
        """Class codes of target rows: known ones, and what a function of others' positions says."""
        if self.known is None:
            return label(slice(None))
        codes, unknown = self.known.copy(), np.flatnonzero(self.known < 0)
        if len(unknown):
            codes[unknown] = label(unknown)
        return codes

    def first_labelled(
        self, most: int
    ) -> tuple[slice | NDArray[np.intp], NDArray[np.intp], NDArray[np.float64] | None]:
        """Where the first labelled rows are and all known ones of the target, codes, weights."""
        count, weights = min(self.n_source, most), self.row_weights
        rows: Any = slice(0, count)
        if not isinstance(self.labelled, slice):
            rows = np.delete(self.labelled, np.arange(count, self.n_source))
        codes = self.y[:count] if self.known is None else self.with_target(self.known)[rows]
        return rows, codes, None if weights is None else weights[rows]

    def fixed(self, target: NDArray[np.intp]) -> NDArray[np.intp]:
        """Class codes of the target rows, with those that are known in place of the given."""
        return target if self.known is None else np.where(self.known >= 0, self.known, target)

    def with_target(self, target: NDArray[np.intp]) -> NDArray[np.intp]:
        """Class codes of all rows: the source's own, then the given (pseudo-)labels."""
        return np.concatenate([self.y, target])

    def restore(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Bring values, one for each row, back into the order of the input."""
        out = np.empty_like(rows)
        out[self.order] = rows
        return out


def _moments(rows: Any, some: NDArray[np.bool_], weights: NDArray[np.float64] | None) -> Moments:
    own = None if weights is None else weights[some]
    return Moments.of(rows[some].astype(np.float64), own)
