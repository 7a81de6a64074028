"""Whether two source trees of the library compute the same: scores, labels and predictions.

Each tree fits the same problems in a process of its own. Scores may differ by rounding, labels and
predictions not at all. One line is printed for each problem and a last one with counts; the exit
status is 1 if anything differs.

    python benchmarks/differential.py --before PATH/src [--after PATH/src] [--only WORD]
    python benchmarks/differential.py --before PATH/src --planted   # an error of 1e-6 is found
    python benchmarks/differential.py --before PATH/src --timing    # processor seconds of both
"""

from __future__ import annotations

import argparse
import inspect
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

OWN = Path(__file__).resolve().parents[1] / "src"
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}  # shares of the range of the scores
PLANTED = 1e-6  # relative error of the first of these parameters that an estimator has
PLANTABLE = ("ridge", "regularization")
# What parameters became: a name that a tree lacks passes its value on, or is left out.
RENAMED = {"n_anchors": "graph"}
DROPPED = {"record_history"}
# Methods that are compared with their defaults.
OTHERS = (
    *("CAPLS", "DASVM", "EasyTL", "ImportanceWeighted", "JDOTClassifier", "LabelPropagation"),
    *("SPL", "SelfTraining", "TrAdaBoost", "LDML", "LPJT", "LandmarkFeatures", "LinearOTMapping"),
    *("MarginalizedDenoising", "OTMapping", "PerDomainScaler", "SCA", "TJM"),
)
REPEATS = 3  # of each timed fit and side
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Problem:
    """One fit: an estimator, rows, and the form in which they are given."""

    title: str
    method: str = "TFDF"  # "TFDF.as_published" and "dask.TFDF" too
    rows: str = "digits"  # "toy", "digits", "half", "thousand", "whole" or "many"
    parameters: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] | None = None  # of a LabelFreeSearch
    dtype: str = "float64"
    sparse: bool = False
    weighted: bool = False
    twins: bool = False  # some rows are there twice
    n_sources: int = 1
    known: float = 0.0  # share of the target rows whose labels are given
    target: bool = True

    def needs(self) -> str | None:
        """What has to be installed besides the library."""
        on_torch = self.parameters.get("device") == "torch"
        return "torch" if on_torch else "dask" if self.method.startswith("dask.") else None


def problems() -> list[Problem]:
    """All of them."""
    off = {"class_shares": "source", "manifold": 1.0, "manifold_dim": 5, "balance": 0.5}
    given = {"class_shares": np.linspace(1, 2, 10) / np.linspace(1, 2, 10).sum()}
    absent = {"class_shares": np.repeat([0.2, 0.0], 5)}
    use, second, few = {"target_labels": "use"}, {"second_order": 1.0}, {"n_landmarks": 60}
    anchors = {"graph": "anchors", "n_anchors": 12}
    first = {"estimator": LogisticRegression()}
    found = [
        Problem("toy, nothing automatic", rows="toy", parameters=off),
        Problem("toy, no target", rows="toy", target=False),
        Problem("toy, twins", rows="toy", twins=True),
        Problem("toy, TFDF as published", "TFDF.as_published", "toy"),
        Problem("toy, weights, two sources", rows="toy", weighted=True, n_sources=2),
        Problem("toy, over Dask", "dask.TFDF", "toy", {"n_landmarks": 30}),
        Problem("half, given shares", rows="half", parameters=absent),
        Problem("half, estimated shares", rows="half", parameters={"class_shares": "estimated"}),
        Problem("half, MEDA over Dask", "dask.MEDA", "half", few),
        Problem("two sources, given weights", n_sources=2, parameters={"source_weights": [3, 1]}),
        Problem("known labels, given shares", known=0.2, parameters=use | given),
        Problem("no alignment", parameters={"alignment": 0.0}),
        Problem("no flow", parameters={"manifold_dim": None}),
        Problem("no history", parameters={"record_history": False}),
        Problem("linear kernel", parameters={"kernel": "linear"}),
        Problem("poly kernel", parameters={"kernel": "poly"}),
        Problem("TFDFV as published", "TFDFV.as_published"),
        Problem("over Dask", "dask.TFDF", parameters=few),
        Problem("search", parameters=off, grid={"alignment": [1.0, 10.0], "manifold": [0.1, 1.0]}),
        Problem("AutoAdapter", "AutoAdapter", parameters={"effort": "fast"}),
        Problem("DMM", "DMM", rows="toy"),
        Problem("CORAL, two sources", "CORAL", n_sources=2),
        Problem("JDA, landmarks", "JDA", parameters={"kernel": "rbf", "n_landmarks": 60}),
        Problem("GFK", "GFK", parameters={"n_components": 10}),
        Problem("SubspaceAlignment", "SubspaceAlignment", parameters={"n_components": 10}),
    ]
    found += [
        Problem(name, name, parameters={"n_components": 10})
        for name in ("TCA", "JDA", "BDA", "JGSA", "McDA")
    ]
    found += [Problem(name, name) for name in OTHERS]
    for how, more in (("exact", {}), ("landmarks", few)):
        both = [Problem(name, name) for name in ("TFDF", "TFDFV", "MEDA", "ARTL")]
        both += [
            Problem("toy", rows="toy"),
            Problem("half", rows="half"),
            Problem("on torch", parameters={"device": "torch"}),
            Problem("weights", weighted=True),
            Problem("two sources", n_sources=2),
            Problem("known labels", known=0.2, parameters=use),
            Problem("given shares", parameters=given),
            Problem("sparse", sparse=True),
            Problem("float32", dtype="float32"),
            Problem("second order", parameters=second),
            Problem("anchors", parameters=anchors),
            Problem("from an estimator", parameters=first),
        ]
        found += [
            replace(each, title=f"{each.title}, {how}", parameters=each.parameters | more)
            for each in both
        ]
    return [each for each in found if each.needs() is None or find_spec(each.needs())]


