"""Saved models: files in the skops format, which loading reads without running any code of theirs.

A file is the zip archive that :mod:`skops.io` writes, with one more member, ``transferable.json``:
the format's number, the versions that wrote it and a SHA-256 of every other member. The number is
raised when what fitted estimators hold changes, so that a file either loads or says what to do.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pkgutil
import platform
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from sklearn.base import BaseEstimator

from transferable import __version__
from transferable._atomic import replacing

__all__ = ["FORMAT", "ModelFileError", "about", "load", "save", "versions"]

FORMAT = 1  # raise it when a file of the last version would load but predict something else
_HEADER = "transferable.json"
_OWN = tuple(
    f"transferable.{package}"
    for package in (
        *("classifiers", "engines", "engines.risk", "engines.spectral"),
        *("transformers", "tables", "model_selection"),
    )
)
# Packages of extras, which are imported for models that hold parts of them only.
_EXTRAS = ("transferable.deep",)
# What fitted estimators hold besides. Decision trees are left out, as skops leaves them:
# scikit-learn follows the indices in them without a check.
_OTHERS = [
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    *(
        f"scipy.sparse._{form}.{form}_{kind}"
        for form in ("csr", "csc")
        for kind in ("array", "matrix")
    ),
    *(
        f"sklearn.neighbors.{module}.{tree}{bits}"
        for module, tree in (("_kd_tree", "KDTree"), ("_ball_tree", "BallTree"))
        for bits in ("", "64", "32")
    ),
    *(
        f"sklearn.metrics._dist_metrics.{metric}Distance{bits}"
        for metric in ("Euclidean", "Manhattan", "Minkowski", "Chebyshev")
        for bits in ("", "64", "32")
    ),
]


class ModelFileError(ValueError):
    """A file that holds no model this version can load; the message says why and what to do."""


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
        estimator of your own.

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
    refused = _refused(content)
    if refused:
        raise TypeError(
            f"{type(model).__name__} holds {', '.join(refused)}, which loading would refuse; only "
            "parts of transferable, scikit-learn (without decision trees), numpy and scipy can be "
            "saved."
        )
    stream = io.BytesIO(content)
    with ZipFile(stream, "a", compression=ZIP_DEFLATED) as archive:
        archive.writestr(_HEADER, json.dumps(_header(model, archive), indent=2))
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
    import skops.io

    content = Path(path).read_bytes()
    header = _checked_header(content, str(path))
    try:
        refused = _refused(content)
        if not refused:
            return skops.io.loads(content, trusted=_trusted(_extras(content)))
    except Exception as error:
        raise ModelFileError(
            f"{path} cannot be loaded ({type(error).__name__}: {error}). It was saved by "
            f"transferable {header['versions']['transferable']} with scikit-learn "
            f"{header['versions']['scikit-learn']}; load it with these, or fit the model again."
        ) from error
    writer = header["versions"]["transferable"]
    raise ModelFileError(
        f"{path} holds types that are not trusted and were not loaded: {', '.join(refused)}. "
        + (
            f"This version has no such parts; the file says transferable {writer} wrote it. Load "
            "it with that, or fit the model again."
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
    header = _checked_header(Path(path).read_bytes(), str(path))
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


def _header(model: BaseEstimator, archive: ZipFile) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "class": type(model).__name__,
        "versions": versions(),
        "sha256": _digests(archive),
    }


def _digests(archive: ZipFile) -> dict[str, str]:
    """A digest of every member except the header."""
    return {
        name: hashlib.sha256(archive.read(name)).hexdigest()
        for name in archive.namelist()
        if name != _HEADER
    }


def _checked_header(content: bytes, path: str) -> dict[str, Any]:
    """The header of a file that is whole, unchanged and of a format we know."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            header = json.loads(archive.read(_HEADER)) if _HEADER in archive.namelist() else None
            if header is None:
                raise ModelFileError(f"{path} was not written by transferable.save.")
            if header["format"] != FORMAT:
                raise ModelFileError(_other_format(header, path))
            changed = header["sha256"] != _digests(archive)
    except ModelFileError:
        raise
    except BadZipFile as error:
        raise ModelFileError(
            f"{path} is not a saved model, or not all of one ({error}); copy or save it again."
        ) from error
    except Exception as error:  # whatever a damaged archive makes of its readers
        raise ModelFileError(
            f"{path} is damaged ({type(error).__name__}: {error}); copy or save it again."
        ) from error
    if changed:
        raise ModelFileError(f"{path} was changed after it was saved; copy or save it again.")
    return header


def _other_format(header: dict[str, Any], path: str) -> str:
    writer = header["versions"]["transferable"]
    newer = header["format"] > FORMAT
    return (
        f"{path} has format {header['format']}, written by transferable {writer}; this is "
        f"transferable {__version__}, which reads format {FORMAT}. "
        + ("Upgrade transferable" if newer else f"Install transferable=={writer}")
        + " to load it, or fit the model again."
    )


def _refused(content: bytes) -> list[str]:
    """Types in a file that are not trusted."""
    import skops.io

    found = set(skops.io.get_untrusted_types(data=content))
    return sorted(found - set(_trusted(_extras(content))))


def _extras(content: bytes) -> tuple[str, ...]:
    """Packages of extras that a file holds parts of."""
    import skops.io

    names = skops.io.get_untrusted_types(data=content)
    return tuple(e for e in _EXTRAS if any(name.startswith(f"{e}.") for name in names))


@cache
def _trusted(extras: tuple[str, ...] = ()) -> list[str]:
    """The classes that fitted estimators consist of, by name; never a function."""
    packages = _OWN + extras
    for package in map(import_module, packages):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            import_module(module.name)
    own = {
        f"{value.__module__}.{value.__name__}"
        for name, module in sys.modules.items()
        if name.startswith(tuple(f"{package}." for package in packages))
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == name
    }
    return sorted(own) + _OTHERS
