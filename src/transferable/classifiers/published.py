"""TFDF and TFDF-V as their paper prints them: ``TFDF.as_published()``, ``TFDFV.as_published()``.

The printed forms are not normalised, so no weight suits two datasets. They reproduce the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

from transferable._kernel.choose import Graph, Problem
from transferable._kernel.class_shares import ClassShares
from transferable._kernel.covariances import Covariances
from transferable._kernel.objective import (
    ClassConfusion,
    Matrix,
    Means,
    Objective,
    mean_differences,
)
from transferable._kernel.rounds import Rounds
from transferable._linalg.arrays import namespace
from transferable._sklearn import COUNT, POSITIVE, StrOptions
from transferable.classifiers.tfdf import TFDF, TFDFV
from transferable.domains import Domains

_ROUNDS = {"adam": 100, "closed_form": 10}


@dataclass(frozen=True)
class PrintedMeans(Means):
    """lambda ((1 - mu) M_0 + mu sum_c M_c), not normalised."""

    def by_group(
        self, domains: Domains, counts: NDArray[Any], ratio: NDArray[Any], balance: float
    ) -> NDArray[np.float64]:
        """Return B of shape (n_groups, n_columns)."""
        B = mean_differences(counts, ratio, domains.source_weights)
        B[:, :, 0] *= np.sqrt(1.0 - balance)
        B[:, :, 1:] *= np.sqrt(balance)
        return np.sqrt(self.weight) * B.reshape(len(B), -1)


@dataclass(frozen=True)
class PrintedCovariances(Covariances):
    """The second order, not normalised."""

    def whole_weight(self, balance: float, n_classes: int) -> float:
        """Return the weight of the marginal comparison."""
        return 1.0 - balance

    def scale(self, trace: float) -> float:
        """Return the weight; the trace is ignored."""
        return self.weight


@dataclass(frozen=True)
class PrintedConfusion(ClassConfusion):
    """xi ||F'F - I||^2, which also shrinks F."""

    def lengths(self, B: Matrix) -> Matrix:
        """Return ones: columns are taken as they are."""
        return namespace(B).ones_like(namespace(B).linalg.diagonal(B))


