"""What is computed: every (dataset, task, method, setting) of every experiment, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from transferable.experiments import settings
from transferable.experiments.benchmarks import BENCHMARKS
from transferable.experiments.cells import SEED, Cell
from transferable.model_selection import LabelFreeSearch

__all__ = [
    "ABLATION",
    "COMPARED",
    "EXPERIMENTS",
    "FULL_MODEL",
    "GRID",
    "METHOD",
    "METHOD_AS_PUBLISHED",
    "ON_REQUEST",
    "PROTOCOLS",
    "SENSITIVITY",
    "SOURCE_ONLY",
    "TABLES",
    "cells_of",
    "parameter_path",
]

PROTOCOLS = ("fixed", "oracle", "label-free")
_SHALLOW = ("surf", "decaf6", "efficientnet", "digits", "coil")
_DEEP = "digits-full"
TABLES = (*_SHALLOW, _DEEP)
ON_REQUEST = (_DEEP,)  # not among "all": it needs a GPU
# Tables 4 and 5 of the paper are about these datasets, in this order.
COMPARED = ("surf", "coil", "digits")

_OFF: dict[str, dict[str, float]] = {
    "DA": {"alignment": 0.0, "variance": 0.0},
    "LD": {"manifold": 0.0},
    "GD": {"confusion": 0.0},
}
METHOD = "TFDF"
# Rows of these names have one setting, the paper's: there is nothing to search.
_AS_PUBLISHED = " as published"
METHOD_AS_PUBLISHED = METHOD + _AS_PUBLISHED
SOURCE_ONLY, FULL_MODEL = "SRM", "SRM+DA+LD+GD"
# Table 4: structural risk minimisation, distribution alignment (with the variance, which stands for
# the constraint of its derivation), local and global discriminative information.
ABLATION: dict[str, dict[str, float]] = {
    name: {
        k: v for part, off in _OFF.items() if part not in name.split("+") for k, v in off.items()
    }
    for name in (SOURCE_ONLY, "SRM+DA", "SRM+LD", "SRM+DA+LD", FULL_MODEL)
}

_WEIGHTS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
# The paper's grid, by the names that estimators have for p, lambda, rho, eta, delta; lambda of the
# methods that learn a feature space is their "regularization".
GRID: dict[str, tuple[float, ...]] = {
    "n_neighbors": (5, 10, 15, 20, 30),
    "alignment": _WEIGHTS,
    "manifold": _WEIGHTS,
    "ridge": _WEIGHTS,
    "variance": _WEIGHTS,
    "regularization": _WEIGHTS,
}
# Fig. 5: the parameters it varies with the letters it uses, and its tasks.
SENSITIVITY = {"n_neighbors": "p", "manifold": "ρ", "alignment": "λ", "ridge": "η"}
_SENSITIVITY_TASKS = {"digits": ("M", "U"), "coil": ("COIL1", "COIL2"), "surf": ("C", "D")}


def _cell(
    dataset: str,
    pair: tuple[str, str],
    method: str,
    *,
    protocol: str = "fixed",
    name: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Cell:
    """The documented setting of a method with some changes, under a name of its own if need be."""
    estimator = settings.build(dataset, method)
    before = estimator.get_params(deep=True)
    paths = {parameter_path(before, name): value for name, value in (changes or {}).items()}
    changes = {path: value for path, value in paths.items() if before[path] != value}
    seeds = {k: SEED for k in before if k.split("__")[-1] == "random_state"}
    estimator.set_params(**changes, **seeds)
    return Cell(dataset, *pair, name or method, protocol, estimator, changes)


def parameter_path(parameters: Iterable[str], name: str) -> str:
    """The parameter of this name, of the method itself or of one it is wrapped around."""
    return min((p for p in parameters if p == name or p.endswith(f"__{name}")), key=len)


def _pairs(dataset: str) -> list[tuple[str, str]]:
    return BENCHMARKS[dataset].fetch().tasks()


def _table(dataset: str, protocol: str) -> Iterator[Cell]:
    for pair in _pairs(dataset):
        for method in settings.methods(dataset):
            if protocol == "fixed":
                yield _cell(dataset, pair, method)
            elif method.endswith(_AS_PUBLISHED):
                continue
            elif protocol == "oracle":
                yield from _around(dataset, pair, method)
            else:
                yield _searched(dataset, pair, method)


def _trained(protocol: str) -> Iterator[Cell]:
    """The deep methods, which nobody wants to wait for without a GPU."""
    require_gpu(_DEEP)
    yield from _table(_DEEP, protocol)


def require_gpu(experiment: str) -> None:
    """Say in one line what an experiment lacks, if it does."""
    try:
        import torch
    except ImportError:
        raise OSError(
            f"{experiment} trains networks with torch, which is not installed: pip install "
            '"transferable[deep]"'
        ) from None
    if not torch.cuda.is_available():
        raise OSError(
            f"{experiment} trains networks on 67,000 pictures and needs a GPU, of which torch sees "
            "none here."
        )


def _around(
    dataset: str, pair: tuple[str, str], method: str, names: Iterable[str] = tuple(GRID)
) -> Iterator[Cell]:
    """The documented setting, then each parameter over the paper's grid, the others as they are.

    The product of the grids has 33,000 points for TFDF; this is the part of it along its axes.
    """
    centre = _cell(dataset, pair, method, protocol="oracle")
    yield centre
    for path, values in _axes(centre.estimator, names).items():
        for value in values:
            cell = _cell(dataset, pair, method, protocol="oracle", changes={path: value})
            if cell.changes:
                yield cell


def _axes(estimator: Any, names: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """The paper's grid for the parameters of these names that an estimator has."""
    parameters = estimator.get_params(deep=True)
    paths = {path: path.split("__")[-1] for path in parameters}
    return {
        path: GRID[name]
        for path, name in paths.items()
        if name in names and path == parameter_path(parameters, name)
    }


