"""Bases of all transformers: parameters as fields, rows mapped block by block."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import reduce
from numbers import Integral
from operator import add
from typing import Any, cast

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from transferable._linalg.arrays import Reordered
from transferable._linalg.eigen import Matrix
from transferable._linalg.grassmann import basis_of_moments, principal_basis
from transferable._linalg.kernels import KERNELS, Kernel, KernelFunction
from transferable._linalg.moments import RowTable, moments_of_blocks
from transferable._sklearn import NUMBER, POSITIVE, Interval, StrOptions
from transferable.base import DomainTransformer
from transferable.domains import Domains, positions_of

COUNT = Interval(Integral, 1, None, closed="left")
_SUBSPACE_COMPONENTS = 20

# Rows of a domain, read in blocks, and their weights.
WeightedTable = tuple[RowTable, Matrix]


class KernelParameters(DomainTransformer):
    """Parameters of a kernel.

    Parameters
    ----------
    gamma : float or "scale", default="scale"
        Coefficient of "rbf" and "poly"; "scale" is 1 / (n_features * variance of the rows).
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=1.0
        Constant of "poly".
    random_state : int, RandomState instance or None, default=0
        Seed of the draw of landmarks.
    """

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [POSITIVE, StrOptions({"scale"})],
        "degree": [COUNT],
        "coef0": [NUMBER],
        "random_state": ["random_state"],
    }

    kernel: Kernel | None
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 1.0
    random_state: int | RandomState | None = 0

    def _kernel(self, spread: Spread) -> KernelFunction:
        """Return the kernel for rows of this spread."""
        gamma = spread.gamma if isinstance(self.gamma, str) else float(self.gamma)
        return KernelFunction(cast(Kernel, self.kernel), gamma, self.degree, self.coef0)


class PerDomainTransformer(DomainTransformer):
    """Base of those with a map for each source, selected by the ids of rows.

    Where there is one source, any positive number marks its rows.
    """

    _source_ids: NDArray[Any] = np.array([1])  # models of earlier versions knew one source

    def _map_argument(self, ids: NDArray[Any]) -> NDArray[Any]:
        return ids

    def _source_of(self, ids: NDArray[Any]) -> NDArray[np.intp]:
        """Return the position of each row's source in their order, -1 for target rows."""
        return np.where(ids > 0, positions_of(np.abs(ids), self._source_ids, ids > 0), -1)


class SubspaceTransformer(DomainTransformer):
    """Base of GFK and subspace alignment: a principal basis of each domain."""

    _parameter_constraints = {"n_components": [COUNT, None]}  # noqa: RUF012

    n_components: int | None = field(default=None, kw_only=False)

    def _bases(self, domains: Domains) -> tuple[Matrix, Matrix]:
        """Return bases of source and target; without a target, twice the source's."""
        wanted = _SUBSPACE_COMPONENTS if self.n_components is None else self.n_components
        sides = domains.source, domains.target if domains.n_target else domains.source
        if isinstance(domains.X, Reordered):
            moments = (moments_of_blocks(RowTable(domains.X), side) for side in sides)
            bases = [basis_of_moments(m, wanted) for m in moments]
        else:
            bases = [principal_basis(domains.X[i], wanted, domains.weights[i]) for i in sides]
        rank = min(basis.shape[1] for basis in bases)
        if rank == 0:
            raise ValueError(
                f"{type(self).__name__} needs rows that vary in both domains; the "
                f"{domains.n_source} source rows or the {domains.n_target} target rows do not."
            )
        warn_if_reduced(self.n_components, rank)
        return bases[0][:, :rank], bases[1][:, :rank]


def warn_if_reduced(n_components: int | None, found: int) -> None:
    """Warn that fewer components exist than were requested."""
    if n_components is not None and found < n_components:
        warnings.warn(
            f"n_components={n_components} is more than the rows allow; reduced to {found}.",
            UserWarning,
            stacklevel=4,
        )


def table_of(domains: Domains, rows: slice | NDArray[np.intp]) -> WeightedTable:
    """Return some of the rows with their weights."""
    return RowTable(domains.X).part(rows), domains.weights[rows]


def tables_by_id(domains: Domains, side: slice) -> tuple[NDArray[Any], list[WeightedTable]]:
    """Return the ids of the sources, or of the targets, and the rows of each."""
    marks = domains.ids[side]
    ids = np.unique(marks)
    if len(ids) == 1:
        return ids, [table_of(domains, side)]
    return ids, [table_of(domains, side.start + np.flatnonzero(marks == one)) for one in ids]


@dataclass(frozen=True)
class Spread:
    """Range and squares about a mean of the features of some rows; additive over blocks."""

    count: float
    lowest: Matrix
    highest: Matrix
    squares: Matrix

    @classmethod
    def of(cls, rows: Matrix, mean: Matrix | float, weights: Matrix) -> Spread:
        """Return the spread of a few rows about a mean, or one number for all features."""
        lowest, highest = rows.min(axis=0, initial=np.inf), rows.max(axis=0, initial=-np.inf)
        return cls(float(weights.sum()), lowest, highest, weights @ (rows - mean) ** 2)

    @classmethod
    def of_table(cls, table: RowTable, mean: Matrix | float, weights: Matrix) -> Spread:
        """Return the spread of a table, read block by block."""
        return reduce(add, (cls.of(rows, mean, weights[some]) for some, rows in table.blocks()))

    @classmethod
    def of_rows(cls, X: Any, weights: Matrix) -> Spread:
        """Return the spread of rows about the mean of all their values."""
        table = RowTable(X)
        total = sum(float(weights[some] @ rows.sum(axis=1)) for some, rows in table.blocks())
        return cls.of_table(table, total / (float(weights.sum()) * table.rank), weights)

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.count + other.count,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.squares + other.squares,
        )

    @property
    def range(self) -> float:
        """Largest difference between two values of one feature."""
        return float(np.max(self.highest - self.lowest))

    @property
    def largest(self) -> Matrix:
        """Largest absolute value of each feature."""
        return np.maximum(self.highest, -self.lowest)

    @property
    def gamma(self) -> float:
        """1 / (n_features * variance of all values), or 1 if they do not vary: gamma="scale"."""
        variance = float(np.sum(self.squares)) / self.count
        return 1.0 / variance if variance > 0 else 1.0

    @property
    def deviations(self) -> Matrix:
        """Standard deviation of each feature, 1 where it is constant."""
        deviations = np.sqrt(self.squares / self.count)
        return np.where(deviations <= 1e-12 * self.largest, 1.0, deviations)
