"""Drawings of the report that are not Displays of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from transferable.plots._style import DOMAIN_COLOURS, INK, finish, new_axes, plain

__all__ = ["MOST_CLASSES", "class_balance", "confidence_histogram"]

MOST_CLASSES = 30


def class_balance(shares: Mapping[str, NDArray[np.float64]], classes: list[Any]) -> Figure:
    """Bars of each class's share of the rows, for the source and the predicted target."""
    height = 0.36 * len(classes)
    (ax,) = new_axes(None, 1, "panels", panel=(6.5, height), extra=(0.0, 1.0))
    places, thickness = np.arange(len(classes)), 0.38
    for i, (name, values) in enumerate(shares.items()):
        ax.barh(
            places + (i - 0.5) * thickness,
            100 * values,
            thickness,
            label=name,
            color=DOMAIN_COLOURS[i],
            hatch=("", "////")[i],
            edgecolor="white",
            linewidth=0,
        )
    finish(ax, "", "share of rows (%)")
    ax.set_yticks(places, [plain(c) for c in classes])
    ax.set_ylim(len(classes) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.figure.legend(loc="outside upper center", ncols=2, frameon=False, labelcolor=INK)
    return ax.figure


def confidence_histogram(confidence: NDArray[np.float64]) -> Figure:
    """How many target rows got a label with how much confidence."""
    (ax,) = new_axes(None, 1, "panels", panel=(6.5, 2.3))
    ax.hist(confidence, bins=np.linspace(0, 1, 21).tolist(), color=DOMAIN_COLOURS[1], rwidth=0.92)
    finish(ax, "", "confidence (probability of the predicted class)")
    ax.set_xlim(0, 1)
    ax.set_ylabel("target rows", color=INK)
    ax.grid(visible=False, axis="x")
    return ax.figure
