"""Verdict on the labels that a method gives the target, without a label.

It is that of :class:`~transferable.AutoAdapter`'s pool; commands and the report take it from
:func:`assess_trust`.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from transferable._sklearn import safe_indexing
from transferable.classifiers import AutoAdapter
from transferable.diagnostics.comparison import labels_by
from transferable.domains import are_several
from transferable.events import stage
from transferable.regressors._measured import Unmeasured
from transferable.tables import TableClassifier
from transferable.trust import changes_of, percent
from transferable.wrapping import unwrap

_MOST_ROWS = 1000  # of each domain: the pool is seven fits


@dataclass(frozen=True)
class Assessment:
    """Verdict on the labels that a method gives target rows.

    Attributes
    ----------
    trust : Trust or Unmeasured
        The verdict of AutoAdapter's pool. That of another method is at best "check", its interval
        wider by the share of rows on which both differ.
    labels, source_only : ndarray of shape (n_target,)
        Labels by the pool, and by its models of the source alone.
    agreement : float or None
        Share of target rows that the method and the pool label alike; None if it is the pool.
    pool : AutoAdapter or TableClassifier
        The fitted pool.
    """

    trust: Any
    labels: NDArray[Any]
    source_only: NDArray[Any]
    agreement: float | None
    pool: Any

    @property
    def record(self) -> dict[str, Any]:
        """The verdict in values that are valid in JSON."""
        pool, trust = unwrap(self.pool), self.trust
        if isinstance(trust, Unmeasured):
            return {**asdict(trust), "of": "AutoRegressor", "lines": trust.lines}
        return {
            **asdict(trust),
            "low": trust.low if trust.shown else None,
            "high": trust.high if trust.shown else None,
            "of": "AutoAdapter",
            "agreement_with_method": self.agreement,
            "estimated_class_shares": {str(k): float(v) for k, v in pool.class_shares_.items()},
            "lines": trust.lines,
        }


def assess_trust(model: Any, Xs: Any, ys: Any, Xt: Any, *, random_state: int = 0) -> Assessment:
    """Judge without labels whether those of a fitted model can be used.

    Parameters
    ----------
    model : classifier
        Fitted to these rows: an :class:`~transferable.AutoAdapter`, whose own verdict it is, or
        another classifier or :class:`~transferable.tables.TableClassifier`, for which an
        AutoAdapter is fitted to at most 1,000 rows of each domain. Of an AutoRegressor it is what
        can be seen without labels. One that is not fitted has no
        labels of its own: the verdict is on AutoAdapter's.
    Xs, ys, Xt : array-like, frame, or list of such
        Source rows, their labels, and target rows, as the model takes them.
    random_state : int, default=0
        Seed of the pool and of the rows drawn.

    Returns
    -------
    assessment : Assessment
        The verdict, and labels by the source alone.

    Examples
    --------
    >>> from transferable import TFDFV
    >>> from transferable.datasets import make_shifted
    >>> from transferable.diagnostics import assess_trust
    >>> task = make_shifted(n_features=4)
    >>> model = TFDFV().adapt(task.Xs, task.ys, task.Xt)
    >>> assess_trust(model, task.Xs, task.ys, task.Xt).trust.state
    'check'
    """
    if isinstance(getattr(model, "trust_", None), Unmeasured):
        found = model.labels_
        own, alone = (found[name].to_numpy() for name in ("prediction", "source_only"))
        return Assessment(model.trust_, own, alone, None, model)
    pool, fitted = model, hasattr(model, "classes_")
    if getattr(model, "trust_", None) is None:
        pool = AutoAdapter(random_state=random_state)
        if isinstance(model, TableClassifier):
            pool = clone(model).set_params(estimator=pool)
        stage("Judging the labels")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits on parts of the rows
            pool.adapt(*_drawn(Xs, ys, Xt, np.random.default_rng(random_state)))
    trust, table, alike = pool.trust_, pool.labels_ if pool is model else pool.label(Xt), None
    own, alone = (table[name].to_numpy() for name in ("prediction", "source_only"))
    if pool is not model:
        labels = labels_by(model, Xt) if fitted else own
        alike = float(np.mean(own == labels)) if fitted else None
        changes = changes_of(alone, labels)
        changed = sum(rows for *_, rows in changes)
        trust = replace(trust, rows=len(labels), changed=changed, changes=changes)
    if alike is not None:
        whose = (
            "The verdict is AutoAdapter's on its own labels, which are those of "
            f"{type(unwrap(model)).__name__} for {percent(alike)} % of the rows"
        )
        trust = replace(
            trust,
            state="reject" if trust.state == "reject" else "check",
            low=max(0.0, trust.low - (1 - alike)),
            high=min(1.0, trust.high + (1 - alike)),
            reasons=(whose, *trust.reasons),
        )
    return Assessment(trust, own, alone, alike, pool)


def draw_rows(
    groups: NDArray[Any], rng: np.random.Generator, most: int = _MOST_ROWS
) -> NDArray[np.intp]:
    """Return positions of all rows, or of about `most`, the same share of every group."""
    share = min(1.0, most / max(1, len(groups)))
    if share == 1.0:
        return np.arange(len(groups))
    members = (np.flatnonzero(groups == group) for group in np.unique(groups))
    drawn = [rng.choice(m, max(1, round(share * len(m))), replace=False) for m in members]
    return np.sort(np.concatenate(drawn))


def _drawn(Xs: Any, ys: Any, Xt: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return at most 1,000 rows of each domain, the same share of every class."""
    rows = draw_rows(np.zeros(np.shape(Xt)[0]), rng)
    target = safe_indexing(Xt, rows)
    if are_several(Xs):
        labels = [ys] * len(Xs) if isinstance(ys, str) else ys
        parts = [_drawn(X, y, X, rng)[:2] for X, y in zip(Xs, labels, strict=True)]
        found = [part[1] for part in parts]
        return [part[0] for part in parts], ys if isinstance(ys, str) else found, target
    rows = draw_rows(np.asarray(Xs[ys] if isinstance(ys, str) else ys), rng)
    return safe_indexing(Xs, rows), ys if isinstance(ys, str) else np.asarray(ys)[rows], target
