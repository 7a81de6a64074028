"""Plans: every (dataset, task, method, setting) of every experiment, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transferable.exceptions import installing
from transferable.model_selection import LabelFreeSearch

from . import settings
from .benchmarks import BENCHMARKS, domain_sizes
from .records import SEED, Cell, Record

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
    """Return the documented setting of a method with some changes, perhaps under another name."""
    estimator = settings.build(dataset, method)
    before = estimator.get_params(deep=True)
    paths = {parameter_path(before, name): value for name, value in (changes or {}).items()}
    changes = {path: value for path, value in paths.items() if before[path] != value}
    seeds = {k: SEED for k in before if k.split("__")[-1] == "random_state"}
    estimator.set_params(**changes, **seeds)
    return Cell(dataset, *pair, name or method, protocol, estimator, changes)


def parameter_path(parameters: Iterable[str], name: str) -> str:
    """Return the parameter of this name, of the method itself or of one it is wrapped around."""
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
    """Yield the deep methods, which are too slow without a GPU."""
    require_gpu(_DEEP)
    yield from _table(_DEEP, protocol)


def require_gpu(experiment: str) -> None:
    """Raise OSError, in one line, if torch or a GPU is missing."""
    try:
        import torch
    except ImportError:
        raise OSError(
            f"{experiment} trains networks with torch, which is not installed: "
            + installing("deep")
        ) from None
    if not torch.cuda.is_available():
        raise OSError(
            f"{experiment} trains networks on 67,000 pictures and needs a GPU, of which torch sees "
            "none here."
        )


def _around(
    dataset: str, pair: tuple[str, str], method: str, names: Iterable[str] = tuple(GRID)
) -> Iterator[Cell]:
    """Yield the documented setting, then that with one parameter at a time over the paper's grid.

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
    """Return the paper's grid for the parameters of these names that an estimator has."""
    parameters = estimator.get_params(deep=True)
    paths = {path: path.split("__")[-1] for path in parameters}
    return {
        path: GRID[name]
        for path, name in paths.items()
        if name in names and path == parameter_path(parameters, name)
    }


def _searched(dataset: str, pair: tuple[str, str], method: str) -> Cell:
    """Return a search without target labels over the grid's axes, from the method's own defaults.

    Documented settings do not take part: some were chosen by target accuracy. A method without a
    parameter of the grid has its documented setting.
    """
    estimator: Any = settings.build(dataset, method, defaults=True)
    axes = [{path: list(values)} for path, values in _axes(estimator, tuple(GRID)).items()]
    if not axes:
        return _cell(dataset, pair, method)
    search = LabelFreeSearch(estimator, axes, anchor=None)
    names = search.get_params(deep=True)
    search.set_params(**{k: SEED for k in names if k.split("__")[-1] == "random_state"})
    return Cell(dataset, *pair, method, "label-free", search)


def _ablation(protocol: str) -> Iterator[Cell]:
    for dataset in COMPARED:
        for pair in _pairs(dataset):
            for name, changes in ABLATION.items():
                yield _ablated(dataset, pair, name, changes)


def _ablated(dataset: str, pair: tuple[str, str], name: str, changes: Mapping[str, float]) -> Cell:
    """Return a row of table 4; the full model is TFDF itself and shares its record."""
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


# By name, each experiment's cells under a protocol, and its protocols. The sensitivity study uses
# target accuracies along the grid: its records are the oracle's.
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
    """Return the cells of an experiment, in the order in which it shows them.

    Parameters
    ----------
    experiment : str
        One of `EXPERIMENTS`.
    protocol : {"fixed", "oracle", "label-free"}, default="fixed"
        ``"fixed"``: the documented setting of the dataset. ``"oracle"``: a search of the paper's
        grid, selected by target accuracy. ``"label-free"``: a search of it from each method's
        defaults, selected by scores without target labels. Ablation, timing and most figures exist
        under ``"fixed"`` only and have no cells otherwise.

    Returns
    -------
    list of Cell
        Possibly none.
    """
    plan, protocols = _PLANS[experiment]
    return list(plan(protocol)) if protocol in protocols else []


