"""Objective of TFDF, TFDF-V, MEDA and ARTL, as a list of terms.

With scores F of all rows, every method minimises

    ||A (F - Y)||^2 + eta ||f||^2 + tr(F' (lambda V + rho L + delta H) F) + xi ||B - I||^2

or a part of it: A keeps the labelled rows and ||f|| is the norm of the classifier in the kernel's
space. V depends on pseudo-labels, renewed from the scores in a few rounds of solve and relabel
(`rounds.py`). A term is a small class; both solvers (`solvers.py`) need only `form` of a term that
no label changes, and `by_group` of one that compares groups of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transferable._linalg.arrays import is_torch_array, namespace
from transferable._linalg.search import AnchorSums
from transferable.domains import Domains

Matrix = Any  # a two-dimensional array of numpy or of torch


@dataclass(frozen=True)
class Objective:
    """Terms of a method, by how they enter the linear system; none has weight 0."""

    balance: Any  # mu, or a function from the labels of source and target to it
    fixed: list[Any] = field(default_factory=list)  # terms with a `form` that no label changes
    # terms that compare groups of rows by few columns, renewed with the labels
    aligned: list[Any] = field(default_factory=list)
    # terms that labels change and that are not of low rank
    covariances: list[Any] = field(default_factory=list)
    confusion: list[Any] = field(default_factory=list)  # terms that are not quadratic
    confusion_rounds: int = 10  # rounds with these, after those without
    # from the rounds and these terms to the next solution; None is the closed form
    step: Callable[[Any, Any], Any] | None = None


class Term:
    """Quadratic form ``weight tr(F'SF)`` that no label changes."""

    name: ClassVar[str]  # the name of the term in histories
    weight: float  # the weight of the term
    key: Any  # equal for equal S, whatever the weight

    def form(self, F: Matrix) -> Matrix:
        """Return S F for any table F of n rows."""
        raise NotImplementedError(f"The term {type(self).__name__} has no form.")

    def gram(self, sums: Any) -> Matrix | None:
        """Return Phi'S Phi from sums of the features over rows; None if these do not suffice."""
        return None


@dataclass(frozen=True)
class Variance(Term):
    """delta tr(F'HF): H subtracts the mean, rows counting by their weights."""

    weight: float
    row_weights: Matrix
    key: Any = "variance"
    name: ClassVar[str] = "variance"

    def form(self, F: Matrix) -> Matrix:
        """Return H F."""
        w = namespace(F).astype(self.row_weights, F.dtype)
        out = F - (w @ F) / w.sum()
        out *= w[:, None]
        return out

    def gram(self, sums: Any) -> Matrix:
        """Return Phi'H Phi."""
        return sums.whole.count * sums.whole.covariance


@dataclass(frozen=True)
class Smoothness(Term):
    """rho tr(F'LF): L = I - D^-1/2 W D^-1/2 of the graph of neighbours, zero on lone rows."""

    weight: float
    adjacency: Any
    lone: Any  # True on rows without neighbours
    key: Any = None
    name: ClassVar[str] = "manifold"

    def form(self, F: Matrix) -> Matrix:
        """Return L F."""
        W = self.adjacency
        if W.dtype != F.dtype:
            W = W.to(F.dtype) if is_torch_array(F) else W.astype(F.dtype)
        out = W @ F
        namespace(F).subtract(F, out, out=out)
        out[self.lone] = 0.0
        return out


@dataclass(frozen=True)
class AnchorSmoothness(Term):
    """rho tr(F'LF): L = I - Z diag(Z'1)^-1 Z' of the graph of anchors; all degrees are one."""

    weight: float
    anchors: Any  # the anchors that rows are tied to
    table: Any  # the rows
    key: Any = None
    name: ClassVar[str] = "manifold"

    @cached_property
    def _ties(self) -> Any:
        return self.anchors.ties(self.table)

    def form(self, F: Matrix) -> Matrix:
        """Return L F."""
        Z = self._ties
        if Z.dtype != F.dtype:
            Z = Z.to(F.dtype) if is_torch_array(F) else Z.astype(F.dtype)
        return F - Z @ AnchorSums.of(Z, F).means

    def gram(self, sums: Any) -> Matrix | None:
        """Return Phi'L Phi; None where rows have weights, which the graph ignores."""
        return sums.whole.gram - sums.anchors.gram if sums.uniform else None


@dataclass(frozen=True)
class Means:
    """lambda ((1 - mu) M_0 + mu sum_c M_c): the marginal and the class-conditional MMD.

    M_0 counts C times, as much as all classes together, and the sum is divided by its Frobenius
    norm, as in the code of JDA, ARTL and MEDA. `class_weighted` weights a class's mean by the root
    of its share of the domain, as weighted BDA does.
    """

    weight: float
    class_weighted: bool = False
    name: ClassVar[str] = "means"

    def by_group(
        self, domains: Domains, counts: NDArray[Any], ratio: NDArray[Any], balance: float
    ) -> NDArray[np.float64]:
        """Return B of shape (n_groups, n_columns); a row of group g has B_g in the columns E."""
        B = mean_differences(counts, ratio, domains.source_weights)
        if self.class_weighted:
            shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
            B[:, :, 1:] *= np.sqrt(shares).reshape(-1, 1, 1)
        B[:, :, 0] *= np.sqrt((1.0 - balance) * counts.shape[1])
        B[:, :, 1:] *= np.sqrt(balance)
        B = B.reshape(len(B), -1)
        norm = float(np.linalg.norm(B.T @ (counts.reshape(-1, 1) * B)))
        return B * (np.sqrt(self.weight / norm) if norm > 0 else 0.0)


def mean_differences(
    counts: NDArray[Any], ratio: NDArray[Any], source_weights: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the differences of means between each source and the target, by group and column.

    Parameters
    ----------
    counts : ndarray of shape (n_sources + 1, n_classes)
        Weight of each class of each source and, last, of the target.
    ratio : ndarray of shape (n_classes,)
        Class prior assumed of the target over that of the source. The source marginal is weighted
        by it, and a class rarer in the target counts less: its pseudo-labels are wrong more often.
    source_weights : ndarray of shape (n_sources,)
        Weights of the sources.

    Returns
    -------
    B : ndarray of shape (n_groups, n_sources, n_classes + 1)
        Column 0 of each source compares the marginals, column c + 1 the rows of class c. The column
        of a group that is empty on either side is zero.
    """
    C, K = counts.shape[1], len(counts) - 1
    B, target = np.zeros((K + 1, C, K, C + 1)), counts[K]
    for k, source in enumerate(counts[:K]):
        if source.any() and target.any():
            shifted = ratio if K == 1 else ratios_in(counts, ratio, k)
            B[k, :, k, 0] = shifted / source.sum()
            B[K, :, k, 0] = -1.0 / target.sum()
        both = np.flatnonzero((source > 0) & (target > 0))
        B[k, both, k, both + 1] = 1.0 / source[both]
        B[K, both, k, both + 1] = -1.0 / target[both]
    B[..., 1:] *= np.minimum(1.0, ratio)
    B *= np.sqrt(source_weights)[:, None]
    return B.reshape((K + 1) * C, K, C + 1)


def ratios_in(counts: NDArray[Any], ratio: NDArray[Any], source: int) -> NDArray[np.float64]:
    """Return weights by class that give a source the class prior assumed of the target.

    Without a label shift, each of several sources keeps its own class prior.
    """
    if len(counts) == 2 or (ratio == 1).all():
        return ratio
    pooled, own = counts[:-1].sum(axis=0), counts[source]
    wanted = np.where(own > 0, ratio * pooled, 0.0)
    wanted *= own.sum() / max(wanted.sum(), 1e-300)
    return np.divide(wanted, own, out=np.zeros_like(own), where=own > 0)


@dataclass(frozen=True)
class ClassConfusion:
    """xi ||B - I||^2 with B the cosines between the columns of F: no row scores for two classes.

    The paper's B = F'F (Eq. 19) also shrinks F; cosines leave only the overlap between classes to
    minimise. Tables are those of F or of any linear image of it.
    """

    weight: float
    name: ClassVar[str] = "confusion"

    def lengths(self, B: Matrix) -> Matrix:
        """Return the divisors of the columns of F, for B = F'F."""
        squares = namespace(B).linalg.diagonal(B)
        return namespace(B).where(squares > 0, squares, 1.0) ** 0.5

    def value(self, B: Matrix) -> float:
        """Return the term for B = F'F."""
        lengths = self.lengths(B)
        cosines = B / (lengths[:, None] * lengths)
        # ||C - I||^2 = ||C||^2 - 2 tr C + n
        return self.weight * float(
            (cosines * cosines).sum() - 2.0 * cosines.diagonal().sum() + len(B)
        )

    def around(self, F: Matrix, B: Matrix) -> tuple[Matrix, Matrix]:
        """Return columns E of the quadratic that approximates the term near F, and its pull over E.

        With G the columns of F at the lengths D, ||G'F - D||^2 is quadratic in the new scores: it
        adds a multiple of G G' to S and of G D to the right-hand side. The multiple makes its slope
        that of the term.
        """
        lengths = self.lengths(B)
        root = (2.0 * self.weight * len(lengths) / float((lengths * lengths).sum())) ** 0.5
        return F * (root / lengths), root * lengths
