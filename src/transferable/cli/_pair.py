"""Two files as the arrays that ``diagnose`` and ``compare`` look at, and their common options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import Messages
from transferable.cli._predictions import names

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from transferable.cli._adaptation import Evaluation

__all__ = [
    "Choice",
    "Drop",
    "Features",
    "Ids",
    "Json",
    "Label",
    "Pair",
    "Quiet",
    "Seed",
    "Source",
    "Target",
    "TargetLabel",
    "read_pair",
]

Source = Annotated[
    Path,
    typer.Argument(
        help="Labelled rows: .csv, .tsv, .parquet, .feather, .npz, .npy or .mat, also .gz."
    ),
]
Target = Annotated[Path, typer.Argument(help="Rows of the other domain.")]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="The source's column of labels.")]
TargetLabel = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The target's true labels, for evaluation only."),
]
_SEVERAL = "; several with commas or by repeating the option."
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="COLUMN", help="Column that names rows, no feature" + _SEVERAL),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out" + _SEVERAL)
]
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column to use, and no other" + _SEVERAL),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of whatever is random.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no progress.")]


@dataclass(frozen=True)
class Choice:
    """Which columns play which part."""

    label: str
    target_label: str | None
    ids: Sequence[str] | None
    drop: Sequence[str] | None
    features: Sequence[str] | None


@dataclass(frozen=True)
class Pair:
    """Both domains, encoded, with the true target labels where they are known."""

    Xs: NDArray[Any]
    ys: NDArray[Any]
    Xt: NDArray[Any]
    feature_names: list[str]
    true: pd.Series | None

    def evaluate(self, predicted: NDArray[Any]) -> Evaluation | None:
        """Score predicted target labels, if true ones are known."""
        import pandas as pd

        from transferable.cli._adaptation import evaluate

        if self.true is None:
            return None
        return evaluate(pd.DataFrame({"prediction": predicted}), self.true)


def read_pair(
    files: tuple[Path, Path], choice: Choice, scales: Sequence[str], messages: Messages
) -> list[Pair]:
    """Read two files and encode them, once for each scale."""
    import numpy as np

    from transferable.cli._adaptation import read
    from transferable.tables import TableClassifier, TableError

    source, target = (read(path, messages) for path in files)
    label, truth = choice.label, choice.target_label
    if truth is not None and truth not in target.columns:
        raise TableError(f"the target has no column {truth!r} to evaluate with.")
    columns: dict[str, Any] = {
        "label": label,
        "ids": names(choice.ids),
        "drop": [*names(choice.drop), *([truth] if truth not in (None, label) else [])],
        "features": names(choice.features) or None,
    }
    pairs = []
    for scale in scales:
        encoder = TableClassifier(scale=scale, **columns)  # type: ignore[arg-type]
        Xs, ys, Xt = encoder.prepare(source, target)
        if len(np.unique(ys)) < 2:
            raise TableError(
                f"the {len(ys)} source rows all have the label {ys[0].item()!r}; at least two "
                "labels are needed."
            )
        true = None if truth is None else target[truth]
        pairs.append(Pair(Xs, ys, Xt, encoder.feature_names_, true))
        for note in encoder.notes_:
            messages.note(note)
    return pairs