class Adam:
    """A step of Adam for each set of pseudo-labels, as Algorithm 2 prints it.

    Epsilon is inside the root, and the printed class confusion has half its true slope (Eq. 22).
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate, self.step = learning_rate, 0
        self.mean: Any = 0.0
        self.square: Any = 0.0

    def __call__(self, rounds: Rounds, confusion: Any) -> tuple[Matrix, Matrix]:
        """Return the next coefficients, and their dual scores."""
        gradient = self.gradient(rounds)
        self.step += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.step)
        square = self.square / (1 - 0.999**self.step)
        w = rounds.w - self.learning_rate * mean / (square + 1e-8) ** 0.5
        return w, rounds.solver.dual(w)

    @staticmethod
    def gradient(rounds: Rounds) -> Matrix:
        """Return the slope of the objective in the coefficients."""
        solver, x = rounds.solver, rounds.x
        slope = solver.ridge * rounds.w - solver.image + solver.loss(x)
        for _, weight, form in solver.fixed:
            slope = slope + weight * form(x)
        for E in rounds.aligned.values():
            slope = slope + E @ (E.T @ x)
        for form in solver.extra:
            slope = slope + form(x)
        slope = 2.0 * slope
        image = solver.weighted(x)
        B = x.T @ image
        for term in rounds.objective.confusion:
            lengths = term.lengths(B)
            G, cosines = image / lengths, B / (lengths[:, None] * lengths)
            if isinstance(term, PrintedConfusion):
                slope = slope + 2.0 * term.weight * (G @ cosines - G)
            else:
                along = (cosines * cosines).sum(axis=0) - cosines.diagonal()
                slope = slope + (4.0 * term.weight) * (G @ cosines - G - G * along) / lengths
        return solver.dual(slope)


class PublishedTFDFV(TFDFV):
    """TFDF-V in the form that the paper prints.

    Parameters
    ----------
    alignment_form : {"normalised", "printed"}, default="printed"
        Scaling of V. "normalised" counts the marginals as much as all classes together and divides
        by the Frobenius norm (the means) or the trace (the covariances), so that one weight suits
        datasets of any size; "printed" does neither.

    Examples
    --------
    >>> from transferable import TFDFV
    >>> TFDFV.as_published().alignment_form
    'printed'
    """

    second_order: float = 1.0
    balance: Literal["adaptive", "printed"] | float = "printed"
    manifold: float | Literal["auto"] = 1.0
    n_neighbors: int = 10
    graph: Graph = "neighbors"
    class_shares: ClassShares = "source"
    n_landmarks: float | Literal["auto"] | None = None
    estimator: ClassifierMixin | None = KNeighborsClassifier(1)
    alignment_form: str = "printed"
    _centred = False
    _parameter_constraints = {  # noqa: RUF012
        "alignment_form": [StrOptions({"normalised", "printed"})]
    }

    def _objective(self, problem: Problem) -> Objective:
        return _printed(super()._objective(problem), self.alignment_form)


class PublishedTFDF(TFDF):
    """TFDF in the form that the paper prints, with its optimiser.

    Parameters
    ----------
    alignment_form : {"normalised", "printed"}, default="printed"
        As in :class:`PublishedTFDFV`.
    confusion_form : {"normalised", "printed"}, default="printed"
        "normalised" takes B as cosines between the columns, "printed" as their inner products,
        which also shrinks the scores; the two need weights of different size.
    confusion_iter : int or "auto", default="auto"
        Rounds with class confusion; "auto" is the paper's 100 for "adam" and 10 otherwise.
    solver : {"adam", "closed_form"}, default="adam"
        Method of a round with class confusion. "adam" is one step of Algorithm 2 as printed;
        "closed_form" bounds the term by a quadratic around the last scores, one more linear solve.
    learning_rate : float, default=0.0005
        alpha, the step of "adam".

    Examples
    --------
    >>> from transferable import TFDF
    >>> TFDF.as_published().solver
    'adam'
    """

    second_order: float = 1.0
    balance: Literal["adaptive", "printed"] | float = "printed"
    manifold: float | Literal["auto"] = 1.0
    n_neighbors: int = 10
    graph: Graph = "neighbors"
    class_shares: ClassShares = "source"
    n_landmarks: float | Literal["auto"] | None = None
    estimator: ClassifierMixin | None = KNeighborsClassifier(1)
    confusion: float = 0.1
    alignment_form: str = "printed"
    confusion_form: str = "printed"
    confusion_iter: int | Literal["auto"] = "auto"
    solver: str = "adam"
    learning_rate: float = 0.0005
    _centred = False
    _parameter_constraints = {  # noqa: RUF012
        "alignment_form": [StrOptions({"normalised", "printed"})],
        "confusion_form": [StrOptions({"normalised", "printed"})],
        "confusion_iter": [StrOptions({"auto"}), COUNT],
        "solver": [StrOptions({"adam", "closed_form"})],
        "learning_rate": [POSITIVE],
    }

    def _objective(self, problem: Problem) -> Objective:
        objective = _printed(super()._objective(problem), self.alignment_form)
        if self.confusion_form == "printed":
            confusion = [PrintedConfusion(term.weight) for term in objective.confusion]
            objective = replace(objective, confusion=confusion, step=_half_way)
        count = _ROUNDS[self.solver] if self.confusion_iter == "auto" else int(self.confusion_iter)
        step = Adam(self.learning_rate) if self.solver == "adam" else objective.step
        return replace(objective, confusion_rounds=count, step=step)


def _printed(objective: Objective, form: str) -> Objective:
    """Return the objective with the means and covariances as printed, if requested."""
    if form != "printed":
        return objective
    return replace(
        objective,
        aligned=[PrintedMeans(term.weight) for term in objective.aligned],
        covariances=[PrintedCovariances(term.weight) for term in objective.covariances],
    )


def _half_way(rounds: Rounds, confusion: Any) -> tuple[Matrix, Matrix]:
    """Go half way: the printed form pulls every column to length one, and overshoots otherwise."""
    w, x = rounds.solve(confusion)
    return (w + rounds.w) / 2, (x + rounds.x) / 2


def published(cls: type[Any], parameters: dict[str, Any]) -> PublishedTFDF | PublishedTFDFV:
    """Make the published form of TFDF or TFDF-V, with a nearest neighbour of its own."""
    made = PublishedTFDFV if issubclass(cls, TFDFV) else PublishedTFDF
    return made(**{"estimator": KNeighborsClassifier(1), **parameters})
