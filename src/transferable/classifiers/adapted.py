"""Any learner on top of any transformer: train on adapted source rows, predict any rows."""

from __future__ import annotations

import warnings
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from transferable._sklearn import HasMethods, call_with_marks, takes_marks
from transferable.base import DomainAdapter, DomainClassifier, Takes
from transferable.domains import Domains
from transferable.transformers._nearest_row import NearestRow
from transferable.wrapping import Wrapper


class Adapted(Wrapper, DomainAdapter):
    """Base of what trains any learner on source rows that a transformer has adapted."""

    family = "parts"
    transformer: Any = field(default=None, kw_only=False)
    estimator: Any = field(default=None, kw_only=False)

    _parameter_constraints = {  # noqa: RUF012
        "transformer": [HasMethods(["fit_transform", "transform"]), None],
    }

    _takes_weights = True

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]
        step = self._first_of("transformer_", "transformer", "estimator_", "estimator")
        return bool(get_tags(step).input_tags.sparse)

    @property
    def takes(self) -> Takes:
        """Optional inputs of the steps: several sources if all that use domains support them."""
        steps = [s for s in (self.transformer, self.estimator) if isinstance(s, DomainAdapter)]
        several = bool(steps) and all(step.takes.several_sources for step in steps)
        return Takes(several_sources=several, sample_weight=True)

    def _first_of(self, *names: str) -> Any:
        """Return the first of these attributes that is set; the default learner if none is."""
        steps = (getattr(self, name, None) for name in names)
        return next((step for step in steps if step is not None), self._default())

    @staticmethod
    def _default() -> Any:
        """Return the learner that is taken without one."""
        return NearestRow()

    @property
    def _wrapped(self) -> Any:
        return self._first_of("estimator_", "estimator")

    def _rows(self, X: Any) -> Any:
        rows = self._validate_rows(X)
        return self.transformer_.transform(rows)

    def _fit_steps(self, domains: Domains, y: NDArray[Any], *, labels: bool) -> NDArray[Any]:
        """Fit both steps and return their results for all rows, in canonical order.

        `y` are the labels of all rows with marks for the target; the transformer gets them if it is
        to read `labels`.
        """
        for step in (self.transformer, self.estimator):
            if getattr(step, "target_labels", "ignore") == "use":
                raise ValueError(
                    f'{type(step).__name__}(target_labels="use") gets no target labels inside of '
                    f'{type(self).__name__}; leave it at "ignore", or transform the rows first.'
                )
        transformer = self.transformer
        self.transformer_ = FunctionTransformer() if transformer is None else clone(transformer)
        self.estimator_ = clone(self._first_of("estimator"))
        marks = domains.ids if domains.n_target else None
        weights = None if (domains.weights == 1.0).all() else domains.weights
        shown = y if labels else None
        fit, learner = self.transformer_.fit_transform, self.estimator_
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "sample_weight counts rows")  # has been said
            adapted = call_with_marks(fit, domains.X, shown, marks, weights)
            if marks is not None and takes_marks(learner):
                call_with_marks(learner.fit, adapted, y, marks, weights)
            else:
                own = None if weights is None else weights[domains.source]
                call_with_marks(learner.fit, adapted[domains.source], y[domains.source], None, own)
        steps = self.transformer_, learner
        if weights is not None and not any(has_fit_parameter(s, "sample_weight") for s in steps):
            raise ValueError(
                f"Neither {type(self.transformer_).__name__} nor {type(learner).__name__} takes "
                "sample_weight in fit; leave it out, or choose a step that does."
            )
        known = marks is not None and isinstance(learner, DomainAdapter)
        return learner.transduction_ if known else learner.predict(adapted)


class AdaptedClassifier(Adapted, DomainClassifier):
    """Scikit-learn classifier trained on source rows that a transformer has adapted.

    The transformer learns a feature space from both domains, and the classifier learns there from
    the labelled source rows. It completes the methods that stop at a feature space (TCA, JDA, CORAL
    and the others of :mod:`transferable.transformers`).

    Parameters
    ----------
    transformer : transformer or None, default=None
        One of :mod:`transferable.transformers`, a plain scikit-learn transformer such as PCA, which
        is fitted on the rows of both domains, or a pipeline of such. Its ``y`` is the class codes
        of the source rows and -1 for target rows. None leaves rows unchanged, so that the estimator
        is trained on the source alone, without adaptation.
    estimator : classifier or None, default=None
        Trained on the adapted source rows; None is one nearest neighbour, with probabilities from
        the relative distances of the classes. A classifier whose ``fit`` takes ``sample_domain``,
        as those of this library do, or a pipeline with one, adapts again: it also gets the adapted
        target rows, with marks.

    Attributes
    ----------
    transformer_ : transformer
        The fitted copy of `transformer`.
    estimator_ : classifier
        The fitted copy of `estimator`; its classes are the positions of labels in `classes_`.

    Notes
    -----
    Weights of rows are passed to the transformer and to the estimator if their ``fit`` takes them.
    Several sources are supported if all steps that receive domains support them.

    New rows are treated as target rows. For transformers with a map for each domain, ``predict`` of
    a source row may differ from its entry in ``transduction_``, mapped as a source row.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.svm import SVC
    >>> from transferable.classifiers import AdaptedClassifier
    >>> from transferable.datasets import make_shifted
    >>> task = make_shifted()
    >>> model = AdaptedClassifier(PCA(2), SVC())
    >>> model.adapt(task.Xs, task.ys, task.Xt).score(task.Xt, task.yt) > 0.9
    True
    """

    def _fit_domains(self, domains: Domains) -> None:
        codes = domains.with_target(np.full(domains.n_target, -1))
        found = self._fit_steps(domains, codes, labels=True)
        self.transduction_ = domains.restore(self.classes_[found])

    def _predict_codes(self, rows: Any) -> NDArray[np.intp]:
        return np.asarray(self.estimator_.predict(self.transformer_.transform(rows)), dtype=np.intp)
