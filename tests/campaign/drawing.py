"""Hostile rows, labels, marks and parameters."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

DTYPES = ["float64"] * 8 + ["float32", "float32", "float16", "int8", "int64", "uint8", "bool"]
DTYPES += ["object", "complex128", "U8", "datetime64[D]"]
LAYOUTS = ["C"] * 8 + ["F", "strided", "reversed", "list", "frame", "csr", "csc", "coo", "torch"]
LAYOUTS += ["read-only", "memory map"]
FILLS = ["normal"] * 8 + ["uniform", "duplicates", "constant", "zeros", "one-hot", "columns"]
FILLS += ["heavy", "nan", "inf", "outlier", "offset"]
COUNTS = ("iter", "estimators", "rounds", "steps", "neighbors", "degree")
FLOATS = [0.0, 1e-300, 1e-30, 1e-12, 1e-3, 0.5, 1.0, 2.0, 1e3, 1e12, 1e30, 1e100, 1e300]
FLOATS += [-1.0, np.inf, np.nan]
INTEGERS = [0, 1, 2, 3, 5, 12, 10**6, 2**63 - 1, -1]
STRANGE = ["no such option", None, True, -1, 0, 3, 0.5, (1, 2), {}, np.float32(0.5), np.int64(2)]


def rows(rng, n, d, *, wild=True):
    """A table of n rows and d columns, in whatever shape rows come."""
    X = _filled(rng, n, d, rng.choice(FILLS) if wild else "normal")
    if wild and rng.random() < 0.4:
        with np.errstate(all="ignore"):
            X = X * 10.0 ** rng.uniform(-320, 308)
    if wild and rng.random() < 0.15:
        X = X + rng.choice([1e4, 1e7, 1e8, 1e12, -1e7])
    return X


def dressed(rng, X, dtype, layout, folder):
    """The same values as another type and in another place."""
    with np.errstate(all="ignore"):
        try:
            X = np.nan_to_num(X).astype(dtype) if dtype in ("int8", "uint8", "bool") else X
            X = np.clip(np.nan_to_num(X), -1e18, 1e18) if dtype == "int64" else X
            if dtype.startswith("datetime"):
                X = np.clip(np.nan_to_num(X), -1e4, 1e4).astype("int64")
            X = X.astype(dtype)
        except (ValueError, OverflowError):
            return X
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        wide = np.repeat(X, 2, axis=1)
        return wide[:, ::2]
    if layout == "reversed":
        return np.ascontiguousarray(X[::-1])[::-1]
    if layout == "list":
        return X.tolist()
    if layout == "frame":
        return pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    if layout in ("csr", "csc", "coo") and X.dtype.kind in "fiub" and X.dtype != "float16":
        return getattr(sp, f"{layout}_{rng.choice(['array', 'matrix'])}")(X)
    if layout == "torch" and X.dtype.kind in "fi":
        import torch

        return torch.from_numpy(np.ascontiguousarray(X))
    if layout == "read-only":
        X.setflags(write=False)
    if layout == "memory map" and X.size and X.dtype.kind in "fi":
        mapped = np.memmap(folder / f"rows-{rng.integers(2**31)}", X.dtype, "w+", shape=X.shape)
        mapped[:] = X
        return mapped
    return X


def labels(rng, n):
    """Labels of n rows."""
    n_classes = int(rng.choice([1, 2, 2, 2, 3, 3, 4, max(n, 1)]))
    codes = np.arange(n) % n_classes
    rng.shuffle(codes)
    kinds = {
        "int": codes,
        "negative": codes - 1,
        "large": codes * 2**62,
        "float": codes.astype(float),
        "halves": codes + 0.5,
        "bool": codes > 0,
        "text": np.array([f"class [{c}] \u00e9" for c in codes], dtype="U20"),
        "objects": np.array([f"c{c}" for c in codes] + [None], dtype=object)[:-1],
        "mixed": np.array([c if c else "zero" for c in codes] + [None], dtype=object)[:-1],
        "missing": np.where(rng.random(n) < 0.3, np.nan, codes),
        "list": codes.tolist(),
        "series": pd.Series(codes, index=np.arange(n) + 100),
        "categories": pd.Categorical([f"c{c}" for c in codes]),
        "columns": codes[:, None],
        "short": codes[:-1],
        "dates": codes.astype("datetime64[D]"),
    }
    weights = np.array([10, 3, 1, 3, 1, 2, 6, 3, 1, 1, 3, 2, 2, 1, 1, 1], dtype=float)
    return kinds[rng.choice(list(kinds), p=weights / weights.sum())]


def parameters(rng, estimator, share=0.25):
    """Values for some of an estimator's parameters, inside of what it takes or not."""
    drawn = {}
    for name, constraints in estimator._parameter_constraints.items():
        if rng.random() < share and name not in ("estimator", "transformer", "labeler", "verbose"):
            drawn[name] = _value(rng, name, constraints[rng.integers(len(constraints))])
    if drawn.get("device") not in (None, "cpu"):
        drawn["device"] = "cpu"
    return drawn


