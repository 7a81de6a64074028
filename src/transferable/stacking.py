"""Domains that were given apart, stacked as ``fit`` takes them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from transferable.frames import as_pandas, is_frame, stacked
from transferable.linalg.arrays import is_torch_array, namespace, on_host
from transferable.threads import stacked_rows

__all__ = ["are_several", "stack_domains", "stack_weights", "without_target_labels"]


def are_several(Xs: Any) -> bool:
    """Whether these are tables of several sources, not rows of one."""
    return isinstance(Xs, list | tuple) and len(Xs) > 0 and len(_shape(Xs[0])) == 2


def stack_domains(Xs: Any, ys: Any, Xt: Any) -> tuple[Any, Any, NDArray[np.int8]]:
    """All domains as one table, with marks; target labels are placeholders nobody reads.

    Sources that come as a list are marked 1, 2, ... in its order, the target -1.
    """
    tables = [*Xs] if are_several(Xs) else [Xs]
    several = are_several(Xs)
    names = [f"Xs[{k}]" for k in range(len(tables))] if several else ["Xs"]
    tables, Xt = [as_pandas(table) for table in tables], as_pandas(Xt)
    sizes = [_n_rows(table, name) for table, name in zip(tables, names, strict=True)]
    n_target = _n_rows(Xt, "Xt")
    y = None if ys is None else _labels(ys, names, sizes, n_target)
    X = tables[0]
    for table, name in zip([*tables[1:], Xt], [*names[1:], "Xt"], strict=True):
        X = _below(X, table, name)
    ids = np.array([*range(1, len(tables) + 1), -1], dtype=np.int8 if len(tables) < 127 else int)
    return X, y, np.repeat(ids, [*sizes, n_target])


def without_target_labels(y: NDArray[Any], sample_domain: NDArray[Any]) -> NDArray[Any]:
    """Labels with None in place of those of target rows, which nobody can take for known."""
    labels = y.astype(object)
    labels[sample_domain < 0] = None
    return labels


def stack_weights(sample_weight: Any, Xs: Any, Xt: Any) -> ArrayLike | None:
    """Weights of all stacked rows, of those of the source rows or of all; target rows weigh 1."""
    if sample_weight is None:
        return None
    several = are_several(Xs)
    if several and isinstance(sample_weight, list | tuple) and len(sample_weight) == len(Xs):
        parts = zip(sample_weight, Xs, strict=True)
        sample_weight = np.concatenate(
            [np.ones(_shape(X)[0]) if w is None else np.asarray(on_host(w)) for w, X in parts]
        )
    weights = np.asarray(on_host(sample_weight))
    n_source = sum(_shape(X)[0] for X in (Xs if several else [Xs]))
    n_target = _shape(Xt)[0]
    if weights.shape == (n_source,):
        return np.concatenate([weights, np.ones(n_target)])
    if weights.shape != (n_source + n_target,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; give one weight for each of the {n_source} "
            f"source rows, or for these and the {n_target} target rows."
        )
    return weights


def _labels(ys: Any, names: list[str], sizes: list[int], n_target: int) -> NDArray[Any]:
    """Labels of all sources, then one of them for each target row."""
    parts = [ys]
    if names != ["Xs"]:
        listed = isinstance(ys, list | tuple) and len(ys) == len(names)
        if not listed:
            given = f"{len(ys)} entries" if hasattr(ys, "__len__") else type(ys).__name__
            raise ValueError(
                f"Xs is a list of {len(names)} sources, so ys must be a list of as many arrays of "
                f"labels; got {given}."
            )
        parts = list(ys)
    found = []
    for part, name, size in zip(parts, names, sizes, strict=True):
        labels = np.asarray(on_host(part))
        if labels.shape[:1] != (size,):
            raise ValueError(
                f"{name.replace('X', 'y')} has shape {labels.shape}, but {name} has {size} rows; "
                "give one label each."
            )
        found.append(column_or_1d(labels, dtype=labels.dtype, warn=True))
    return np.concatenate([*found, np.repeat(found[0][:1], n_target)])


def _below(X: Any, table: Any, name: str) -> Any:
    """The rows of one table and, below, of another of this name."""
    above = "Xs" if name == "Xt" else "Xs[0]"
    if _shape(X)[1] != _shape(table)[1]:
        raise ValueError(
            f"{name} has {_shape(table)[1]} features, but {above} has {_shape(X)[1]}; both domains "
            "must be described by the same features."
        )
    named = [is_frame(part) for part in (X, table)]
    if all(named):
        return stacked(X, table)
    if sp.issparse(X) or sp.issparse(table):
        return sp.vstack([sp.csr_array(X), sp.csr_array(table)], format="csr")
    if is_torch_array(X) and is_torch_array(table):
        return namespace(X, table).concat([X, table])
    if any(named):
        warnings.warn(
            f"{above if named[0] else name} names its columns and the other domain does not; "
            "they are taken to be in the same order.",
            stacklevel=4,
        )
    return stacked_rows(np.asarray(X), np.asarray(table))


def _shape(X: Any) -> tuple[int, ...]:
    return tuple(np.shape(X))


def _n_rows(X: Any, name: str) -> int:
    shape = _shape(X)
    if len(shape) != 2:
        raise ValueError(f"{name} must be a table of rows and columns; got shape {shape}.")
    if shape[0] == 0:
        raise ValueError(f"{name} has no rows; both domains need at least one.")
    return int(shape[0])