def timed() -> list[Problem]:
    """Larger fits, of which the time is compared."""
    grid = {"alignment": [1.0, 3.0, 10.0, 30.0, 100.0], "manifold": [0.1, 0.3, 1.0, 3.0]}
    return [
        Problem("printed digits, whole task", rows="whole"),
        Problem("30,000 rows, landmarks", rows="many"),
        Problem("search of 20 settings", rows="thousand", grid=grid),
    ]


@cache
def rows_of(name: str) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Xs, ys, Xt, yt and new rows of the target."""
    rng = np.random.default_rng(0)
    if name in ("toy", "many"):
        n, d, classes = (40, 10, 3) if name == "toy" else (15_000, 32, 10)
        means = (2.0 if name == "toy" else 0.8) * rng.normal(size=(classes, d))
        ys, yt = rng.integers(classes, size=(2, n))
        Xs, Xt = (means[y] + rng.normal(size=(n, d)) for y in (ys, yt))
        new = means[ys[:20]] + rng.normal(size=(20, d)) + 0.5
        return Xs, ys, Xt + 0.5, yt, new
    from transferable.datasets import load_printed_to_handwritten

    task = load_printed_to_handwritten()
    if name == "whole":
        return task.Xs, task.ys, task.Xt, task.yt, task.Xt[:20]
    s, t = rng.permutation(len(task.ys)), rng.permutation(len(task.yt))
    if name == "half":
        t = t[task.yt[t] < 5]
    n = 500 if name == "thousand" else 150
    s, t, new = s[:n], t[:n], t[n : n + 50]
    return task.Xs[s], task.ys[s], task.Xt[t], task.yt[t], task.Xt[new]


def estimator(problem: Problem, error: float = 0.0) -> Any:
    """The estimator of a problem, with the names that this tree has for its parameters."""
    import transferable.classifiers
    import transferable.transformers
    from transferable.model_selection import LabelFreeSearch

    name, _, published = problem.method.removeprefix("dask.").partition(".")
    homes: list[Any] = [transferable.classifiers, transferable.transformers]
    if find_spec("transferable.experimental"):  # a tree may have all methods in the other two
        homes.append(import_module("transferable.experimental"))
    if problem.method.startswith("dask."):
        import transferable.dask

        homes = [transferable.dask]
    kind = next(getattr(home, name) for home in homes if hasattr(home, name))
    known = inspect.signature(kind).parameters
    parameters = dict(problem.parameters)
    for before, after in RENAMED.items():
        if before in parameters and before not in known:
            parameters[after] = parameters.pop(before)
    for name in DROPPED - set(known):
        parameters.pop(name, None)
    model = kind.as_published(**parameters) if published else kind(**parameters)
    if error:
        name = next(name for name in PLANTABLE if name in known)
        model.set_params(**{name: getattr(model, name) * (1 + error)})
    if problem.grid is None:
        return model
    search = LabelFreeSearch(model, problem.grid)
    if "anchor" in search.get_params(deep=False):  # older sources have none
        search.set_params(anchor=None)
    return search


def plantable(problem: Problem) -> bool:
    """Whether an error can be planted that is larger than what may differ."""
    known = inspect.signature(type(estimator(replace(problem, grid=None)))).parameters
    return problem.dtype == "float64" and any(name in known for name in PLANTABLE)


def scores_of(model: Any, X: Any, marks: Any = None) -> NDArray[Any]:
    """Scores of rows by class, or where the estimator maps rows to."""
    for way in ("decision_function", "predict_proba"):
        if hasattr(model, way):
            return np.asarray(getattr(model, way)(X))
    return np.asarray(model.transform(X, marks if isinstance(X, np.ndarray) else None))


def fitted(problem: Problem, error: float = 0.0) -> tuple[Any, Any, Any, Any]:
    """The fitted estimator, its rows with their marks, and new rows."""
    Xs, ys, Xt, yt, new = rows_of(problem.rows)
    if problem.twins:
        places = np.where(np.arange(len(ys)) % 3 == 0, np.arange(len(ys)) // 2, np.arange(len(ys)))
        Xs, ys, Xt, yt = Xs[places], ys[places], Xt[places], yt[places]
    sources = 1 + np.arange(len(ys)) % problem.n_sources
    y = np.r_[ys, np.where(np.arange(len(yt)) < problem.known * len(yt), yt, -1)]
    X, marks = np.vstack([Xs, Xt]), np.r_[sources, np.full(len(yt), -1)]
    if not problem.target:
        X, y, marks = Xs, ys, None
    X, new = X.astype(problem.dtype), new.astype(problem.dtype)
    options = {}
    if problem.weighted:
        options["sample_weight"] = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    if problem.sparse:
        X, new = sp.csr_array(X), sp.csr_array(new)
    if problem.method.startswith("dask."):
        import dask.array as da

        X, y, marks, new = (da.from_array(a, chunks=(70, *a.shape[1:])) for a in (X, y, marks, new))
    model = estimator(problem, error).fit(X, y, sample_domain=marks, **options)
    return model, X, marks, new


def results(problem: Problem, error: float) -> Arrays:
    """What a tree computes of a problem."""
    model, X, marks, new = fitted(problem, error)
    found = {"scores": scores_of(model, X, marks), "scores of new rows": scores_of(model, new)}
    if hasattr(model, "transduction_"):  # source rows have their given label
        target = slice(None) if marks is None else np.asarray(marks) < 0
        found["transduction_"] = np.asarray(model.transduction_)[target]
    if hasattr(model, "predict"):
        found["predictions"] = np.asarray(model.predict(new))
    return found


def work(out: Path, only: str, error: float | None) -> None:
    """Fit the problems by the library that this process imports, and keep the results.

    With an error, be it 0, only problems are fitted that it can be planted in.
    """
    kept = {}
    for problem in problems():
        if only in problem.title and (error is None or plantable(problem)):
            try:
                found = results(problem, error or 0.0)
            except Exception as raised:
                found = {"error": np.array(f"{type(raised).__name__}: {raised}")}
            kept |= {f"{problem.title}/{name}": array for name, array in found.items()}
    np.savez(out, **kept)


def difference(before: Arrays, after: Arrays) -> tuple[float, str]:
    """How far apart scores are, by their range, and what else differs."""
    if before.keys() != after.keys() or "error" in before:
        return np.inf, "; ".join(
            f"{side}: {found.get('error', ', '.join(found))}"
            for side, found in (("before", before), ("after", after))
        )
    apart, said = 0.0, []
    for name, one in before.items():
        other = after[name]
        if one.shape != other.shape:
            said.append(f"{name}: shape {one.shape} before, {other.shape} after")
        elif name.startswith("scores"):
            gap = np.abs(np.asarray(one, float) - other).max() / (float(np.ptp(one)) or 1.0)
            apart = max(apart, np.inf if np.isnan(gap) else float(gap))
        elif (one != other).any():
            said.append(f"{name}: {np.count_nonzero(one != other)} of {one.size} differ")
    return apart, "; ".join(said)


def start(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start this script with the library of a tree and one thread of BLAS."""
    one = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    command = [sys.executable, __file__, "--tree", str(tree.resolve()), *arguments]
    environment = os.environ | one | {"PYTHONPATH": str(tree.resolve())}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603


