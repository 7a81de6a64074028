"""Domains that were given apart, stacked as ``fit`` takes them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from transferable.frames import as_pandas, is_frame, stacked
from transferable.linalg.arrays import is_torch_array, namespace, on_host

__all__ = ["are_several", "stack_domains", "stack_weights"]


def are_several(Xs: Any) -> bool:
    """Whether these are tables of several sources, not rows of one."""
    return isinstance(Xs, list | tuple) and len(Xs) > 0 and len(_shape(Xs[0])) == 2


def stack_domains(Xs: Any, ys: Any, Xt: Any) -> tuple[Any, NDArray[Any], NDArray[np.int8]]:
    """All domains as one table, with marks; target labels are placeholders nobody reads.

    Sources that come as a list are marked 1, 2, ... in its order, the target -1.
    """
    tables, labels = ([*Xs], [*ys]) if _paired(Xs, ys) else ([Xs], [ys])
    several = len(tables) > 1
    names = [f"Xs[{k}]" if several else "Xs" for k in range(len(tables))]
    tables, Xt = [as_pandas(table) for table in tables], as_pandas(Xt)
    labels = [np.asarray(on_host(y)) for y in labels]
    for table, y, name in zip(tables, labels, names, strict=True):
        if y.shape[:1] != (_n_rows(table, name),):
            raise ValueError(
                f"{name.replace('X', 'y')} has shape {y.shape}, but {name} has "
                f"{_n_rows(table, name)} rows; give one label each."
            )
    _n_rows(Xt, "Xt")
    X = tables[0]
    for table, name in zip([*tables[1:], Xt], [*names[1:], "Xt"], strict=True):
        X = _below(X, table, name)
    y = np.concatenate([*labels, np.repeat(labels[0][:1], _shape(Xt)[0])])
    ids = np.array([*range(1, len(tables) + 1), -1], dtype=np.int8 if len(tables) < 127 else int)
    return X, y, np.repeat(ids, [*(_shape(table)[0] for table in tables), _shape(Xt)[0]])


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


def _paired(Xs: Any, ys: Any) -> bool:
    """Whether there are several sources, with labels for each."""
    if not are_several(Xs):
        return False
    if not isinstance(ys, Sequence) or isinstance(ys, str) or len(ys) != len(Xs):
        given = f"{len(ys)} entries" if hasattr(ys, "__len__") else type(ys).__name__
        raise ValueError(
            f"Xs is a list of {len(Xs)} sources, so ys must be a list of as many arrays of labels; "
            f"got {given}."
        )
    return True


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
    return np.concatenate([np.asarray(X), np.asarray(table)])


def _shape(X: Any) -> tuple[int, ...]:
    return tuple(np.shape(X))


def _n_rows(X: Any, name: str) -> int:
    shape = _shape(X)
    if len(shape) != 2:
        raise ValueError(f"{name} must be a table of rows and columns; got shape {shape}.")
    if shape[0] == 0:
        raise ValueError(f"{name} has no rows; both domains need at least one.")
    return int(shape[0])
