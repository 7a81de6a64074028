"""Classifier of pictures, with their embedding inside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from transferable.classifiers import AdaptedClassifier
from transferable.domains import domain_ids
from transferable.events import note
from transferable.images.embedding import Embedder, Embeddings, Model
from transferable.images.reading import (
    FilePath,
    PictureError,
    Pictures,
    listed,
    one_line,
    read_folder,
)
from transferable.progress import shown
from transferable.tables.classifier import default_method

_SAME = 0.999  # cosine of embeddings of one picture by one network, on any machine


class ImageClassifier(ClassifierMixin, BaseEstimator):
    """Classifier of pictures, learnt from labelled pictures of another domain.

    A fixed network makes a row of numbers of every picture; the rows are adapted as those of any
    table.

    Parameters
    ----------
    model : str or callable
        The network, as for :class:`Embedder`. A model with a callable cannot be saved; save it with
        ``set_params(model=None)`` and give it to the loaded one.
    estimator : estimator or None, default=None
        A classifier or transformer of this library; a transformer is followed by one nearest
        neighbour. None is :class:`~transferable.AutoAdapter`, or, beyond 20,000 pictures of both
        domains together, :class:`~transferable.TFDF`.
    broken : {"skip", "refuse"}, default="skip"
        Whether pictures that cannot be read are named and left out, or refused with all they came
        with.
    cache : str, path-like or None, default="auto"
        As for :class:`Embedder`, like the other parameters.
    batch_size : int, default=32
        Pictures in memory at once.
    device : str, default="auto"
        "cpu", "cuda" or "auto".
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    estimator_ : classifier
        The fitted classifier of embeddings.
    labels_ : DataFrame
        For each target file its name, label, confidence and, if it could not be read, the problem.
    notes_ : list of str
        What was left out, and why.
    n_features_in_ : int
        Numbers in an embedding.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from PIL import Image
    >>> from transferable import TFDFV
    >>> from transferable.images import ImageClassifier
    >>> def colours(pictures):
    ...     return [np.asarray(picture).mean(axis=(0, 1)) for picture in pictures]
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for domain, light in (("day", 150), ("night", 60)):
    ...         for k, name in enumerate(["leaf", "sky"] * 10):
    ...             pixels = rng.integers(0, 40, (8, 8, 3), dtype=np.uint8)
    ...             pixels[..., 1 + k % 2] += light
    ...             place = Path(folder) / domain / name / f"{k}.png"
    ...             place.parent.mkdir(parents=True, exist_ok=True)
    ...             Image.fromarray(pixels).save(place)
    ...     model = ImageClassifier(colours, estimator=TFDFV(), cache=None)
    ...     model = model.adapt(f"{folder}/day", None, f"{folder}/night")
    >>> model.labels_.label[:2].tolist(), model.labels_.file[0]
    (['leaf', 'leaf'], 'leaf/0.png')
    """

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        estimator: Any = None,
        broken: str = "skip",
        cache: str | os.PathLike[str] | None = "auto",
        batch_size: int = 32,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.estimator = estimator
        self.broken = broken
        self.cache = cache
        self.batch_size = batch_size
        self.device = device
        self.verbose = verbose

    def fit(
        self, X: Sequence[FilePath], y: ArrayLike, sample_domain: ArrayLike | None = None
    ) -> Self:
        """Learn from the files of both domains in one list.

        Parameters
        ----------
        X : sequence of str or path-like
            The files.
        y : array-like of shape (n_files,)
            Labels; those of target files are never used.
        sample_domain : array-like of shape (n_files,), default=None
            Positive for files of the source, negative for the target. Without it, files without a
            label (None, NaN, or -1 among numbers) are the target.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        labels = np.asarray(y)
        source = domain_ids(labels, sample_domain, len(X)) > 0
        files = np.array([Path(file) for file in X], dtype=object)
        return self.adapt(files[source], np.array(labels[source].tolist()), files[~source])

    def adapt(self, Xs: Any, ys: ArrayLike | None, Xt: Any) -> Self:
        """Learn from labelled pictures and unlabelled ones.

        Parameters
        ----------
        Xs : str, path-like, or list of such
            A folder with a folder for each class, several such folders, which are pooled, or files.
        ys : array-like of shape (n_source,) or None
            Labels of files; None takes the names of the folders.
        Xt : str, path-like, or list of such
            A folder of pictures, whose own folders, if it has any, are not looked at, or files.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        if self.broken not in ("skip", "refuse"):
            raise ValueError(f'broken={self.broken!r} must be "skip" or "refuse".')
        source, target = _pictures(Xs, classes=ys is None), _pictures(Xt, classes=False)
        default = default_method(len(source) + len(target))
        classifier = default() if self.estimator is None else clone(self.estimator)
        if not hasattr(classifier, "predict"):
            classifier = AdaptedClassifier(classifier)
        labels = np.asarray(source.labels if ys is None else ys)
        if labels.shape != (len(source),):
            raise ValueError(
                f"ys has shape {labels.shape}, but Xs has {len(source)} pictures; give one label "
                "each."
            )
        notes = [*source.notes, *target.notes, *_on_classes(labels, Xt)]
        with shown("Embedding pictures") if self.verbose else nullcontext():
            embedder = self._embedder()
            rows = self._embedded(embedder, source, notes, "source")
            new = self._embedded(embedder, target, notes, "target")
        kept = labels[rows.read]
        lost = sorted(set(labels.tolist()) - set(kept.tolist()), key=str)
        if len(set(kept.tolist())) < 2:
            raise PictureError(
                f"of the source's classes only {listed([str(c) for c in np.unique(kept)])} can be "
                "read; a classifier needs at least two."
            )
        if lost:
            notes.append(f"no picture of {listed([str(c) for c in lost])} can be read: no class")
        for text in notes:
            note(text)
        classifier.adapt(rows.rows, kept, new.rows)
        self.estimator_, self.classes_, self.notes_ = classifier, classifier.classes_, notes
        self.probe_ = embedder.probe
        self.n_features_in_ = rows.rows.shape[1]
        self.labels_ = self._table(target, new)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels of pictures of the target domain.

        Parameters
        ----------
        X : str, path-like, or list of such
            A folder of pictures, or files.

        Returns
        -------
        labels : ndarray of shape (n_pictures,)
            The label of each; None, in an array of objects, for files that cannot be read.
        """
        return self.label(X)["label"].to_numpy()

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return the probability of each class, if the estimator gives any.

        Parameters
        ----------
        X : str, path-like, or list of such
            A folder of pictures, or files.

        Returns
        -------
        probabilities : ndarray of shape (n_pictures, n_classes)
            One column for each label of `classes_`; NaN for files that cannot be read.
        """
        pictures, found = self._read(X)
        out = np.full((len(pictures), len(self.classes_)), np.nan)
        if len(found.read):
            out[found.read] = self.estimator_.predict_proba(found.rows)
        return out

    def label(self, X: Any) -> pd.DataFrame:
        """Return a table of files with their labels.

        Parameters
        ----------
        X : str, path-like, or list of such
            A folder of pictures, or files.

        Returns
        -------
        table : DataFrame
            The columns file, label, confidence (the probability of the label, if the estimator
            gives any) and problem, the reason why a file could not be read.
        """
        return self._table(*self._read(X))

    def _read(self, X: Any) -> tuple[Pictures, Embeddings]:
        check_is_fitted(self)
        pictures = _pictures(X, classes=False)
        notes = list(pictures.notes)
        with shown("Embedding pictures") if self.verbose else nullcontext():
            embedder = self._embedder()
            pair = embedder.probe, self.probe_
            lengths = [float(np.linalg.norm(row)) for row in pair]
            same = pair[0].shape == pair[1].shape
            if not same or float(pair[0] @ pair[1]) < _SAME * lengths[0] * lengths[1]:
                raise PictureError(
                    f"model={one_line(self.model)!r} embeds pictures otherwise than when this "
                    "classifier was fitted; install the version that it was, or fit it again."
                )
            found = self._embedded(embedder, pictures, notes, "pictures")
        for text in notes:
            note(text)
        return pictures, found

    def _embedder(self) -> Embedder:
        return Embedder(
            self.model,  # type: ignore[arg-type]  # refused there if it is None
            cache=self.cache,
            batch_size=self.batch_size,
            device=self.device,
        )

    def _embedded(
        self, embedder: Embedder, pictures: Pictures, notes: list[str], who: str
    ) -> Embeddings:
        """Return embeddings; name files that cannot be read, or refuse them."""
        found = embedder.embed(pictures.files, f"Embedding the {who}")
        told = [
            f"{one_line(pictures.names[k])}: {text}" for k, text in sorted(found.broken.items())
        ]
        if told and (self.broken == "refuse" or not len(found.read)):
            more = f" and {len(told) - 1} more" if len(told) > 1 else ""
            remedy = "" if len(found.read) == 0 else ' Remove it, or take broken="skip".'
            raise PictureError(
                f"{len(told)} of the {len(pictures)} pictures of the {who} cannot be used: "
                f"{told[0]}{more}.{remedy}"
            )
        notes += [f"{text}: left out" for text in told]
        return found

    def _table(self, pictures: Pictures, found: Embeddings) -> pd.DataFrame:
        labels = np.full(len(pictures), None, dtype=object)
        confidence = np.full(len(pictures), np.nan)
        if len(found.read):
            labels[found.read] = self.estimator_.predict(found.rows)
            if hasattr(self.estimator_, "predict_proba"):
                confidence[found.read] = self.estimator_.predict_proba(found.rows).max(axis=1)
        problems = [found.broken.get(k) for k in range(len(pictures))]
        return pd.DataFrame(
            {
                "file": pictures.names,
                "label": pd.Series(labels, dtype=object if found.broken else self.classes_.dtype),
                "confidence": confidence,
                "problem": problems,
            }
        )

    def __getstate__(self) -> dict[str, Any]:
        """Store the labels of files as plain lists, and a path as text."""
        state = dict(super().__getstate__())
        state["cache"] = None if self.cache is None else os.fspath(self.cache)
        if "labels_" in state:
            table = state.pop("labels_").astype(object).where(lambda frame: frame.notna(), None)
            state["_labels"] = {name: table[name].tolist() for name in table}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        labels = state.pop("_labels", None)
        super().__setstate__(state)
        if labels is not None:
            self.labels_ = pd.DataFrame(labels)


def _pictures(X: Any, *, classes: bool) -> Pictures:
    """Return the pictures of a folder, of several, or of files."""
    if isinstance(X, str | os.PathLike) and Path(X).is_file():
        X = [X]
    if isinstance(X, str | os.PathLike):
        return read_folder(X, classes=classes)
    paths = [Path(path) for path in X]
    if not paths:
        raise PictureError("there are no pictures; name a folder, or files.")
    if any(path.is_dir() for path in paths):
        return _pooled([read_folder(path, classes=classes) for path in paths])
    if classes:
        raise PictureError(
            "ys is None, but Xs are files; give their labels, or a folder of classes."
        )
    return Pictures(paths, [str(path) for path in paths])


def _pooled(parts: Sequence[Pictures]) -> Pictures:
    labels = [part.labels for part in parts if part.labels is not None]
    return Pictures(
        [file for part in parts for file in part.files],
        [name for part in parts for name in part.names],
        np.concatenate(labels) if labels else None,
        [text for part in parts for text in part.notes],
    )


def _on_classes(labels: NDArray[Any], target: Any) -> list[str]:
    """Return notes on folders of the target that are no classes of the source, or lack one."""
    if not isinstance(target, str | os.PathLike) or not Path(target).is_dir():
        return []
    folders = {entry.name for entry in Path(target).iterdir() if entry.is_dir()}
    folders -= {name for name in folders if name.startswith(".")}
    known = {str(label) for label in labels}
    if not folders & known:
        return []  # other folders than classes
    notes = ["the target's folders are named like classes; its pictures are labelled without them"]
    if folders - known:
        notes.append(
            f"{listed(sorted(folders - known))} of the target are no classes of the source: their "
            "pictures get labels of the source"
        )
    if known - folders:
        notes.append(
            f"the target has no folder {listed(sorted(known - folders))}, of which the source has "
            "pictures: labels of these classes may still be given"
        )
    return notes
