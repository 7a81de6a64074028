"""What marks, labels and weights say of stacked rows: whose they are, of which class, how heavy."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

__all__ = [
    "as_labels",
    "class_codes",
    "domain_ids",
    "known_codes",
    "known_labels",
    "labelled_rows",
    "marked_ids",
    "marked_source",
    "positions_of",
    "row_weights",
    "some_rows",
    "source_mask",
    "weighty_rows",
]


def as_labels(y: ArrayLike) -> NDArray[Any]:
    """Labels as a one-dimensional array; missing values of any library become None or NaN."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "OfiubUS":
        raise ValueError(f"Unknown label type: labels of dtype {labels.dtype} cannot name classes.")
    return labels


def class_codes(labels: NDArray[Any], fewest: int = 2) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes of the source's labels, at least so many, and the code of each row."""
    labels = _as_numbers(labels)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    _refuse_missing(labels)
    _refuse_mixed(labels)
    _refuse_fractions(labels)
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < fewest:
        raise ValueError(
            f"All {len(labels)} source rows are of one class, {classes.tolist()[0]!r}; a "
            "classifier needs at least 2 classes."
        )
    return classes, codes


def known_codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Class codes of target rows whose labels are known, -1 for the others.

    Unknown are -1 in integer labels that the source has not, NaN and None.
    """
    known = ~_missing(labels)
    if -1 not in classes.tolist():
        known &= np.array([isinstance(v, str) or v != -1 for v in labels.tolist()], dtype=bool)
    code = {label: position for position, label in enumerate(classes.tolist())}
    given = labels[known].tolist()
    strange = sorted({repr(label) for label in given if label not in code})
    if strange:
        raise ValueError(
            f"Target rows are labelled {', '.join(strange[:5])}, of which the source has no row; "
            f'its classes are {classes.tolist()!r}. Use -1, NaN or None for "unknown", or '
            'target_labels="ignore".'
        )
    codes = np.full(len(labels), -1, dtype=np.intp)
    codes[known] = [code[label] for label in given]
    return codes


def domain_ids(y: ArrayLike | None, sample_domain: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """The id of each row's domain: as marked, else 1 for the source and -1 for the target."""
    if sample_domain is None:
        return np.where(source_mask(y, None, n_rows), 1, -1)
    ids = marked_ids(sample_domain, n_rows)
    _refuse_empty(ids > 0)
    return ids


def source_mask(
    y: ArrayLike | None, sample_domain: ArrayLike | None, n_rows: int
) -> NDArray[np.bool_]:
    """True on source rows, by the marks if there are any, else by the labels."""
    if sample_domain is not None:
        return _refuse_empty(marked_source(sample_domain, n_rows))
    if y is None:
        raise ValueError("Neither labels nor sample_domain tell which rows are the target.")
    y = as_labels(y)
    unlabelled = _missing(y)
    if y.dtype.kind in "iu" and len(np.unique(y[y != -1])) >= 2:
        unlabelled = y == -1
    if unlabelled.all():
        raise ValueError(f"None of the {n_rows} rows has a label; the source domain is empty.")
    return ~unlabelled


def marked_source(sample_domain: ArrayLike, n_rows: int) -> NDArray[np.bool_]:
    """True on rows whose mark is positive."""
    return marked_ids(sample_domain, n_rows) > 0


def marked_ids(sample_domain: ArrayLike, n_rows: int) -> NDArray[Any]:
    """The marks themselves, checked: positive for rows of a source, negative for a target's."""
    marks: NDArray[Any] = column_or_1d(sample_domain)
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
    return marks


def positions_of(
    ids: NDArray[Any], known: NDArray[Any], asked: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Where the ids of the rows that are asked for are among those that were fitted."""
    if len(known) == 1:
        return np.zeros(len(ids), dtype=np.intp)
    strange = np.setdiff1d(ids[asked], known)
    if len(strange):
        raise ValueError(
            f"sample_domain marks rows of {strange.tolist()}, but the fitted domains are "
            f"{known.tolist()}."
        )
    return np.minimum(np.searchsorted(known, ids), len(known) - 1)


def row_weights(sample_weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Weights of rows, checked: a number of at least 0 for each, not all of them 0."""
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers ({error}).") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: one weight for each "
            "row."
        )
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight holds NaN or infinity; give every row a number.")
    if (weights < 0).any():
        raise ValueError(
            f"Negative values in data passed to `sample_weight`, the least is {weights.min():.4g}; "
            "use 0 to leave a row out."
        )
    if not weights.any():
        raise ValueError("All sample_weight are zero: no row is left to fit.")
    return weights


def weighty_rows(
    sample_weight: ArrayLike | None, n_rows: int
) -> tuple[NDArray[np.intp] | None, NDArray[np.float64] | None]:
    """Rows that weigh something, None if all do, and their weights, None if all weigh the same."""
    if sample_weight is None:
        return None, None
    weights = row_weights(sample_weight, n_rows)
    kept = np.flatnonzero(weights)
    weights = weights[kept]
    return None if len(kept) == n_rows else kept, None if (weights == 1.0).all() else weights


def some_rows(
    rows: NDArray[np.intp], X: Any, y: ArrayLike | None, sample_domain: ArrayLike | None
) -> tuple[Any, NDArray[Any] | None, NDArray[Any] | None]:
    """Some of the rows, their labels and marks."""
    marks = None if sample_domain is None else marked_ids(sample_domain, X.shape[0])[rows]
    return X[rows], None if y is None else as_labels(y)[rows], marks


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
    y = as_labels(y)
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


def labelled_rows(y: ArrayLike) -> NDArray[np.bool_]:
    """True on rows with a label, which is neither NaN nor None nor NA."""
    return ~_missing(as_labels(y))


def _refuse_empty(source: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if source.all() or not source.any():
        empty = "target" if source.all() else "source"
        raise ValueError(
            f"sample_domain leaves the {empty} domain empty: {int(source.sum())} source and "
            f"{int((~source).sum())} target rows. To fit the source alone, leave sample_domain out."
        )
    return source
