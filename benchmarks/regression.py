"""Numbers under shift: every method on 28 pairs of tables, and what twenty measured rows buy.

Errors are root mean squared ones on the target over that of the best of the source: of ridge,
kernel ridge, histogram boosting and a forest, the one with the least error on source rows that
were left out, which a careful person would use. Means are geometric, within each of twelve
families and then over families. Results are kept in ``build/regression/records.jsonl``, so that a
run that was stopped goes on; code that changed is run again. A whole run writes
``records/regression``.

    python benchmarks/regression.py [--pairs wine-rw,air-co]
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import KFold, cross_val_predict

from paper.records import code_version
from recording import tabulate
from transferable import AutoRegressor
from transferable.datasets import get_data_home
from transferable.regressors import AdaptedRegressor, ImportanceWeightedRegressor
from transferable.regressors._measured import rows_to_measure
from transferable.regressors._stack import LeftOutRidge
from transferable.transformers import (
    CORAL,
    GFK,
    TCA,
    LinearOTMapping,
    PerDomainScaler,
    SubspaceAlignment,
)

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "build" / "regression" / "records.jsonl"
DRAWS, ROWS = 10, 20
FOREST = RandomForestRegressor(200, min_samples_leaf=2, max_features=0.5, random_state=0)
SOURCE = {
    "ridge": LeftOutRidge(),
    "kernel ridge": LeftOutRidge(kernel=True),
    "histogram boosting": HistGradientBoostingRegressor(random_state=0),
    "forest": FOREST,
}
WEIGHTS = ("logistic", "nearest", "kliep", "ulsif", "kmm")
ALIGNED = {
    "CORAL, ridge": AdaptedRegressor(CORAL()),
    "CORAL, forest": AdaptedRegressor(CORAL(), FOREST),
    "linear transport, ridge": AdaptedRegressor(LinearOTMapping()),
    "subspace alignment, ridge": AdaptedRegressor(SubspaceAlignment()),
    "GFK, ridge": AdaptedRegressor(GFK()),
    "TCA, forest": AdaptedRegressor(TCA(), FOREST),
    "own scales, forest": AdaptedRegressor(PerDomainScaler(), FOREST),
    **{f"{w} weights, forest": ImportanceWeightedRegressor(FOREST, ratio=w) for w in WEIGHTS},
}
AUTO = "AutoRegressor"
AUDITED = "AutoRegressor, 20 measured rows"
Arrays = tuple[Any, Any, Any, Any]


def read(pair: str) -> Arrays:
    """Numbers, medians of the source for missing ones, and flags of texts both domains have."""
    folder = get_data_home() / "regression" / pair
    source, target = (pd.read_csv(folder / f"{name}.csv.gz") for name in ("source", "target"))
    ys, yt = (table.pop("label").to_numpy(float) for table in (source, target))
    parts: list[list[Any]] = [[], []]
    for name in source:
        tables = [table[name] for table in (source, target)]
        if all(pd.api.types.is_numeric_dtype(column) for column in tables):
            found = [
                column.fillna(tables[0].median()).to_numpy(float)[:, None] for column in tables
            ]
        else:
            texts = [column.fillna("missing").astype(str).to_numpy() for column in tables]
            both = np.intersect1d(*texts)
            found = [(text[:, None] == both).astype(float) for text in texts]
        for part, column in zip(parts, found, strict=True):
            part.append(column)
    Xs, Xt = map(np.hstack, parts)
    mean, deviation = Xs.mean(axis=0), Xs.std(axis=0)
    kept = deviation > 1e-12
    Xs, Xt = (((X - mean) / np.where(kept, deviation, 1))[:, kept] for X in (Xs, Xt))
    return Xs, ys, Xt, yt


def rmse(predicted: Any, true: Any) -> float:
    return float(np.sqrt(np.mean((predicted - true) ** 2)))


def of_source(Xs: Any, ys: Any, Xt: Any, yt: Any) -> dict[str, Any]:
    """Errors of models of the source alone, and of the best of these."""
    errors, left_out = {}, {}
    for name, model in SOURCE.items():
        fitted = clone(model).fit(Xs, ys)
        errors[name] = rmse(fitted.predict(Xt), yt)
        out = getattr(fitted, "left_out_", None)
        if out is None:
            out = cross_val_predict(clone(model), Xs, ys, cv=KFold(5, shuffle=True, random_state=0))
        left_out[name] = rmse(out, ys)
    return {"rmse": errors, "best": errors[min(left_out, key=left_out.get)]}  # type: ignore[arg-type]


def audits(model: AutoRegressor, Xt: Any, yt: Any) -> dict[str, Any]:
    """What twenty measured rows buy, over draws of these, on the rows that were not measured."""
    before = model.labels_.prediction.to_numpy()
    off, found = np.abs(before - yt), []
    for seed in range(DRAWS):
        rows = rows_to_measure(before, ROWS, seed).rows
        rest = np.setdiff1d(np.arange(len(yt)), rows)
        audit = model.audit(rows, yt[rows])
        table = audit.model.labels_.iloc[rest]
        now = np.abs(table.prediction - yt[rest])
        found.append(
            {
                "rmse": rmse(table.prediction, yt[rest]),
                "over before": rmse(table.prediction, yt[rest]) / rmse(before[rest], yt[rest]),
                "coverage": float(np.mean((table.low <= yt[rest]) & (yt[rest] <= table.high))),
                "error holds": bool(audit.low <= np.median(off) <= audit.high),
                "corrected holds": bool(audit.corrected[1] <= np.median(now) <= audit.corrected[2]),
            }
        )
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def measured(pair: str, method: str) -> dict[str, Any]:
    """One line of the records."""
    Xs, ys, Xt, yt = read(pair)
    start = process_time()
    record: dict[str, Any] = {"pair": pair, "method": method, "version": code_version()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "source":
            record |= of_source(Xs, ys, Xt, yt)
        elif method == AUTO:
            model = AutoRegressor().adapt(Xs, ys, Xt)
            record |= {"seconds": process_time() - start}
            record |= {"rmse": rmse(model.predict(Xt), yt), "audit": audits(model, Xt, yt)}
        else:
            fitted = clone(ALIGNED[method]).adapt(Xs, ys, Xt)
            record |= {"rmse": rmse(fitted.predict(Xt), yt)}
    return {"seconds": process_time() - start} | record


def collected(pairs: list[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Records of all pairs and methods, those that are missing computed."""
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    known = {(r["pair"], r["method"], r["version"]): r for r in map(json.loads, lines)}
    found = {}
    with RECORDS.open("a", encoding="utf-8") as file:
        for method in (AUTO, "source", *ALIGNED):
            for pair in pairs:
                record = known.get((pair, method, code_version()))
                if record is None:
                    record = measured(pair, method)
                    file.write(json.dumps(record) + "\n")
                    file.flush()
                    print(pair, method, f"{record['seconds']:.1f} s", flush=True)
                found[pair, method] = record
    return found


