"""What a report is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transferable.diagnostics import DomainGap, domain_gap, shared_space
from transferable.linalg.rows import dense

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ReportData"]


@dataclass(frozen=True)
class ReportData:
    """One adaptation: what was given, what came out, and how to do it again.

    Attributes
    ----------
    command : str
        The command line that repeats it.
    method : str
        Name of the method.
    source_name, target_name : str
        Names of the domains, usually those of their files.
    label : str
        Name of the label column.
    Xs, Xt : ndarray of shape (n_source, n_features) and (n_target, n_features)
        Rows as the estimator was given them, encoded and scaled.
    feature_names : list of str
        Names of their columns.
    ys : ndarray of shape (n_source,)
        Labels of the source.
    classes : ndarray of shape (n_classes,)
        The classes, in the order of the columns of `probabilities`.
    predicted : ndarray of shape (n_target,)
        The labels that were predicted.
    estimator : classifier
        Fitted to these rows.
    probabilities : ndarray of shape (n_target, n_classes) or None
        Probability of each class; None where the method has none.
    yt : ndarray of shape (n_target,) or None
        True labels of the target, which the fit has not seen.
    ids : DataFrame of shape (n_target, n_ids) or None
        Columns that tell target rows apart; None numbers them from 1.
    parameters, preprocessing, versions : dict
        The method's parameters, what was done to the tables first, versions of what computed.
    seed : int or None
        Seed of whatever was random.
    notes : list of str
        What there was to say about the input.
    seconds : float or None
        Time of the fit.
    as_given : tuple of two ndarrays or None
        Rows of both domains on a common scale, before anything brought the domains together, such
        as a scaling of each by itself; None takes `Xs` and `Xt` for that.
    """

    command: str
    method: str
    source_name: str
    target_name: str
    label: str
    Xs: NDArray[Any]
    Xt: NDArray[Any]
    feature_names: list[str]
    ys: NDArray[Any]
    classes: NDArray[Any]
    predicted: NDArray[Any]
    estimator: Any
    probabilities: NDArray[Any] | None = None
    yt: NDArray[Any] | None = None
    ids: pd.DataFrame | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    preprocessing: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    notes: list[str] = field(default_factory=list)
    seconds: float | None = None
    as_given: tuple[NDArray[Any], NDArray[Any]] | None = None

    @cached_property
    def sample_domain(self) -> NDArray[np.int8]:
        """1 for source rows, which come first, -1 for target rows."""
        return np.repeat(np.array([1, -1], dtype=np.int8), [len(self.ys), len(self.predicted)])

    @cached_property
    def labels(self) -> NDArray[Any]:
        """Given labels of source rows, predicted labels of target rows."""
        return np.concatenate([self.ys, self.predicted])

    @cached_property
    def before(self) -> NDArray[np.float64]:
        """Rows before adaptation, source rows first."""
        return _stacked(*(self.as_given or (self.Xs, self.Xt)))

    @cached_property
    def after(self) -> NDArray[np.float64]:
        """Rows in the space in which the fitted estimator decides."""
        return shared_space(self.estimator, _stacked(self.Xs, self.Xt), self.sample_domain)

    @cached_property
    def stages(self) -> dict[str, NDArray[np.float64]]:
        """Both tables by the name of their stage."""
        return {"before adaptation": self.before, f"after {self.method}": self.after}

    @cached_property
    def gaps(self) -> dict[str, DomainGap]:
        """The gap between the domains at each stage, with predicted labels on target rows."""
        n = len(self.ys)
        return {
            stage: domain_gap(Z[:n], Z[n:], self.ys, self.predicted)
            for stage, Z in self.stages.items()
        }


def _stacked(Xs: NDArray[Any], Xt: NDArray[Any]) -> NDArray[np.float64]:
    return np.concatenate([dense(Xs), dense(Xt)]).astype(np.float64)
