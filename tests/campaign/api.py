"""Every estimator on hostile rows, labels, marks and parameters."""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import transferable
from campaign import Refused, Violation
from campaign.drawing import DTYPES, LAYOUTS, dressed, labels, parameters, rows
from transferable.classifiers import AdaptedClassifier

ESTIMATORS = dict(transferable.all_estimators())
FINAL = [None, KNeighborsClassifier(1, algorithm="kd_tree"), SVC(), LogisticRegression()]
FINAL += [RandomForestClassifier(3, random_state=0)]
# Who may refuse input: the library, and the checks of scikit-learn that it calls.
REFUSING = [Path(transferable.__file__).parent, Path(sklearn.__file__).parent / "utils"]
CLOSE = 1e-6


def trial(seed, folder):
    """One fit and what it is asked for afterwards."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(ESTIMATORS)))
    mode = rng.choice(["rows", "parameters", "both"])
    estimator = drawn_estimator(rng, name, {"rows": 0.0, "parameters": 0.4, "both": 0.15}[mode])
    n_source, n_target, d = (int(v) for v in rng.integers(0, 13, size=3))
    if mode != "both" or rng.random() < 0.5:
        n_source, n_target, d = max(n_source, 4), max(n_target, 2), max(d, 1)
    dtype, layout = str(rng.choice(DTYPES)), str(rng.choice(LAYOUTS))
    if mode == "parameters":
        dtype, layout = "float64", "C"
    X = rows(rng, n_source + n_target, d, wild=mode != "parameters")
    parts = X[:n_source], X[n_source:]
    Xs, Xt = (dressed(rng, part, dtype, layout, folder) for part in parts)
    ys = labels(rng, n_source) if mode == "both" else np.arange(n_source) % 2
    told = f"{estimator!r} on {n_source}+{n_target}x{d} {dtype} {layout}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model = refusable(lambda: estimator.adapt(Xs, ys, Xt))
            check(model, Xs, Xt, rng)
        except Refused as refused:
            return f"{told}: refused, {refused}"
        except Violation as violation:
            raise Violation(f"{told}: {violation}") from violation
    return f"{told}: fitted"


def drawn_estimator(rng, name, share):
    """An estimator with some parameters drawn; those with parts get parts."""
    estimator = ESTIMATORS[name]()
    if name == "AdaptedClassifier":
        inner = str(rng.choice(list(dict(transferable.all_estimators("transformer")))))
        transformer = [None, StandardScaler(), drawn_estimator(rng, inner, share)][rng.integers(3)]
        return AdaptedClassifier(transformer, FINAL[rng.integers(len(FINAL))])
    return estimator.set_params(**parameters(rng, estimator, share))


def refusable(call):
    """What a call returns; errors other than a refusal by somebody entitled are violations."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        entitled = any(Path(frame.filename).is_relative_to(place) for place in REFUSING)
        if not entitled or len(str(error)) < 10:
            raise Violation(f"{_where(error)}: {type(error).__name__}: {error}") from error
        raise Refused(f"{type(error).__name__}: {error}") from error
    except MemoryError as error:
        if "max_memory" not in str(error):
            raise Violation(f"{_where(error)}: {error}") from error
        raise Refused(f"MemoryError: {error}") from error
    except Exception as error:
        raise Violation(f"{_where(error)}: {type(error).__name__}: {error}") from error


def check(model, Xs, Xt, rng):
    """Look at whatever a fitted model gives."""
    n_target = len(Xt) if isinstance(Xt, list) else Xt.shape[0]
    if hasattr(model, "transform"):
        Z = np.asarray(refusable(lambda: model.transform(Xt)))
        require(Z.shape[0] == n_target, f"transform gave {Z.shape} for {n_target} rows")
        require(np.isfinite(Z).all(), "transform gave values that are not finite")
        return
    predicted = np.asarray(refusable(lambda: model.predict(Xt)))
    require(predicted.shape == (n_target,), f"predict gave shape {predicted.shape}")
    require(set(predicted.tolist()) <= set(model.classes_.tolist()), "predict gave no class")
    gaps = np.full(n_target, np.inf)
    if hasattr(model, "predict_proba"):
        P = np.asarray(refusable(lambda: model.predict_proba(Xt)))
        require(P.shape == (n_target, len(model.classes_)), f"predict_proba gave {P.shape}")
        require(np.isfinite(P).all() and (P >= 0).all(), "probabilities are no numbers")
        require(np.abs(P.sum(axis=1) - 1).max(initial=0) < CLOSE, f"sums to {P.sum(axis=1)}")
        own = P[np.arange(n_target), np.searchsorted(model.classes_, predicted)]
        require((own >= P.max(axis=1) - CLOSE).all(), "the label is not the likeliest")
        gaps = np.sort(P, axis=1)[:, -1] - np.sort(P, axis=1)[:, -2]
    if hasattr(model, "decision_function"):
        scores = np.asarray(refusable(lambda: model.decision_function(Xt)))
        require(scores.shape[0] == n_target, f"decision_function gave {scores.shape}")
        require(np.isfinite(scores).all(), "scores are not finite")
    transduced = model.transduction_[-n_target:]
    differ = np.flatnonzero(predicted != transduced)
    require((gaps[differ] < CLOSE).all(), "predict differs from transduction_")


def require(holds, problem):
    if not holds:
        raise Violation(problem)


def _where(error):
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "transferable" in frame.filename:
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "outside"
