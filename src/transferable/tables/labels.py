"""Labels in tables: which can be classes, what to know of them, which of the target are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from transferable.tables._errors import TableError

__all__ = ["checked_labels", "notes_on", "target_labels"]

_MANY_CLASSES = 50  # labels of more than that, and of more than half of the rows, are no classes
_FEW_ROWS = 10  # of more, not every one can be a class of its own


def checked_labels(column: pd.Series, label: str | None, where: str = "the source") -> NDArray[Any]:
    """Labels of the source, text as text and numbers as numbers; refused if they are no classes."""
    missing = int(column.isna().sum())
    if missing:
        called = f"the label column {label!r}" if label else "ys"
        raise TableError(
            f"{where}: {missing} of the {len(column)} source rows have no value in {called}; fill "
            "it or remove these rows."
        )
    values = column.astype(object).tolist()
    labels = np.array([str(v) for v in values] if isinstance(values[0], str) else values)
    _check_classes(labels, label or "ys", where)
    return labels


def _check_classes(labels: NDArray[Any], name: str, where: str) -> None:
    """Refuse labels of which there is one only, and what is no label of a class."""
    classes, n = np.unique(labels), len(labels)
    if len(classes) < 2:
        raise TableError(
            f"{where}: the {n} source rows all have the label {classes[0].item()!r}, which is one "
            "class; at least two are needed."
        )
    if labels.dtype.kind == "f" and not np.all(classes == np.floor(classes)):
        example = classes[classes != np.floor(classes)][0].item()
        raise TableError(
            f"{where}: Unknown label type: {name!r} holds fractions, such as {example}, "
            "which measure something; turn them into text if they are names of classes."
        )
    if len(classes) > max(_MANY_CLASSES, n // 2) or len(classes) == n > _FEW_ROWS:
        raise TableError(
            f"{where}: {name!r} has {len(classes):,} different values in {n:,} source rows, so it "
            "seems to name rows or to measure something; labels are classes that several rows "
            "share."
        )


def notes_on(labels: NDArray[Any], in_target: str | None) -> list[str]:
    """What to know of labels: that those of the target are ignored, and of texts of numbers."""
    notes = []
    if in_target is not None:
        notes.append(
            f"the target's own column {in_target!r} is not looked at; to evaluate with it: "
            f"--target-label {in_target}."
        )
    if labels.dtype.kind != "U":
        return notes
    numbers: dict[float, list[str]] = {}
    for text in np.unique(labels).tolist():
        try:
            numbers.setdefault(float(text), []).append(text)
        except ValueError:
            return notes
    notes += [
        f"the labels {' and '.join(map(repr, texts))} are one number, written in "
        f"{len(texts)} ways, and are taken for {len(texts)} classes; write them alike if they are "
        "one."
        for texts in numbers.values()
        if len(texts) > 1
    ]
    broken = [texts[0] for number, texts in numbers.items() if not number.is_integer()]
    if broken:
        notes.append(
            f"labels such as {broken[0]!r} are taken for names of classes, as they are written, "
            "and not for measurements."
        )
    return notes


def target_labels(
    classifier: Any, ys: NDArray[Any], known: ArrayLike | None, n_target: int
) -> NDArray[Any]:
    """Labels of target rows that a classifier uses, None where there is none, or placeholders."""
    if known is None or getattr(classifier, "target_labels", "ignore") != "use":
        return np.repeat(ys[:1], n_target)
    column = pd.Series(np.asarray(known, dtype=object))
    if ys.dtype.kind == "U":
        column = column.map(str, na_action="ignore")
    return column.where(column.notna(), None).to_numpy(dtype=object)
