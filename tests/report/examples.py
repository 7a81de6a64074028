"""Reports on small problems, and a reader of the pages."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np

from problems import small_problem
from transferable import TFDF
from transferable.diagnostics import TransferEstimate, Trust
from transferable.model_selection import AccuracyEstimate
from transferable.report import Facts, describe

VOID = {"meta", "img", "br", "hr", "link", "input"}


def report_data(
    estimator: Any = None, *, names: tuple[str, ...] = ("ant", "bee", "cat"), **options
):
    """A fitted method with all that its report tells."""
    task = small_problem(n_source=14 * len(names), n_target=11 * len(names), n_classes=len(names))
    classes = np.array(names)
    model = TFDF(manifold_dim=None, max_iter=3) if estimator is None else estimator
    model.adapt(task.Xs, classes[task.ys], task.Xt)
    facts = {
        "source_name": "source.csv",
        "target_name": "target.csv",
        "command": "transferable adapt source.csv target.csv --label kind",
        "seed": 3,
        "notes": ["a note on the input"],
        "seconds": 1.25,
    }
    data = describe(
        model,
        task.Xs,
        classes[task.ys],
        task.Xt,
        yt=classes[task.yt],
        trust=options.pop("trust", fixed_trust(model, task)),
        facts=Facts(**facts | options.pop("facts", {})),
    )
    return replace(data, **options)


def fixed_trust(model, task):
    """What is known of the labels, without the fits that it takes to find out."""
    estimate = TransferEstimate(AccuracyEstimate(0.8, 0.66, 0.94), AccuracyEstimate(0.7, 0.5, 0.9))
    labels = model.predict(task.Xt)
    shares = dict.fromkeys(model.classes_.tolist(), 1 / len(model.classes_))
    return Trust(labels, np.roll(labels, 1), estimate, shares)


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
