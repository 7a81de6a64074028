"""TFDF, and TFDF-V, its closed-form start.

Du, Zhang, Zhang, Yao, Lu and Wang, "Learning transferable and discriminative features for
unsupervised domain adaptation".
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

from transferable._kernel.choose import Problem
from transferable._kernel.class_shares import ClassShares
from transferable._kernel.covariances import Covariances
from transferable._kernel.objective import ClassConfusion, Means, Objective, Variance
from transferable._sklearn import COUNT, WEIGHT, Interval, StrOptions
from transferable.classifiers._kernel import KernelClassifier


class TFDF(KernelClassifier):
    """TFDF: a kernel classifier that aligns domains, then separates its classes.

    Minimises ``||A(F - Y)||^2 + eta tr(b'Kb) + tr(F'(lambda V + rho L + delta H)F)`` plus
    ``xi ||B - I||^2`` over the coefficients b of the scores F = Kb: squared error on the source,
    alignment of the domains' means (and covariances) overall and class by class, smoothness along
    the neighbourhood graph, and class confusion: B compares the columns of the scores, so that no
    row scores high for two classes at once. The target's classes are pseudo-labels, renewed by each
    solution. It starts from the solution without class confusion, TFDF-V.

    Parameters
    ----------
    manifold : float or "auto", default="auto"
        rho, the weight of the graph Laplacian. 0 switches it off. "auto" takes half the odds that
        the three nearest source rows of a source row are of its class, beyond chance (Cohen's kappa
        over one minus kappa), from 0.1 to 20; and less in proportion where the target has more than
        four times the rows of the source. The paper takes 1.
    variance : float, default=0.01
        delta, the weight of the scores' variance. 0 switches it off.
    confusion : float, default=3
        xi, the weight of class confusion. 0 switches it off and leaves TFDF-V.
    second_order : float, default=0
        gamma of MMCD, the weight of the covariances' discrepancy beside that of the means. It is
        off by default: it gained nothing on the datasets of the paper.
    balance : {"adaptive", "printed"} or float in [0, 1], default="adaptive"
        mu: 0 aligns the marginals, 1 class by class. Estimated from A-distances on held-out rows,
        "adaptive" as in MEDA, "printed" as in the paper.
    n_neighbors : int, default=4
        p, neighbours of each row in the graph. The paper takes 10; fewer were better on its data.
    manifold_dim : "auto", int or None, default="auto"
        Dimension of the subspaces that the geodesic flow (GFK) joins; None uses the rows as they
        are. "auto" takes 30, and None where either domain has fewer or where the flow costs more
        than 3 points of accuracy on left-out source rows; from 2 points on, rows count beside it.
    estimator : classifier, default=None
        Gives the first pseudo-labels, trained on the source's features. None takes the model's own
        source-only solution; the paper's choice is ``KNeighborsClassifier(1)``.

    See Also
    --------
    TFDFV : The start, without class confusion.
    MEDA : First-order alignment with its authors' settings.

    Notes
    -----
    Target rows that are marked in y have no label to score: ``cross_val_score`` scores source rows
    only, and ``CalibratedClassifierCV`` takes the mark for a class. The page "Use it with
    scikit-learn and skada" has the ways that work.

    Published: ridge 0.1, alignment 10, manifold 1 (0.1 on COIL), variance 0.01, 10 neighbours,
    10 rounds, 1-NN start, second order of weight 1, then 100 steps of Adam at 0.0005 with class
    confusion of no given weight, all in the printed form. Ours start from the model's own
    source-only fit, normalise V, do without the second order, choose the manifold's dimension and
    weight from the source's labels, and solve the normalised class confusion in closed form: each
    was better on most data or as good (``docs/how-it-works.md``). ``TFDF.as_published()`` is the
    published method, with confusion of weight 0.1; the paper gives no dimension.

    Rows are centred by the mean of both domains and have a further coordinate, of the size of two
    columns, before they are scaled to unit length: a direction alone would not show how far from
    the mean a row is. Sparse rows are centred along the flow only; without one they stay as they
    are. MEDA, ARTL and the published method do not centre.

    References
    ----------
    Y. Du, R. Zhang, X. Zhang, Y. Yao, H. Lu and C. Wang, "Learning transferable and discriminative
    features for unsupervised domain adaptation", Algorithms 1 and 2.

    Examples
    --------
    >>> from transferable import TFDF
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> task = load_printed_to_handwritten()
    >>> model = TFDF().adapt(task.Xs, task.ys, task.Xt)
    >>> bool(model.score(task.Xt, task.yt) > 0.75)
    True
    """

    manifold: float | Literal["auto"] = "auto"
    variance: float = 0.01
    confusion: float = 3.0
    second_order: float = 0.0
    balance: Literal["adaptive", "printed"] | float = "adaptive"
    n_neighbors: int = 4
    manifold_dim: Literal["auto"] | int | None = "auto"
    class_shares: ClassShares = "auto"

    _centred = True
    _parameter_constraints = {  # noqa: RUF012
        "variance": [WEIGHT],
        "manifold": [WEIGHT, StrOptions({"auto"})],
        "confusion": [WEIGHT],
        "second_order": [WEIGHT],
        "balance": [StrOptions({"adaptive", "printed"}), Interval(Real, 0, 1, closed="both")],
        "manifold_dim": [StrOptions({"auto"}), COUNT, None],
    }

    @classmethod
    def as_published(cls, **parameters: Any) -> Any:
        from transferable.classifiers.published import published

        return published(cls, parameters)

    def _objective(self, problem: Problem) -> Objective:
        weights = problem.arrays.table(problem.domains.row_weights)
        variance = [Variance(self.variance, weights)] if self.variance else []
        second = self.alignment * self.second_order
        return Objective(
            balance=problem.balance,
            fixed=variance + problem.graph(self.n_neighbors),
            aligned=[Means(self.alignment)] if self.alignment else [],
            covariances=[Covariances(second)] if second else [],
            confusion=[ClassConfusion(self.confusion)] if self.confusion else [],
        )


class TFDFV(TFDF, example=""):
    """TFDF-V: TFDF without class confusion, the solution of one linear system a round.

    Minimises ``||A(F - Y)||^2 + eta tr(b'Kb) + tr(F'(lambda V + rho L + delta H)F)`` over the
    coefficients b of the scores F = Kb: squared error on the source, alignment of the domains'
    means (and covariances) overall and class by class, smoothness along the neighbourhood graph.
    The target's classes are pseudo-labels, renewed by each solution.

    See Also
    --------
    TFDF : Adds class confusion to this objective.
    MEDA : First-order alignment with its authors' settings.

    References
    ----------
    Y. Du, R. Zhang, X. Zhang, Y. Yao, H. Lu and C. Wang, "Learning transferable and discriminative
    features for unsupervised domain adaptation", Algorithm 1.
    """

    confusion: ClassVar[float] = 0.0  # type: ignore[misc]
