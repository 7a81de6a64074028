"""Reports on small problems, and a reader of the pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from problems import small_problem
from transferable import TFDF
from transferable.diagnostics import Assessment, RowsToLabel, Trust
from transferable.report.data import Facts, describe
from transferable.trust import changes_of

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
        "audit": "transferable audit target.csv predictions.csv --rows 30",
        "made": date(2026, 8, 2),
    }
    data = describe(
        model,
        task.Xs,
        classes[task.ys],
        task.Xt,
        yt=classes[task.yt],
        trust=options.pop("trust", fixed_trust(model.predict(task.Xt))),
        facts=Facts(**facts | options.pop("facts", {})),
    )
    return replace(data, **options)


def fixed_trust(labels, state="use", *, own=True):
    """What is known of the labels, without the fits that it takes to find out."""
    n, alone = len(labels), np.roll(labels, 1)
    changes = changes_of(alone, labels)
    trust = Trust(state, 0.66, 0.94, 0.8, n, sum(rows for *_, rows in changes), changes)
    names = ["logistic regression", "TFDF", "random forest"]
    errors = [None, None, "same model and input as TFDF"]
    candidates = pd.DataFrame({"name": names, "weight": [0.6, 0.4, 0.0], "error": errors})
    pool = SimpleNamespace(
        candidates_=candidates,
        agreement_=pd.DataFrame([[1.0, 0.72], [0.72, 1.0]], names[:2], names[:2]),
        unfamiliar_=np.arange(n) < 5,
        audit_rows=lambda n_rows: RowsToLabel(np.arange(n_rows)[::-1], np.ones(n_rows)),
    )
    return Assessment(trust, labels, alone, None if own else 0.9, pool)


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
