"""Problems with shifted class shares, made of real data: what the safety benchmarks run on.

A case is a task of one of five groups, or a pair of tables, whose target lost rows by class. Rows
are removed after the published preprocessing; the source stays as it is. The same group, task,
shift and seed give the same rows everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from paper.benchmarks import BENCHMARKS
from transferable.datasets import fetch_tables, load_printed_to_handwritten
from transferable.datasets._files import TABLES

__all__ = ["GROUPS", "SHIFTS", "Case", "Shift", "cases", "development_cases", "table_cases"]


@dataclass(frozen=True)
class Shift:
    """What happens to the classes and to their shares in the target.

    Attributes
    ----------
    kind : {"as is", "partial", "geometric"}
        "partial" keeps a random half of the classes, rounded up; "geometric" keeps a row of the
        k-th class of a random order with probability 10^(-k / (C - 1)).
    n_classes : int or None
        Classes are first joined at random into so many.
    seeds : int
        How many draws the protocol makes.
    """

    kind: str
    n_classes: int | None = None
    seeds: int = 1

    def apply(self, ys: NDArray, yt: NDArray, seed: int) -> tuple[NDArray, NDArray, NDArray]:
        """Labels of the source, labels of the target, and which of the target's rows stay."""
        rng = np.random.default_rng(seed)
        classes, codes = np.unique(np.concatenate([ys, yt]), return_inverse=True)
        if self.n_classes is not None:
            codes = joined(len(classes), self.n_classes, rng)[codes]
        source, target = codes[: len(ys)], codes[len(ys) :]
        order = rng.permutation(codes.max() + 1)
        keep = np.ones(len(target), dtype=bool)
        if self.kind == "partial":
            keep = np.isin(target, order[: -(-len(order) // 2)])
        elif self.kind == "geometric":
            rank = np.argsort(order)[target]
            keep = rng.random(len(target)) < 10.0 ** (-rank / (len(order) - 1))
        return source, target[keep], keep


def joined(n_classes: int, n_joined: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """For each class the one it becomes part of; all get as many classes as they can."""
    return rng.permutation(np.arange(n_classes) % n_joined)


SHIFTS: dict[str, Shift] = {
    "as it is": Shift("as is"),
    "partial": Shift("partial", seeds=3),
    "geometric": Shift("geometric", seeds=3),
    **{f"merged {c}, partial": Shift("partial", c, seeds=2) for c in (2, 3, 5)},
    **{f"merged {c}, as is": Shift("as is", c) for c in (2, 3, 5)},
    "merged 2, geometric": Shift("geometric", 2),
}


@dataclass(frozen=True)
class Group:
    """Tasks of one dataset that count together."""

    tasks: tuple[str, ...]
    load: Callable[[str], Bunch]
    max_rows: int | None = None  # of each domain, in the protocol of class shares


def _benchmark(name: str) -> Callable[[str], Bunch]:
    def load(task: str) -> Bunch:
        return BENCHMARKS[name].fetch().task(*task.split("->"))

    return load


def _all_pairs(domains: str) -> tuple[str, ...]:
    return tuple(f"{s}->{t}" for s in domains for t in domains if s != t)


GROUPS: dict[str, Group] = {
    "surf": Group(_all_pairs("CAWD"), _benchmark("surf")),
    "efficientnet": Group(
        ("C->W", "A->W", "A->C", "C->D", "W->C", "D->A"), _benchmark("efficientnet")
    ),
    "coil": Group(("COIL1->COIL2", "COIL2->COIL1"), _benchmark("coil")),
    "digits": Group(("U->M", "M->U"), _benchmark("digits"), 1000),
    "printed": Group(("printed->handwritten",), lambda _: load_printed_to_handwritten(), 1000),
}


@dataclass(frozen=True)
class Case:
    """One problem: a task, a shift of its class shares, a seed.

    The field `max_rows` bounds the rows of each domain before any are removed.
    """

    group: str
    task: str
    shift: str = "as it is"
    seed: int = 0
    max_rows: int | None = None

    @property
    def name(self) -> str:
        """All fields as text."""
        return " ".join(f"{key}={value}" for key, value in asdict(self).items())

    def load(self) -> Bunch:
        """Rows and labels: `Xs`, `ys`, `Xt`, `yt`; of tables `source` and `target` beside them."""
        if self.group == "tables":
            return self._load_tables()
        task = _task(self.group, self.task)
        ours, theirs = self._some(len(task.ys)), self._some(len(task.yt))
        ys, yt = task.ys[ours], task.yt[theirs]
        ys, yt, keep = SHIFTS[self.shift].apply(ys, yt, self.seed)
        return Bunch(Xs=task.Xs[ours], ys=ys, Xt=task.Xt[theirs][keep], yt=yt)

    def _load_tables(self) -> Bunch:
        pair = fetch_tables([self.task])[self.task]
        ours, theirs = self._some(len(pair.source)), self._some(len(pair.target))
        return Bunch(
            source=pair.source.iloc[ours].reset_index(drop=True),
            target=pair.target.iloc[theirs].reset_index(drop=True),
            yt=pair.yt[theirs],
        )

    def _some(self, n: int) -> NDArray[np.intp]:
        """Positions of the rows that are used, evenly spaced."""
        return np.linspace(0, n - 1, min(n, self.max_rows or n)).astype(np.intp)


@cache
def _task(group: str, task: str) -> Bunch:
    return GROUPS[group].load(task)


def cases(
    groups: Iterable[str] = tuple(GROUPS),
    shifts: Iterable[str] = tuple(s for s in SHIFTS if s != "merged 2, geometric"),
    *,
    max_rows: int | None = None,
    seeds: int | None = None,
) -> Iterator[Case]:
    """The cases of the protocol, group by group; `max_rows` and `seeds` override its numbers."""
    for name in groups:
        group = GROUPS[name]
        for task in group.tasks:
            for shift in shifts:
                for seed in range(seeds or SHIFTS[shift].seeds):
                    yield Case(name, task, shift, seed, max_rows or group.max_rows)


def table_cases(*, max_rows: int | None = None) -> Iterator[Case]:
    """The pairs of tables, as they are."""
    for name in TABLES:
        yield Case("tables", name, max_rows=max_rows)


# Of the groups with many tasks some, of which every domain is a source and a target.
_DEVELOPMENT = {
    "surf": ("C->A", "C->W", "A->D", "W->C", "D->A", "D->W"),
    "efficientnet": ("C->W", "A->C", "W->C", "D->A"),
    **{name: GROUPS[name].tasks for name in ("coil", "digits", "printed")},
}
_DRAWN_TWICE = ("surf", "efficientnet")
_MERGED = ("merged 2, as is", "merged 3, partial", "merged 2, geometric")


def development_cases(*, max_rows: int = 600, table_rows: int = 800) -> Iterator[Case]:
    """The 127 cases that AutoAdapter was made on: small problems of every kind and shift."""
    for group, tasks in _DEVELOPMENT.items():
        for task in tasks:
            for shift in ("as it is", "partial", "geometric", *_MERGED):
                twice = shift in ("partial", "geometric") and group in _DRAWN_TWICE
                for seed in range(1 + twice):
                    yield Case(group, task, shift, seed, max_rows)
    yield from table_cases(max_rows=table_rows)
