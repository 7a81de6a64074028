"""Reports on small problems, and a reader of the pages."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np

from problems import small_problem
from transferable import TFDF
from transferable.report import ReportData

VOID = {"meta", "img", "br", "hr", "link", "input"}


def report_data(estimator: Any = None, *, names: tuple[str, ...] = ("ant", "bee", "cat"), **fields):
    """A fitted method with all that its report tells."""
    task = small_problem(n_source=42, n_target=33, n_classes=len(names))
    classes = np.array(names)
    model = TFDF(manifold_dim=None, max_iter=3) if estimator is None else estimator
    model.adapt(task.Xs, classes[task.ys], task.Xt)
    known = {
        "command": "transferable adapt source.csv target.csv --label kind",
        "method": type(model).__name__,
        "source_name": "source.csv",
        "target_name": "target.csv",
        "label": "kind",
        "Xs": task.Xs,
        "Xt": task.Xt,
        "feature_names": [f"column {i}" for i in range(6)],
        "ys": classes[task.ys],
        "classes": model.classes_,
        "predicted": model.predict(task.Xt),
        "estimator": model,
        "probabilities": model.predict_proba(task.Xt),
        "yt": classes[task.yt],
        "parameters": {"ridge": 0.1, "kernel": "rbf"},
        "preprocessing": {"scale": "joint"},
        "versions": {"transferable": "0.0", "python": "3"},
        "seed": 3,
        "notes": ["a note on the input"],
        "seconds": 1.25,
    }
    return ReportData(**known | fields)


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.misplaced: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.misplaced.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]
