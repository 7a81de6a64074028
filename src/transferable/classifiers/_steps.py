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
    solution = problem.solve(rounds.alignment, *problem.confusion.around(rounds.scores))
    # The printed form pulls every column to length one, and overshoots unless it goes half way.
    if problem.confusion.form == "printed":
        solution = (solution + rounds.coefficients) / 2
    return solution


def adam(learning_rate: float) -> Step:
    """One step of Adam for each set of pseudo-labels: Algorithm 2 of the paper."""
    optimizer = Adam(learning_rate)

    def step(rounds: Rounds) -> Matrix:
        problem, alignment = rounds.problem, rounds.alignment
        _, slope = problem.objective(rounds.coefficients, rounds.scores, alignment)
        slope = 2.0 * slope + problem.confusion.gradient(rounds.scores, as_printed=True)
        gradient = problem.pull_back(slope, rounds.coefficients, alignment)
        return optimizer.update(rounds.coefficients, gradient)

    return step


def lbfgs_round(rounds: Rounds) -> Matrix:
    """L-BFGS on the exact objective for one set of pseudo-labels, from the last coefficients."""
    problem, alignment = rounds.problem, rounds.alignment

    def objective(coefficients: Matrix) -> tuple[float, Matrix]:
        F = problem.scores(coefficients)
        values, slope = problem.objective(coefficients, F, alignment)
        slope = 2.0 * slope + problem.confusion.gradient(F)
        return sum(values.values()), problem.pull_back(slope, coefficients, alignment)

    return lbfgs(objective, rounds.coefficients, _LBFGS_ITERATIONS)
