"""TFDF: TFDF-V with class confusion.

Du, Zhang, Zhang, Yao, Lu and Wang, "Learning transferable and discriminative features for
unsupervised domain adaptation".
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Literal

from numpy.random import RandomState
from sklearn.base import ClassifierMixin

from transferable._sklearn import POSITIVE, WEIGHT, Interval, StrOptions
from transferable.classifiers.tfdfv import TFDFV
from transferable.engines.risk.graphs import GraphKind
from transferable.engines.risk.objective import Objective
from transferable.engines.risk.rounds import Rounds, adam, lbfgs_round, separate, solve
from transferable.engines.shares import ClassShares
from transferable.engines.sources import SourceWeights
from transferable.linalg.kernels import Kernel
from transferable.terms.confusion import ClassConfusion, ConfusionForm

__all__ = ["TFDF"]

_ROUNDS = {"adam": 100, "closed_form": 10, "lbfgs": 10}


class TFDF(TFDFV):
    """TFDF: TFDF-V, then the same objective with class confusion.

    Minimises the objective of :class:`TFDFV` plus ``xi ||B - I||^2``, where B compares the columns
    of the scores: no row should score high for two classes at once. It starts from the solution of
    TFDF-V.

    Parameters
    ----------
    confusion : float, default=3
        xi, the weight of class confusion. 0 switches it off and leaves TFDF-V.
    confusion_form : {"normalised", "printed"}, default="normalised"
        "normalised" takes B as cosines between the columns, "printed" as their inner products,
        which also shrinks the scores; the two want weights of different size.
    max_iter : int, default=10
        Most rounds of the TFDF-V start.
    confusion_iter : int or "auto", default="auto"
        Rounds with class confusion; "auto" is the paper's 100 for "adam" and 10 otherwise.
    solver : {"closed_form", "adam", "lbfgs"}, default="closed_form"
        How a round with class confusion is made. "closed_form" bounds the term by a quadratic
        around the last scores, one more linear solve; "adam" is one step of Algorithm 2 as printed;
        "lbfgs" minimises the objective for the current pseudo-labels.
    learning_rate : float, default=0.0005
        alpha, the step of "adam".

    Attributes
    ----------
    classes_, transduction_, n_iter_, balance_, manifold_, manifold_dim_, temperature_, history_
        As in :class:`TFDFV`; rounds of both stages are counted and kept.
    n_landmarks_, n_anchors_, graph_recall_, class_shares_, class_shares_history_
        As in :class:`TFDFV`.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they were given as strings.

    See Also
    --------
    TFDFV : The start, without class confusion.

    Notes
    -----
    Published: 100 steps of Adam at 0.0005 on the printed form; no weight is given. Ours solves the
    normalised form in closed form: as good on average, and ten linear solves on a factorisation
    that is there already. The paper's gradient (Eq. 22) has half the slope of its class confusion;
    "adam" with the printed form reproduces it, and is ``TFDF.as_published()``, with weight 0.1.

    References
    ----------
    Y. Du, R. Zhang, X. Zhang, Y. Yao, H. Lu and C. Wang, "Learning transferable and discriminative
    features for unsupervised domain adaptation", Algorithm 2.

    Examples
    --------
    >>> from transferable import TFDF
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> task = load_printed_to_handwritten()
    >>> model = TFDF().adapt(task.Xs, task.ys, task.Xt)
    >>> bool(model.score(task.Xt, task.yt) > 0.75)
    True
    """

    _published = dict(TFDFV._published) | {
        "confusion": 0.1,
        "confusion_form": "printed",
        "solver": "adam",
    }
    _parameter_constraints = TFDFV._parameter_constraints | {
        "confusion": [WEIGHT],
        "confusion_form": [StrOptions({"normalised", "printed"})],
        "confusion_iter": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"adam", "closed_form", "lbfgs"})],
        "learning_rate": [POSITIVE],
    }

    def __init__(
        self,
        *,
        ridge: float = 0.1,
        alignment: float = 10.0,
        manifold: float | Literal["auto"] = "auto",
        variance: float = 0.01,
        confusion: float = 3.0,
        confusion_form: ConfusionForm = "normalised",
        second_order: float = 0.0,
        balance: Literal["adaptive", "printed"] | float = "adaptive",
        alignment_form: Literal["normalised", "printed"] = "normalised",
        n_neighbors: int = 5,
        graph: GraphKind = "auto",
        n_anchors: int | Literal["auto"] = "auto",
        manifold_dim: Literal["auto"] | int | None = "auto",
        kernel: Kernel = "rbf",
        gamma: float = 0.5,
        degree: int = 3,
        coef0: float = 1.0,
        max_iter: int = 10,
        confusion_iter: int | Literal["auto"] = "auto",
        estimator: ClassifierMixin | None = None,
        solver: str = "closed_form",
        learning_rate: float = 0.0005,
        n_landmarks: int | Literal["auto"] | None = "auto",
        max_memory: int | str | None = None,
        device: str = "cpu",
        random_state: int | RandomState | None = 0,
        class_shares: ClassShares = "auto",
        source_weights: SourceWeights = "auto",
        target_labels: Literal["ignore", "use"] = "ignore",
        record_history: bool = True,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            ridge=ridge,
            alignment=alignment,
            manifold=manifold,
            variance=variance,
            second_order=second_order,
            balance=balance,
            alignment_form=alignment_form,
            n_neighbors=n_neighbors,
            graph=graph,
            n_anchors=n_anchors,
            manifold_dim=manifold_dim,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            max_iter=max_iter,
            estimator=estimator,
            solver=solver,
            n_landmarks=n_landmarks,
            max_memory=max_memory,
            device=device,
            random_state=random_state,
            class_shares=class_shares,
            source_weights=source_weights,
            target_labels=target_labels,
            record_history=record_history,
            verbose=verbose,
        )
        self.confusion = confusion
        self.confusion_form = confusion_form
        self.confusion_iter = confusion_iter
        self.learning_rate = learning_rate

    def _objective(self) -> Objective:
        start = super()._objective()
        return replace(start, confusion=ClassConfusion(self.confusion, self.confusion_form))

    def _align(self, rounds: Rounds) -> None:
        """Algorithm 1 for the start, always in closed form."""
        rounds.run(solve, self.max_iter)

    def _refine(self, rounds: Rounds) -> None:
        """Algorithm 2: rounds with class confusion."""
        if self.confusion == 0:
            return
        step = {"closed_form": separate, "lbfgs": lbfgs_round}.get(self.solver)
        count = _ROUNDS[self.solver] if self.confusion_iter == "auto" else self.confusion_iter
        rounds.run(step or adam(self.learning_rate), count, until_settled=False)
