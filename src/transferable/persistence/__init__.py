"""Saved models: one zip archive of JSON and arrays, loaded without running any code from it.

:mod:`~transferable.persistence._archive` has the file, ``_values.py`` its description of objects,
``_computed.py`` the types of scikit-learn by what they compute, and ``_shapes.py`` the shapes of
arrays.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from transferable import __version__
from transferable._files import replacing
from transferable.base import DomainAdapter
from transferable.persistence._archive import (
    FORMAT,
    ModelFileError,
    archived,
    header_of,
    unarchived,
)
from transferable.persistence._shapes import Sizes
from transferable.persistence._values import Reader, Writer

__all__ = ["FORMAT", "ModelFileError", "about", "load", "save", "versions"]

_WIDEST = 10**6  # features of a row that is tried
_COMPARED = 50  # rows that a saved model must label as the fitted one
_METHODS = "predict", "predict_proba", "decision_function", "transform"


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Save an estimator, so that :func:`load` restores it to the bit.

    Parameters
    ----------
    model : estimator
        An estimator of this library, or a scikit-learn one that holds any, such as a pipeline.
    path : str or path-like
        The file to write, by custom named ``*.tfm``. It is written completely or not at all.

    Raises
    ------
    TypeError
        If the model holds something that :func:`load` would refuse, such as a kernel or an
        estimator of your own, or numbers that are not finite.

    Examples
    --------
    >>> import numpy as np, tempfile, transferable
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat([0, 1], 20)
    >>> Xs = rng.normal(size=(40, 5)) + 3 * ys[:, None]
    >>> model = transferable.TFDFV().adapt(Xs, ys, Xs + 0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     transferable.save(model, f"{folder}/model.tfm")
    ...     again = transferable.load(f"{folder}/model.tfm")
    >>> bool((again.decision_function(Xs) == model.decision_function(Xs)).all())
    True
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"model must be an estimator, got {type(model).__name__}.")
    name, writer = type(model).__name__, Writer()
    described = writer.object(model, name)
    arrays = {f"{i}.npy": array.copy("A") for i, array in enumerate(writer.arrays)}
    try:
        again = _restored(described, arrays)
        for kind, part in _fitted(model):
            _check_alike(part, next(other for key, other in _fitted(again) if key == kind))
    except Exception as error:
        raise TypeError(f"{name} cannot be saved, as loading would refuse it: {error}") from error
    content = archived({"class": name, "versions": versions()}, described, writer.arrays)
    with replacing(path, "wb") as file:
        file.write(content)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that :func:`save` has written, without running any code from the file.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : estimator
        The saved estimator; its predictions are the same to the bit.

    Raises
    ------
    ModelFileError
        If the file is not a saved model, is damaged, was changed, is of a format this version does
        not
        support, or holds anything else than :func:`save` writes.
    """
    header, described, arrays = unarchived(Path(path))
    writer = {"transferable": "?", "scikit-learn": "?"} | header["versions"]
    try:
        return _restored(described, arrays)
    except Exception as error:
        kind = "" if isinstance(error, ModelFileError) else f"{type(error).__name__}: "
        raise ModelFileError(
            f"{path} cannot be loaded ({kind}{str(error)[:300]}). It was saved by "
            f"transferable {str(writer['transferable'])[:40]} with scikit-learn "
            f"{str(writer['scikit-learn'])[:40]}; load it with these, or fit the model again."
        ) from error


def _restored(described: Any, arrays: dict[str, Any]) -> Any:
    """Return the model of a description, checked and tried."""
    reader = Reader(arrays)
    model = reader.object(described, Sizes(None, None))
    if reader.arrays:
        raise ModelFileError("it holds arrays that nothing names")
    for _, part in _fitted(model):
        _try(part)
    return model


def _fitted(model: Any, name: str = "") -> Iterator[tuple[str, DomainAdapter]]:
    """Yield the outermost fitted estimators of this library that take arrays, with their place."""
    if isinstance(model, DomainAdapter) and hasattr(model, "n_features_in_"):
        yield name, model
    elif isinstance(model, BaseEstimator):
        for key, value in vars(model).items():
            yield from _fitted(value, f"{name}.{key}")
    elif isinstance(model, list | tuple):
        for i, value in enumerate(model):
            yield from _fitted(value, f"{name}[{i}]")


def _answers(estimator: DomainAdapter, rows: Any) -> dict[str, Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {
            name: getattr(estimator, name)(rows) for name in _METHODS if hasattr(estimator, name)
        }


def _shape_of_row(estimator: DomainAdapter) -> tuple[int, ...]:
    return getattr(estimator, "row_shape_", (estimator.n_features_in_,))  # of pictures


def _try(estimator: DomainAdapter) -> None:
    """Use every method on a row of zeros and check the shape and values of the result."""
    shape = _shape_of_row(estimator)
    if np.prod(shape, dtype=float) > _WIDEST:
        return
    k = len(getattr(estimator, "classes_", ()))
    expected = {
        "predict": (1,),
        "predict_proba": (1, k),
        "decision_function": (1,) if k == 2 else (1, k),
        "transform": (1, getattr(estimator, "_n_features_out", None)),
    }
    for name, values in _answers(estimator, np.zeros((1, *shape))).items():
        called = f"{type(estimator).__name__}.{name}"
        if values.shape != expected[name]:
            raise ModelFileError(
                f"{called} gives shape {values.shape} for one row, not {expected[name]}"
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ModelFileError(f"{called} gives numbers that are not finite")


def _check_alike(fitted: DomainAdapter, again: DomainAdapter) -> None:
    """Refuse a restored estimator that labels rows of its target otherwise, in any bit."""
    rows = fitted._target_sample
    if rows is None or type(fitted) is not type(again):
        return
    rows = rows[:_COMPARED]
    if not sp.issparse(rows):
        rows = np.reshape(rows, (len(rows), *_shape_of_row(fitted)))
    answers = _answers(again, rows)
    for name, values in _answers(fitted, rows).items():
        same = np.array_equal(values, answers[name])
        if not same or values.dtype != answers[name].dtype:
            raise ModelFileError(f"{name} of {type(fitted).__name__} would change")


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a saved model, without loading it.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    header : dict
        ``format``, the ``class`` saved, and the ``versions`` that wrote it.
    """
    header = header_of(Path(path))
    return {name: header[name] for name in ("format", "class", "versions")}


def versions(own: str = __version__) -> dict[str, str]:
    """Return the versions of this library (or `own`), of Python and of what it computes with.

    Examples
    --------
    >>> from transferable.persistence import versions
    >>> list(versions())
    ['transferable', 'python', 'numpy', 'scipy', 'scikit-learn']
    """
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"transferable": own, "python": platform.python_version(), **others}
