"""Rounds of solve and relabel: the state they pass on, the ways to make one, what they record."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from transferable import events
from transferable.engines.risk.solver import Labelled, Labels, Solver
from transferable.engines.shares import Labelling
from transferable.limits import LIMITS
from transferable.linalg.optimizers import Adam, lbfgs
from transferable.terms.base import Matrix

__all__ = ["Rounds", "Step", "adam", "lbfgs_round", "separate", "solve"]

_LBFGS_ITERATIONS = 20  # for one set of pseudo-labels


class Rounds:
    """Coefficients, scores and pseudo-labels after the last round, and the history of all.

    Attributes
    ----------
    coefficients : array
        The classifier, in whatever the solver expands it; zero until a round has been made.
    first, target : object
        The pseudo-labels the rounds began with, and the present ones, as the solver has them.
    labelled : Labelled
        The terms that depend on labels, as the last round used them.
    labelling : Labelling
        How scores become pseudo-labels.
    history : list of dict
        For each round: the objective, each of its terms, the balance and the share of
        pseudo-labels that changed.
    shares : list of ndarray
        For each round the class shares that the target was taken to have.
    """

    def __init__(
        self,
        solver: Solver,
        target: Labels,
        labelling: Labelling | None = None,
        *,
        record_history: bool = True,
    ) -> None:
        self.solver = solver
        self.labelling = labelling or Labelling()
        self.coefficients = solver.zero()
        self.first = self.target = target
        self.labelled: Labelled = solver.at(target)
        self.history: list[dict[str, float]] = []
        self.shares: list[NDArray[np.float64]] = []
        self.n_iter = 0
        self._record_history = record_history
        self._changed = 0.0

    @property
    def scores(self) -> Matrix:
        """F of all rows at hand."""
        return self.solver.scores(self.coefficients)

    def run(self, step: Step, most: int, *, until_settled: bool = True) -> None:
        """Make at most so many rounds; `until_settled` ends them once pseudo-labels stay the same.

        Where a round depends on the pseudo-labels alone, all rounds after that would be equal. Of
        very many rows a few may change to and fro for ever, and rounds do not wait for these.
        """
        for _ in events.rounds(most):
            if self._changed > 0:
                self.labelled = self.solver.at(self.target)
            self._advance(step(self))
            shares = self.labelling.renewed(self.solver.groups(self.target).counts[-1])
            if shares is not None:
                self._take(shares)
            elif until_settled and self._changed < LIMITS.unsettled_share:
                break

    def restart(
        self, shares: NDArray[np.float64] | None, target: Labels, labelling: Labelling
    ) -> None:
        """Go on from other labels, with classes of these shares, None for the source's."""
        self.target, self.labelling = target, labelling
        self._take(shares)

    def relabel(self, offsets: NDArray[np.float64]) -> None:
        """Add offsets to the scores from now on."""
        self.labelling = Labelling(offsets)
        self.settle()

    def settle(self) -> None:
        """Label the target rows for good."""
        if self.solver.domains.n_target > 0:
            self.target = self.solver.relabel(self.coefficients, self.labelling, settled=True)

    def _take(self, shares: NDArray[np.float64] | None) -> None:
        """Let the target's classes have these shares in the next rounds."""
        self.solver = self.solver.with_shares(shares)
        self.labelled, self._changed = self.solver.at(self.target), 0.0

    def _advance(self, coefficients: Matrix) -> None:
        """Take the coefficients of a round, relabel the target rows and note what happened."""
        solver = self.solver
        self.coefficients = coefficients
        target = solver.relabel(coefficients, self.labelling)
        self._changed, self.target = solver.changed(target, self.target), target
        self.n_iter += 1
        self.shares.append(solver.domains.target_shares)
        events.iterate(
            lambda: solver.domains.with_target(solver.codes(target)),
            lambda: solver.scores(coefficients),
        )
        if self._record_history:
            values = solver.values(coefficients, self.labelled)
            self.history.append(
                {"objective": sum(values.values()), **values}
                | {"balance": self.labelled.balance, "changed": self._changed}
            )


Step = Callable[[Rounds], Matrix]


def solve(rounds: Rounds) -> Matrix:
    """Solve the linear system of the objective without class confusion, Eq. 23 of the paper."""
    return rounds.solver.solve(rounds.labelled)


def separate(rounds: Rounds) -> Matrix:
    """Solve it with the quadratic that stands for class confusion around the last scores."""
    solver = rounds.solver
    solution = solver.solve(rounds.labelled, rounds.coefficients)
    # The printed form pulls every column to length one, and overshoots unless it goes half way.
    if solver.confusion is not None and solver.confusion.form == "printed":
        solution = (solution + rounds.coefficients) / 2
    return solution


def adam(learning_rate: float) -> Step:
    """One step of Adam for each set of pseudo-labels: Algorithm 2 of the paper."""
    optimizer = Adam(learning_rate)

    def step(rounds: Rounds) -> Matrix:
        w = rounds.coefficients
        return optimizer.update(w, rounds.solver.gradient(w, rounds.labelled, as_printed=True))

    return step


def lbfgs_round(rounds: Rounds) -> Matrix:
    """L-BFGS on the exact objective for one set of pseudo-labels, from the last coefficients."""
    solver, labelled = rounds.solver, rounds.labelled

    def objective(w: Matrix) -> tuple[float, Matrix]:
        values = solver.values(w, labelled)
        return sum(values.values()), solver.gradient(w, labelled)

    return lbfgs(objective, rounds.coefficients, _LBFGS_ITERATIONS)
