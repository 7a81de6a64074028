"""Small problems of few columns, as people try first: 57 in eleven groups.

Moons, circles, blobs and checkerboards that are turned, moved or scaled, and skada's shifts.
Columns are standardised over both domains. A run writes ``records/small`` and a picture of three.

    python benchmarks/small.py
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import make_circles, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from recording import tabulate
from transferable import TFDF, AutoAdapter

FIGURE = Path(__file__).parents[1] / "docs/figures/small-problems.png"
SHOWN = ("circles; scaled 0", "moons rotated; 30 0", "covariate shift; 100 0")
METHODS: dict[str, Callable[[], Any]] = {
    "LogisticRegression()": lambda: LogisticRegression(max_iter=500),
    "SVC()": SVC,
    "TFDF()": TFDF,
    "AutoAdapter()": AutoAdapter,
}
Rows = NDArray[np.float64]
Problem = tuple[str, str, Rows, NDArray[np.int64], Rows, NDArray[np.int64]]


def problems() -> Iterator[Problem]:
    """Group, name, and rows and labels of source and target."""
    for group, name, Xs, ys, Xt, yt in [*shifted(), *drawn()]:
        both = np.vstack([Xs, Xt])
        mean, deviation = both.mean(axis=0), both.std(axis=0)
        yield group, name, (Xs - mean) / deviation, ys, (Xt - mean) / deviation, yt


def shifted() -> Iterator[Problem]:
    """skada's shifts, of two classes and of several."""
    from skada.datasets import make_shifted_datasets

    kinds = {"covariate_shift": 0.6, "target_shift": 0.8, "conditional_shift": 0.8}
    binary = {"label": "binary", "center_cov_shift": (-0.4, 3)}
    for kind, noise in kinds.items():
        for seed in range(4):
            sizes = [(20, 0.8, binary), (100, noise, binary), (40, 0.5, {"label": "multiclass"})]
            for n, spread, how in sizes:
                X, y, domain = make_shifted_datasets(
                    *(n, n), shift=kind, noise=spread, random_state=seed, **how
                )
                several = "" if how is binary else ", several classes"
                source = domain > 0
                rows = X[source], y[source], X[~source], y[~source]
                yield kind.replace("_", " ") + several, f"{n} {seed}", *rows


def drawn() -> Iterator[Problem]:
    """Shapes of scikit-learn and their like, the target of another draw."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        (X, y), (Z, z) = (make_moons(300, noise=0.12, random_state=s) for s in (seed, seed + 50))
        for angle in (15, 30):
            cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
            yield "moons rotated", f"{angle} {seed}", X, y, Z @ [[cos, sin], [-sin, cos]], z
        yield "moons moved", str(seed), X, y, Z + np.array([0.4, 0.3]), z
        circles = {"noise": 0.1, "factor": 0.5}
        (X, y), (Z, z) = (make_circles(300, random_state=s, **circles) for s in (seed, seed + 50))
        yield "circles", f"scaled {seed}", X, y, Z * 1.3, z
        yield "circles", f"moved {seed}", X, y, Z + 0.3, z
        centres = rng.normal(size=(4, 5)) * 2.2
        y, z = rng.integers(0, 4, 300), rng.integers(0, 4, 300)
        X, Z = centres[y] + rng.normal(size=(300, 5)), centres[z] + rng.normal(size=(300, 5)) + 0.8
        yield "blobs of five columns", str(seed), X, y, Z, z
        X, Z = rng.uniform(-1, 1, (400, 2)), rng.uniform(-1, 1, (400, 2))
        y, z = (((A[:, 0] > 0) ^ (A[:, 1] > 0)).astype(int) for A in (X, Z))
        yield "exclusive or", str(seed), X + 0.05 * rng.normal(size=X.shape), y, Z * 1.2 + 0.1, z


def accuracies(Xs: Rows, ys: Any, Xt: Rows, yt: Any) -> dict[str, float]:
    """Per cent by method."""
    found = {}
    for name, make in METHODS.items():
        model = make()
        model = model.adapt(Xs, ys, Xt) if hasattr(model, "adapt") else model.fit(Xs, ys)
        found[name] = 100 * float(np.mean(model.predict(Xt) == yt))
    return found


def draw(shown: list[Problem]) -> None:
    """Source, target, and decision regions of the SVM and TFDF on each of some problems."""
    figure = Figure(figsize=(8, 2.7 * len(shown)), layout="constrained")
    panels = figure.subplots(len(shown), 3, squeeze=False)
    for row, (group, _, Xs, ys, Xt, yt) in zip(panels, shown, strict=True):
        low, high = np.vstack([Xs, Xt]).min(axis=0) - 0.3, np.vstack([Xs, Xt]).max(axis=0) + 0.3
        grid = np.meshgrid(*(np.linspace(a, b, 120) for a, b in zip(low, high, strict=True)))
        places = np.c_[grid[0].ravel(), grid[1].ravel()]
        row[0].set_ylabel(group)
        row[0].set_title("source")
        row[0].scatter(*Xs.T, c=ys, s=8, cmap="coolwarm")
        models = {"target, SVC()": SVC().fit(Xs, ys), "target, TFDF()": TFDF().adapt(Xs, ys, Xt)}
        for axes, (title, model) in zip(row[1:], models.items(), strict=True):
            regions = model.predict(places).reshape(grid[0].shape)
            axes.contourf(*grid, regions, levels=1, cmap="coolwarm", alpha=0.25)
            axes.scatter(*Xt.T, c=yt, s=8, cmap="coolwarm")
            axes.set_title(f"{title}: {100 * np.mean(model.predict(Xt) == yt):.0f} % right")
        for axes in row:
            axes.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    figure.savefig(FIGURE, dpi=110)


def main() -> None:
    every = list(problems())
    found = Parallel(-1)(delayed(accuracies)(*problem[2:]) for problem in every)
    groups = list(dict.fromkeys(problem[0] for problem in every))
    rows: list[dict[str, Any]] = []
    for group in groups:
        own = [one for one, problem in zip(found, every, strict=True) if problem[0] == group]
        means = {name: float(np.mean([one[name] for one in own])) for name in METHODS}
        rows.append({"group": group, "problems": len(own)} | means)
    means = {name: float(np.mean([row[name] for row in rows])) for name in METHODS}
    tabulate("small/accuracy", [*rows, {"group": "mean", "problems": len(every)} | means])
    draw([problem for problem in every if "; ".join(problem[:2]) in SHOWN])


if __name__ == "__main__":
    main()
