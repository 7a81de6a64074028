"""Saved models: files in the skops format, loaded without running any code from them.

A file is the zip archive that :mod:`skops.io` writes, with one more member, ``transferable.json``:
the format's number, the versions that wrote it, and the size and SHA-256 of every other member.
Loading has three steps: the archive is checked against its header, its schema against the permitted
classes (both in `_archive.py`), and the loaded model is checked and tried (`_checks.py`).
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

from sklearn.base import BaseEstimator

from transferable import __version__
from transferable._files import replacing
from transferable.persistence._archive import (
    FORMAT,
    ModelFileError,
    checked_header,
    readable,
    with_header,
)
from transferable.persistence._checks import check_parts
from transferable.persistence._schemas import TRUSTED

__all__ = ["FORMAT", "ModelFileError", "about", "load", "save", "versions"]


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
    import skops.io

    if not isinstance(model, BaseEstimator):
        raise TypeError(f"model must be an estimator, got {type(model).__name__}.")
    try:
        content = skops.io.dumps(model, compression=ZIP_DEFLATED)
    except (TypeError, skops.io.exceptions.UnsupportedTypeException) as error:
        raise TypeError(f"{type(model).__name__} cannot be saved: {error}") from error
    plain, refused = readable(content)
    if refused:
        raise TypeError(
            f"{type(model).__name__} holds {', '.join(refused)}, which loading would refuse: files "
            "hold only what was checked to be harmless, listed in docs/saved-models.md."
        )
    try:
        _restored(plain)
    except Exception as error:
        raise TypeError(
            f"{type(model).__name__} cannot be saved, as loading would refuse it: {error}"
        ) from error
    stream = with_header(content, {"class": type(model).__name__, "versions": versions()})
    with replacing(path, "wb") as file:
        file.write(stream.getbuffer())


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
        If the file is no saved model, is damaged, was changed, is of a format this version does not
        support, or holds types outside of transferable, scikit-learn, numpy and scipy.
    """
    content = Path(path).read_bytes()
    header = checked_header(content, str(path))
    writer = {"transferable": "?", "scikit-learn": "?"} | header["versions"]
    try:
        content, refused = readable(content)
        if not refused:
            return _restored(content)
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be loaded ({type(error).__name__}: {error}). It was saved by "
            f"transferable {writer['transferable']} with scikit-learn {writer['scikit-learn']}; "
            "load it with these, or fit the model again."
        ) from error
    raise ModelFileError(
        f"{path} holds types that are not trusted and were not loaded: {', '.join(refused)}. "
        + (
            f"This version has no such parts; the file says transferable {writer['transferable']} "
            "wrote it. Load it with that, or fit the model again."
            if all(name.startswith("transferable.") for name in refused)
            else "A saved model needs parts of transferable, scikit-learn, numpy and scipy only."
        )
    )


def _restored(content: bytes) -> Any:
    """Return the checked model of an archive that names permitted types only."""
    import skops.io

    model = skops.io.loads(content, trusted=TRUSTED)
    check_parts(model)
    return model


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
    header = checked_header(Path(path).read_bytes(), str(path))
    return {name: header[name] for name in ("format", "class", "versions")}


def versions(own: str = __version__) -> dict[str, str]:
    """Return the versions of this library (or `own`), of Python and of what it computes with.

    Examples
    --------
    >>> from transferable.persistence import versions
    >>> list(versions())
    ['transferable', 'python', 'numpy', 'scipy', 'scikit-learn', 'skops']
    """
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "skops")}
    return {"transferable": own, "python": platform.python_version(), **others}
