"""Two files as the arrays that ``diagnose`` and ``compare`` look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transferable.cli._console import Messages
from transferable.cli._predictions import names

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from transferable.cli._adaptation import Evaluation

__all__ = ["Choice", "Pair", "read_pair"]


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
    scale: str
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
        true = None if truth is None else target[truth]
        pairs.append(Pair(Xs, ys, Xt, encoder.feature_names_, encoder.scale_, true))
        for note in encoder.notes_:
            messages.note(note)
    return pairs
