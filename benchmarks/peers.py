"""Times TCA, CORAL, subspace alignment and JDA against skada and against dense transcriptions.

All run in one process with one BLAS thread on the same rows: two domains of Gaussian classes, half
of the rows in each. skada has no JDA. A transcription is the formula as printed, in plain numpy
and scipy, with whatever n x n matrices that takes. The last column shuffles the rows and tells by
how much the distances between embedded rows change, relative to the largest: 0 is right.

``python benchmarks/peers.py`` writes ``records/speed/peers.csv``; skada comes with
``pip install '.[bench]'``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from recording import tabulate
from transferable.transformers import CORAL, JDA, TCA, SubspaceAlignment

Array = NDArray[np.float64]
# From stacked rows, labels (-1 on target rows) and marks (1 source, -1 target) to embedded rows.
Embedding = Callable[[Array, NDArray[np.intp], NDArray[np.intp]], Array]

K = 30  # components
ROUNDS = 2  # of JDA: the transcription takes long
TURNS = 7  # runs of each, of which the fastest counts
LONG = 1.0  # seconds after which one run will do
BAR = 5.0  # times faster than skada's TCA at 2,000 rows


@dataclass(frozen=True)
class Contest:
    """One method and those who compute it."""

    method: str
    ours: Embedding
    dense: Embedding
    skada: Embedding | None


def rows(n: int, d: int = 256, n_classes: int = 10) -> tuple[Array, NDArray, NDArray]:
    """Unit rows of two domains, one after the other."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    marks = np.where(np.arange(n) < n // 2, 1, -1)
    X = (
        2 * rng.normal(size=(n_classes, d))[y]
        + rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / 8
    )
    X[marks < 0] += 0.5 * rng.normal(size=d)
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.where(marks > 0, y, -1), marks


def mmd_matrix(codes: NDArray, marks: NDArray, *, classes: bool) -> Array:
    """M of TCA, or of JDA with its classes, n x n."""
    labels = np.unique(codes[marks > 0])
    groups = [np.ones(len(codes), dtype=bool)]
    groups += [codes == c for c in labels] if classes else []
    M = np.zeros((len(codes), len(codes)))
    for i, group in enumerate(groups):
        source, target = group & (marks > 0), group & (marks < 0)
        e = source / source.sum() - target / max(target.sum(), 1)
        M += (len(labels) if i == 0 else 1) * np.outer(e, e)
    return M / np.linalg.norm(M)


def dense_components(T: Array, M: Array, ridge: float) -> Array:
    """Unit columns W that solve TCA's problem for the table T."""
    n, d = T.shape
    B = T.T @ (np.eye(n) - 1.0 / n) @ T
    A = T.T @ M @ T + ridge * np.eye(d)
    W = eigh(B, A, subset_by_index=[d - K, d - 1])[1][:, ::-1]
    return W / np.linalg.norm(W, axis=0)


def dense_tca(X: Array, y: NDArray, marks: NDArray) -> Array:
    """TCA with an n x n kernel matrix."""
    T = rbf_kernel(X, gamma=1.0 / X.shape[1])
    return T @ dense_components(T, mmd_matrix(y, marks, classes=False), 1.0)


def dense_jda(X: Array, y: NDArray, marks: NDArray) -> Array:
    """JDA with an n x n linear kernel matrix."""
    T = X @ X.T
    codes, source = y.copy(), marks > 0
    for round_ in range(ROUNDS):
        Z = T @ dense_components(T, mmd_matrix(codes, marks, classes=round_ > 0), 1.0)
        codes[~source] = KNeighborsClassifier(1).fit(Z[source], y[source]).predict(Z[~source])
    return Z


def dense_coral(X: Array, y: NDArray, marks: NDArray) -> Array:
    """CORAL with d x d roots of the covariances."""
    source = marks > 0

    def power(rows: Array, exponent: float) -> Array:
        values, V = eigh(np.cov(rows.T) + np.eye(rows.shape[1]))
        return (V * values**exponent) @ V.T

    Z = X.copy()
    Z[source] -= X[source].mean(axis=0)
    Z[source] = Z[source] @ power(X[source], -0.5) @ power(X[~source], 0.5)
    Z[source] += X[~source].mean(axis=0)
    return Z


def dense_alignment(X: Array, y: NDArray, marks: NDArray) -> Array:
    """Subspace alignment from two full principal component analyses."""
    source = marks > 0
    of_source, of_target = (PCA(K, svd_solver="full").fit(X[s]) for s in (source, ~source))
    Z = of_target.transform(X)
    turn = of_source.components_ @ of_target.components_.T
    Z[source] = of_source.transform(X[source]) @ turn
    return Z


