"""What benchmarks/deep.py measures: the digits in every framing, and one function for each table.

A job is a dictionary: its table, method, task, seed and what else names it. Target labels are read
to score what was fitted, never before.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

from paper import settings
from paper.benchmarks import BENCHMARKS, FRAMINGS, in_frame, read_digits
from transferable import deep
from transferable.classifiers import TFDFV
from transferable.deep.networks import Network
from transferable.metrics import neighbor_consistency
from transferable.model_selection import LabelFreeSearch

DIRECTIONS = ("M->U", "U->M")
RUNS = 5  # with seeds of their own
HALVES = ("14567", "02489", "14589", "02357", "13468", "05679")
DIGITS = "digits-full"
FEATURES = ("efficientnet", "surf", "decaf6")
ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "deep" / "digits.npz"

# What was tried where a first setting was below earlier measurements, as changes of settings.toml,
# which has the best.
TRIALS: dict[str, list[dict[str, Any]]] = {
    "ADDA": [{"adversarial_epochs": 6}, {"adversarial_rate": 2e-4}],
    "CMD": [{"weight": 0.3}, {"weight": 1.0}],
    "DDC": [{"weight": 0.3}, {"weight": 1.0}],
}
# Settings of TFDF-V on features, as DeepTFDF has them where it keeps the class shares.
CLOSED_FORM: dict[str, Any] = {
    "manifold": 5.0,
    "manifold_dim": None,
    "n_neighbors": 10,
    "n_landmarks": 2000,
    "balance": 0.9,
    "class_shares": "source",
}
GRID = [
    {"information": information, "temperature": temperature}
    for information in (0.3, 1.0)
    for temperature in (0.1, 0.2)
]


def jobs() -> list[dict[str, Any]]:
    """All jobs, the most important first."""
    heads = ("DeepTFDF", "SourceOnly")
    names = [*heads, *(name for name in settings.methods(DIGITS) if name not in heads)]
    found = [_job("full", n, t, s) for s in range(RUNS) for n in names for t in DIRECTIONS]
    found += [_job("exact", name, "U->M", 0) for name in ("DANN", "DeepTFDF")]
    found += [_job("half", "DeepTFDF", t, 0, half=half) for half in HALVES for t in DIRECTIONS]
    found += [
        _job("framing", name, task, 0, framing=framing)
        for framing in FRAMINGS
        for name in heads
        for task in DIRECTIONS
    ]
    found += [_job("target", "SourceOnly", task, s) for task in DIRECTIONS for s in range(RUNS)]
    found += [
        _job("skada", name, task, 0)
        for name in ("SourceOnly", "DeepTFDF", "DeepCORAL", "MCC", "DAN", "DANN")
        for task in DIRECTIONS
    ]
    found += [
        _job("choice", "DeepTFDF", task, 0, setting=k)
        for k in range(len(GRID))
        for task in DIRECTIONS
    ]
    found += [_job("search", "DeepTFDF", task, 0) for task in DIRECTIONS]
    found += [
        _job("half", name, task, 0, half=half)
        for half in HALVES
        for name in ("DeepCORAL", "MCC")
        for task in DIRECTIONS
    ]
    found += [
        _job("framing", name, task, 0, framing=framing)
        for framing in FRAMINGS
        for name in ("DeepCORAL", "MCC")
        for task in DIRECTIONS
    ]
    found += [
        _job("trial", name, task, seed, setting=k)
        for seed in range(RUNS)
        for name, some in TRIALS.items()
        for k in range(len(some))
        for task in DIRECTIONS
    ]
    return found + feature_jobs()


def feature_jobs() -> list[dict[str, Any]]:
    """The small network on feature files; these run on the CPU."""
    tasks = {
        name: [(s, t) for s in letters for t in letters if s != t]
        for name, letters in zip(FEATURES, ("CAWD", "CAWD", "WD"), strict=True)
    }
    names = ("SourceOnly", "DeepTFDF", "DeepCORAL", "MCC", "DANN", "DAN", "CMD", "DDC")
    return [
        _job("features", name, f"{s}->{t}", 0, data=data, device="cpu")
        for data, pairs in tasks.items()
        for s, t in pairs
        for name in names
    ]


def _job(table: str, method: str, task: str, seed: int, **more: Any) -> dict[str, Any]:
    return {"table": table, "method": method, "task": task, "seed": seed, **more}


def key(job: dict[str, Any]) -> str:
    """The name of a job, the same in every run."""
    return " ".join(f"{name}={job[name]}" for name in sorted(job) if name != "device")


def measure(job: dict[str, Any], device: str, steps: int | None) -> dict[str, Any]:
    """Run one job; the record holds the job, accuracies in percent and the seconds."""
    started = perf_counter()
    common = {"random_state": job["seed"], "device": job.get("device", device)}
    if steps is not None:
        common["epoch_steps"] = steps
    table = {"half": _half, "framing": _framing, "target": _on_target, "skada": _skada}
    more = {"choice": _choice, "search": _search, "features": _features, "exact": _exact}
    run = {"full": _full, "trial": _trial, **table, **more}[job["table"]]
    return job | run(job, common) | {"seconds": perf_counter() - started}


def _estimator(name: str, *settings: dict[str, Any]) -> Any:
    merged = {key: value for setting in settings for key, value in setting.items()}
    return getattr(deep, name)(**merged)


def _of_digits(name: str, *changes: dict[str, Any]) -> Any:
    """A method with its setting of full digits, changed; a GPU's last bits vary, as by default."""
    model: Any = settings.build(DIGITS, name)
    model.set_params(deterministic=False)
    for some in changes:
        model.set_params(**some)
    return model


