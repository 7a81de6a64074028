"""How often `drift` raises a false alarm on halves of targets, and a true one.

A model that keeps 200 rows of half of a target is shown the other half, some rows of the source,
and the other half with class shares moved. Writes ``records/drift/alarms.csv``, in per cent.

    python benchmarks/drift.py [--draws 20]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from numpy.typing import NDArray

from cases import GROUPS, SHIFTS, Case, table_cases
from recording import tabulate
from transferable.classifiers import AdaptedClassifier
from transferable.diagnostics import drift
from transferable.tables import TableEncoder

MOST_ROWS = 1500
FEW, MANY = 20, 100
COLUMNS = ("other half", "other half, shares moved", f"{MANY} source rows", f"{FEW} source rows")


def arrays(case: Case) -> tuple[NDArray, NDArray, NDArray]:
    """Source rows, target rows and the target's labels."""
    problem = case.load()
    if case.group != "tables":
        return problem.Xs, problem.Xt, problem.yt
    source = problem.source.drop(columns="label")
    encoder = TableEncoder(scale="joint").adapt(source, None, problem.target)
    return encoder.transform(source), encoder.transform(problem.target), problem.yt


def alarms(case: Case, draws: int) -> NDArray[np.float64]:
    """How often there was an alarm over random halves of the target, for each of the columns."""
    Xs, Xt, yt = arrays(case)
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        ours, theirs = np.array_split(rng.permutation(len(Xt)), 2)
        model = AdaptedClassifier().adapt(Xs[:2], [0, 1], Xt[ours])
        _, _, keep = SHIFTS["geometric"].apply(yt, yt[theirs], seed)
        some = rng.permutation(len(Xs))
        shown = Xt[theirs], Xt[theirs][keep], Xs[some[:MANY]], Xs[some[:FEW]]
        found.append([drift(model, rows, random_state=seed).likely for rows in shown])
    return 100 * np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    groups = {
        name: [Case(name, task, max_rows=MOST_ROWS) for task in group.tasks[:4]]
        for name, group in GROUPS.items()
    } | {"tables": list(table_cases(max_rows=MOST_ROWS))}
    rates_of = {
        name: np.array([alarms(case, draws) for case in tasks]) for name, tasks in groups.items()
    }
    rates_of["all"] = np.concatenate(list(rates_of.values()))
    rows = [
        {"group": name, "targets": len(rates)}
        | dict(zip(COLUMNS, rates.mean(axis=0).tolist(), strict=True))
        for name, rates in rates_of.items()
    ]
    tabulate("drift/alarms", rows, keep=draws == parser.get_default("draws"))


if __name__ == "__main__":
    main()
