"""How far the verdict on labels holds, and what an audit of a few rows buys.

AutoAdapter labels the 127 development cases of cases.py, made-up ones (targets without signal,
mirrored, negated, rotated, with unknown classes, one column, moved or scaled columns), bag-of-words
text and the simulated shifts of SKADA-Bench. Of each, the verdict is compared with the truth; of
all but the made-up ones, audits of 10, 20 and 40 rows are drawn 20 times. Results are kept as JSON
lines in ``build/trust/records.jsonl``, so that a run that was stopped goes on. A whole run writes
the tables of ``records/trust``.

    python benchmarks/trust.py [--kinds development,made,text,shifts] [--draws 20] [--part 0/2]

For ``interval-left-out`` the constants of the interval are fitted anew to all families but one, and
used on that one.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from cases import Case, development_cases
from recording import tabulate
from transferable import AutoAdapter
from transferable.tables import TableEncoder
from transferable.trust import audited_accuracy, rows_to_label

ROOT = Path(__file__).parents[1]
SIZES = (10, 20, 40)
SLACK = 0.08  # of the interval, beside its slopes
KINDS = ("development", "made", "text", "shifts")
SHIFTS = ("covariate_shift", "target_shift", "conditional_shift", "subspace")  # as skada names them
Problem = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
Records = list[dict[str, Any]]


def arrays(case: Case) -> Problem:
    """Rows and labels of a case; tables as `transferable adapt` encodes them for AutoAdapter."""
    problem = case.load()
    if case.group != "tables":
        return tuple(np.asarray(problem[name]) for name in ("Xs", "ys", "Xt", "yt"))  # type: ignore[return-value]
    source, target = problem.source.drop(columns="label"), problem.target
    encoder = TableEncoder(scale="auto").adapt(source, None, target)
    if encoder.scale_ == "per-domain":
        encoder = TableEncoder(scale="joint").adapt(source, None, target)
    Xs, Xt = encoder.transform(source, np.ones(len(source))), encoder.transform(target)
    return Xs, problem.source["label"].to_numpy(), Xt, np.asarray(problem.yt)


def _no_signal(Xs, ys, Xt, yt, rng):
    return Xs, ys, np.column_stack([rng.permutation(column) for column in Xt.T]), yt


def _mirrored(Xs, ys, Xt, yt, rng):
    classes = np.unique(ys)
    return Xs, ys, Xt, np.roll(classes, 1)[np.searchsorted(classes, yt).clip(max=len(classes) - 1)]


def _negated(Xs, ys, Xt, yt, rng):
    return Xs, ys, 2 * Xt.mean(axis=0) - Xt, yt


def _rotated(Xs, ys, Xt, yt, rng):
    Q = np.linalg.qr(rng.normal(size=(Xt.shape[1],) * 2))[0]
    return Xs, ys, (Xt - Xt.mean(axis=0)) @ Q + Xt.mean(axis=0), yt


def _unknown(Xs, ys, Xt, yt, rng):
    classes = rng.permutation(np.unique(ys))
    known = ~np.isin(ys, classes[: int(0.4 * len(classes))])
    return Xs[known], ys[known], Xt, yt


def _one_column(Xs, ys, Xt, yt, rng):
    column = [int(np.argmax(Xs.var(axis=0)))]
    return Xs[:, column], ys, Xt[:, column], yt


def _moved(Xs, ys, Xt, yt, rng):
    return Xs, ys, Xt + 3 * Xs.std(axis=0), yt


def _scaled(Xs, ys, Xt, yt, rng):
    return Xs, ys, Xt * rng.uniform(0.3, 3, Xt.shape[1]), yt


MADE: dict[str, Callable[..., Problem]] = {
    "no signal": _no_signal,
    "mirrored": _mirrored,
    "negated": _negated,
    "rotated": _rotated,
    "unknown classes": _unknown,
    "one column": _one_column,
    "columns moved": _moved,
    "columns scaled": _scaled,
}


def words(n_classes: int, style: str, strength: float, seed: int) -> Problem:
    """Bags of words: classes differ in few words of many, documents and domains in topics."""
    rng, n, size = np.random.default_rng(seed), 500, 1500
    common = rng.dirichlet(np.full(size, 0.05))
    shared = rng.choice(size, size=(n_classes, 60))
    found = []
    for _ in range(2):
        theme = rng.dirichlet(np.full(size, 0.05))
        topics = rng.dirichlet(np.full(size, 0.03), 12)
        own = rng.choice(size, size=(n_classes, 40))
        y, X = rng.integers(n_classes, size=n), np.zeros((n, size))
        for i, c in enumerate(y):
            p = 0.35 * common + 0.35 * topics[rng.integers(12)] + 0.2 * theme
            p = p + strength * 0.06 * np.bincount(shared[c], minlength=size) / 60
            p = p + strength * 0.05 * np.bincount(own[c], minlength=size) / 40
            X[i] = rng.multinomial(rng.poisson(80) + 10, p / p.sum())
        X = np.log1p(X) if style == "log counts" else (X > 0).astype(float)
        found += [X / np.linalg.norm(X, axis=1, keepdims=True) if style == "log counts" else X, y]
    return tuple(found)  # type: ignore[return-value]


def simulated(shift: str, seed: int) -> Problem:
    """One of the four simulated shifts of SKADA-Bench, by skada's generator and its settings."""
    from skada.datasets import make_shifted_datasets

    noise, size = (0.4, 300) if shift == "subspace" else (0.8, 100)
    X, y, domain = make_shifted_datasets(size, size, shift=shift, noise=noise, random_state=seed)
    return X[domain > 0], y[domain > 0], X[domain < 0], y[domain < 0]


