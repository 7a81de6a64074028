"""Time and peak memory of the transformers as rows grow, each fit in a process of its own.

Rows are of ten Gaussian classes in 64 features, half of them in each domain; the target's are
turned and moved. Seconds are those of ``fit`` and of ``transform`` of all rows; memory is the peak
of the process, of which the rows themselves and the library are the column "GB at start". One line
of JSON for each fit, then ``records/scaling/transformers.csv``, with the exponent by which the time
of a round grows.

    python benchmarks/scale_transformers.py --rows 20000 80000 320000
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from recording import tabulate
from transferable.transformers import CORAL, JDA, TCA

CONTESTS: dict[str, Any] = {
    "TCA": TCA(),
    "TCA rbf": TCA(kernel="rbf", n_landmarks=1000),
    "JDA": JDA(),
    "JDA rbf": JDA(kernel="rbf", n_landmarks=1000),
    "CORAL": CORAL(),
}


def rows(n: int, d: int = 64, n_classes: int = 10) -> tuple[NDArray, NDArray, NDArray]:
    """Single precision rows, source first, with labels and marks of the domains."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_classes, d))
    tilt = 0.03 * rng.normal(size=(d, d))
    y = rng.integers(n_classes, size=n)
    X = rng.standard_normal(size=(n, d), dtype=np.float32)
    X *= np.linspace(0.3, 1.5, d, dtype=np.float32)
    X += centres.astype(np.float32)[y]
    target = X[n // 2 :]
    target[:] = target @ expm(tilt - tilt.T).astype(np.float32)
    target += 0.5 * rng.standard_normal(size=d, dtype=np.float32)
    return X, y, np.where(np.arange(n) < n // 2, 1, -1)


def peak() -> float:
    """Most memory that the process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(name: str, n: int) -> dict[str, Any]:
    """One fit."""
    X, y, marks = rows(n)
    model, start = CONTESTS[name], peak()
    began = perf_counter()
    model.fit(X, y, sample_domain=marks)
    fitted = perf_counter()
    model.transform(X, sample_domain=marks)
    done = perf_counter()
    found = getattr(model, "transduction_", None)
    return {
        "method": name,
        "rows": n,
        "fit_s": round(fitted - began, 2),
        "transform_s": round(done - fitted, 2),
        "start_gb": round(start, 2),
        "peak_gb": round(peak(), 2),
        "rounds": getattr(model, "n_iter_", 1),
        "accuracy": None if found is None else round(float(np.mean((found == y)[marks < 0])), 4),
    }


def in_a_process(name: str, n: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", name, str(n)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return json.loads(done.stdout)


def growth(fits: list[dict[str, Any]]) -> float:
    """Exponent of the time of one round from the fewest to the most rows."""
    first, last = fits[0], fits[-1]
    times = [fit["fit_s"] / fit["rounds"] for fit in (first, last)]
    return math.log(times[1] / times[0]) / math.log(last["rows"] / first["rows"])


def table(results: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The columns of ``records/scaling/transformers.csv``."""
    return [
        {
            "method": name,
            "rows": fit["rows"],
            "fit seconds": f"{fit['fit_s']:.2f}",
            "transform seconds": f"{fit['transform_s']:.2f}",
            "rounds": fit["rounds"],
            "GB at start": f"{fit['start_gb']:.2f}",
            "peak GB": f"{fit['peak_gb']:.2f}",
            "accuracy": None if fit["accuracy"] is None else 100 * fit["accuracy"],
            "exponent of a round": f"{growth(fits):.2f}" if fit is fits[-1] and fits[1:] else None,
        }
        for name, fits in results.items()
        for fit in fits
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 80_000, 320_000])
    parser.add_argument("--methods", nargs="+", choices=CONTESTS, default=list(CONTESTS))
    parser.add_argument("--one", nargs=2, metavar=("METHOD", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    results: dict[str, list[dict[str, Any]]] = {}
    for name in options.methods:
        for n in options.rows:
            results.setdefault(name, []).append(in_a_process(name, n))
            print(json.dumps(results[name][-1]), flush=True)
    given = {name: parser.get_default(name) for name in vars(options)}
    tabulate("scaling/transformers", table(results), keep=vars(options) == given)


if __name__ == "__main__":
    main()