def family_mean(values: dict[str, float], without: str = "") -> float:
    """The geometric mean within families, then over families."""
    families: dict[str, list[float]] = {}
    for pair, value in values.items():
        if pair.split("-")[0] != without:
            families.setdefault(pair.split("-")[0], []).append(float(np.log(value)))
    return float(np.exp(np.mean([np.mean(logs) for logs in families.values()])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", help="some of the pairs, with commas; the tables are printed")
    some = parser.parse_args().pairs
    every = sorted(
        path.name for path in (get_data_home() / "regression").iterdir() if path.is_dir()
    )
    pairs = some.split(",") if some else every
    found = collected(pairs)
    best = {pair: found[pair, "source"]["best"] for pair in pairs}

    def ratios(of: Callable[[str], float]) -> dict[str, float]:
        return {pair: of(pair) / best[pair] for pair in pairs}

    methods = {AUTO: ratios(lambda p: found[p, AUTO]["rmse"])}
    methods |= {AUDITED: ratios(lambda p: found[p, AUTO]["audit"]["rmse"])}
    methods |= {name: ratios(lambda p, n=name: found[p, "source"]["rmse"][n]) for name in SOURCE}
    methods |= {name: ratios(lambda p, n=name: found[p, n]["rmse"]) for name in ALIGNED}
    families = dict.fromkeys(pair.split("-")[0] for pair in pairs)
    rows = [
        {
            "method": name,
            "error over best of source": 100 * family_mean(values),
            "with a family left out, most": max(100 * family_mean(values, f) for f in families),
            "pairs worse by more than 10 %": sum(value > 1.1 for value in values.values()),
            "worst": 100 * max(values.values()),
        }
        for name, values in methods.items()
    ]
    tabulate("regression/methods", rows, keep=not some)
    by_pair = [
        {
            "pair": pair,
            "error over best of source": 100 * methods[AUTO][pair],
            "20 measured rows": 100 * methods[AUDITED][pair],
            "over before": 100 * found[pair, AUTO]["audit"]["over before"],
            "coverage": 100 * found[pair, AUTO]["audit"]["coverage"],
            "error holds": 100 * found[pair, AUTO]["audit"]["error holds"],
            "corrected holds": 100 * found[pair, AUTO]["audit"]["corrected holds"],
            "seconds": found[pair, AUTO]["seconds"],
        }
        for pair in pairs
    ]
    columns = [name for name in by_pair[0] if name not in ("pair", "seconds")]
    mean = {name: float(np.mean([row[name] for row in by_pair])) for name in columns}
    tabulate("regression/pairs", [*by_pair, {"pair": "mean", **mean}], keep=not some)


if __name__ == "__main__":
    main()