def problems(kinds: list[str]) -> Iterator[tuple[str, str, str, Callable[[], Problem]]]:
    """Kind, family, name, and what makes the rows."""
    if "development" in kinds:
        for case in development_cases():
            shift = "tables" if case.group == "tables" else case.shift
            yield "development", case.group, f"{shift}|{case.name}", lambda c=case: arrays(c)
    if "made" in kinds:
        whole = [c for c in development_cases() if c.shift in ("as it is", "merged 2, as is")]
        for k, case in enumerate(whole):
            for j, (name, change) in enumerate(MADE.items()):
                if (k + j) % 2 or (name == "unknown classes" and "merged" in case.shift):
                    continue
                yield (
                    name,
                    case.group,
                    case.name,
                    lambda c=case, f=change, s=k: f(*arrays(c), np.random.default_rng(s)),
                )
    if "text" in kinds:
        for seed in range(4):
            for n_classes in (2, 4):
                for style in ("log counts", "flags"):
                    for strength in (0.7, 1.5):
                        given = n_classes, style, strength, seed
                        yield "text", style, str(given), lambda g=given: words(*g)
    if "shifts" in kinds:
        for shift in SHIFTS:
            for seed in range(5):
                yield "shifts", shift, str(seed), lambda g=(shift, seed): simulated(*g)


