"""Splitters of rows of several domains, in scikit-learn's manner."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length

from transferable._sklearn import safe_indexing
from transferable.domains import domain_ids, marked_ids

Splits = Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]


class DomainSplitter(BaseCrossValidator):
    """Splitter by domain, with ids from `groups`, from routed marks, or from labels."""

    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True, "sample_domain": True}

    def split(
        self,
        X: Any,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> Splits:
        """Yield positions of training and test rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or None, default=None
            Labels, which mark target rows as in ``fit`` if there are no ids; those of target rows
            are not used. :class:`StratifiedDomainKFold` needs them.
        groups, sample_domain : array-like of shape (n_samples,) or None, default=None
            Domain ids, positive for sources and negative for targets; `groups` has precedence.

        Yields
        ------
        train, test : ndarray of int
            Positions of rows.
        """
        yield from self._split(self._ids(X, y, groups, sample_domain), y)

    def get_n_splits(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups, sample_domain : object
            As for :meth:`split`; :class:`StratifiedDomainKFold` needs none of them.

        Returns
        -------
        n_splits : int
            Targets of :class:`LeaveOneDomainOut`, folds of the other.
        """
        return self._count(X, y, groups, sample_domain)

    @abstractmethod
    def _count(self, X: Any, y: Any, groups: Any, sample_domain: Any) -> int:
        """Return the number of splits."""

    @abstractmethod
    def _split(self, ids: NDArray[Any], y: ArrayLike | None) -> Splits:
        """Yield positions of training and test rows, given the id of each row's domain."""

    def _ids(self, X: Any, y: Any, groups: Any, sample_domain: Any) -> NDArray[Any]:
        """Return the id of each row's domain: positive for sources, negative for targets."""
        n_rows = np.shape(X)[0]
        ids = sample_domain if groups is None else groups
        if ids is None and y is None:
            raise ValueError(
                f"{type(self).__name__} needs the domain of each row: give sample_domain, "
                "or the same as groups, or labels in which target rows are marked."
            )
        if ids is None:
            return domain_ids(y, None, n_rows)
        return marked_ids(ids, n_rows)


class LeaveOneDomainOut(DomainSplitter):
    """Leave-one-domain-out: each target domain in turn is adapted to and scored.

    For the target with the id -k the training rows are those of all sources but k, which are the
    same rows with labels, and its own, whose labels no estimator of this library uses. The test
    rows are its own. To leave each of several labelled domains out, give them as sources and as
    targets: :func:`as_source_and_target`.

    Parameters
    ----------
    test_size : float or None, default=None
        Share of the target's rows that is kept out of training and scored, as new rows. None trains
        on all of them, without labels, and scores all.
    random_state : int, RandomState instance or None, default=0
        Seed of their draw.

    See Also
    --------
    StratifiedDomainKFold : Folds with rows of every domain.

    Notes
    -----
    ``fit`` needs ``sample_domain`` as well. A method for one source only is given the sign, and the
    splitter the ids as `groups`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from transferable import TFDFV
    >>> from transferable.model_selection import LeaveOneDomainOut, as_source_and_target
    >>> rng = np.random.default_rng(0)
    >>> y, room = np.tile([0, 1], 60), np.repeat(["attic", "cellar", "hall"], 40)
    >>> X = rng.normal(size=(120, 4)) + 4 * y[:, None] + np.repeat([0, 1, 2], 40)[:, None]
    >>> X, y, ids = as_source_and_target(X, y, room)
    >>> sides = {"sample_domain": np.sign(ids)}
    >>> leave = LeaveOneDomainOut()
    >>> len(cross_val_score(TFDFV(), X, y, groups=ids, params=sides, cv=leave))
    3
    """

    def __init__(
        self, *, test_size: float | None = None, random_state: int | RandomState | None = 0
    ) -> None:
        self.test_size = test_size
        self.random_state = random_state

    def _count(self, X: Any, y: Any, groups: Any, sample_domain: Any) -> int:
        return len(self._targets(self._ids(X, y, groups, sample_domain)))

    def _split(self, ids: NDArray[Any], y: ArrayLike | None) -> Splits:
        if self.test_size is not None and not 0 < self.test_size < 1:
            raise ValueError(f"test_size={self.test_size} must be a share between 0 and 1.")
        rng = check_random_state(self.random_state)
        for target in self._targets(ids):
            sources = np.flatnonzero((ids > 0) & (ids != -target))
            if len(sources) == 0:
                raise ValueError(
                    f"No source is left to learn from for the target {target}: source {-target} "
                    "is the only one."
                )
            own = np.flatnonzero(ids == target)
            if self.test_size is None:
                yield np.sort(np.r_[sources, own]), own
                continue
            n_test = min(max(1, round(self.test_size * len(own))), len(own) - 1)
            drawn = rng.permutation(own)
            yield np.sort(np.r_[sources, drawn[n_test:]]), np.sort(drawn[:n_test])

    def _targets(self, ids: NDArray[Any]) -> NDArray[Any]:
        targets = np.unique(ids[ids < 0])[::-1]
        if len(targets) == 0:
            raise ValueError(
                "No id is negative, so there is no target to adapt to; as_source_and_target gives "
                "every domain as a source and as a target."
            )
        return targets


