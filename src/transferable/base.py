"""The contract that every estimator of the library shares: ``fit``, ``adapt``, ``transduction_``.

``fit(X, y, sample_domain=None)`` takes the rows of both domains stacked in any order and
``adapt(Xs, ys, Xt)`` takes them apart; everything a method learns is learnt in ``_fit_domains``.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from transferable._sklearn import validate_parameter_constraints
from transferable.domains import Domains
from transferable.events import restoring, stage
from transferable.frames import as_pandas
from transferable.linalg.arrays import device_of, like, on_host
from transferable.marks import domain_ids, marked_ids, some_rows, weighty_rows
from transferable.progress import shown
from transferable.stacking import stack_domains, stack_weights
from transferable.takes import Takes, refusal
from transferable.units import exponent_of, in_unit
from transferable.workspace import Same, workspace

__all__ = ["DomainAdapter", "DomainClassifier", "DomainTransformer", "stack_domains"]

# Parameters in models that earlier versions saved: their present names, and values that changed.
_EARLIER: dict[str, tuple[str, dict[Any, Any]]] = {
    "kernel": ("kernel", {"primal": None}),
    "landmark_share": ("weight_share", {}),
    "projection": ("map_kernel", {"primal": None}),
}


class DomainAdapter(BaseEstimator, metaclass=ABCMeta):
    """Base of every estimator: checks the input, then hands :class:`Domains` to the method.

    A fit is all or nothing: if it fails, for whatever reason, the estimator is left as it was.

    Attributes
    ----------
    takes : Takes
        What the method takes besides labelled source rows and unlabelled target rows.
    """

    _parameter_constraints: dict[str, list[Any]] = {}  # noqa: RUF012 (scikit-learn's convention)
    _accept_sparse = False
    _exponent = 0  # rows are learnt from in units of 2**_exponent
    takes: Takes = Takes()
    # Parameters of the method's paper where they are not our defaults.
    _published: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def as_published(cls, **parameters: Any) -> Self:
        """Make the method with the setting of its paper, where the paper gives one.

        Where the defaults are the paper's, or it chooses parameters anew for each dataset, this is
        the method with its defaults.

        Parameters
        ----------
        **parameters
            Parameters that shall be others.

        Returns
        -------
        estimator : object
            Not fitted.

        Examples
        --------
        >>> from transferable.transformers import JDA
        >>> JDA.as_published(n_components=30)
        JDA(kernel='linear', n_components=30, normalize=True, regularization=1.0)
        """
        return cls(**{**clone(dict(cls._published), safe=False), **parameters})

    # Whether labels of target rows are taken for known; methods that can, make it a choice.
    target_labels: str = "ignore"

    def fit(self, X: Any, y: ArrayLike, sample_domain: ArrayLike | None = None) -> Self:
        """Learn from labelled source rows and unlabelled target rows, stacked in any order.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            The rows of both domains. Frames may be of pandas, polars, pyarrow or any library that
            speaks the dataframe interchange protocol.
        y : array-like of shape (n_samples,)
            Labels. Those of target rows are never looked at.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows; several positive numbers are
            several sources, which methods that cannot tell them apart refuse. Without it,
            unlabelled rows are the target: ``-1`` in integer labels (if at least two other labels
            remain), ``NaN`` in float labels, ``None`` in object labels. Without any unlabelled row
            there is no target, and the source is fitted alone.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_domain)

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Check everything, learn, and leave the estimator as it was if that fails."""
        before = dict(vars(self))
        stage("Checking rows")
        try:
            validate_parameter_constraints(
                self._parameter_constraints, self.get_params(deep=False), type(self).__name__
            )
            if y is None:
                raise ValueError(
                    f"{type(self).__name__} requires y to be passed, but the target y is None"
                )
            rows = self._check_rows(X, reset=True)
            given = rows, on_host(y), on_host(sample_domain)
            kept, weights = weighty_rows(on_host(sample_weight), rows.shape[0])
            used = given if kept is None else some_rows(kept, *given)
            domains = self._domains(*used, weights, device_of(X))
            bar = shown("Adapting") if getattr(self, "verbose", False) else nullcontext()
            with bar, restoring(domains.restore):
                self._fit_domains(domains)
            if kept is not None:
                self._complete(rows, domain_ids(given[1], given[2], rows.shape[0]), y, kept)
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if isinstance(error, np.linalg.LinAlgError):
                raise ValueError(
                    f"{type(self).__name__} has no solution for these rows and parameters "
                    f"({error}); take weights closer to 1, or a kernel by name."
                ) from error
            raise
        return self

    def adapt(self, Xs: Any, ys: Any, Xt: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from source rows ``Xs``, their labels ``ys`` and target rows ``Xt``.

        Parameters
        ----------
        Xs : array-like, frame or sparse matrix of shape (n_source, n_features), or list of such
            Source rows. A list of tables is several sources, which get the ids 1, 2, ... in its
            order; methods that cannot tell sources apart refuse them.
        ys : array-like of shape (n_source,), or list of such
            Their labels.
        Xt : array-like, frame or sparse matrix of shape (n_target, n_features)
            Target rows. Columns of frames are matched by name.
        sample_weight : array-like of shape (n_source,) or (n_source + n_target,), default=None
            Weights of the source rows, or of these and the target rows; of several sources also a
            list. Methods that take no weights refuse them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y, sample_domain = stack_domains(Xs, ys, Xt)
        weights = stack_weights(sample_weight, Xs, Xt)
        if weights is None:
            return self.fit(X, y, sample_domain=sample_domain)
        if not self.takes.sample_weight:
            raise ValueError(refusal(DomainAdapter, self, "sample_weight", "leave it out"))
        return self.fit(X, y, sample_domain=sample_domain, sample_weight=weights)  # type: ignore[call-arg]

    @property
    def _scale_free(self) -> bool:
        """Whether no parameter is in the unit of the rows."""
        return True

    def _choose_exponent(self, rows: Any) -> int:
        """Of the unit that rows are learnt from in."""
        exponent = exponent_of(rows)
        if exponent and not self._scale_free:
            raise ValueError(
                f"X holds values of about 1e{round(0.30103 * exponent)}, too far from 1 for a "
                "kernel function or a gamma in the unit of the rows; scale X, or take "
                'gamma="scale".'
            )
        return exponent

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what this version or an earlier one saved, which had fewer parameters."""
        present = dict(_present(name, value) for name, value in state.items())
        parameters = signature(type(self).__init__).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.default is not Parameter.empty}
        super().__setstate__(defaults | present)

    @abstractmethod
    def _fit_domains(self, domains: Domains) -> None:
        """Learn from a validated problem and set the fitted attributes."""

    def _complete(self, rows: Any, ids: NDArray[Any], y: ArrayLike, kept: NDArray[np.intp]) -> None:
        """Fill up fitted attributes that have an entry for each row, where some weighed nothing."""

    def _domains(
        self, X: Any, y: Any, sample_domain: Any, weights: Any, device: str | None
    ) -> Domains:
        """The problem, with the workspace shared here; fits of the same table share it too."""
        shared = workspace()
        use = self.target_labels == "use" and sample_domain is not None
        rows = X, y, sample_domain
        make = partial(Domains.from_stacked, sample_weight=weights, use_target_labels=use)
        domains = shared.get("domains", Same(*rows, weights, use), make, *rows)
        if domains.n_sources > 1 and not self.takes.several_sources:
            pool = "to pool the sources, give all of their rows one id"
            raise ValueError(refusal(DomainAdapter, self, "several_sources", pool))
        return replace(domains, workspace=shared, device=device)

    def _validate_rows(self, X: Any) -> Any:
        """Rows to predict or transform, checked against those that were fitted."""
        check_is_fitted(self)
        return self._check_rows(X, reset=False)

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Rows as the method takes them; `reset` notes their columns, else these must be there."""
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by its value
            rows = validate_data(
                self,
                on_host(as_pandas(X)),
                accept_sparse="csr" if self._accept_sparse else False,
                dtype=[np.float64, np.float32],
                ensure_min_samples=2 if reset else 1,
                reset=reset,
            )
        if reset:
            self._exponent = self._choose_exponent(rows)
        return in_unit(rows, self._exponent)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accept_sparse
        tags.target_tags.required = True
        return tags


class DomainClassifier(ClassifierMixin, DomainAdapter):
    """Base of the classifiers: labels for the target rows and for new rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_samples,)
        The predicted label of every fitted row, in input order.
    """

    classes_: NDArray[Any]
    transduction_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Label rows, those that were fitted or new ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to label.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The label of each row.
        """
        rows = self._validate_rows(X)
        return like(X, self.classes_[self._predict_codes(rows)])

    def _complete(self, rows: Any, ids: NDArray[Any], y: ArrayLike, kept: NDArray[np.intp]) -> None:
        left_out = np.setdiff1d(np.arange(len(ids)), kept)
        labels = np.empty(len(ids), dtype=self.transduction_.dtype)
        labels[kept] = self.transduction_
        labels[left_out] = self.classes_[self._predict_codes(rows[left_out])]
        self.transduction_ = labels

    @abstractmethod
    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        """Class codes of validated rows."""


class DomainTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DomainAdapter):
    """Base of the transformers: a feature space that both domains share.

    Some methods map every row alike, others map each domain in its own way. The latter take rows
    for target rows, which is what new rows are, unless ``sample_domain`` marks them as source.
    """

    _n_features_out: int

    def transform(self, X: Any, sample_domain: ArrayLike | None = None) -> NDArray[np.floating]:
        """Bring rows, those that were fitted or new ones, into the shared feature space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of either domain.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows, as in ``fit``; None takes all for
            target rows. It matters to methods with a map for each domain only.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The adapted rows.
        """
        rows = self._validate_rows(X)
        n = rows.shape[0]
        unmarked = sample_domain is None
        ids = np.zeros(n) if unmarked else marked_ids(on_host(sample_domain), n)
        return like(X, self._transform_rows(rows, self._told(ids)))

    def fit_transform(
        self, X: Any, y: ArrayLike, sample_domain: ArrayLike | None = None
    ) -> NDArray[np.floating]:
        """Fit as :meth:`fit` does and return the adapted rows in input order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of both domains.
        y : array-like of shape (n_samples,)
            Labels; those of target rows are never looked at.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The adapted rows, each mapped as a row of its own domain.
        """
        rows = self.fit(X, y, sample_domain=sample_domain)._validate_rows(X)
        return self._fitted_rows(X, rows, y, sample_domain)

    def _fitted_rows(
        self, X: Any, rows: Any, y: ArrayLike, sample_domain: ArrayLike | None
    ) -> NDArray[np.floating]:
        """The adapted form of rows that were fitted."""
        ids = domain_ids(on_host(y), on_host(sample_domain), rows.shape[0])
        return like(X, self._transform_rows(rows, self._told(ids)))

    def _told(self, ids: NDArray[Any]) -> NDArray[Any]:
        """What a map is told of rows with these ids, 0 for unmarked: which are the source's."""
        return ids > 0

    @abstractmethod
    def _transform_rows(self, rows: Any, source: NDArray[np.bool_]) -> NDArray[np.floating]:
        """Adapted form of validated rows, of which `source` marks those of the source."""


def _present(name: str, value: Any) -> tuple[str, Any]:
    """What an attribute that was saved is called, and is, today."""
    name, values = _EARLIER.get(name, (name, {}))
    return name, values.get(value, value) if isinstance(value, str) else value