def _value(rng, name, constraint):
    if rng.random() < 0.08:
        return STRANGE[rng.integers(len(STRANGE))]
    if name.endswith(COUNTS):  # whoever asks for a million rounds gets them
        return int(rng.integers(1, 8))
    if isinstance(constraint, StrOptions):
        return str(rng.choice(sorted(constraint.options)))
    if isinstance(constraint, Interval):
        if constraint.type is Integral:
            return int(INTEGERS[rng.integers(len(INTEGERS))])
        low = 0.0 if constraint.left is None else float(constraint.left)
        high = 1e3 if constraint.right is None else float(constraint.right)
        inside = [low, min(high, 1e3), rng.uniform(low, min(high, low + 10.0))]
        return float(rng.choice([*inside, *rng.choice(FLOATS, size=2)]))
    if constraint is callable:
        return KERNELS[rng.integers(len(KERNELS))]
    if constraint == "boolean":
        return bool(rng.integers(2))
    if constraint == "random_state":
        return int(rng.integers(100))
    if constraint is Real:
        return float(rng.choice(FLOATS))
    if constraint is str:
        return str(rng.choice(["1GB", "100", "0", "1 parsec"]))
    return None


def _filled(rng, n, d, fill):
    X = rng.normal(size=(n, d))
    if fill == "uniform":
        return rng.random((n, d))
    if fill == "duplicates" and n:
        return X[rng.integers(max(1, n // 3), size=n)]
    if fill == "constant":
        return np.full((n, d), rng.normal())
    if fill == "zeros":
        return np.zeros((n, d))
    if fill == "one-hot" and d:
        return np.eye(d)[rng.integers(d, size=n)]
    if fill == "columns":
        return X * 10.0 ** rng.uniform(-100, 100, size=d)
    if fill == "heavy":
        return np.sign(X) * np.exp(10 * np.abs(X))
    if fill in ("nan", "inf", "outlier") and X.size:
        X.flat[rng.integers(X.size)] = {"nan": np.nan, "inf": -np.inf, "outlier": 1e200}[fill]
    if fill == "offset":
        return 1e-6 * X + rng.normal(size=d)
    return X


def linear(X, Y):
    return np.asarray((X @ Y.T).toarray() if sp.issparse(X) else X @ Y.T)


def _kernel(change):
    def kernel(X, Y):
        return change(linear(X, Y))

    return kernel


KERNELS = [
    linear,
    _kernel(lambda K: K * np.nan),
    _kernel(lambda K: K * 1j),
    _kernel(lambda K: -K),
    _kernel(lambda K: K[:1]),
    _kernel(np.zeros_like),
    _kernel(np.ones_like),
    _kernel(lambda K: K.tolist()),
    _kernel(lambda K: np.sin(1e3 * K)),
    _kernel(lambda K: 1e100 * K),
    _kernel(lambda K: K.astype(np.float32)),
    _kernel(lambda K: "no matrix"),
]
