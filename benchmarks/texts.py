"""Texts through `TableClassifier`, beside logistic regression on words, and on denoised words.

The pairs of domains of the folder ``texts`` of the data, at most 1,000 rows a side, in accuracy in
per cent of the target. Logistic regression has C=10 on single words, with denoised words beside
them C=3. Writes ``records/texts/pairs.csv``, with the verdict on the labels of `adapt`, and
``means.csv``; ``many.csv`` is the time and memory of many texts, drawn again from those domains.

    python benchmarks/texts.py [--only ag2-bbc2,...] [--rows 20000]
"""

from __future__ import annotations

import argparse
import resource
import warnings
from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union
from sklearn.preprocessing import FunctionTransformer

from recording import tabulate
from transferable.classifiers import AdaptedClassifier
from transferable.datasets import get_data_home
from transferable.tables import TableClassifier, TableEncoder
from transferable.transformers import MarginalizedDenoising
from transferable.trust import agreement

FAMILIES = {
    "reviews": "cells-yelp cells-imdb imdb-yelp yelp-cells imdb-cells",
    "opinions": "movie-custrev custrev-movie movie-tweets2 airline2-tweets2 mpqa-custrev",
    "airlines": "united3-southwest3 southwest3-tweets3",
    "spam": "sms-youtube mail-sms youtube-sms sms-mail",
    "news": "ag2-bbc2 bbc2-ng2 ng2-ag2",
    "groups": "cs_a-cs_b rt_a-rt_b st_a-st_b rt_b-rt_a",
}
METHODS = ("logistic regression", "denoised", "adapt")
GIVEN: dict[str, Any] = {"text": ["text"]}
MANY = "ag2-bbc2"


def read(name: str) -> pd.DataFrame:
    """The texts of a domain and their labels."""
    path = get_data_home() / "texts" / f"{name}.csv.gz"
    return pd.read_csv(path, keep_default_na=False)


def compared(family: str, pair: str) -> dict[str, Any]:
    """Accuracies of a pair of domains, and the verdict on the labels of `adapt`."""
    source, target = map(read, pair.split("-"))
    ys, yt, target = source["label"], target["label"].to_numpy(), target[["text"]]
    encoder = TableEncoder(**GIVEN).adapt(source[["text"]], None, target)
    Xs, Xt = encoder.transform(source), encoder.transform(target)
    union = make_union(FunctionTransformer(), MarginalizedDenoising())
    denoised = AdaptedClassifier(union, LogisticRegression(C=3, max_iter=300))
    found = {
        METHODS[0]: LogisticRegression(C=10, max_iter=300).fit(Xs, ys).predict(Xt),
        METHODS[1]: denoised.adapt(Xs, ys, Xt).predict(Xt),
    }
    start = process_time()
    model = TableClassifier(**GIVEN).adapt(source, "label", target)
    seconds = process_time() - start
    found[METHODS[2]] = labels = model.labels_["prediction"].to_numpy()
    trust = model.trust_
    return (
        {
            "family": family,
            "pair": pair,
            "words": float(source["text"].str.split().str.len().median()),
        }
        | {name: 100 * float(np.mean(predicted == yt)) for name, predicted in found.items()}
        | {"kappa": 100 * agreement(labels, yt), "verdict": trust.state}
        | {"low": 100 * trust.low, "high": 100 * trust.high, "seconds": seconds}
    )


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means of each method, of its families, and where it is below logistic regression."""
    table = pd.DataFrame(rows)
    lines = []
    for method in METHODS:
        gains = table[method] - table[METHODS[0]]
        by_family = table.groupby("family", sort=False)[method].mean().to_dict()
        below = {"below by more than 1": int((gains < -1).sum()), "worst": float(gains.min())}
        mean = float(table[method].mean())
        lines.append(
            {"method": method, "mean": mean, "gain": float(gains.mean())} | below | by_family
        )
    return lines


def many(n_rows: int) -> dict[str, Any]:
    """Processor seconds and peak memory of an adaptation of texts of words drawn from others."""
    rng = np.random.default_rng(0)
    tables = []
    for name in MANY.split("-"):
        drawn = read(name).sample(n_rows, replace=True, random_state=0)
        texts = drawn["text"].str.split()
        drawn["text"] = [" ".join(rng.choice(words, min(len(words), 80))) for words in texts]
        tables.append(drawn)
    start = process_time()
    model = TableClassifier(**GIVEN).adapt(tables[0], "label", tables[1][["text"]])
    fitted = process_time()
    model.predict(tables[1][["text"]])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        **{"rows a side": n_rows, "method": type(model.estimator_).__name__},
        **{"words": len(model.encoder_.words_["text"].terms), "fit, s": fitted - start},
        **{"predict, s": process_time() - fitted, "peak, GB": peak},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=int)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.rows:
        tabulate("texts/many", [many(given.rows)])
        return
    chosen = given.only.split(",")
    pairs = [(f, pair) for f, names in FAMILIES.items() for pair in names.split()]
    rows = []
    for family, pair in pairs:
        if not given.only or pair in chosen:
            rows.append(compared(family, pair))
            print(rows[-1], flush=True)
    tabulate("texts/pairs", rows, keep=not given.only)
    tabulate("texts/means", means(rows), keep=not given.only)


if __name__ == "__main__":
    main()
