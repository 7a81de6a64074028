"""Whole commands and every fit: the part of test_path.py that takes longest."""

import functools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import transferable
from drawn import embedder, fill
from test_path import (
    ASKED,
    ASKING,
    CALLS,
    ENCODED,
    ESTIMATORS,
    FITTED,
    REPORTED,
    check,
    every_estimator,
    toy,
    walk,
)
from transferable.cli import app
from transferable.tables import TableEncoder

PATHS = {
    "AutoAdapter().adapt": (190, 24, 3),
    "transferable adapt": (280, 36, 3),
    "transferable adapt --model --report": (385, 45, 6),
}


def frames(Xs, ys, Xt):
    """Both domains as data frames, the source with its labels."""
    names = [f"f{k}" for k in range(Xs.shape[1])]
    source = pd.DataFrame(Xs, columns=names).assign(kind=np.array(["ant", "bee", "cat"])[ys])
    return source, pd.DataFrame(Xt, columns=names)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a.csv, which has labels, and b.csv, which has none."""
    folder = tmp_path_factory.mktemp("files")
    for name, table in zip("ab", frames(*toy(noise=3.0)), strict=True):
        table.to_csv(folder / f"{name}.csv", index=False)
    frames(*toy(noise=3.0, n_target=70))[1].to_csv(folder / "longer.csv", index=False)
    return folder


def adapt(folder, *more, target="b.csv"):
    """Call the command line in a folder."""
    options = ["--label", "kind", "--out", folder / "p.csv", *more]
    words = ["adapt", folder / "a.csv", folder / target, *options]
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output


def written(folder):
    """Options for a model file and a report."""
    return "--model", folder / "m.tfm", "--report", folder / "r.html"


@pytest.fixture(scope="module")
def calls(files):
    """The calls that are watched."""
    noisy = toy(noise=3.0)
    return {
        "AutoAdapter().adapt": lambda: transferable.AutoAdapter().adapt(*noisy),
        "transferable adapt": lambda: adapt(files),
        REPORTED: lambda: adapt(files, *written(files)),
    }


@pytest.mark.parametrize("title", PATHS)
def test_a_command_passes_through_few_functions(title, calls, reported):
    if not title.startswith("transferable"):  # these have been called for `reported`
        calls[title]()  # imports and caches
    entered, named = walk(calls[title])
    check(title, entered, PATHS[title])
    assert sum(named.values()) <= CALLS.get(title, 10_000), Counter(named).most_common(20)


@pytest.fixture(scope="module")
def reported(files):
    """How often one command encodes its 70 target rows, and asks members for probabilities.

    The source has 40 rows, and a model file is checked on 50 at most.
    """
    encoded, asked, members = Counter(), Counter(), []
    encode, answer = TableEncoder.transform, LogisticRegression.decision_function

    def encoding(self, X, sample_domain=None):
        encoded[id(self)] += len(X) >= 70
        return encode(self, X, sample_domain)

    def answering(self, X):
        members.append(self)  # alive, so that no other gets its id
        asked[id(self)] += X.shape[0] == 70
        return answer(self, X)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableEncoder, "transform", encoding)
        patch.setattr(LogisticRegression, "decision_function", answering)
        _, named = walk(lambda: adapt(files, *written(files), target="longer.csv"))
    asking = {name: count for (_, name), count in named.items() if name in ASKING}
    return encoded, asked, asking


def test_one_command_encodes_the_target_once_and_asks_every_member_once(reported):
    encoded, asked, asking = reported
    assert 1 <= encoded.total() <= ENCODED, encoded
    assert max(asked.values()) == 1, asked
    assert 1 <= sum(asking.values()) <= ASKED, asking


def deep_model(kind, short, least):
    """A deep method with few steps, and what it needs besides."""
    more = {"ADDA": {"adversarial_epochs": 1}, "DeepTFDF": {"n_rounds": 1}}
    if short == "AdaBN":
        more["AdaBN"] = {"network": normalised_network}
    if short == "PenalisedClassifier":
        more[short] = {"weight": 0.0}
    return kind(**least, **more.get(short, {}))


def normalised_network(input_shape, n_classes):
    """A small network with batch normalisation."""
    torch = pytest.importorskip("torch")
    from transferable.deep.networks import Network

    first = torch.nn.Linear(input_shape[0], 8), torch.nn.BatchNorm1d(8)
    return Network(torch.nn.Sequential(*first), torch.nn.Linear(8, n_classes))


def fitted(name, kind, folder):
    """An estimator after a fit."""
    home, _, short = name.partition(".")
    task = toy()
    if home == "deep":
        least = {"epochs": 2, "epoch_steps": 2, "batch_size": 32}
        return deep_model(kind, short, least).adapt(*task)
    if home == "images":
        fill(folder)
        model = kind(model=embedder, estimator=transferable.TFDFV(max_iter=2), cache=None)
        return model.adapt(folder / "source", None, folder / "target")
    if home == "tables":
        source, target = frames(*task)
        labels = source.pop("kind")
        if short == "TableClassifier":
            kind = functools.partial(kind, transferable.TFDFV(max_iter=2))
        elif short == "TableRegressor":
            labels = source.index.to_series() / 2
        return kind().adapt(source, labels, target)
    if home == "dask":
        import dask.array as da

        Xs, ys, Xt = (da.from_array(part) for part in task)
        more = {"n_landmarks": 20, "graph": "anchors"} if hasattr(kind, "predict") else {}
        return kind(**more).adapt(Xs, ys, Xt)
    if short == "LabelFreeSearch":
        kind = functools.partial(
            kind, transferable.TFDFV(max_iter=2), {"ridge": [1.0]}, scoring="entropy"
        )
    return kind().adapt(*task)


@every_estimator
@pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")
def test_a_fit_sets_few_private_attributes(name, tmp_path):
    model = fitted(name, ESTIMATORS[name], tmp_path)
    private = sorted(key for key in vars(model) if key.startswith("_"))
    assert len(private) <= (FITTED + 2 if name.endswith(".AutoAdapter") else FITTED), private
