"""The parameters that the risk classifiers share: what they are, may be and mean."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

from numpy.random import RandomState
from sklearn.base import ClassifierMixin

from transferable._sklearn import (
    CLASS_SHARES,
    NUMBER,
    POSITIVE,
    WEIGHT,
    HasMethods,
    Interval,
    StrOptions,
)
from transferable.engines.risk.graphs import GraphKind
from transferable.engines.shares import ClassShares
from transferable.engines.sources import SOURCE_WEIGHTS, SourceWeights
from transferable.linalg.kernels import KERNELS, Kernel

__all__ = ["COUNT", "RiskParameters"]

COUNT = Interval(Integral, 1, None, closed="left")


class RiskParameters:
    """What ARTL, MEDA, TFDF-V and TFDF are told alike.

    Parameters
    ----------
    ridge : float, default=0.1
        eta, the weight of the squared norm of the classifier.
    alignment : float, default=10
        lambda, the weight of the discrepancy between the domains. 0 switches it off.
    graph : {"auto", "neighbors", "anchors"}, default="auto"
        "neighbors" joins rows that are nearest by cosine, which have to be searched for. "anchors"
        joins rows that are near the same of a few anchors, in time linear in the rows and without
        a search. "auto" takes anchors where landmarks are taken and there are 10,000 rows or more.
    n_anchors : "auto" or int, default="auto"
        Anchors, placed by k-means; a row is tied to its three nearest. "auto" takes one for five
        rows, 1,000 at most; fewer rows are never left to one.
    kernel : {"rbf", "linear", "poly"} or callable, default="rbf"
        Kernel between feature rows, which have unit length.
    gamma : float, default=0.5
        Coefficient of the "rbf" and "poly" kernels.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1
        Constant of the "poly" kernel.
    max_iter : int, default=10
        T, the most rounds of solving and relabelling. They end sooner if no label changes.
    n_landmarks : "auto", int or None, default="auto"
        None solves over all rows, at a cost that grows with the cube of their number. A number
        expands the classifier over so many rows instead, half of them drawn from each domain, at a
        cost linear in the number of rows. "auto" is None up to 10,000 rows if that fits
        ``max_memory``, else 1,000 landmarks or as many as fit, and a warning says so.
    max_memory : int, str or None, default=None
        Memory that a fit may take, in bytes or as text such as "4GB"; None is half of what is free.
        A fit that would need more is refused before it begins. Features of all rows that do not fit
        are computed block by block whenever they are needed.
    device : str, default="cpu"
        "cpu" computes with numpy, "torch" with torch on the CPU, "cuda" on a GPU, "auto" on a GPU
        if there is one. A fitted model can be used on any device.
    random_state : int, RandomState instance or None, default=0
        Seed of the random steps: which rows are landmarks; and A-distances of rows with more than
        256 features are measured in their leading directions, found by randomised iterations.
    class_shares : {"auto", "estimated", "source"} or mapping or array-like, default="auto"
        What share of the target's rows each class has. "source" takes the classes to be as frequent
        as in the source; where they are not, every row of a class too many is pulled into another.
        "estimated" looks whether the labels of target rows, without alignment, have other shares
        than those of left-out source rows, follows a shift as far as it is sure of one, and keeps
        small classes from shrinking; with fewer than 30 target rows it follows none. "auto" does
        the same, and takes back what it followed unless neighbouring target rows then agree more
        often. If you know the shares, give them, by label or in the order of ``classes_``: they are
        met to within a row on the fitted rows, and a class of share 0 is never predicted. They must
        be right: an error of a factor of 1.35 for each class costs 3 to 6 points.
    source_weights : "auto", mapping or array-like, default="auto"
        What each of several sources counts in the loss and in the alignment, by id or in the order
        of the ids; only ratios matter. "auto" takes the squared share of target rows whose nearest
        row is of that source, as many rows of each compared.
    target_labels : {"ignore", "use"}, default="ignore"
        "use" takes the labels of target rows that are not -1, NaN or None for known, if
        ``sample_domain`` is given: these rows enter the loss, and their labels stand in every round
        and in ``transduction_``. "ignore" never looks at them.
    record_history : bool, default=True
        Whether to keep ``history_``.
    verbose : bool, default=False
        Whether to show a progress bar.
    """

    ridge: float
    graph: GraphKind
    n_anchors: int | Literal["auto"]
    kernel: Kernel
    gamma: float
    degree: int
    coef0: float
    max_iter: int
    estimator: ClassifierMixin | None
    n_landmarks: int | Literal["auto"] | None
    max_memory: int | str | None
    device: str
    random_state: int | RandomState | None
    record_history: bool
    verbose: bool
    class_shares: ClassShares
    source_weights: SourceWeights

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "ridge": [WEIGHT],
        "alignment": [WEIGHT],
        "manifold": [WEIGHT],
        "n_neighbors": [COUNT],
        "graph": [StrOptions({"auto", "neighbors", "anchors"})],
        "n_anchors": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [POSITIVE],
        "degree": [COUNT],
        "coef0": [NUMBER],
        "max_iter": [COUNT],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_landmarks": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), None],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "device": [str],
        "class_shares": [StrOptions({"estimated"}), *CLASS_SHARES],
        "source_weights": SOURCE_WEIGHTS,
        "target_labels": [StrOptions({"ignore", "use"})],
        "record_history": ["boolean"],
        "verbose": ["boolean"],
    }
