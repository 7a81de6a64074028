"""ARTL, adaptation regularisation, and MEDA, which acts on features of the geodesic flow."""

from __future__ import annotations

from numbers import Real
from typing import Literal

from transferable._kernel.choose import Problem
from transferable._kernel.objective import Means, Objective
from transferable._sklearn import COUNT, Interval, StrOptions
from transferable.classifiers._kernel import KernelClassifier


class ARTL(KernelClassifier, example=""):
    """ARTL: structural risk, joint alignment of the domains' means, and a neighbourhood graph.

    Minimises ``||A(F - Y)||^2 + eta tr(b'Kb) + tr(F'(lambda M + rho L)F)`` over the coefficients b
    of the scores F = Kb, with the squared loss (the authors' ARRLS). M aligns the domains as wholes
    and class by class in equal parts. It is :class:`MEDA` without geodesic flow, at balance 0.5.

    Parameters
    ----------
    manifold : float, default=1
        rho (gamma in the reference), the weight of the graph Laplacian.
    n_neighbors : int, default=8
        Neighbours of each row in the graph, which is also its own. The authors take 10.
    estimator : classifier, default=None
        Gives the first pseudo-labels, trained on the source's unit rows; None is 1-NN.

    References
    ----------
    M. Long, J. Wang, G. Ding, S. J. Pan and P. S. Yu, "Adaptation regularization: a general
    framework for transfer learning", IEEE Transactions on Knowledge and Data Engineering, 2014.
    """

    _nearest_start = True
    _published = {"n_neighbors": 10, "graph": "neighbors"}  # noqa: RUF012

    def _objective(self, problem: Problem) -> Objective:
        return Objective(
            balance=problem.balance,
            fixed=problem.graph(self.n_neighbors, self_loops=True),
            aligned=[Means(self.alignment)] if self.alignment else [],
        )


class MEDA(ARTL, example="manifold_dim=None"):
    """MEDA: ARTL on geodesic flow features, with an adaptive balance.

    Minimises ``||A(F - Y)||^2 + eta tr(b'Kb) + tr(F'(lambda M + rho L)F)`` over the coefficients b
    of the scores F = Kb, where M aligns the domains' means, ``(1 - mu)`` overall and ``mu`` class
    by class, divided by its Frobenius norm. As in the authors' code every row of the graph is also
    its own neighbour.

    Parameters
    ----------
    manifold : float, default=1
        rho, the weight of the graph Laplacian.
    balance : {"adaptive", "printed"} or float in [0, 1], default="adaptive"
        mu: 0 aligns the marginals, 1 class by class. Estimated from A-distances on held-out rows;
        the authors train and score on the same rows.
    n_neighbors : int, default=8
        Neighbours of each row in the graph. The authors take 10.
    manifold_dim : "auto", int or None, default=20
        Dimension of the subspaces that the geodesic flow joins; None uses the rows as they are.
    estimator : classifier, default=None
        Gives the first pseudo-labels, trained on the source's features; None is 1-NN.

    References
    ----------
    J. Wang, W. Feng, Y. Chen, H. Yu, M. Huang and P. S. Yu, "Visual domain adaptation with
    manifold embedded distribution alignment", ACM Multimedia, 2018.
    """

    balance: Literal["adaptive", "printed"] | float = "adaptive"
    manifold_dim: Literal["auto"] | int | None = 20

    _parameter_constraints = {  # noqa: RUF012
        "balance": [StrOptions({"adaptive", "printed"}), Interval(Real, 0, 1, closed="both")],
        "manifold_dim": [StrOptions({"auto"}), COUNT, None],
    }
