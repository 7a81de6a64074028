"""Saved models: files in the skops format, which loading reads without running any code of theirs.

A file is the zip archive that :mod:`skops.io` writes, with one more member, ``transferable.json``:
the format's number, the versions that wrote it, and the size and SHA-256 of every other member. The
number is raised when what fitted estimators hold changes, so that a file either loads or says what
to do. Loading is three steps, each a file here: the archive is checked against its header, what it
says it is made of against the classes that may be made, and what was made is tried.
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
from transferable.persistence._checks import check_parts, check_usable
from transferable.persistence._container import ModelFileError, checked_header, with_header
from transferable.persistence._schema import readable, refused_types, trusted_types

__all__ = ["FORMAT", "ModelFileError", "about", "load", "save", "versions"]

FORMAT = 2  # raise it when a file of the last version would load but predict something else
_OLDEST = 1  # format that can still be read


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Save an estimator, so that :func:`load` brings it back to the bit.

    Parameters
    ----------
    model : estimator
        An estimator of this library, or a scikit-learn one, such as a pipeline, that holds any.
    path : str or path-like
        The file to write, by custom named ``*.skops``. It is there whole or not at all.

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
    ...     transferable.save(model, f"{folder}/model.skops")
    ...     again = transferable.load(f"{folder}/model.skops")
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
    refused = refused_types(readable(content))
    if refused:
        raise TypeError(
            f"{type(model).__name__} holds {', '.join(refused)}, which loading would refuse; only "
            "parts of transferable, scikit-learn (without gradient boosting), numpy and scipy can "
            "be saved."
        )
    try:
        check_usable(model)
    except Exception as error:
        raise TypeError(
            f"{type(model).__name__} cannot be saved, as loading would refuse it: {error}"
        ) from error
    stream = with_header(
        content, {"format": FORMAT, "class": type(model).__name__, "versions": versions()}
    )
    with replacing(path, "wb") as file:
        file.write(stream.getbuffer())


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that :func:`save` has written, running no code that the file brings.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : estimator
        What was saved; its predictions are the same to the bit.

    Raises
    ------
    ModelFileError
        If the file is no saved model, is damaged, was changed, is of a format this version does
        not know, or holds types outside of transferable, scikit-learn, numpy and scipy.
    """
    content = Path(path).read_bytes()
    header = _known_header(content, str(path))
    writer = {"transferable": "?", "scikit-learn": "?"} | header["versions"]
    try:
        content = readable(content)
        refused = refused_types(content)
        if not refused:
            return _made(content)
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


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Tell what a saved model says of itself, without loading it.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    header : dict
        ``format``, the ``class`` saved, and the ``versions`` that wrote it.
    """
    header = _known_header(Path(path).read_bytes(), str(path))
    return {name: header[name] for name in ("format", "class", "versions")}


def versions(own: str = __version__) -> dict[str, str]:
    """Versions of this library, or what `own` says of it, of Python and of what it computes with.

    Examples
    --------
    >>> from transferable.persistence import versions
    >>> list(versions())
    ['transferable', 'python', 'numpy', 'scipy', 'scikit-learn', 'skops']
    """
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "skops")}
    return {"transferable": own, "python": platform.python_version(), **others}


def _made(content: bytes) -> Any:
    """The model of an archive that names known classes only."""
    import skops.io

    model = skops.io.loads(content, trusted=trusted_types(content))
    check_parts(model)
    return model


def _known_header(content: bytes, path: str) -> dict[str, Any]:
    """The header of a file that is whole, unchanged and of a format we know."""
    header = checked_header(content, path)
    if not _OLDEST <= header["format"] <= FORMAT:
        raise ModelFileError(_other_format(header, path))
    return header


def _other_format(header: dict[str, Any], path: str) -> str:
    writer = header["versions"].get("transferable", "?")
    newer = header["format"] > FORMAT
    return (
        f"{path} has format {header['format']}, written by transferable {writer}; this is "
        f"transferable {__version__}, which reads format {FORMAT}. "
        + ("Upgrade transferable" if newer else f"Install transferable=={writer}")
        + " to load it, or fit the model again."
    )
