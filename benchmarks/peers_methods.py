"""Optimal transport, ratios of densities and DASVM against POT's, skada's and adapt's, in one run.

All run in one process with one BLAS thread on the same rows. Methods that move rows are followed by
one nearest neighbour, ratios weight a logistic regression. "Changed if shuffled" is the share of
target rows whose label changes if the rows are given in another order; 0 is right.

``python benchmarks/peers_methods.py`` writes ``records/field/peers.csv``; POT and skada come with
``pip install '.[bench]'``. adapt needs TensorFlow: in an environment that has both,
``--only adapt`` measures what it has and writes a table of its own.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from recording import tabulate
from transferable.classifiers import DASVM, JDOTClassifier
from transferable.ratios import (
    kernel_mean_matching,
    kliep,
    logistic_ratio,
    nearest_neighbor_ratio,
    rulsif,
)
from transferable.transformers import LinearOTMapping, OTMapping

Array = NDArray[Any]
# From source rows, their labels and target rows to labels of the target rows.
Labelling = Callable[[Array, Array, Array], Array]

MOST_TURNS, FEWEST_TURNS, ENOUGH_SECONDS = 20, 5, 3.0  # of each method, all who compute it
HEADINGS = ("method", "who", "seconds", "ours is faster by", "accuracy", "changed if shuffled")


@dataclass(frozen=True)
class Problem:
    """Two domains; the target's labels are for the accuracy alone."""

    Xs: Array
    ys: Array
    Xt: Array
    yt: Array


@dataclass(frozen=True)
class Contest:
    """One method, the problem it is for, and those who compute it."""

    method: str
    problem: Problem
    labellings: dict[str, Labelling]


