"""ARTL: adaptation regularisation based transfer learning."""

from __future__ import annotations

from transferable._kernel.choose import Problem
from transferable._kernel.objective import Means, Objective
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
