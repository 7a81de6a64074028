"""ARTL: adaptation regularisation based transfer learning."""

from __future__ import annotations

from functools import partial
from typing import Literal

from numpy.random import RandomState
from sklearn.base import ClassifierMixin

from transferable.classifiers._risk import RiskClassifier
from transferable.domains import Domains
from transferable.engines.risk.features import ManifoldFeatures
from transferable.engines.risk.graphs import GraphKind
from transferable.engines.risk.objective import Objective
from transferable.engines.risk.rows import NearestSource
from transferable.engines.risk.solver import Labels, Solver
from transferable.engines.shares import ClassShares
from transferable.engines.sources import SourceWeights
from transferable.linalg.kernels import Kernel
from transferable.terms.means import Means
from transferable.terms.risk import SourceLoss
from transferable.terms.smoothness import Smoothness

__all__ = ["ARTL"]


class ARTL(RiskClassifier):
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

    Attributes
    ----------
    classes_, transduction_, n_iter_, balance_, manifold_, manifold_dim_, temperature_, history_
        As in :class:`TFDFV`.
    n_landmarks_, n_anchors_, graph_recall_, class_shares_, class_shares_history_, source_weights_
        As in :class:`TFDFV`.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they were given as strings.

    References
    ----------
    M. Long, J. Wang, G. Ding, S. J. Pan and P. S. Yu, "Adaptation regularization: a general
    framework for transfer learning", IEEE Transactions on Knowledge and Data Engineering, 2014.

    Examples
    --------
    >>> from transferable import ARTL
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> task = load_printed_to_handwritten()
    >>> model = ARTL().adapt(task.Xs, task.ys, task.Xt)
    >>> bool(model.score(task.Xt, task.yt) > 0.7)
    True
    """

    _published = {"n_neighbors": 10, "graph": "neighbors"}  # noqa: RUF012

    def __init__(
        self,
        *,
        ridge: float = 0.1,
        alignment: float = 10.0,
        manifold: float = 1.0,
        n_neighbors: int = 8,
        graph: GraphKind = "auto",
        n_anchors: int | Literal["auto"] = "auto",
        kernel: Kernel = "rbf",
        gamma: float = 0.5,
        degree: int = 3,
        coef0: float = 1.0,
        max_iter: int = 10,
        estimator: ClassifierMixin | None = None,
        n_landmarks: int | Literal["auto"] | None = "auto",
        max_memory: int | str | None = None,
        device: str = "cpu",
        random_state: int | RandomState | None = 0,
        class_shares: ClassShares = "source",
        source_weights: SourceWeights = "auto",
        target_labels: Literal["ignore", "use"] = "ignore",
        record_history: bool = True,
        verbose: bool = False,
    ) -> None:
        self.ridge = ridge
        self.alignment = alignment
        self.manifold = manifold
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.n_anchors = n_anchors
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.max_iter = max_iter
        self.estimator = estimator
        self.n_landmarks = n_landmarks
        self.max_memory = max_memory
        self.device = device
        self.random_state = random_state
        self.class_shares = class_shares
        self.source_weights = source_weights
        self.target_labels = target_labels
        self.record_history = record_history
        self.verbose = verbose

    def _objective(self) -> Objective:
        return Objective(
            self.ridge,
            [
                SourceLoss(),
                Means(self.alignment),
                Smoothness(self.manifold, self.n_neighbors, self_loops=True),
            ],
        )

    def _map(self, domains: Domains) -> ManifoldFeatures:
        return ManifoldFeatures(None)

    def _start(self, solver: Solver) -> Labels:
        return solver.labels_by(partial(NearestSource, arrays=solver.rows.arrays))
