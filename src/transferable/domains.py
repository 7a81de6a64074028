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
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from transferable.limits import LIMITS
from transferable.linalg.moments import Moments
from transferable.linalg.row_order import content_order, digest, row_hash, row_place
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
    n_source, n_target, n_classes : int
        Rows of the source, rows of the target, classes of the source.
    """

    X: Any
    y: NDArray[np.intp]
    classes: NDArray[Any]
    order: NDArray[np.intp]
    key: Hashable = field(default_factory=object)
    workspace: Workspace = field(default_factory=Workspace)
    device: str | None = None
    shares: NDArray[np.float64] | None = None
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
        workspace: Workspace | None = None,
    ) -> Domains:
        """Read the domains off stacked rows; ``X`` must be a validated array already.

        Without labels, for methods that look at none, all source rows are of one class.
        """
        unlabelled = y is None
        y = np.zeros(X.shape[0], dtype=np.intp) if y is None else y
        check_consistent_length(X, y)
        y = _as_labels(y)
        source = source_mask(y, sample_domain, X.shape[0])
        labels = _as_numbers(y[source])
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        _refuse_missing(labels)
        _refuse_mixed(labels)
        _refuse_fractions(labels)
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2 and not unlabelled:
            raise ValueError(
                f"All {len(labels)} source rows are of one class, {classes.tolist()[0]!r}; a "
                "classifier needs at least 2 classes."
            )
        all_codes = np.full(X.shape[0], -1, dtype=np.intp)
        all_codes[source] = codes
        hashes = row_hash(X)
        order = content_order(source, row_place(X), hashes, all_codes)
        codes = all_codes[order[: len(labels)]]
        in_place = not sp.issparse(X) and X.nbytes > LIMITS.copied_bytes
        if in_place:
            rows: Any = Reordered(X, order)
        else:
            rows = X[order] if sp.issparse(X) else taken_rows(X, order)
        key = (len(codes), X.shape, str(X.dtype), digest(hashes[order]))
        return cls(rows, codes, classes, order, key, workspace or Workspace())

    @cached_property
    def labels_key(self) -> bytes:
        """The same for the same labels of the source."""
        return digest(self.y)

    @cached_property
    def source_shares(self) -> NDArray[np.float64]:
        """What share of the source's rows each class has."""
        return np.bincount(self.y, minlength=self.n_classes) / max(self.n_source, 1)

    @property
    def ratios(self) -> NDArray[np.float64] | float:
        """How many times as frequent as in the source each class is taken to be in the target."""
        return 1.0 if self.shares is None else self.shares / self.source_shares

    @property
    def target_shares(self) -> NDArray[np.float64]:
        """What share of the target's rows each class is taken to have."""
        return self.source_shares if self.shares is None else self.shares

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
        width = self.X.shape[1]
        source = target = Moments.none(width)
        for positions, rows in self.X.blocks(max(1, LIMITS.block_values // width)):
            inside = positions < self.n_source
            source += Moments.of(rows[inside].astype(np.float64))
            target += Moments.of(rows[~inside].astype(np.float64))
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

    def groups(self, target: NDArray[np.intp] | None) -> Groups:
        """The rows by domain and class, for the given (pseudo-)labels of the target.

        None takes all target rows for one class, where whole domains are compared.
        """
        target = np.zeros(self.n_target, dtype=np.intp) if target is None else target
        codes = self.with_target(target)
        return Groups(codes, self.n_source, self.n_classes, self.ratios)

    def reversed(self, target: NDArray[np.intp]) -> Domains:
        """The same rows with the target, labelled as given, for the source, and the other way."""
        back = np.roll(np.arange(len(self.order)), -self.n_source)
        X = self.share("reversed rows", None, self.X.__getitem__, back)
        key = (self.key, "reversed")
        return replace(self, X=X, y=target, order=self.order[back], key=key, shares=None)

    def one_hot(self) -> NDArray[np.float64]:
        """Label matrix Y of the paper, transposed: n x C, zero on target rows."""
        Y = np.zeros((len(self.order), self.n_classes))
        Y[np.arange(self.n_source), self.y] = 1.0
        return Y

    def with_target(self, target: NDArray[np.intp]) -> NDArray[np.intp]:
        """Class codes of all rows: the source's own, then the given (pseudo-)labels."""
        return np.concatenate([self.y, target])

    def restore(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Bring values, one for each row, back into the order of the input."""
        out = np.empty_like(rows)
        out[self.order] = rows
        return out


@dataclass(frozen=True)
class Groups:
    """Every row by its domain and class, for one labelling of the target.

    Terms speak of groups, not of rows: group ``c`` holds the source rows of class ``c``, group
    ``n_classes + c`` the target rows of that class.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Class codes of all rows, source rows first.
    n_source, n_classes : int
        How many rows are the source's, how many classes there are.
    ratios : ndarray of shape (n_classes,) or float
        How many times as frequent as in the source each class is taken to be in the target.
    """

    codes: NDArray[np.intp]
    n_source: int
    n_classes: int
    ratios: NDArray[np.float64] | float = 1.0

    @cached_property
    def index(self) -> NDArray[np.intp]:
        """The group of each row."""
        index = self.codes.copy()
        index[self.n_source :] += self.n_classes
        return index

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Rows of each class, in the source and in the target: an array of shape (2, n_classes)."""
        counts = np.bincount(self.index, minlength=2 * self.n_classes)
        return counts.reshape(2, self.n_classes).astype(np.float64)

    @cached_property
    def key(self) -> bytes:
        """The same for the same labelling and the same ratios of shares."""
        return digest(self.codes, np.asarray(self.ratios))

    @property
    def class_trust(self) -> NDArray[np.float64]:
        """What each class counts where domains are compared class by class, at most 1.

        The rows that are taken for a class of which the target has less than the source are wrong
        more often.
        """
        return np.minimum(1.0, self.ratios * np.ones(self.n_classes))

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values, one for each group, as one for each row."""
        return values[self.index]

    def members(
        self, code: int, most: int | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the rows of a class, or of the first of them, in source and target."""
        source, target = self.codes[: self.n_source], self.codes[self.n_source :]
        return _first(source, code, most), self.n_source + _first(target, code, most)


class Reordered:
    """A table too large to be copied, such as a memory map, that is read in another order.

    Parameters
    ----------
    table : ndarray of shape (n, d)
        The rows as they lie.
    order : ndarray of shape (n,)
        ``order[i]`` is the position in the table of row ``i``.
    """

    def __init__(self, table: NDArray[Any], order: NDArray[np.intp]) -> None:
        self.table, self.order = table, order
        self.shape, self.dtype = table.shape, table.dtype

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(self.table[self.order[rows]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("The rows of a reordered table are copied when they are read.")
        return np.asarray(self[:], dtype=dtype)

    def blocks(self, n_rows: int) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
        """Blocks in the order in which they lie, with the positions of their rows in ours."""
        positions = np.empty_like(self.order)
        positions[self.order] = np.arange(len(self.order))
        for start in range(0, len(self), n_rows):
            yield positions[start : start + n_rows], self.table[start : start + n_rows]


def _first(codes: NDArray[np.intp], code: int, most: int | None) -> NDArray[np.intp]:
    """Positions of the first so many of a code, None for all, from no more rows than it takes."""
    size = len(codes) if most is None else 16 * most
    while True:
        found = np.flatnonzero(codes[:size] == code)[:most]
        if len(found) == most or size >= len(codes):
            return found
        size *= 4


def _as_labels(y: ArrayLike) -> NDArray[Any]:
    """Labels as a one-dimensional array; missing values of any library become None or NaN."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "OfiubUS":
        raise ValueError(f"Unknown label type: labels of dtype {labels.dtype} cannot name classes.")
    return labels


def _as_numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """Numbers that are objects only because unlabelled rows stood among them, as numbers."""
    if labels.dtype.kind == "O" and all(isinstance(label, Real) for label in labels):
        return np.array(labels.tolist())
    return labels


def _missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows without a label: NaN in float labels, None, NaN or NA in object labels."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind == "O":
        return np.fromiter((_is_missing(v) for v in y), dtype=bool, count=len(y))
    return np.zeros(len(y), dtype=bool)


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, float) and value != value


def labelled_rows(y: ArrayLike) -> NDArray[np.bool_]:
    """True on rows with a label, which is neither NaN nor None nor NA."""
    return ~_missing(_as_labels(y))


def _refuse_missing(labels: NDArray[Any]) -> None:
    missing = int(_missing(labels).sum())
    if missing:
        raise ValueError(
            f"{missing} of the {len(labels)} source rows have no label; label them, drop them, or "
            "mark them as target rows with a negative sample_domain."
        )


def _refuse_mixed(labels: NDArray[Any]) -> None:
    """Refuse labels that cannot be put in order, such as numbers among text."""
    kinds = sorted({type(label).__name__ for label in labels}) if labels.dtype.kind == "O" else []
    if len(kinds) > 1 and not all(isinstance(label, Real) for label in labels):
        raise ValueError(f"Labels are of several types, {', '.join(kinds)}; give all of them one.")


def _refuse_fractions(labels: NDArray[Any]) -> None:
    fractions = labels[labels != np.floor(labels)] if labels.dtype.kind == "f" else []
    if len(fractions):
        raise ValueError(
            f"Unknown label type: continuous. y holds fractions such as {fractions[0]}, as targets "
            "of regression do, and these methods predict classes only; cut y into classes, or turn "
            "it into text if its values are names."
        )


def known_labels(y: ArrayLike, classes: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Where rows have a label to be compared with, and these labels; an error if none has.

    Rows without one are marked as in ``fit``, among integers by a -1 that is no class.
    """
    y = _as_labels(y)
    unlabelled = _missing(y)
    if y.dtype.kind in "iu" and -1 not in classes:
        unlabelled = y == -1
    if unlabelled.all():
        raise ValueError(
            f"None of the {len(y)} rows has a label to compare with; score rows that have one, or "
            "take a scorer of transferable.model_selection, which needs none."
        )
    rows = np.flatnonzero(~unlabelled)
    return rows, _as_numbers(y[rows])


def source_mask(
    y: ArrayLike | None, sample_domain: ArrayLike | None, n_rows: int
) -> NDArray[np.bool_]:
    """True on source rows, by the marks if there are any, else by the labels."""
    if sample_domain is not None:
        return _refuse_empty(marked_source(sample_domain, n_rows))
    if y is None:
        raise ValueError("Neither labels nor sample_domain tell which rows are the target.")
    y = _as_labels(y)
    unlabelled = _missing(y)
    if y.dtype.kind in "iu" and len(np.unique(y[y != -1])) >= 2:
        unlabelled = y == -1
    if unlabelled.all():
        raise ValueError(f"None of the {n_rows} rows has a label; the source domain is empty.")
    return ~unlabelled


def marked_source(sample_domain: ArrayLike, n_rows: int) -> NDArray[np.bool_]:
    """True on rows whose mark is positive."""
    marks = column_or_1d(sample_domain)
    if len(marks) != n_rows:
        raise ValueError(f"sample_domain marks {len(marks)} rows, but X has {n_rows}.")
    if marks.dtype.kind not in "iuf":
        raise TypeError(
            "sample_domain must hold numbers, positive for source rows and negative for target "
            f"rows; got dtype {marks.dtype}."
        )
    unknown = np.unique(marks[~((marks > 0) | (marks < 0))])
    if len(unknown):
        raise ValueError(
            f"sample_domain holds {unknown.tolist()}, which mark no domain; use a positive number "
            "for source rows and a negative one for target rows."
        )
    return marks > 0


def _refuse_empty(source: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if source.all() or not source.any():
        empty = "target" if source.all() else "source"
        raise ValueError(
            f"sample_domain leaves the {empty} domain empty: {int(source.sum())} source and "
            f"{int((~source).sum())} target rows. To fit the source alone, leave sample_domain out."
        )
    return source
