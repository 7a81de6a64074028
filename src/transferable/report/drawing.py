"""Drawings of the report: small panels that a narrow page sets below each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.report.html import text

__all__ = ["CLASS_COLOURS", "curve_panel", "planar", "point_panel"]

# Told apart with any kind of colour vision, and dark enough on white and light enough on black.
CLASS_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#c4679a", "#8c6d31"),
    *("#7a5fd0", "#c22f2f", "#0a8fa3", "#7f8500", "#5c6f87"),
)
_WIDTH, _HEIGHT, _MARGIN = 340, 300, 8


def planar(rows: NDArray[Any], seed: int = 0) -> NDArray[np.float64]:
    """Rows in the plane of their two principal components, within the unit square.

    A single column is the first axis; rows are then spread along the second at random, so that
    they do not hide each other.
    """
    centred = np.asarray(rows, dtype=np.float64) - rows.mean(axis=0)
    if centred.shape[1] == 1:
        spread = np.random.default_rng(seed).uniform(-1, 1, size=(len(centred), 1))
        plane = np.hstack([centred, spread * (np.abs(centred).max() or 1.0)])
    else:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        axes = vectors[:, :-3:-1]
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
        plane = centred @ axes
    low, high = plane.min(axis=0), plane.max(axis=0)
    return (plane - low) / np.where(high > low, high - low, 1.0)


def point_panel(
    title: str,
    description: str,
    points: NDArray[np.float64],
    source: NDArray[np.bool_],
    kinds: Sequence[int],
    *,
    anchors: bool,
) -> str:
    """Source rows as dots and target rows as triangles; classes by number, -1 for none.

    With `anchors`, every target point can be linked to.
    """
    x = _MARGIN + points[:, 0] * (_WIDTH - 2 * _MARGIN)
    y = _HEIGHT - _MARGIN - points[:, 1] * (_HEIGHT - 2 * _MARGIN)
    marks = []
    for i in np.argsort(~source, kind="stable").tolist():
        colour = f"c{kinds[i]}" if kinds[i] >= 0 else "cx"
        if source[i]:
            shape = f'circle cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="2.2"'
        else:
            shape = f'path d="M{x[i]:.1f} {y[i] - 3:.1f}l2.9 5h-5.8z"'
        anchor = f' id="p{i}"' if anchors and not source[i] else ""
        marks.append(
            f'<{shape} class="p {"s" if source[i] else "t"} {colour}" data-r="{i}"{anchor}/>'
        )
    return _panel(title, description, "".join(marks), _HEIGHT, interactive=True)


def curve_panel(title: str, values: Sequence[float], stage: int | None) -> str:
    """A curve over rounds; a line marks where the second stage begins."""
    height, left, bottom = 130, 8, 22
    y = np.asarray(values, dtype=float)
    low, high = float(y.min()), float(y.max())
    span = high - low or 1.0
    step = (_WIDTH - 2 * left) / max(len(y) - 1, 1)
    at = [
        (left + i * step, height - bottom - (v - low) / span * (height - bottom - 22))
        for i, v in enumerate(y.tolist())
    ]
    line = " ".join(f"{px:.1f},{py:.1f}" for px, py in at)
    parts = [f'<polyline class="curve" points="{line}"/>']
    parts += [f'<circle class="knot" cx="{px:.1f}" cy="{py:.1f}" r="2"/>' for px, py in at]
    if stage is not None:
        px = left + (stage - 0.5) * step
        parts.append(
            f'<line class="stage" x1="{px:.1f}" x2="{px:.1f}" y1="14" y2="{height - 20}"/>'
        )
    ends = f"{y[0]:.4g} → {y[-1]:.4g}"
    parts += [
        f'<text x="{left}" y="{height - 6}">round 1</text>',
        f'<text x="{_WIDTH - left}" y="{height - 6}" text-anchor="end">round {len(y)}</text>',
        f'<text x="{_WIDTH - left}" y="12" text-anchor="end">{ends}</text>',
    ]
    return _panel(title, f"{title}: {ends} over {len(y)} rounds.", "".join(parts), height)


def _panel(
    title: str, description: str, content: str, height: int, *, interactive: bool = False
) -> str:
    """A drawing as wide as its column, with words for those who do not see it."""
    kind = "points" if interactive else "curves"
    return (
        f'<figure class="panel"><figcaption>{text(title)}</figcaption>'
        f'<svg class="{kind}" role="img" viewBox="0 0 {_WIDTH} {height}" '
        f'aria-label="{text(description, None)}">{content}</svg></figure>'
    )
