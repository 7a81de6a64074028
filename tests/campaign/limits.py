"""Memory against max_memory, leaks, a thousand classes, one result in threads and processes."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import numpy as np
import psutil
from joblib import Parallel, delayed
from sklearn.base import clone

import transferable
import transferable.dask as over_dask
from campaign import Violation
from problems import small_problem

ESTIMATORS = dict(transferable.all_estimators())
BOUNDED = [n for n, e in ESTIMATORS.items() if "max_memory" in e().get_params()]
SLACK = 2**21  # bytes of Python objects and small arrays, besides what is planned for
CPU_SECONDS = 60  # a pool of models for a thousand classes takes about 20


def trial(seed, folder):
    """One of the kinds of limits."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = {memory: 0.4, threads: 0.25, processes: 0.1, order: 0.23, many_classes: 0.01}
        kinds[leaks] = 0.01
        return list(kinds)[rng.choice(len(kinds), p=list(kinds.values()))](rng)


def memory(rng):
    """A fit takes no more than it was allowed, besides copies of its input and blocks of work."""
    name = str(rng.choice(BOUNDED))
    n = int(rng.integers(100, 700))
    p = small_problem(int(rng.integers(100)), n_source=n, n_target=n, n_features=8)
    allowed = int(10 ** rng.uniform(6.5, 8))
    kernel = {"kernel": "rbf"} if "kernel" in ESTIMATORS[name]().get_params() else {}
    estimator = ESTIMATORS[name](max_memory=allowed, **kernel)
    fitted(ESTIMATORS[name](**kernel), small_problem())  # modules that fits import are not theirs
    tracemalloc.start()
    try:
        estimator.adapt(p.Xs, p.ys, p.Xt)
    except MemoryError as error:
        if "max_memory" not in str(error):
            raise Violation(f"{name}, {n}, {allowed}: {error}") from error
        return f"{name} refused {allowed} bytes for {2 * n} rows"
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    blocks = 8 * min((2 * n) ** 2, 2**24)  # of distances, while neighbours are searched
    if taken > allowed + blocks + 4 * p.X.nbytes + SLACK:
        raise Violation(f"{name}: {2 * n} rows took {taken:,} bytes, {allowed:,} were allowed")
    return f"{name}: {2 * n} rows took {taken:,} of {allowed:,} bytes"


def fitted(estimator, p):
    """What an estimator makes of a problem, as bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(estimator).adapt(p.Xs, p.ys, p.Xt)
    values = model.transform(p.Xt) if hasattr(model, "transform") else model.transduction_
    return np.asarray(values).tobytes()


def drawn(rng):
    name = str(rng.choice(list(ESTIMATORS)))
    return name, ESTIMATORS[name](), small_problem(int(rng.integers(1000)))


def threads(rng):
    """Four fits at once give what one gives."""
    name, estimator, p = drawn(rng)
    expected = fitted(estimator, p)
    with ThreadPoolExecutor(4) as pool:
        if set(pool.map(lambda _: fitted(estimator, p), range(4))) != {expected}:
            raise Violation(f"{name} gives something else in threads")
    return f"{name} in threads"


def processes(rng):
    """Two processes give what one gives."""
    name, estimator, p = drawn(rng)
    results = Parallel(n_jobs=2)(delayed(fitted)(estimator, p) for _ in range(2))
    if set(results) != {fitted(estimator, p)}:
        raise Violation(f"{name} gives something else in processes")
    return f"{name} in processes"


def order(rng):
    """Rows in another order get the same labels."""
    name, estimator, p = drawn(rng)
    source, target = rng.permutation(len(p.Xs)), rng.permutation(len(p.Xt))
    model = clone(estimator).adapt(p.Xs, p.ys, p.Xt)
    other = clone(estimator).adapt(p.Xs[source], p.ys[source], p.Xt[target])
    method = "transform" if hasattr(model, "transform") else "predict"
    one, two = (np.asarray(getattr(m, method)(p.Xt)) for m in (model, other))
    if one.tobytes() != two.tobytes():
        raise Violation(f"{name} depends on the order of rows")
    return f"{name} in another order"


def leaks(rng):
    """After ten fits, forty more leave no objects behind and take no memory."""
    p = small_problem(n_source=60, n_target=50, n_features=6)
    rows = [da.from_array(X, chunks=(20, *X.shape[1:])) for X in (p.Xs, p.ys, p.Xt)]
    fits = {
        "AutoAdapter": lambda: transferable.AutoAdapter(effort="fast").adapt(p.Xs, p.ys, p.Xt),
        "TFDFV over Dask": lambda: over_dask.TFDFV(n_landmarks=20, max_iter=3).adapt(*rows),
    }
    name = str(rng.choice(list(fits)))
    kept = []
    for count in (10, 40):
        for _ in range(count):
            fits[name]()
        gc.collect()
        kept.append((len(gc.get_objects()), psutil.Process().memory_info().rss))
    objects, taken = np.diff(kept, axis=0)[0]
    told = f"{name}: 40 fits leave {objects} objects and {taken:,} bytes"
    if objects > 100 or taken > 2**23:
        raise Violation(told)
    return told


def many_classes(rng):
    """A pool of models tells a thousand classes of one row each apart."""
    n_classes, n_target = 1000, int(rng.integers(20, 80))
    Xs = rng.normal(size=(n_classes, 16))
    Xt = Xs[:n_target] + 0.05 * rng.normal(size=(n_target, 16))
    model = transferable.AutoAdapter(effort="fast").adapt(Xs, np.arange(n_classes), Xt)
    found = model.predict(Xt)
    errors = model.candidates_.error.dropna()
    left_out = [error for error in errors if not error.startswith("same model")]  # copies are
    if left_out or np.mean(found == np.arange(n_target)) < 0.9:
        raise Violation(f"{n_classes} classes: {left_out}, labels {found}")
    return f"{n_classes} classes, {n_target} target rows"