def _searched(dataset: str, pair: tuple[str, str], method: str) -> Cell:
    """A search without target labels over the grid's axes, from the method's own defaults.

    Documented settings do not take part: target accuracy had a say in some. A method without a
    parameter of the grid has its documented setting.
    """
    estimator: Any = settings.build(dataset, method, defaults=True)
    axes = [{path: list(values)} for path, values in _axes(estimator, tuple(GRID)).items()]
    if not axes:
        return _cell(dataset, pair, method)
    search = LabelFreeSearch(estimator, axes)
    names = search.get_params(deep=True)
    search.set_params(**{k: SEED for k in names if k.split("__")[-1] == "random_state"})
    return Cell(dataset, *pair, method, "label-free", search)


def _ablation(protocol: str) -> Iterator[Cell]:
    for dataset in COMPARED:
        for pair in _pairs(dataset):
            for name, changes in ABLATION.items():
                yield _ablated(dataset, pair, name, changes)


def _ablated(dataset: str, pair: tuple[str, str], name: str, changes: Mapping[str, float]) -> Cell:
    """A row of table 4; the full model is TFDF itself and shares its record."""
    name = METHOD if name == FULL_MODEL else name
    return _cell(dataset, pair, METHOD, name=name, changes=changes)


def _fixed(dataset: str, methods: Sequence[str], pair: tuple[str, str]) -> Iterator[Cell]:
    for method in methods:
        if method in ABLATION:
            yield _ablated(dataset, pair, method, ABLATION[method])
        else:
            yield _cell(dataset, pair, method)


def _timing(protocol: str) -> Iterator[Cell]:
    for dataset in COMPARED:
        for pair in _pairs(dataset):
            yield from _fixed(dataset, ("JDA", "MEDA", METHOD), pair)


def _sensitivity(protocol: str) -> Iterator[Cell]:
    for dataset, pair in _SENSITIVITY_TASKS.items():
        yield from _around(dataset, pair, METHOD, SENSITIVITY)


# By name, each experiment's cells under a protocol, and the protocols it exists under. The
# sensitivity study looks at target accuracies along the grid: its records are the oracle's.
_TABLE_PLANS = {
    name: ((lambda protocol, name=name: _table(name, protocol)), PROTOCOLS) for name in _SHALLOW
}
_PLANS: dict[str, tuple[Callable[[str], Iterator[Cell]], tuple[str, ...]]] = {
    **_TABLE_PLANS,
    "ablation": (_ablation, ("fixed",)),
    "timing": (_timing, ("fixed",)),
    "fig-confusion": (
        lambda protocol: _fixed("surf", (SOURCE_ONLY, "MEDA", METHOD), ("D", "W")),
        ("fixed",),
    ),
    "fig-convergence": (
        lambda protocol: _fixed("surf", ("JDA", "MEDA", METHOD), ("C", "D")),
        ("fixed",),
    ),
    "fig-tsne": (
        lambda protocol: _fixed("digits", ("JDA", "MEDA", METHOD), ("U", "M")),
        ("fixed",),
    ),
    "fig-sensitivity": (_sensitivity, ("fixed", "oracle")),
    _DEEP: (_trained, ("fixed",)),
}
EXPERIMENTS = tuple(_PLANS)


def cells_of(experiment: str, protocol: str = "fixed") -> list[Cell]:
    """The cells of an experiment, in the order in which it shows them.

    Parameters
    ----------
    experiment : str
        One of `EXPERIMENTS`.
    protocol : {"fixed", "oracle", "label-free"}, default="fixed"
        ``"fixed"``: the documented setting of the dataset. ``"oracle"``: a search of the paper's
        grid, from which target accuracy picks. ``"label-free"``: a search of it from each method's
        defaults, from which scores pick that see no target label. Ablation, timing and most
        figures exist under ``"fixed"`` only and have no cells otherwise.

    Returns
    -------
    list of Cell
        Possibly none.
    """
    plan, protocols = _PLANS[experiment]
    return list(plan(protocol)) if protocol in protocols else []
