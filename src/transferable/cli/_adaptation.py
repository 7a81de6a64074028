"""What ``transferable adapt`` computes, and what it tells about it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from transferable.cli._console import Messages
from transferable.cli._methods import parameters_of
from transferable.cli._predictions import predicted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray
    from rich.table import Table

    from transferable.tables import TableClassifier

__all__ = ["Adaptation", "Evaluation", "adapt", "evaluate", "read"]


@dataclass(frozen=True)
class Evaluation:
    """Predictions against true target labels, which nothing was learnt from."""

    column: str
    true: NDArray[Any]
    known: NDArray[Any]
    accuracy: float


@dataclass(frozen=True)
class Adaptation:
    """A fitted model with its predictions for the target."""

    model: TableClassifier
    source: pd.DataFrame
    target: pd.DataFrame
    lines: pd.DataFrame
    probabilities: NDArray[Any]
    evaluation: Evaluation | None
    seconds: float

    @property
    def method(self) -> str:
        """The name of the method's class."""
        return type(self.model.estimator).__name__

    @property
    def parameters(self) -> dict[str, Any]:
        """The method's parameters."""
        return parameters_of(self.model.estimator)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Rows of each class in the source and as predicted in the target."""
        source, target = self.source[self.model.label].astype(str), self.lines["prediction"]
        ours, theirs = source.value_counts(), target.astype(str).value_counts()
        return {
            name: (int(ours.get(name, 0)), int(theirs.get(name, 0)))
            for name in map(str, self.model.classes_.tolist())
        }

    def table(self) -> Table:
        """The summary for people."""
        from rich.table import Table

        table = Table("class")
        for heading in ("source rows", "target rows, predicted", "mean confidence"):
            table.add_column(heading, justify="right")
        confidence = self.lines["confidence"].groupby(self.lines["prediction"].astype(str)).mean()
        for name, (ours, theirs) in self.counts().items():
            sure = f"{confidence[name]:.1%}" if theirs else "-"
            table.add_row(name, f"{ours:,}", f"{theirs:,}", sure)
        return table

    def summary(self) -> str:
        """One line on what was done."""
        return (
            f"{self.method} learnt from {len(self.source):,} source and {len(self.target):,} "
            f"target rows, {len(self.model.feature_names_)} features, in {self.seconds:.1f} s"
        )

    def verdict(self) -> str:
        """One line on the evaluation, or on its absence."""
        found = self.evaluation
        if found is None:
            return "The target's true labels were not given; its accuracy is unknown."
        return (
            f"Accuracy on the {int(found.known.sum()):,} target rows with a value in "
            f"{found.column!r}: {found.accuracy:.1%} (used for this evaluation only)"
        )


def read(path: Path, messages: Messages) -> pd.DataFrame:
    """Read a table with a progress bar."""
    from transferable.tables import read_table

    with messages.bar(f"Reading {path.name}") as bar:
        return read_table(path, progress=bar.tick)


def adapt(
    model: TableClassifier,
    source: pd.DataFrame,
    target: pd.DataFrame,
    target_label: str | None,
    messages: Messages,
) -> Adaptation:
    """Fit a model, label the target's rows and, where their labels are known, score it."""
    from transferable.events import stage
    from transferable.tables import TableError

    if target_label is not None and target_label not in target.columns:
        raise TableError(f"the target has no column {target_label!r} to evaluate with.")
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught, messages.bar("Adapting"):
        warnings.simplefilter("always")
        model.adapt(source, target)
        stage("Labelling the target")
        lines, probabilities = predicted(model, target, model.ids)
    seconds = perf_counter() - start
    if model.label in target.columns and target_label is None:
        messages.note(
            f"the target's own column {model.label!r} was not looked at; to evaluate with it: "
            f"--target-label {model.label}."
        )
    for text in [*model.notes_, *(str(w.message) for w in caught if _for_users(w))]:
        messages.note(text)
    evaluation = evaluate(lines, target[target_label]) if target_label else None
    return Adaptation(model, source, target, lines, probabilities, evaluation, seconds)


def _for_users(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, UserWarning | RuntimeWarning)


def evaluate(lines: pd.DataFrame, column: pd.Series) -> Evaluation:
    """Compare labels as the text they print as; numbers as numbers."""
    import numpy as np
    import pandas as pd

    from transferable.tables import TableError

    labels = lines["prediction"].to_numpy()
    known = column.notna().to_numpy()
    if not known.any():
        raise TableError(f"column {column.name!r} holds no true label to evaluate with.")
    values = column.astype(object)
    if labels.dtype.kind in "iufb":
        true = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
        if known.all() and np.array_equal(true, true.astype(labels.dtype)):
            true = true.astype(labels.dtype)
    else:
        labels, true = labels.astype(str), values.map(str).to_numpy(dtype=str)
    right = labels[known] == true[known]
    return Evaluation(str(column.name), true, known, float(np.mean(right)))