def turned_classes(n: int, n_classes: int, d: int = 64) -> Problem:
    """Gaussian classes; the target's are turned and moved."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    centres = 1.2 * rng.normal(size=(n_classes, d))
    Q, R = np.linalg.qr(np.eye(d) + 0.09 * rng.normal(size=(d, d)))
    turn = Q * np.sign(np.diag(R))
    Xs, Xt = (centres[y] + rng.normal(size=(n, d)) for _ in range(2))
    return Problem(Xs, y, Xt @ turn + 0.5 * rng.normal(size=d), y)


def covariate_shift(n: int) -> Problem:
    """One rule in both domains, which a line can follow near the target only."""
    rng = np.random.default_rng(0)
    Xs = rng.uniform(-3, 3, size=(n, 2))
    Xt = rng.uniform([-0.7, -1.5], [0.7, 1.5], size=(n, 2))
    ys, yt = ((X[:, 1] > np.sin(2.0 * X[:, 0])).astype(int) for X in (Xs, Xt))
    return Problem(Xs, ys, Xt, yt)


def nearest(Xs: Array, ys: Array, Xt: Array) -> Array:
    return KNeighborsClassifier(1).fit(Xs, ys).predict(Xt)


def own_map(make: Callable[[], Any]) -> Labelling:
    def label(Xs: Array, ys: Array, Xt: Array) -> Array:
        model = make().adapt(Xs, ys, Xt)
        return nearest(model.transform(Xs, np.ones(len(Xs))), ys, model.transform(Xt))

    return label


def pot_map(make: Callable[[Any, float], Any]) -> Labelling:
    def label(Xs: Array, ys: Array, Xt: Array) -> Array:
        import ot

        scale = float(ot.dist(Xs, Xt).mean())
        return nearest(make(ot.da, scale).fit_transform(Xs, ys, Xt), ys, Xt)

    return label


def stacked(Xs: Array, ys: Array, Xt: Array) -> dict[str, Array]:
    """As skada takes them."""
    return {
        "X": np.vstack([Xs, Xt]),
        "y": np.concatenate([ys, np.full(len(Xt), -1)]),
        "sample_domain": np.repeat([1, -2], [len(Xs), len(Xt)]),
    }


def skada_map(make: Callable[[Any], Any]) -> Labelling:
    def label(Xs: Array, ys: Array, Xt: Array) -> Array:
        import skada

        moved = np.asarray(make(skada).fit_transform(**stacked(Xs, ys, Xt)))
        return nearest(moved[: len(Xs)], ys, moved[len(Xs) :])

    return label


def skada_weights(make: Callable[[Any], Any]) -> Labelling:
    def label(Xs: Array, ys: Array, Xt: Array) -> Array:
        import skada

        parameters = make(skada).fit_transform(**stacked(Xs, ys, Xt))[1]
        weights = np.asarray(parameters["sample_weight"])[: len(Xs)]
        return LogisticRegression(C=100).fit(Xs, ys, sample_weight=weights).predict(Xt)

    return label


def adapt_weights(make: Callable[[Any, Any, Array], Any]) -> Labelling:
    def label(Xs: Array, ys: Array, Xt: Array) -> Array:
        from adapt import instance_based

        return make(instance_based, LogisticRegression(C=100), Xt).fit(Xs, ys).predict(Xt)

    return label


def own_weights(ratio: Callable[[Array, Array], Array]) -> Labelling:
    def label(Xs: Array, ys: Array, Xt: Array) -> Array:
        weights = ratio(Xs, Xt)
        return LogisticRegression(C=100).fit(Xs, ys, sample_weight=weights).predict(Xt)

    return label


def own_classifier(make: Callable[[], Any]) -> Labelling:
    return lambda Xs, ys, Xt: make().adapt(Xs, ys, Xt).predict(Xt)


def skada_classifier(make: Callable[[Any], Any]) -> Labelling:
    def label(Xs: Array, ys: Array, Xt: Array) -> Array:
        import skada

        model = make(skada)
        model.fit(**stacked(Xs, ys, Xt))  # some of skada's return nothing
        return np.asarray(model.predict(Xt))

    return label


def contests(n: int) -> Iterator[Contest]:
    """Who computes what, with the same penalties."""
    yield from transports(turned_classes(n, 10))
    yield from weightings(covariate_shift(n))
    yield Contest(
        "DASVM",
        turned_classes(n // 2, 3),
        {
            "transferable": own_classifier(DASVM),
            "skada": skada_classifier(lambda skada: skada.DASVMClassifier(SVC(C=10))),
        },
    )


def transports(classes: Problem) -> Iterator[Contest]:
    scale = float(np.mean([np.sum((a - classes.Xt) ** 2, axis=1) for a in classes.Xs]))
    yield Contest(
        "OT, exact",
        classes,
        {
            "transferable": own_map(lambda: OTMapping("exact")),
            "POT": pot_map(lambda da, scale: da.EMDTransport()),
            "skada": skada_map(lambda skada: skada.OTMappingAdapter(max_iter=10_000_000)),
        },
    )
    yield Contest(
        "OT, entropic",
        classes,
        {
            "transferable": own_map(lambda: OTMapping("entropic")),
            "POT": pot_map(lambda da, scale: da.SinkhornTransport(reg_e=0.1 * scale)),
            "skada": skada_map(lambda skada: skada.EntropicOTMappingAdapter(reg_e=0.1 * scale)),
        },
    )
    yield Contest(
        "OT, class",
        classes,
        {
            "transferable": own_map(lambda: OTMapping("class")),
            "POT": pot_map(
                lambda da, scale: da.SinkhornLpl1Transport(reg_e=0.1 * scale, reg_cl=0.1 * scale)
            ),
            "skada": skada_map(
                lambda skada: skada.ClassRegularizerOTMappingAdapter(
                    reg_e=0.1 * scale, reg_cl=0.1 * scale
                )
            ),
        },
    )
    yield Contest(
        "OT, linear",
        classes,
        {
            "transferable": own_map(lambda: LinearOTMapping()),
            "POT": pot_map(lambda da, scale: da.LinearTransport(reg=0.1)),
            "skada": skada_map(lambda skada: skada.LinearOTMappingAdapter(reg=0.1)),
        },
    )
    yield Contest(
        "JDOT",
        classes,
        {
            "transferable": own_classifier(JDOTClassifier),
            "skada": skada_classifier(lambda skada: skada.JDOTClassifier(n_iter_max=10)),
        },
    )


def weightings(shift: Problem) -> Iterator[Contest]:
    gammas = [0.1, 0.3, 1.0, 3.0]
    quiet = {"verbose": 0, "random_state": 0}
    skada = {
        "KMM": lambda skada: skada.KMMReweightAdapter(),
        "KLIEP": lambda skada: skada.KLIEPReweightAdapter(gamma=gammas),
        "nearest": lambda skada: skada.NearestNeighborReweightAdapter(laplace_smoothing=True),
        "logistic": lambda skada: skada.DiscriminatorReweightAdapter(),
    }
    adapt = {
        "KMM": lambda a, base, Xt: a.KMM(base, Xt, **quiet),
        "KLIEP": lambda a, base, Xt: a.KLIEP(base, Xt, gamma=gammas, **quiet),
        "RuLSIF": lambda a, base, Xt: a.RULSIF(base, Xt, gamma=gammas, **quiet),
        "nearest": lambda a, base, Xt: a.NearestNeighborsWeighting(base, Xt, **quiet),
    }
    for name, ratio in (
        ("KMM", kernel_mean_matching),
        ("KLIEP", kliep),
        ("RuLSIF", rulsif),
        ("nearest", nearest_neighbor_ratio),
        ("logistic", logistic_ratio),
    ):
        parties = {"transferable": own_weights(ratio)}
        parties |= {"skada": skada_weights(skada[name])} if name in skada else {}
        parties |= {"adapt": adapt_weights(adapt[name])} if name in adapt else {}
        yield Contest(name, shift, parties)


def timed(labellings: dict[str, Labelling], p: Problem) -> dict[str, tuple[float, Array] | str]:
    """Processor time of each one's fastest run, and the labels; or the error of who cannot do it.

    They take turns, so that a busy moment of the machine is nobody's alone. The first one imports
    what it needs and does not count.
    """
    found: dict[str, Any] = {}
    begin = process_time()
    for turn in range(MOST_TURNS):
        for who in list(labellings if turn == 0 else found):
            if isinstance(found.get(who), str):
                continue
            start = process_time()
            try:
                predicted = labellings[who](p.Xs, p.ys, p.Xt)
            except ImportError:
                continue
            except (ValueError, IndexError) as error:
                found[who] = type(error).__name__
                continue
            seconds = process_time() - start
            found[who] = min(seconds, found[who][0]) if turn else np.inf, predicted
        if turn >= FEWEST_TURNS and process_time() - begin > ENOUGH_SECONDS:
            break
    return found


def changed_if_shuffled(label: Labelling, p: Problem, predicted: Array) -> float:
    rng = np.random.default_rng(1)
    source, target = rng.permutation(len(p.Xs)), rng.permutation(len(p.Xt))
    again = label(p.Xs[source], p.ys[source], p.Xt[target])
    return float(np.mean(again != predicted[target]))


def measured(n: int, peer: str | None) -> Iterator[tuple[str, ...]]:
    """Rows of the table, of all that are installed or of one peer's methods."""
    for contest in contests(n):
        parties = contest.labellings
        if peer is not None:
            parties = {w: parties[w] for w in ("transferable", peer) if peer in parties}
        for who, outcome in (found := timed(parties, contest.problem)).items():
            if isinstance(outcome, str):
                yield contest.method, who, outcome, "", "", ""
                continue
            seconds, predicted = outcome
            yield (
                contest.method,
                who,
                f"{seconds:.4f}",
                "" if who == "transferable" else f"{seconds / found['transferable'][0]:.1f}",
                f"{100 * np.mean(predicted == contest.problem.yt):.1f}",
                f"{100 * changed_if_shuffled(parties[who], contest.problem, predicted):.1f}",
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1000, help="of each domain")
    parser.add_argument("--only", help="a peer, whose methods have a table of their own")
    options = parser.parse_args()
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in measured(options.rows, options.only):
            print(*row, sep="  ", flush=True)
            rows.append(row)
    table = "peers" if options.only is None else f"peers-{options.only}"
    keep = options.rows == parser.get_default("rows")
    tabulate(f"field/{table}", [dict(zip(HEADINGS, row, strict=True)) for row in rows], keep=keep)


if __name__ == "__main__":
    main()
