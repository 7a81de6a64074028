"""The objective over landmarks, where workers hold the rows and the client the pool."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from transferable.dask._features import FeatureBlocks
from transferable.dask._labels import Labelled
from transferable.dask._survey import Pool
from transferable.engines.risk.landmarks import LandmarkSolver, Sums
from transferable.engines.risk.objective import Objective
from transferable.engines.risk.rows import Rows
from transferable.engines.risk.solver import Learner
from transferable.engines.shares import Labelling
from transferable.linalg.feature_tables import FeatureTable
from transferable.linalg.moments import Moments
from transferable.terms.base import FixedForm, Matrix
from transferable.terms.risk import SourceError
from transferable.terms.smoothness import Smoothness

__all__ = ["BlockSolver"]


class BlockSolver(LandmarkSolver):
    """All algebra is that of :class:`LandmarkSolver`; sums and labels are asked of the workers.

    The rows at hand, and their features, are the pool's.
    """

    domains: Pool

    def __init__(
        self,
        objective: Objective,
        rows: Rows,
        features: FeatureTable,
        blocks: FeatureBlocks,
        known: LandmarkSolver | None = None,
    ) -> None:
        self._blocks = blocks
        super().__init__(objective, rows, features, known)

    def _over(self, rows: Rows) -> BlockSolver:
        return BlockSolver(self.objective, rows, self.features, self._blocks, self)

    def _sum_up(self) -> tuple[Sums, Matrix]:
        return self._blocks.sum_up(getattr(self.fixed.get(Smoothness.name), "anchors", None))

    def _target_sums(self, target: Labelled) -> Matrix:
        return target.tally.sums

    @cached_property
    def _source_moments(self) -> list[Moments]:
        return self._blocks.source_moments()

    def _target_moments(self, target: Labelled) -> list[Moments]:
        return self._blocks.target_moments(target)

    @property
    def _keeps_class_moments(self) -> bool:
        """Never: a matrix of each class from each block is more than a pass for new shares."""
        return False

    def _between(self, form: FixedForm) -> Matrix:
        if isinstance(form, SourceError) and form.class_weights is not None:
            return self._blocks.weighted_gram(form.class_weights)
        raise TypeError(
            f"{type(form).__name__} reaches across rows, which no worker holds together; leave the "
            "term out."
        )

    def relabel(
        self, coefficients: Matrix, labelling: Labelling, *, settled: bool = False
    ) -> Labelled:
        """Labels of all target rows by their scores.

        Offsets of a round are chosen for the pool's rows, as in memory; those for good, for all.
        """
        scores = self.scores(coefficients)[self.domains.target]
        everybody = self._blocks.scores(coefficients) if settled else None
        own = labelling.codes(scores, settled=settled, everybody=everybody)
        return self._blocks.labels(coefficients, labelling.offsets, own)

    def labels_by(self, learn: Learner) -> Labelled:
        """Labels of all target rows by what a worker learns from the pool's source rows."""
        return self._blocks.labels_by(learn)

    def codes(self, target: Labelled) -> NDArray[np.intp]:
        """The labels of the pool's target rows."""
        return target.codes

    def changed(self, target: Labelled, before: Labelled) -> float:
        """Share of all labels that are not what they were."""
        return self._blocks.changed(target, before)