def finished(*runs: subprocess.Popen[str]) -> list[str]:
    """What processes printed, once all have ended; the failure of one is ours."""
    printed = [run.communicate()[0] for run in runs]
    if any(run.returncode for run in runs):
        raise SystemExit(f"Trees failed with status {[run.returncode for run in runs]}.")
    return printed


def compare(before: Path, after: Path, only: str, planted: bool) -> int:
    """Compare all problems; the number that is not as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / name for name in ("before.npz", "after.npz")]
        runs = [
            start(tree, "--out", str(out), "--only", only, *["--error", str(error)] * planted)
            for tree, out, error in zip((before, after), outs, (0.0, PLANTED), strict=True)
        ]
        finished(*runs)
        sides = [by_problem(out) for out in outs]
    shown = [each for each in problems() if each.title in sides[0] | sides[1]]
    wrong = 0
    for problem in shown:
        apart, said = difference(*(side.get(problem.title, {}) for side in sides))
        equal = apart <= TOLERANCE[problem.dtype] and not said
        fine = equal != planted and apart < np.inf
        wrong += not fine
        print(f"{'ok ' if fine else 'NOT'} {problem.title:<34} scores {apart:.1e}  {said}".rstrip())
    what = "planted errors found" if planted else "problems equal"
    print(f"{len(shown) - wrong} of {len(shown)} {what}, {wrong} not")
    return wrong + (not shown)


def by_problem(out: Path) -> dict[str, Arrays]:
    """The results in a file."""
    found: dict[str, Arrays] = {}
    with np.load(out) as kept:
        for key in kept.files:
            title, _, name = key.partition("/")
            found.setdefault(title, {})[name] = kept[key]
    return found


def compare_times(before: Path, after: Path, only: str) -> None:
    """Print the least processor seconds of each side and their ratio, fits of both by turns."""
    for problem in timed():
        if only in problem.title:
            seconds = [
                [float(*finished(start(tree, "--time", problem.title))) for tree in (before, after)]
                for _ in range(REPEATS)
            ]
            one, other = np.min(seconds, axis=0)
            print(
                f"{problem.title:<34} {one:7.2f} s before {other:7.2f} s after, ratio "
                f"{other / one:.3f}",
                flush=True,
            )


def time_of(title: str) -> float:
    """Processor seconds of a fit, after one of few rows."""
    problem = next(each for each in timed() if each.title == title)
    fitted(replace(problem, rows="toy", grid=None))
    rows_of(problem.rows)
    began = process_time()
    fitted(problem)
    return process_time() - began


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder that holds the other transferable")
    parser.add_argument("--after", type=Path, default=OWN)
    parser.add_argument("--only", default="", help="problems with this word in their title")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--timing", action="store_true")
    for hidden in ("--tree", "--out", "--time"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--error", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.tree:
        import transferable

        if not Path(transferable.__file__).resolve().is_relative_to(asked.tree):
            parser.error(f"{transferable.__file__} is imported instead of that of {asked.tree}")
        warnings.simplefilter("ignore")
        if asked.time:
            print(time_of(asked.time))
        else:
            work(Path(asked.out), asked.only, asked.error)
        return 0
    if asked.before is None:
        parser.error("--before is needed: the folder src of another checkout")
    if asked.timing:
        compare_times(asked.before, asked.after, asked.only)
        return 0
    return int(compare(asked.before, asked.after, asked.only, asked.planted) > 0)


if __name__ == "__main__":
    sys.exit(main())