def _full(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    source, target, test = task(job["task"], "resized")
    model = _of_digits(job["method"], common).adapt(*source, target[0])
    record = _scores(model, target, test)
    if job["method"] == "SourceOnly":
        labels = model.predict(target[0])
        for half in HALVES:
            left = _of_classes(target[1], half)
            record[f"half {half}"] = _percent(labels[left] == target[1][left])
        record |= _tfdf_on_features(model, source, target, test, common["device"])
    return record


def _half(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    source, (Xt, yt), (Xv, yv) = task(job["task"], "resized")
    left, kept = _of_classes(yt, job["half"]), _of_classes(yv, job["half"])
    model = _of_digits(job["method"], common).adapt(*source, Xt[left])
    return _scores(model, (Xt[left], yt[left]), (Xv[kept], yv[kept]))


def _framing(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    source, target, test = task(job["task"], job["framing"])
    model = _of_digits(job["method"], common, {"augment": None}).adapt(*source, target[0])
    record = _scores(model, target, test)
    if job["method"] == "SourceOnly":
        record |= _tfdf_on_features(model, source, target, test, common["device"])
    return record


def _on_target(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """The same network trained on the target's labels: what it could do at best."""
    _, target, test = task(job["task"], "resized")
    return _scores(_of_digits("SourceOnly", common).fit(*target), target, test)


def _trial(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """A setting that was tried, beside that of the table."""
    source, target, test = task(job["task"], "resized")
    model = _of_digits(job["method"], TRIALS[job["method"]][job["setting"]], common)
    return _scores(model.adapt(*source, target[0]), target, test)


def _skada(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """skada-bench's protocol: pad 6, its network, SGD, ten epochs, 80 of 100 rows of both files."""
    (Xs, ys), (Xt, yt), _ = task(job["task"], "pad6")
    Xs, Xt = ((X - X.mean()) / X.std() for X in (_unit(Xs), _unit(Xt)))
    rng = np.random.default_rng(0)
    s, t = (rng.permutation(len(y)) for y in (ys, yt))
    s, held, t = s[: int(0.8 * len(s))], t[int(0.8 * len(t)) :], t[: int(0.8 * len(t))]
    own = {
        "network": shallow, "optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.6,
        "schedule": "constant", "weight_decay": 0.0, "batch_size": 256, "epochs": 10,
    }  # fmt: skip
    weights = {"DeepCORAL": {"weight": 1e3}, "MCC": {"weight": 0.1, "temperature": 2.0}}
    model = _estimator(job["method"], own, weights.get(job["method"], {}), common)
    model.adapt(Xs[s], ys[s], Xt[t])
    return _scores(model, (Xt[t], yt[t]), (Xt[held], yt[held]))


def shallow(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """The network of skada-bench's digits: 32 and 64 filters, 128 units."""
    filters = nn.Sequential(
        nn.Conv2d(input_shape[0], 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
    )  # fmt: skip
    return Network(filters, nn.Sequential(nn.Dropout(0.5), nn.Linear(128, n_classes)))


def _choice(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """One setting of DeepTFDF and its scores without target labels."""
    source, target, test = task(job["task"], "resized")
    model = _of_digits("DeepTFDF", GRID[job["setting"]], common).adapt(*source, target[0])
    rows = _unit(target[0]).reshape(len(target[0]), -1)[:10_000]
    labels = model.predict(target[0][:10_000])
    return _scores(model, target, test) | {
        "neighbors": neighbor_consistency(rows, labels, 5),
        "agreement": model.history_[-1]["agreement"],
        "entropy": model.history_[-1]["entropy"],
    }


def _search(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """The library's search on 10,000 rows of each domain, then a fit of all with its setting."""
    source, target, test = task(job["task"], "resized")
    grid = {name: sorted({setting[name] for setting in GRID}) for name in GRID[0]}
    flat = _of_digits("DeepTFDF", common, {"input_shape": (1, 28, 28)})
    search = LabelFreeSearch(flat, grid, scoring="neighbors", anchor=None)
    Xs, Xt = (_unit(X[:10_000]).reshape(-1, 784) for X in (source[0], target[0]))
    search.adapt(Xs, source[1][: len(Xs)], Xt)
    model = _of_digits("DeepTFDF", common, search.best_params_).adapt(*source, target[0])
    return _scores(model, target, test) | {"chosen": search.best_params_}


def _exact(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """Whether two fits with one seed give the same to the bit, if that was asked for."""
    source, target, _ = task(job["task"], "resized")
    more = {"n_rounds": 2} if job["method"] == "DeepTFDF" else {}
    short = {"epochs": 1, "epoch_steps": 100, "deterministic": True}
    model = _of_digits(job["method"], common, short, more)
    X = target[0][:8000]
    first, second = (model.adapt(*source, X).predict_proba(X) for _ in range(2))
    return {"exact": bool((first == second).all())}


def _features(job: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(1)
    task = BENCHMARKS[job["data"]].fetch().task(*job["task"].split("->"))
    Xs, Xt = (StandardScaler().fit_transform(X).astype(np.float32) for X in (task.Xs, task.Xt))
    own = {"epochs": 10, "epoch_steps": 60, "batch_size": 64}
    more = {"DeepTFDF": {"n_rounds": 5}, "MCC": {"warmup_epochs": 3}}.get(job["method"], {})
    model = _estimator(job["method"], own, more, common).adapt(Xs, task.ys, Xt)
    return {"adapted": _percent(model.predict(Xt) == task.yt)}


def _tfdf_on_features(
    model: Any, source: Any, target: Any, test: Any, device: str
) -> dict[str, float]:
    Zs, Zt, Zv = (model.transform(X) for X in (source[0], target[0], test[0]))
    settings = CLOSED_FORM | {"n_landmarks": min(2000, len(Zs) // 4), "device": device}
    tfdf = TFDFV(**settings).adapt(Zs, source[1], Zt)
    return {
        "tfdf adapted": _percent(tfdf.predict(Zt) == target[1]),
        "tfdf test": _percent(tfdf.predict(Zv) == test[1]),
    }


def _scores(model: Any, target: Any, test: Any) -> dict[str, Any]:
    right = model.predict(target[0]) == target[1]
    record: dict[str, Any] = {
        "adapted": _percent(right),
        "test": _percent(model.predict(test[0]) == test[1]),
        "by class": [_percent(right[target[1] == c]) for c in np.unique(target[1])],
    }
    rounds = [entry for entry in model.history_ if "class_shares" in entry]
    if rounds:
        record["class_shares"] = [entry["class_shares"] for entry in rounds]
        record["agreements"] = [entry["agreement"] for entry in rounds]
        record["neighbors"] = [entry["neighbors"] for entry in rounds]
    return record


def _percent(right: np.ndarray) -> float:
    return round(100 * float(np.mean(right)), 3)


def _of_classes(y: np.ndarray, digits: str) -> np.ndarray:
    return np.isin(y, [int(digit) for digit in digits])


def _unit(pixels: np.ndarray) -> np.ndarray:
    return pixels.astype(np.float32) / 255


def task(direction: str, framing: str) -> tuple[Any, Any, Any]:
    """Source and target (train files) and the target's test file: 28 x 28 pixels, digits."""
    names = direction.split("->")
    source, target = (_framed(name, framing) for name in names)
    return source[0], target[0], target[1]


@cache
def _framed(name: str, framing: str) -> list[tuple[np.ndarray, np.ndarray]]:
    parts = _digits()[name]
    limit = int(os.environ.get("DEEP_ROWS", "0")) or None
    parts = [(X[:limit], y[:limit]) for X, y in parts]
    return parts if name == "M" else [(in_frame(X, framing), y) for X, y in parts]


@cache
def _digits() -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Train and test files of both domains, from the cache if it was made."""
    if not CACHE.exists():
        make_cache()
    with np.load(CACHE) as held:
        return {
            name: [(held[f"{name}{part}"], held[f"{name}{part}_y"]) for part in ("train", "test")]
            for name in "MU"
        }


def make_cache() -> None:
    """Read the data folder's files once and keep the pixels as bytes."""
    held: dict[str, np.ndarray] = {}
    for name in "MU":
        for part in ("train", "test"):
            held[f"{name}{part}"], held[f"{name}{part}_y"] = read_digits(name, part)
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(CACHE, **held)