def ours(make: Callable[[], object]) -> Embedding:
    """A transformer of the library as an embedding."""
    return lambda X, y, marks: make().fit_transform(X, y, sample_domain=marks)  # type: ignore[attr-defined]


def peers() -> dict[str, Embedding]:
    """Embeddings of skada by method; none where it is not installed."""
    try:
        import skada
    except ImportError:
        return {}

    def adapted(make: Callable[[], object]) -> Embedding:
        return lambda X, y, marks: np.asarray(
            make().fit_transform(X, y, sample_domain=marks)  # type: ignore[attr-defined]
        )

    return {
        "TCA": adapted(lambda: skada.TransferComponentAnalysisAdapter("rbf", K, mu=1.0)),
        "CORAL": adapted(lambda: skada.CORALAdapter(reg=None)),
        "SA": adapted(lambda: skada.SubspaceAlignmentAdapter(n_components=K)),
    }


def contests() -> list[Contest]:
    """Who computes what."""
    skada = peers()
    gamma = 1.0 / 256
    return [
        Contest(
            "TCA",
            ours(lambda: TCA(K, kernel="rbf", gamma=gamma, regularization=1.0)),
            dense_tca,
            skada.get("TCA"),
        ),
        Contest("CORAL", ours(CORAL), dense_coral, skada.get("CORAL")),
        Contest("SA", ours(lambda: SubspaceAlignment(K)), dense_alignment, skada.get("SA")),
        Contest(
            "JDA",
            ours(lambda: JDA(K, kernel="linear", regularization=1.0, max_iter=ROUNDS)),
            dense_jda,
            None,
        ),
    ]


def timed(embeddings: dict[str, Embedding], data: tuple) -> dict[str, tuple[float, Array]]:
    """Processor time of each one's fastest run, and its result; they take turns."""
    best: dict[str, tuple[float, Array]] = {}
    for turn in range(TURNS):
        for who, embed in embeddings.items():
            if turn and best[who][0] > LONG:
                continue
            start = process_time()
            Z = embed(*data)
            seconds = process_time() - start
            if who not in best or seconds < best[who][0]:
                best[who] = seconds, Z
    return best


def change_under_shuffling(embed: Embedding, data: tuple, Z: Array) -> float:
    """Largest change of a distance between embedded rows, relative to the largest distance."""
    order = np.random.default_rng(1).permutation(len(Z))
    shuffled = embed(*(part[order] for part in data))
    some = np.arange(0, len(Z), max(1, len(Z) // 300))
    before, after = (euclidean_distances(E[some]) for E in (Z[order], shuffled))
    return float(np.abs(before - after).max() / before.max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 4000])
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--methods", nargs="+", default=["TCA", "CORAL", "SA", "JDA"])
    options = parser.parse_args()
    table = []
    failures = []
    with threadpool_limits(1):
        for n in options.rows:
            data = rows(n, options.features)
            for contest in contests():
                if contest.method not in options.methods:
                    continue
                everybody = {
                    who: embed
                    for who, embed in (
                        ("transferable", contest.ours),
                        ("skada", contest.skada),
                        ("dense", contest.dense),
                    )
                    if embed is not None
                }
                times = timed(everybody, data)
                own, _ = times["transferable"]
                for who, (seconds, E) in times.items():
                    embed = everybody[who]
                    change = change_under_shuffling(embed, data, E) if who != "dense" else 0.0
                    table.append({
                        "method": contest.method,
                        "features": options.features,
                        "rows": n,
                        "who": who,
                        "seconds": f"{seconds:.3f}",
                        "ours is faster by": f"{seconds / own:.2f}" if seconds != own else None,
                        "change if shuffled": None if who == "dense" else f"{change:.1e}",
                    })  # fmt: skip
                    if who == "transferable" and change > 1e-8:
                        failures.append(f"{contest.method} depends on the order of rows")
                    if (who, contest.method, n) == ("skada", "TCA", 2000) and seconds < BAR * own:
                        failures.append(f"TCA is less than {BAR:.0f}x faster than skada's")
    given = {name: parser.get_default(name) for name in vars(options)}
    tabulate("speed/peers", table, keep=vars(options) == given)
    if failures:
        raise SystemExit("; ".join(failures))


if __name__ == "__main__":
    main()
