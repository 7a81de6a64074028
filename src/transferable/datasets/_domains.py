"""A dataset as a set of named domains, any ordered pair of which is a task."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

Rows = tuple[NDArray[Any], NDArray[np.int64]]  # pictures may be bytes


class DomainCollection:
    """Named domains of one dataset, read from disk when a task asks for them.

    The fetchers of this package return it. Nothing is kept in memory between calls, so changing
    the arrays of one task changes no other.

    Parameters
    ----------
    name : str
        Name of the dataset.
    domains : sequence of str
        Names of the domains, in the order in which papers list them.
    target_names : sequence of str
        Names of the classes: label ``k`` is ``target_names[k]``.
    read : callable
        ``read(domain)`` gives the rows and the integer labels of one domain.
    preprocess : callable or None, default=None
        Applied to the rows of each domain by itself. None leaves them as they are.

    Attributes
    ----------
    name : str
        Name of the dataset.
    domains : tuple of str
        Names of the domains.
    target_names : ndarray of str
        Names of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.datasets import DomainCollection
    >>> rows = {"day": np.zeros((3, 2)), "night": np.ones((4, 2))}
    >>> photos = DomainCollection(
    ...     "photos", ["day", "night"], ["cat"], lambda d: (rows[d], np.zeros(len(rows[d]), int))
    ... )
    >>> photos.tasks()
    [('day', 'night'), ('night', 'day')]
    >>> photos.task("day", "night").Xt.shape
    (4, 2)
    """

    def __init__(
        self,
        name: str,
        domains: Sequence[str],
        target_names: Sequence[str],
        read: Callable[[str], Rows],
        preprocess: Callable[[NDArray[np.floating]], NDArray[np.floating]] | None = None,
    ) -> None:
        self.name = name
        self.domains = tuple(domains)
        self.target_names = np.array(target_names)
        self._read = read
        self._preprocess = preprocess

    def __repr__(self) -> str:
        """Name the dataset and its domains."""
        return f"DomainCollection({self.name!r}, domains={self.domains})"

    def tasks(self) -> list[tuple[str, str]]:
        """List the (source, target) pairs, in the order in which papers list them.

        Returns
        -------
        list of (str, str)
            Every ordered pair of different domains.
        """
        return list(permutations(self.domains, 2))

    def task(self, source: str, target: str) -> Bunch:
        """Load one adaptation task.

        Parameters
        ----------
        source, target : str
            Names of two different domains.

        Returns
        -------
        Bunch
            With the fields `Xs`, `ys` (rows and labels of the source), `Xt`, `yt` (of the target;
            `yt` is for scoring only), `name` (such as ``"C->A"``) and `target_names`.

        Raises
        ------
        ValueError
            If a domain is unknown, or source and target are the same.
        DataFileError
            If a file of one of the two domains cannot be had.
        """
        if source == target:
            raise ValueError(f"Source and target are both {source!r}; name two different domains.")
        self._check(source)
        self._check(target)
        source_rows, target_rows = self.domain(source), self.domain(target)
        return Bunch(
            Xs=source_rows.X,
            ys=source_rows.y,
            Xt=target_rows.X,
            yt=target_rows.y,
            name=f"{source}->{target}",
            target_names=self.target_names,
        )

    def domain(self, name: str) -> Bunch:
        """Load one domain.

        Parameters
        ----------
        name : str
            Name of the domain.

        Returns
        -------
        Bunch
            With the fields `X` (rows), `y` (labels), `name` and `target_names`.

        Raises
        ------
        ValueError
            If the domain is unknown.
        DataFileError
            If a file of the domain cannot be had.
        """
        self._check(name)
        X, y = self._read(name)
        if self._preprocess is not None:
            X = self._preprocess(X)
        return Bunch(X=X, y=y, name=name, target_names=self.target_names)

    def _check(self, domain: str) -> None:
        if domain not in self.domains:
            raise ValueError(
                f"{domain!r} is not a domain of {self.name}; choose from {', '.join(self.domains)}."
            )
