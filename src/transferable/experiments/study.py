"""A study: some experiments under one protocol, from their plan to their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from transferable.experiments.benchmarks import domain_sizes
from transferable.experiments.cells import Cell
from transferable.experiments.plans import (
    EXPERIMENTS,
    ON_REQUEST,
    PROTOCOLS,
    TABLES,
    cells_of,
)
from transferable.experiments.records import Record, RecordStore
from transferable.experiments.runner import Run, run_cells

__all__ = ["Study", "plan_study"]


@dataclass(frozen=True)
class Study:
    """The cells of some experiments.

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
        """Read the data once; give what it allows, the rows of each task by key, and messages.

        Raises
        ------
        DataFileError
            If data that has a public address cannot be had.
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

    def run(
        self,
        store: RecordStore,
        rows: dict[str, int],
        *,
        jobs: int,
        finished: Callable[[Cell, Record | None], None],
    ) -> Run:
        """Compute what the store lacks, the largest tasks first."""
        cells = sorted(self.cells, key=lambda cell: -rows[cell.key])
        return run_cells(cells, store, jobs=jobs, finished=finished)

    def answers(self, run: Run) -> Iterator[Record]:
        """The records that stand for the study's cells: under the oracle, each task's best."""
        best: dict[tuple[str, str, str], Record] = {}
        shown: dict[str, Record] = {}
        for name, cells in self.plan.items():
            for record in (run.records[c.key] for c in cells if c.key in run.records):
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
    """Plan experiments, if none is named all that any machine can run, perhaps in part.

    `methods` and `tasks` leave out all others.

    Raises
    ------
    ValueError
        If a name is unknown or nothing is left; it says what there is.
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
