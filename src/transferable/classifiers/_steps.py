"""Ways to make one round: from the rounds so far to the next coefficients."""

from __future__ import annotations

from transferable.classifiers._rounds import Rounds, Step
from transferable.linalg.optimizers import Adam, lbfgs
from transferable.terms.base import Matrix

__all__ = ["adam", "lbfgs_round", "separate", "solve"]

_LBFGS_ITERATIONS = 20  # for one set of pseudo-labels


def solve(rounds: Rounds) -> Matrix:
    """Solve the linear system of the objective without class confusion, Eq. 23 of the paper."""
    return rounds.problem.solve(rounds.alignment)


def separate(rounds: Rounds) -> Matrix:
    """Solve it with the quadratic that stands for class confusion around the last scores."""
    problem = rounds.problem
    quadratic, pull = problem.confusion.around(rounds.scores)
    beta = problem.solve(rounds.alignment, quadratic, problem.Y + pull)
    # The printed form pulls every column to length one, and overshoots unless it goes half way.
    return beta if problem.confusion.form == "normalised" else (beta + rounds.beta) / 2


def adam(learning_rate: float) -> Step:
    """One step of Adam for each set of pseudo-labels: Algorithm 2 of the paper."""
    optimizer = Adam(learning_rate)

    def step(rounds: Rounds) -> Matrix:
        problem = rounds.problem
        _, slope = problem.objective(rounds.beta, rounds.scores, rounds.alignment)
        separation = problem.confusion.gradient(rounds.scores, as_printed=True)
        return optimizer.update(rounds.beta, problem.K @ (2.0 * slope + separation))

    return step


def lbfgs_round(rounds: Rounds) -> Matrix:
    """L-BFGS on the exact objective for one set of pseudo-labels, from the last coefficients."""
    problem = rounds.problem

    def objective(beta: Matrix) -> tuple[float, Matrix]:
        F = problem.K @ beta
        values, slope = problem.objective(beta, F, rounds.alignment)
        return sum(values.values()), problem.K @ (2.0 * slope + problem.confusion.gradient(F))

    return lbfgs(objective, rounds.beta, _LBFGS_ITERATIONS)
