"""Rounds of solve and relabel: their state and its history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from transferable import events
from transferable._kernel.class_shares import (
    N_LEFT_OUT,
    SUPPORT,
    EstimatedShares,
    LabelRule,
    agreement,
    between,
    estimate_shift,
    small_class_offsets,
)
from transferable._kernel.objective import Objective
from transferable._kernel.solvers import PseudoLabels
from transferable._linalg.arrays import to_numpy
from transferable.limits import LIMITS

_N_CALIBRATED = 256  # source rows that are left out in turn for the temperature
_LOG_TEMPERATURES = (-7.0, 3.0)


class Rounds:
    """Coefficients w, scores F and pseudo-labels after the last round.

    `solver` has the objective with the present class prior `shares`, without the terms of few
    columns, which `aligned` has by name. `x` are the scores of the dual (`solvers.py`), `first` the
    labels that the rounds began with, `ratio` the class prior over that of the source. `history`
    has for each round the objective, its terms, the balance and the share of changed labels.
    """

    def __init__(
        self,
        solver: Any,
        objective: Objective,
        first: PseudoLabels,
        labelling: Any,
        shares: NDArray[np.float64],
    ) -> None:
        self.objective, self.base, self.first = objective, solver, first
        self.domains = solver.problem.domains
        self.history: list[dict[str, float]] = []
        self.shares_history: list[NDArray[np.float64]] = []
        self.restart(shares, first, labelling)

    def restart(self, shares: NDArray[np.float64], target: PseudoLabels, labelling: Any) -> None:
        """Continue from these labels with another class prior, on which the loss depends."""
        self.shares, self.ratio = shares, shares / self.domains.prior
        self.target, self.labelling, self.changed = target, labelling, 0.0
        self.solver = self.alone = self.base.reweighted(self.ratio)
        self.bind()

    def bind(self) -> None:
        """Bind the terms that depend on labels to the current ones."""
        d, labels, rule = self.domains, self.target, self.objective.balance
        self.balance = rule(d.y, labels.codes) if callable(rule) else float(rule)
        for term in self.objective.covariances if d.n_target else []:
            self.solver = self.alone.with_covariances(term, labels, self.ratio, self.balance)
        counts = np.vstack([d.source_counts, labels.counts])
        self.aligned = {}
        for term in self.objective.aligned:
            B = term.by_group(d, counts, self.ratio, self.balance)
            self.aligned[term.name] = self.solver.group_columns(B, labels)

    def solve(self, confusion: Any) -> Any:
        """Return the solution, Eq. 23 of the paper, and its dual scores.

        Class confusion is bounded around the last scores.
        """
        columns, pull = list(self.aligned.values()), None
        for term in confusion:
            image = self.solver.weighted(self.x)
            E, pull = term.around(image, self.x.T @ image)
            columns.append(E)
        return self.solver.updated(columns, pull)[:2]

    def run(
        self,
        most: int,
        confusion: Any = (),
        step: Callable[[Any, Any], Any] | None = None,
        *,
        until_settled: bool = True,
    ) -> None:
        """Run at most `most` rounds; `until_settled` stops once pseudo-labels are settled.

        A round is a `step`, or else the closed form. Where it depends on pseudo-labels alone, all
        later rounds would be equal. Among very many rows a few may alternate for ever; rounds do
        not wait for these.
        """
        for i in range(most):
            if events.LISTENERS.get():
                events.stage("Adapting", i / most)
            if self.changed > 0:
                self.bind()
            self.w, self.x = step(self, confusion) if step else self.solve(confusion)
            self.F = self.solver.scores(self.w, self.x)
            self.target = self.solver.label(self.w, self.F, self.labelling, self.target)
            self.changed = self.target.changed
            self.record()
            if self.labelling.renewals:
                shares = self.labelling.renewed(self.shares, self.target.counts)
                self.restart(shares, self.target, self.labelling)
            elif until_settled and self.changed < LIMITS.unsettled_share:
                break

    def record(self) -> None:
        """Add the current objective, term by term, to the history."""
        solver, x = self.solver, self.x
        # tr((F - Y)'A (F - Y)) = tr(F'AF) - 2 tr(F'AY) + tr(Y'AY)
        values = {
            "ridge": solver.ridge * float((self.w * x).sum()),
            "source": float((x * (solver.loss(x) - 2.0 * solver.image)).sum()) + solver.norm,
        }
        for name, weight, form in solver.fixed:
            values[name] = weight * float((x * form(x)).sum())
        for name, E in self.aligned.items():
            values[name] = float(((E.T @ x) ** 2).sum())
        for form in solver.extra:
            values["covariances"] = float((x * form(x)).sum())
        for term in self.objective.confusion:
            values[term.name] = term.value(x.T @ solver.weighted(x))
        end = {"balance": self.balance, "changed": self.changed}
        self.history.append({"objective": sum(values.values()), **values, **end})
        self.shares_history.append(self.shares)
        if events.LISTENERS.get():
            events.iterate(self.domains.with_target(self.target.codes), self.F)

    def settle(self, labelling: LabelRule) -> None:
        """Label the target rows for good."""
        self.labelling = labelling
        if self.domains.n_target:
            self.target = self.solver.label(self.w, self.F, labelling, settled=True)

    def follow_shift(self, max_iter: int, *, check: bool) -> None:
        """Follow an estimated label shift; revert it as far as the first labels speak against it.

        Labels that follow a shift must keep half of the agreement with the first labels that labels
        with the source's shares have. Labels of a single class agree by chance alone.
        """
        d = self.domains
        if d.n_target == 0:
            return
        plain = LabelRule(np.zeros(d.n_classes))
        alone, x, *_ = self.alone.updated([])
        F, aligned, before = self.alone.scores(alone, x), (self.w, self.F), self.target
        left_out = self.alone.left_out(F, [], self.ratio, N_LEFT_OUT)
        scores = to_numpy(F[d.target][: LIMITS.pool_rows])
        counts = before.counts / before.counts.sum()
        shift = estimate_shift(scores, left_out, counts, d)
        if shift.belief == 0.0:
            return
        y, columns = d.y[: len(left_out)], list(self.aligned.values())
        own = d.weights[: len(y)]
        ours = self.solver.left_out(self.F, columns, self.ratio, N_LEFT_OUT)
        # Both views' log-odds, weighted: linear in the scores, hence in the coefficients.
        a = shift.weight / temperature(left_out, y, own)
        b = (1.0 - shift.weight) / temperature(ours, y, own)
        mixed = (a * one + b * other for one, other in zip((alone, F), aligned, strict=True))
        target = self.solver.label(*mixed, LabelRule(np.log(shift.shares / d.prior)))
        self.restart(
            shift.shares, target, EstimatedShares(plain.offsets, belief=shift.belief, prior=d.prior)
        )
        self.run(max_iter)
        part = 1.0
        if check:
            first, weights = self.first.codes, d.weights[d.target]
            kept = agreement(self.target.codes, first, weights)
            kept -= agreement(before.codes, first, weights) / 2
            part = float(np.interp(kept, SUPPORT, (0.0, 1.0)))
        if part < 1.0:
            pairs = zip((self.w, self.F), aligned, strict=True)
            mixed = (part * one + (1.0 - part) * other for one, other in pairs)
            shares = between(d.prior, self.shares, part) if part > 0.0 else d.prior
            target = self.solver.label(*mixed, plain)
            self.restart(shares, target, plain)
            self.run(max_iter)

    def keep_small_classes(self) -> None:
        """Label for good with offsets that keep rare classes from shrinking."""
        d = self.domains
        columns = list(self.aligned.values())
        left_out = self.solver.left_out(self.F, columns, self.ratio, N_LEFT_OUT)
        y, weights = d.y[: len(left_out)], d.weights[: len(left_out)]
        offsets = small_class_offsets(left_out, y, weights, self.ratio)
        if offsets.any():
            self.settle(LabelRule(offsets))

    def temperatures(self) -> tuple[float, float]:
        """Return the temperature of left-out source rows, and its maximum with that of the target.

        Left-out source rows may be separated without error and do not represent the target. The
        target's temperature follows from the number of its first labels that the scores overturned.
        """
        d, columns, offsets = self.domains, list(self.aligned.values()), self.labelling.offsets
        left_out = self.solver.left_out(self.F, columns, self.ratio, _N_CALIBRATED)
        count = len(left_out)
        source = temperature(left_out, d.y[:count], d.weights[:count])
        scores = to_numpy(self.F[d.target][: LIMITS.pool_rows]) + offsets
        first = self.first.codes[: len(scores)]
        rows = np.flatnonzero(np.isfinite(offsets[first]))  # not known labels of absent classes
        if len(rows) == 0:
            return source, source
        own = d.weights[d.target][rows]
        return source, max(source, temperature(scores[rows], first[rows], own))


def temperature(
    scores: NDArray[np.float64],
    codes: NDArray[np.intp],
    weights: NDArray[np.float64] | None = None,
) -> float:
    """Return the divisor of the scores that maximises the softmax likelihood of the classes."""
    rows = np.arange(len(codes))

    def loss(log_temperature: float) -> float:
        logs = log_softmax(scores / np.exp(log_temperature), axis=1)
        return -float(np.average(logs[rows, codes], weights=weights))

    return float(np.exp(minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded").x))