class StratifiedDomainKFold(DomainSplitter):
    """Folds that hold the same share of every domain and, within sources, of every class.

    Labels of target rows are not used.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    test : {"both", "source", "target"}, default="both"
        Which rows of a fold are test rows. With "source" all target rows are trained on in every
        fold, as in practice, and held-out labelled rows are scored; with "target" it is the other
        way round.
    random_state : int, RandomState instance or None, default=0
        Seed of the assignment of rows to folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from transferable import TFDFV
    >>> from transferable.datasets import make_shifted
    >>> from transferable.model_selection import StratifiedDomainKFold
    >>> task = make_shifted(n_source=60, n_target=60)
    >>> X, y = np.r_[task.Xs, task.Xt], np.r_[task.ys, np.full(60, -1)]
    >>> len(cross_val_score(TFDFV(), X, y, cv=StratifiedDomainKFold(3)))
    3
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        test: Literal["both", "source", "target"] = "both",
        random_state: int | RandomState | None = 0,
    ) -> None:
        self.n_splits = n_splits
        self.test = test
        self.random_state = random_state

    def _count(self, X: Any, y: Any, groups: Any, sample_domain: Any) -> int:
        return int(self.n_splits)

    def _split(self, ids: NDArray[Any], y: ArrayLike | None) -> Splits:
        if not isinstance(self.n_splits, Integral) or self.n_splits < 2:
            raise ValueError(f"n_splits={self.n_splits} must be a whole number of at least 2.")
        if self.test not in ("both", "source", "target"):
            raise ValueError(f"test={self.test!r} is unknown; choose both, source or target.")
        domains, counts = np.unique(ids, return_counts=True)
        if counts.min() < self.n_splits:
            few = domains[counts.argmin()]
            raise ValueError(
                f"Domain {few} has {counts.min()} rows, too few for n_splits={self.n_splits} folds."
            )
        tested = {"both": ids == ids, "source": ids > 0, "target": ids < 0}[self.test]
        folds = self._folds(ids, np.asarray(column_or_1d(y)))
        for fold in range(self.n_splits):
            test = tested & (folds == fold)
            yield np.flatnonzero(~test), np.flatnonzero(test)

    def _folds(self, ids: NDArray[Any], y: NDArray[Any]) -> NDArray[np.intp]:
        """Return the fold of each row; a stratum is dealt out from where the last one ended."""
        rng = check_random_state(self.random_state)
        folds = np.empty(len(ids), dtype=np.intp)
        dealt = 0
        for domain in np.unique(ids):
            rows = np.flatnonzero(ids == domain)
            labels = y[rows] if domain > 0 else np.zeros(len(rows))
            codes = np.unique(labels, return_inverse=True)[1]
            for code in np.unique(codes):
                stratum = rng.permutation(rows[codes == code])
                folds[stratum] = (dealt + np.arange(len(stratum))) % self.n_splits
                dealt += len(stratum)
        return folds


def as_source_and_target(
    X: Any, y: ArrayLike, domain: ArrayLike
) -> tuple[Any, NDArray[Any], NDArray[np.intp]]:
    """Return every row twice, as one of a source and as one of a target.

    :class:`LeaveOneDomainOut` can then adapt to each of several labelled domains in turn.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        Their labels. Estimators of this library do not use those of target rows.
    domain : array-like of shape (n_samples,)
        The domain of each row, in numbers or names.

    Returns
    -------
    X : table of shape (2 * n_samples, n_features)
        The rows twice.
    y : ndarray of shape (2 * n_samples,)
        Their labels twice.
    sample_domain : ndarray of shape (2 * n_samples,)
        Ids: k for the rows of the k-th domain, in sorted order, as a source, and -k as a target.

    Examples
    --------
    >>> from transferable.model_selection import as_source_and_target
    >>> _, _, ids = as_source_and_target([[0.0], [1.0], [2.0]], [0, 1, 0], ["in", "out", "in"])
    >>> ids.tolist()
    [1, 2, 1, -1, -2, -1]
    """
    check_consistent_length(X, y, domain)
    ids = 1 + np.unique(np.asarray(domain), return_inverse=True)[1]
    twice = np.tile(np.arange(len(ids)), 2)
    rows = X if hasattr(X, "shape") else np.asarray(X)
    return safe_indexing(rows, twice), np.asarray(y)[twice], np.concatenate([ids, -ids])