@dataclass(frozen=True)
class Study:
    """The cells of some experiments under one protocol.

    Attributes
    ----------
    protocol : str
        ``"fixed"``, ``"oracle"`` or ``"label-free"``.
    plan : dict
        Cells by the name of the experiment.
    whole : bool
        Whether all methods take part.
    """

    protocol: str
    plan: dict[str, list[Cell]]
    whole: bool

    @property
    def cells(self) -> list[Cell]:
        """All cells, each once."""
        return list({cell.key: cell for some in self.plan.values() for cell in some}.values())

    def with_data(self) -> tuple[Study, dict[str, int], list[str]]:
        """Read the data once; return the possible part, the rows of each task by key, and messages.

        Raises
        ------
        DataFileError
            If data with a public address is not available.
        """
        cells = self.cells
        sizes, missing = domain_sizes(
            (cell.dataset, domain) for cell in cells for domain in (cell.source, cell.target)
        )
        rows = {
            cell.key: sizes[cell.dataset, cell.source] + sizes[cell.dataset, cell.target]
            for cell in cells
            if (cell.dataset, cell.source) in sizes and (cell.dataset, cell.target) in sizes
        }
        plan = {name: [c for c in some if c.key in rows] for name, some in self.plan.items()}
        messages = [f"{name} goes without domain {d}. {why}" for (name, d), why in missing.items()]
        return replace(self, plan={k: v for k, v in plan.items() if v}), rows, messages

    def answers(self, records: Mapping[str, Record]) -> Iterator[Record]:
        """Yield the records of the study's cells: under the oracle, each task's best."""
        best: dict[tuple[str, str, str], Record] = {}
        shown: dict[str, Record] = {}
        for name, cells in self.plan.items():
            for record in (records[c.key] for c in cells if c.key in records):
                if name not in TABLES or self.protocol != "oracle":
                    shown[record.key] = record
                    continue
                task = (record.dataset, record.task, record.method)
                if task not in best or record.accuracy > best[task].accuracy:
                    best[task] = record
        yield from {**shown, **{record.key: record for record in best.values()}}.values()


def plan_study(
    experiments: Sequence[str] = (),
    *,
    methods: Sequence[str] = (),
    tasks: Sequence[str] = (),
    protocol: str = "fixed",
) -> Study:
    """Plan experiments, by default all that any machine can run, perhaps in part.

    `methods` and `tasks` leave out all others.

    Raises
    ------
    ValueError
        If a name is unknown or nothing is left; it lists the choices.
    """
    _refuse_unknown("experiment", experiments, EXPERIMENTS)
    _refuse_unknown("protocol", [protocol], PROTOCOLS)
    usual = [name for name in EXPERIMENTS if name not in ON_REQUEST]
    chosen = tuple(dict.fromkeys(experiments or usual))
    everything = {name: cells_of(name, protocol) for name in chosen}
    cells = [cell for some in everything.values() for cell in some]
    _refuse_unknown("method", methods, list(dict.fromkeys(cell.method for cell in cells)))
    _refuse_unknown("task", tasks, list(dict.fromkeys(cell.task for cell in cells)))
    plan = {
        name: [
            cell
            for cell in some
            if (not methods or cell.method in methods) and (not tasks or cell.task in tasks)
        ]
        for name, some in everything.items()
    }
    plan = {name: some for name, some in plan.items() if some}
    if not plan:
        raise ValueError(
            f"Nothing is left of {', '.join(chosen)} under the protocol {protocol!r} with the "
            "methods and tasks that were named."
        )
    return Study(protocol, plan, whole=not methods)


def _refuse_unknown(kind: str, names: Sequence[str], known: Collection[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown and known:
        raise ValueError(f"Unknown {kind} {unknown[0]!r}; choose from {', '.join(known)}.")