def measure(kind: str, family: str, name: str, rows: Problem, draws: int) -> dict[str, Any]:
    Xs, ys, Xt, yt = rows
    if kind == "unknown classes" and len(np.unique(ys)) < 2:
        return {}
    start = process_time()
    model = AutoAdapter().adapt(Xs, ys, Xt)
    seconds = process_time() - start
    trust, labels, P = model.trust_, model.predict(Xt), model.predict_proba(Xt)
    scaler = StandardScaler().fit(Xs) if family == "tables" else None
    As, At = (Xs, Xt) if scaler is None else (scaler.transform(Xs), scaler.transform(Xt))
    linear = LogisticRegression(max_iter=1000).fit(As, ys).predict(At)
    unknown = ~np.isin(yt, model.classes_)
    largest = float(np.bincount(P.argmax(axis=1)).max() / len(P))
    record: dict[str, Any] = {
        "kind": kind, "family": family, "name": name, "n": len(yt),
        "accuracy": float(np.mean(labels == yt)), "linear": float(np.mean(linear == yt)),
        "state": trust.state, "low": trust.low, "high": trust.high, "support": trust.support,
        "doubt": float(1 - P.max(axis=1).mean()), "largest": largest,
        "changed": trust.changed / trust.rows,
        "source_only": float(np.mean(model.predict_source_only(Xt) == yt)),
        "unfamiliar": float(model.unfamiliar_.mean()), "seconds": round(seconds, 2),
    }  # fmt: skip
    if unknown.any() and not unknown.all():
        record["found"] = float(model.unfamiliar_[unknown].mean())
        record["found_wrongly"] = float(model.unfamiliar_[~unknown].mean())
        consensus = model.consensus_
        target = consensus.target
        measure = (target.gap + consensus.uncertainty)[target.near].mean(axis=1)
        record["auroc"] = float(roc_auc_score(unknown[target.places], measure))
        record["auroc of doubt"] = float(roc_auc_score(unknown, 1 - P.max(axis=1)))
    places = model.consensus_.target.places
    strata, confidence = model.consensus_.strata, P[places].max(axis=1)
    for size in SIZES if draws and kind not in MADE else ():
        found = []
        for draw in range(draws):
            some, _ = rows_to_label(
                strata, confidence, min(size, len(yt) - 1), np.random.default_rng(draw)
            )
            chosen = places[some]
            audit = model.audit(chosen, yt[chosen])
            rest = np.setdiff1d(np.arange(len(yt)), chosen)
            both = np.vstack([As, At[chosen]]), np.concatenate([ys, yt[chosen]])
            counts = np.r_[np.ones(len(ys)), np.full(len(chosen), 10.0)]
            plain = LogisticRegression(max_iter=1000).fit(*both, sample_weight=counts)
            found.append(
                {
                    "estimate": audit.accuracy,
                    "holds": audit.low <= record["accuracy"] <= audit.high,
                    "width": audit.high - audit.low,
                    "better": audit.better,
                    "before": float(np.mean(labels[rest] == yt[rest])),
                    "after": float(np.mean(audit.labels[rest] == yt[rest])),
                    "linear": float(np.mean(linear[rest] == yt[rest])),
                    "plain": float(np.mean(plain.predict(At[rest]) == yt[rest])),
                    "left_out": audit.corrected,
                }
            )
        record[f"audit {size}"] = summary(found, record)
    return record


def summary(found: list[dict[str, Any]], record: dict[str, Any]) -> dict[str, float]:
    """Means over the draws of one size."""
    after = np.array([one["after"] for one in found])
    gap = record["accuracy"] - record["source_only"]
    right = "adapted" if gap > 0 else "source-only"
    return {
        "estimate": float(np.mean([one["estimate"] for one in found])),
        "holds": float(np.mean([one["holds"] for one in found])),
        "width": float(np.mean([one["width"] for one in found])),
        "named": float(np.mean([one["better"] == right for one in found])),
        "misnamed": float(np.mean([one["better"] not in (right, None) for one in found])),
        "before": float(np.mean([one["before"] for one in found])),
        "after": float(after.mean()),
        "plain": float(np.mean([one["plain"] for one in found])),
        "below linear by 1": float(np.mean([o["after"] < o["linear"] - 0.01 for o in found])),
        "below linear by 5": float(np.mean([o["after"] < o["linear"] - 0.05 for o in found])),
        "left_out_holds": float(
            np.mean([o["left_out"][1] <= o["after"] <= o["left_out"][2] for o in found])
        ),
    }


def percent(values: Any, digits: int = 0) -> str:
    values = np.asarray(values, dtype=float)
    return f"{100 * values.mean():.{digits}f}" if values.size else ""


