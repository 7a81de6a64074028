"""Toy datasets, methods and records."""

import os
import signal

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from paper import plans, settings
from paper.benchmarks import BENCHMARKS, Benchmark
from paper.records import Record, code_version
from transferable import MEDA, TFDF
from transferable.classifiers import AdaptedClassifier
from transferable.datasets import DomainCollection
from transferable.persistence import versions
from transferable.transformers import JDA

DOMAINS = {
    **dict.fromkeys(("surf", "decaf6", "efficientnet"), "CAWD"),
    "digits": "UM",
    "coil": ("COIL1", "COIL2"),
    "digits-full": "MU",
}
METHODS = {
    "1NN": lambda: AdaptedClassifier(),
    "PCA": lambda: AdaptedClassifier(PCA(3, random_state=7)),
    "JDA": lambda: AdaptedClassifier(make_pipeline(Normalizer(), JDA(3))),
    "MEDA": lambda: MEDA(manifold_dim=3, max_iter=4),
    "TFDF": lambda: TFDF(manifold_dim=3, alignment=10.0, manifold=1.0, ridge=0.1, n_neighbors=10),
}


class Deadly(PCA):
    """Kills the process that fits it, as the system does where memory runs out."""

    def fit_transform(self, X, y=None):
        os.kill(os.getpid(), signal.SIGKILL)


def toy_collection(name: str, domains: str | tuple[str, ...], n: int = 36) -> DomainCollection:
    """Three classes in six dimensions; each domain is shifted in a direction of its own."""
    data = {}
    for i, domain in enumerate(domains):
        rng = np.random.default_rng(i)
        y = np.arange(n) % 3
        data[domain] = (
            rng.normal(size=(n, 6)) + 2.5 * np.eye(3, 6)[y] + 0.8 * rng.normal(size=6),
            y,
        )
    return DomainCollection(name, tuple(domains), ["cat", "dog", "fox"], data.__getitem__)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put toy datasets and methods in place of the real ones."""
    for name, domains in DOMAINS.items():
        collection = toy_collection(name, domains)
        benchmark = Benchmark(f"Toy {name}", lambda collection=collection: collection)
        monkeypatch.setitem(BENCHMARKS, name, benchmark)
    monkeypatch.setattr(plans, "require_gpu", lambda experiment: None)
    monkeypatch.setattr(settings, "methods", lambda dataset: list(METHODS))
    monkeypatch.setattr(settings, "build", lambda dataset, method, **_: METHODS[method]())


def make_record(method: str = "JDA", task: str = "C->A", **values) -> Record:
    fields = {
        "dataset": "surf",
        "task": task,
        "method": method,
        "protocol": "fixed",
        "accuracy": 0.5,
        "accuracy_best_iterate": 0.6,
        "n_iterates": 3,
        "seconds": 1.5,
        "peak_memory_mib": 100.0,
        "parameters": {"n_components": 30},
        "changes": {},
        "seed": 0,
        "versions": versions(code_version()),
        "warnings": [],
    }
    return Record(**(fields | values))


def record_of(cell, **values) -> Record:
    """A record that answers a cell."""
    own = {
        "dataset": cell.dataset,
        "task": cell.task,
        "method": cell.method,
        "protocol": cell.protocol,
        "parameters": cell.parameters,
        "changes": dict(cell.changes),
    }
    return make_record(**(own | values))
