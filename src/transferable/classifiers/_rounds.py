"""Rounds of solve and relabel: the state they pass on and the record they leave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from transferable.classifiers._risk import Alignment, RiskProblem
from transferable.events import iterate
from transferable.events import rounds as counted
from transferable.linalg.arrays import namespace
from transferable.terms.base import Matrix

__all__ = ["Rounds", "Step"]


class Rounds:
    """Coefficients, scores and pseudo-labels after the last round, and the history of all.

    Attributes
    ----------
    coefficients : array
        The classifier, in whatever the problem expands it; zero until a round has been made.
    scores : array of shape (n, n_classes)
        F of all rows.
    first, target : ndarray of shape (n_target,)
        The pseudo-labels the rounds began with, and the present ones.
    alignment : Alignment
        lambda V that the last round used.
    history : list of dict
        For each round: the objective, each of its terms, the balance and the share of
        pseudo-labels that changed.
    """

    def __init__(self, problem: RiskProblem, target: NDArray[np.intp]) -> None:
        self.problem = problem
        self.coefficients = problem.zero()
        self.scores = namespace(problem.Y).zeros_like(problem.Y)
        self.first = self.target = target
        self.alignment: Alignment = problem.alignment(target)
        self.history: list[dict[str, float]] = []
        self.n_iter = 0
        self._changed = 0.0

    def run(self, step: Step, most: int, *, until_settled: bool = True) -> None:
        """Make at most so many rounds; `until_settled` ends them once pseudo-labels stay the same.

        Where a round depends on the pseudo-labels alone, all rounds after that would be equal.
        """
        for _ in counted(most):
            if self._changed > 0:
                self.alignment = self.problem.alignment(self.target)
            self._advance(step(self))
            if until_settled and self._changed == 0:
                break

    def _advance(self, coefficients: Matrix) -> None:
        """Take the coefficients of a round, relabel the target rows and note what happened."""
        problem = self.problem
        self.coefficients, self.scores = coefficients, problem.scores(coefficients)
        target = problem.target_codes(self.scores)
        self._changed = float(np.mean(target != self.target)) if len(target) else 0.0
        self.target = target
        self.n_iter += 1
        iterate(problem.domains.with_target(target), self.scores)
        if problem.spec.record_history:
            values, _ = problem.objective(coefficients, self.scores, self.alignment)
            self.history.append(
                {"objective": sum(values.values()), **values}
                | {"balance": self.alignment.balance, "changed": self._changed}
            )


Step = Callable[[Rounds], Matrix]
