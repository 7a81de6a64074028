"""What every estimator of the library does with its input: ``fit`` and ``adapt``, all or nothing.

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
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    clone,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from transferable._docstrings import complete_parameters
from transferable._sklearn import validate_parameter_constraints
from transferable.domains import Domains
from transferable.events import restoring, stage
from transferable.exceptions import warn_of_no_target
from transferable.frames import as_pandas
from transferable.linalg.arrays import device_of, on_host
from transferable.marks import domain_ids, some_rows, weighty_rows
from transferable.progress import shown
from transferable.stacking import stack_domains, stack_weights, without_target_labels
from transferable.takes import Takes, refusal
from transferable.units import exponent_of, in_unit
from transferable.workspace import Same, shared, workspace

__all__ = ["DomainAdapter", "target_sample"]

# Parameters in models that earlier versions saved: their present names, and values that changed.
_EARLIER: dict[str, tuple[str, dict[Any, Any]]] = {
    "kernel": ("kernel", {"primal": None}),
    "landmark_share": ("weight_share", {}),
    "projection": ("map_kernel", {"primal": None}),
}

_SAMPLE_ROWS = 200  # of the target that are remembered
_SAMPLE_VALUES = 2**18  # in all of them


class DomainAdapter(BaseEstimator, metaclass=ABCMeta):
    """Base of every estimator: checks the input, then hands :class:`Domains` to the method.

    A fit is all or nothing: if it fails, for whatever reason, the estimator is left as it was.
    There is no ``partial_fit``: pseudo-labels, neighbours and the domains' distance concern all
    rows at once, so that rows seen in parts would give another model, which depends on their
    order. Fit again with ``n_landmarks`` instead, at a cost linear in the rows.

    Attributes
    ----------
    takes : Takes
        What the method takes besides labelled source rows and unlabelled target rows.
    """

    _parameter_constraints: dict[str, list[Any]] = {}  # noqa: RUF012 (scikit-learn's convention)
    _accept_sparse = False
    _exponent = 0  # rows are learnt from in units of 2**_exponent
    # What it does without target rows; None where that is what it is for. Of fits that share a
    # workspace, the outermost says so.
    _without_target: ClassVar[str | None] = "learns from the source alone and adapts to nothing"
    takes: Takes = Takes()
    # Whether labels of target rows are taken for known; methods that can, make it a choice.
    target_labels: str = "ignore"
    # Read by scikit-learn: whoever routes metadata need not be told to pass the marks on.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}
    # What the fitted target looked like, for `diagnostics.drift`; None without a target.
    _target_sample: Any = None
    # Parameters of the method's paper where they are not our defaults.
    _published: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        complete_parameters(cls)

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

    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_domain: ArrayLike | None = None
    ) -> Self:
        """Learn from labelled source rows and unlabelled target rows, stacked in any order.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            The rows of both domains. Frames may be of pandas, polars, pyarrow or any library that
            speaks the dataframe interchange protocol.
        y : array-like of shape (n_samples,) or None, default=None
            Labels. Those of target rows are never looked at. Methods that look at none (see
            ``takes.no_labels``) do without, given ``sample_domain``.
        sample_domain : array-like of shape (n_samples,), default=None
            Positive for source rows, negative for target rows; several positive numbers are
            several sources, which methods that cannot tell them apart refuse. Without it,
            unlabelled rows are the target: ``-1`` in integer labels (if at least two other labels
            remain), ``NaN`` in float labels, ``None`` in object labels. Without any unlabelled row
            there is no target, and the source is fitted alone, with a warning.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sample_domain)

    def _fit(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_domain: ArrayLike | None,
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
                self._refuse_missing_labels(sample_domain)
            rows = self._check_rows(X, reset=True)
            given = rows, on_host(y), on_host(sample_domain)
            kept, weights = weighty_rows(on_host(sample_weight), rows.shape[0])
            used: Any = given if kept is None else some_rows(kept, *given)
            domains = self._domains(used, weights, device_of(X))
            all_given = None if kept is None else given
            del X, rows, given, used  # in order now, and perhaps held by nobody else
            if domains.n_target == 0 and self._without_target and shared() is None:
                warn_of_no_target(type(self).__name__, domains.n_source, self._without_target)
            bar = shown("Adapting") if getattr(self, "verbose", False) else nullcontext()
            with bar, restoring(domains.restore):
                self._fit_domains(domains)
            if kept is not None and all_given is not None:
                rows, y, sample_domain = all_given
                self._complete(rows, domain_ids(y, sample_domain, rows.shape[0]), y, kept)
            self._target_sample = domains.share("target sample", None, target_sample, domains)
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

    def adapt(self, Xs: Any, ys: Any, Xt: Any, sample_weight: Any = None) -> Self:
        """Learn from source rows ``Xs``, their labels ``ys`` and target rows ``Xt``.

        Parameters
        ----------
        Xs : array-like, frame or sparse matrix of shape (n_source, n_features), or list of such
            Source rows. A list of tables is several sources, which get the ids 1, 2, ... in its
            order; methods that cannot tell sources apart refuse them.
        ys : array-like of shape (n_source,), list of such, or None
            Their labels; None for methods that look at none (see ``takes.no_labels``).
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
        stacked = list(stack_domains(Xs, ys, Xt))
        if self.target_labels == "use" and ys is not None:  # placeholders are not known labels
            stacked[1] = without_target_labels(*stacked[1:])
        weights = stack_weights(sample_weight, Xs, Xt)
        if weights is not None and not self.takes.sample_weight:
            raise ValueError(refusal(DomainAdapter, self, "sample_weight", "leave it out"))
        # Nobody else holds the stacked rows, which are let go of once they are in order.
        return self._fit(stacked.pop(0), stacked.pop(0), stacked.pop(0), weights)

    @property
    def _takes_no_labels(self) -> bool:
        """Whether the method, as it is set, looks at no label."""
        return self.takes.no_labels

    def _refuse_missing_labels(self, sample_domain: ArrayLike | None) -> None:
        message = f"{type(self).__name__} requires y to be passed, but the target y is None"
        if not self._takes_no_labels:
            raise ValueError(f"{message}: it learns from the labels of the source rows.")
        if sample_domain is None:
            raise ValueError(f"{message}; without labels, sample_domain has to mark the target.")

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

    def _complete(
        self, rows: Any, ids: NDArray[Any], y: ArrayLike | None, kept: NDArray[np.intp]
    ) -> None:
        """Fill up fitted attributes that have an entry for each row, where some weighed nothing."""

    def _domains(self, rows: tuple[Any, ...], weights: Any, device: str | None) -> Domains:
        """The problem, with the workspace shared here; fits of the same table share it too."""
        shared = workspace()
        use = self.target_labels == "use" and rows[2] is not None
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
        tags.target_tags.required = not self._takes_no_labels
        return tags


def _present(name: str, value: Any) -> tuple[str, Any]:
    """What an attribute that was saved is called, and is, today."""
    name, values = _EARLIER.get(name, (name, {}))
    return name, values.get(value, value) if isinstance(value, str) else value


def target_sample(domains: Domains) -> Any:
    """A few target rows, drawn at random; None if there are none, or one is too wide to keep."""
    n_values = domains.X.nnz if sp.issparse(domains.X) else np.prod(domains.X.shape)
    widest = max(1.0, float(n_values) / len(domains.order))
    n_rows = min(_SAMPLE_ROWS, domains.n_target, int(_SAMPLE_VALUES / widest))
    if n_rows == 0:
        return None
    drawn = np.random.default_rng(0).choice(domains.n_target, n_rows, replace=False)
    return domains.X[domains.n_source + np.sort(drawn)]
