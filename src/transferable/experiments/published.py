"""The numbers that the paper prints, from ``published.csv``, and where they contradict themselves.

Y. Du, R. Zhang, X. Zhang, Y. Yao, H. Lu, C. Wang. Learning transferable and discriminative features
for unsupervised domain adaptation.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["Published", "Slip", "contradicted_averages", "published"]

_AVERAGE = "Average"
_ACCURACY_TABLES = {"surf": "1", "decaf6": "2", "digits": "3", "coil": "3"}
_ROUNDING = 0.05 + 1e-9


@dataclass(frozen=True)
class Published:
    """One printed number: table 1 to 5, dataset, task, method and value."""

    table: str
    dataset: str
    task: str
    method: str
    value: float


@dataclass(frozen=True)
class Slip:
    """A printed average that its own printed cells do not give."""

    method: str
    printed: float
    recomputed: float


@cache
def _rows() -> tuple[Published, ...]:
    lines = files(__package__).joinpath("published.csv").read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return tuple(
        Published(row["table"], row["dataset"], row["task"], row["method"], float(row["value"]))
        for row in rows
    )


def published(kind: str, dataset: str) -> dict[tuple[str, str], float]:
    """Printed values by (method, task).

    Parameters
    ----------
    kind : {"accuracy", "ablation", "minutes"}
        Tables 1 to 3, table 4 or table 5. The latter two have one value for each method, under
        the task ``"Average"`` or ``"All tasks"``.
    dataset : str
        One of ``"surf"``, ``"decaf6"``, ``"digits"``, ``"coil"``; others have no printed values.

    Returns
    -------
    dict
        Accuracies in per cent, times in minutes. Averages of tables 1 to 3 are left out: they
        are recomputed wherever they are shown.

    Examples
    --------
    >>> from transferable.experiments.published import published
    >>> published("accuracy", "surf")["TFDF", "C->A"]
    58.0
    >>> published("minutes", "coil")["MEDA", "All tasks"]
    0.73
    """
    table = {"ablation": "4", "minutes": "5"}.get(kind) or _ACCURACY_TABLES.get(dataset)
    return {
        (row.method, row.task): row.value
        for row in _rows()
        if row.table == table
        and row.dataset == dataset
        and (kind != "accuracy" or row.task != _AVERAGE)
    }


def contradicted_averages(dataset: str) -> list[Slip]:
    """Printed averages in a dataset's table that differ from the mean of their printed cells.

    Differences that rounding the average to one digit explains are none.

    Examples
    --------
    >>> from transferable.experiments.published import contradicted_averages
    >>> [slip.method for slip in contradicted_averages("surf")]
    ['SVM', 'CORAL', 'McDA']
    """
    table = [row for row in _rows() if row.table == _ACCURACY_TABLES.get(dataset)]
    slips = []
    for average in (row for row in table if row.task == _AVERAGE):
        cells = [r.value for r in table if r.method == average.method and r.task != _AVERAGE]
        mean = sum(cells) / len(cells)
        if abs(mean - average.value) > _ROUNDING:
            slips.append(Slip(average.method, average.value, mean))
    return slips