def interval(
    records: Records, slack: float, most: float, least: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ends of the intervals of records, by the constants of :func:`transferable.trust.assess`."""
    columns = ("doubt", "largest", "n")
    doubt, largest, n = (np.array([r[name] for r in records]) for name in columns)
    slack, beyond = np.hypot(slack, 0.5 / np.sqrt(n)), np.maximum(0, largest - 1 + doubt)
    low = 1 - slack - most * doubt - beyond
    return np.maximum(0, low), np.minimum(1, 1 + slack - least * doubt)


def fitted_interval(records: Records) -> tuple[float, float, float]:
    """Slopes of the narrowest interval that holds on nine in ten cases of each family.

    The slack is not fitted: the least one is that of the families whose labels are nearly all
    right, and too little for others.
    """
    truth = np.array([r["accuracy"] for r in records])
    family = np.array([r["family"] for r in records])
    best = (np.inf, (SLACK, 1.35, 0.35))
    steps = product((SLACK,), np.arange(0.6, 2.45, 0.05), np.arange(-0.3, 0.95, 0.05))
    for constants in steps:
        low, high = interval(records, *constants)
        holds = (truth >= low) & (truth <= high)
        each = [np.mean(holds[family == name]) for name in np.unique(family)]
        width = float(np.mean(high - low))
        if min(each) >= 0.9 and width < best[0]:
            best = width, constants
    return best[1]


def groups(records: Records) -> dict[str, Records]:
    """Records by the name of a row of the tables; those of development by family and together."""
    found: dict[str, Records] = {}
    for kind in KINDS:
        own = [r for r in records if r["kind"] == kind]
        for family in dict.fromkeys(r["family"] for r in own):
            found[f"{kind}, {family}"] = [r for r in own if r["family"] == family]
        if kind == "development":
            found["development, all"] = own
            found |= {name: [r for r in records if r["kind"] == name] for name in MADE}
    return {name: some for name, some in found.items() if some}


def verdicts(records: Records) -> Records:
    rows = []
    for name, some in groups(records).items():
        used = [r["accuracy"] for r in some if r["state"] == "use"]
        rows.append({
            "cases of": name,
            "cases": len(some),
            "use": len(used),
            "lowest accuracy of these": percent(used and min(used)),
            "75 or more of these": sum(accuracy >= 0.75 for accuracy in used),
            "check": sum(r["state"] == "check" for r in some),
            "reject": sum(r["state"] == "reject" for r in some),
            "accuracy": percent([r["accuracy"] for r in some], 1),
            "interval holds": percent([r["low"] <= r["accuracy"] <= r["high"] for r in some]),
            "interval width": percent([r["high"] - r["low"] for r in some]),
        })  # fmt: skip
    return rows


def left_out(records: Records) -> Records:
    """How often the interval holds on a family whose cases had no part in its slopes."""
    rows, development = [], [r for r in records if r["kind"] == "development"]
    families = list(dict.fromkeys(r["family"] for r in development))
    for family in families if len(families) > 1 else ():
        fitted = fitted_interval([r for r in development if r["family"] != family])
        own = [r for r in development if r["family"] == family]
        truth = np.array([r["accuracy"] for r in own])
        low, high = interval(own, *fitted)
        holds = (low <= truth) & (truth <= high)
        rows.append({"family": family, "interval holds": percent(holds)})
    return rows


def audits(records: Records) -> Records:
    """What audits say of the labels in use, and the accuracy on rows that were not audited."""
    rows = []
    for name, some in groups([r for r in records if "audit 20" in r]).items():
        for size in SIZES:
            found = [r[f"audit {size}"] | {"truth": r["accuracy"]} for r in some]
            far = [r[f"audit {size}"] for r in some if abs(r["accuracy"] - r["source_only"]) > 0.02]
            rows.append({
                "cases of": name,
                "rows audited": size,
                "interval holds": percent([f["holds"] for f in found]),
                "interval width": percent([f["width"] for f in found]),
                "bias": percent([f["estimate"] - f["truth"] for f in found], 1),
                "better named": percent([f["named"] for f in far]),
                "misnamed": percent([f["misnamed"] for f in far], 1),
                "accuracy before": percent([f["before"] for f in found], 1),
                "accuracy after": percent([f["after"] for f in found], 1),
                "logistic regression": percent([f["plain"] for f in found], 1),
                "more than 1 below linear": percent([f["below linear by 1"] for f in found], 1),
                "more than 5 below linear": percent([f["below linear by 5"] for f in found], 1),
                "left-out interval holds": percent([f["left_out_holds"] for f in found]),
            })  # fmt: skip
    return rows


def unfamiliar(records: Records) -> Records:
    """Rows that were marked, where the source lacks 40 % of the classes and where it has all."""
    rows, development = [], [r for r in records if r["kind"] == "development"]
    for family in dict.fromkeys(r["family"] for r in development):
        found = [r for r in records if (r["kind"], r["family"]) == ("unknown classes", family)]
        found = [r for r in found if "found" in r]
        closed = [r["unfamiliar"] for r in development if r["family"] == family]
        rows.append({
            "family": family,
            "of unknown classes": percent([r["found"] for r in found]),
            "of known ones": percent([r["found_wrongly"] for r in found]),
            "closed sets": percent(closed),
            "AUROC": f"{np.mean([r['auroc'] for r in found]):.2f}" if found else None,
            "AUROC of 1 - confidence": (
                f"{np.mean([r['auroc of doubt'] for r in found]):.2f}" if found else None
            ),
        })  # fmt: skip
    return rows


def simulated_intervals(draws: int = 150) -> Records:
    """How often the interval of an audit holds, for targets of 3,000 rows with known accuracies."""
    found = defaultdict(list)
    parts = product((0, 0.1, 0.3), (0, 0.05))
    rights = list(product((0.1, 0.5, 0.9), (0.1, 0.5, 0.9), (0.7, 0.95, 1.0)))
    for (disputed, unfamiliar), accuracies in product(parts, rights):
        sizes = np.rint(3000 * np.array([disputed, unfamiliar, 1 - disputed - unfamiliar]))
        shares = zip(sizes.astype(int), accuracies, strict=True)
        right = np.concatenate([np.arange(n) < share * n for n, share in shares])
        strata = np.repeat([0, 1, 2], sizes.astype(int))
        for size in (10, 30, 50):
            rng, held = np.random.default_rng(0), np.zeros((draws, 2))
            for k in range(draws):
                rows, weights = rows_to_label(strata, np.zeros(3000), size, rng)
                _, low, high = audited_accuracy(right[rows], weights)
                held[k] = low <= right.mean() <= high, high - low
            found[size, accuracies[-1]].append(held.mean(axis=0))
    return [
        {
            "rows audited": size,
            "accuracy elsewhere": f"{100 * other:.0f}",
            "targets": len(some),
            "interval holds": percent([held for held, _ in some], 1),
            "in the worst": percent(min(held for held, _ in some), 1),
            "mean width": percent([width for _, width in some]),
        }
        for (size, other), some in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--part", default="0/1", help="every so manieth problem, as 0/2 and 1/2")
    parser.add_argument("--records", type=Path, default=ROOT / "build/trust/records.jsonl")
    arguments = parser.parse_args()
    path, kinds = arguments.records, arguments.kinds.split(",")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = {(r["kind"], r["family"], r["name"]): r for r in map(json.loads, lines)}
    part, parts = map(int, arguments.part.split("/"))
    wanted = list(problems(kinds))
    with path.open("a", encoding="utf-8") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, family, name, make in wanted[part::parts]:
            if (kind, family, name) in known:
                continue
            record = measure(kind, family, name, make(), arguments.draws)
            if record:
                file.write(json.dumps(record) + "\n")
                file.flush()
                known[kind, family, name] = record
                print(
                    kind,
                    family,
                    name,
                    f"{100 * record['accuracy']:.1f}",
                    record["state"],
                    flush=True,
                )
    if parts > 1:
        return
    records, keep = list(known.values()), tuple(kinds) == KINDS
    tabulate("trust/verdicts", verdicts(records), keep=keep)
    tabulate("trust/interval-left-out", left_out(records), keep=keep)
    tabulate("trust/audits", audits(records), keep=keep)
    tabulate("trust/unfamiliar", unfamiliar(records), keep=keep)
    tabulate("trust/intervals-simulated", simulated_intervals(), keep=keep)
    print(f"Processor time of the fits: {sum(r['seconds'] for r in records) / 60:.0f} minutes.")


if __name__ == "__main__":
    main()
