"""AutoRegressor: numbers for rows of another domain, held near those of the source.

Candidates are data: :data:`KINDS` names those of each kind of rows, ``_pool`` fits them, and a
:class:`~transferable.regressors._stack.Stack` weights them by their left-out predictions.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import check_is_fitted

from transferable._pool import Kind, Specification, fit_pool, pool_of
from transferable._sklearn import Interval
from transferable.base import DomainRegressor, Takes
from transferable.domains import Domains, as_numbers
from transferable.regressors._measured import (
    LEAST_MEASURED,
    LEVEL,
    MeasuredError,
    Unmeasured,
    better_of,
    median_error,
    rows_to_measure,
    seen_of,
)
from transferable.regressors._stack import LeftOutRidge, Member, Stack, Units, leaves_the_source
from transferable.regressors.adapted import AdaptedRegressor
from transferable.transformers import CORAL
from transferable.trust import RowsToLabel, checked_rows

if TYPE_CHECKING:
    import pandas as pd

_FEWEST = 10  # source rows
_DRAWN = 5000  # rows that a tree learns from at most
_OUTSIDE = 3.0  # deviation from the source's directions beyond which rows are scaled by domain too

_RIDGE, _KERNEL = LeftOutRidge(), LeftOutRidge(kernel=True)
_BOOSTING = GradientBoostingRegressor(
    n_estimators=200, max_depth=5, learning_rate=0.08, min_samples_leaf=5, max_features=0.5
)
_FOREST = RandomForestRegressor(200, min_samples_leaf=2, max_features=0.5, oob_score=True)
_OF_SOURCE = (
    Specification(Member("ridge", "source-only", _RIDGE, anchor=0.03)),
    Specification(Member("kernel ridge", "source-only", _KERNEL, anchor=0.2)),
    Specification(Member("boosting", "source-only", _BOOSTING)),
    Specification(Member("forest", "source-only", _FOREST)),
)
_ALIGNED = Specification(Member("ridge after CORAL", "as given", AdaptedRegressor(CORAL(), _RIDGE)))


def _leave(domains: Domains) -> bool:
    return domains.n_target > 1 and leaves_the_source(domains) > _OUTSIDE


# The first that recognises the rows counts.
KINDS = (
    Kind(_leave, (*_OF_SOURCE, _ALIGNED), seen_of),
    Kind(None, _OF_SOURCE, seen_of),
)


class AutoRegressor(DomainRegressor):
    """Numbers for a target domain, without tuning: four models that do not extrapolate.

    Aligning domains harms predictions of numbers on nearly every pair of tables:
    what it moves is what a regression learns from. What helps is not to extrapolate. So ridge,
    kernel ridge, boosting and a forest learn from the source; the smooth ones are held near the
    forest on target rows, the mean of all is weighted by left-out predictions, and no answer leaves
    the source's range by more than a tenth of it. How far off the numbers are cannot be known
    without labels: measure twenty rows, and :meth:`audit` corrects the others by these.

    Parameters
    ----------
    target_labels : {"ignore", "use"}, default="ignore"
        Whether known numbers of target rows are used: they correct the others as those of an
        :meth:`audit` do.
    max_seconds : float or None, default=None
        Time after which no further candidate is fitted. A warning and ``candidates_`` report what
        was left out; ridge is always fitted.
    n_jobs : int or None, default=None
        Processes that fit candidates in parallel, -1 for the number of cores. The result is the
        same for any number.
    random_state : int, RandomState instance or None, default=0
        Seed of the trees.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    transduction_ : ndarray of shape (n_samples,)
        The number of every fitted row, in input order; source rows have their given one.
    labels_ : DataFrame
        For each target row, in input order, `prediction`, `spread`, `source_only` (the number by
        the best model of the source alone) and `unfamiliar`, as :meth:`label` gives them for any
        rows; after an audit also `low` and `high`, an interval that holds in nine of ten rows.
    candidates_ : DataFrame
        For each candidate `name`, `block` ("source-only" or "adapted"), `weight` in the answer,
        `left_out_error` (root mean squared, of source rows that it had not seen), `seconds` and
        `error`, the reason why it was left out, else None.
    trust_ : Unmeasured or None
        What can be seen without labels; None without a target.
    unfamiliar_ : ndarray of shape (n_target,)
        True for target rows that are farther from all source rows than those are from one another.
    stack_ : Stack
        The fitted candidates with their weights. It keeps the target rows, and at most 1,000 source
        rows, in single precision.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they were given as strings.

    See Also
    --------
    AutoAdapter : The same for classes.

    Notes
    -----
    Columns and numbers are standardised by the source. Penalties and widths have the least exact
    leave-one-out error; a kernel compares rows with 1,000 of the source. Ridge and kernel ridge are
    fitted with 800 target rows at the forest's predictions, of 0.03 and 0.2 times the source's
    weight. The weights of the members are those of non-negative least squares on left-out
    predictions. Where the target's deviation outside of the source's leading directions is more
    than three times that of left-out source rows, half of the answer comes from models that see
    each domain by its own scale, or the source after :class:`~transferable.transformers.CORAL`.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import AutoRegressor
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(80, 3)), rng.normal(size=(60, 3)) + 0.5
    >>> ys, yt = (X[:, 0] - 2 * X[:, 1] for X in (Xs, Xt))
    >>> model = AutoRegressor().adapt(Xs, ys, Xt)
    >>> rows, _ = model.audit_rows(20)
    >>> found = model.audit(rows, yt[rows] + 3)
    >>> bool(np.abs(found.model.predict(Xt) - yt - 3).mean() < 0.5)
    True
    """

    family = "numbers"
    target_labels: Literal["ignore", "use"] = "ignore"
    max_seconds: float | None = None
    n_jobs: int | None = None
    random_state: int | RandomState | None = 0
    verbose: bool = False

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
    }

    def _fit_domains(self, domains: Domains) -> None:
        n = domains.n_source
        if n < _FEWEST:
            raise ValueError(
                f"n_samples={n} source rows with a number are too few; give at least {_FEWEST}."
            )
        given = domains.numbers
        units = Units.of(domains.Xs, given[:n], domains.weights[domains.source])
        problem = replace(domains, X=units.standardised(domains.X[:]))
        kind = next(k for k in KINDS if k.recognises is None or k.recognises(problem))
        # Rounded, so that trees find the same ties whatever the unit.
        numbers = ((given - units.level) / units.deviation).round(10)
        members, self._candidates = fit_pool(
            pool_of(kind, problem, self._settings(n), fast=False),
            problem,
            numbers,
            n_jobs=self.n_jobs,
            max_seconds=self.max_seconds,
            who=type(self).__name__,
        )
        self.stack_ = Stack.of(members, problem, numbers[:n], units)
        for member in self.stack_.members[len(members) :]:
            for name, value in zip(
                self._candidates, (member.name, "adapted", 0.0, None), strict=True
            ):
                self._candidates[name].append(value)
        self._targets = np.sort(domains.order[domains.target])  # their places in the input
        known = domains.restore(given)[self._targets]
        rows = np.flatnonzero(~np.isnan(known))
        if len(rows):
            self.stack_ = self.stack_.corrected(rows, known[rows])
        order = np.argsort(domains.order[domains.target])
        self._labels = self.stack_.label(domains.Xt[order], self.stack_.tables)
        self.trust_: Unmeasured | None = None
        if domains.n_target:
            names = getattr(self, "feature_names_in_", None)
            self.trust_ = kind.judge(domains, self._labels["unfamiliar"], names)
        self.transduction_ = domains.restore(given)
        self.transduction_[self._targets] = self._answers(known)

    def _settings(self, n_source: int) -> dict[type, dict[str, Any]]:
        """Return the settings of models of each type that depend on the rows."""
        seed = self.random_state
        if not isinstance(seed, Integral):  # candidates must not share one random state
            seed = int(check_random_state(seed).randint(2**31 - 1))
        drawn = min(0.5, _DRAWN / n_source)
        return {
            GradientBoostingRegressor: {"subsample": drawn, "random_state": seed},
            RandomForestRegressor: {
                "max_samples": None if n_source <= _DRAWN else _DRAWN,
                "random_state": seed,
            },
        }

    def _answers(self, known: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers of the target rows: known ones as they were given."""
        return np.where(np.isnan(known), self._labels["prediction"], known)

    def _predict_numbers(self, rows: Any) -> NDArray[np.float64]:
        return self.stack_.predict(rows)

    def _complete(
        self, rows: Any, ids: NDArray[Any], y: ArrayLike | None, kept: NDArray[np.intp]
    ) -> None:
        super()._complete(rows, ids, y, kept)
        own, self._targets = kept[self._targets], np.flatnonzero(ids < 0)
        target = rows[self._targets]
        self.stack_ = self.stack_.with_rows(target, np.searchsorted(self._targets, own))
        self._labels = self.stack_.label(target, self.stack_.tables)

    # -- tables --------------------------------------------------------------------------------

    @property
    def candidates_(self) -> pd.DataFrame:
        """The candidates, with the reasons why some were left out."""
        import pandas as pd

        table = pd.DataFrame(self._candidates, dtype=object).astype({"seconds": float})
        fitted = table["error"].isna()
        table.insert(2, "weight", np.zeros(len(table)))
        table.insert(3, "left_out_error", np.full(len(table), np.nan))
        table.loc[fitted, "weight"] = self.stack_.weights
        table.loc[fitted, "left_out_error"] = self.stack_.errors * self.stack_.units.deviation
        return table

    @property
    def labels_(self) -> pd.DataFrame:
        """The numbers of the target rows, in the order of the input."""
        import pandas as pd

        return pd.DataFrame(self._labels)

    @property
    def unfamiliar_(self) -> NDArray[np.bool_]:
        """Whether target rows are farther from all source rows than those are from one another."""
        return self._labels["unfamiliar"]

    def label(self, X: Any) -> pd.DataFrame:
        """Predict numbers of rows of the target domain, with what is known of each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, those that were fitted or new ones.

        Returns
        -------
        table : DataFrame
            A row for each, with the columns of ``labels_``.

        Examples
        --------
        >>> import numpy as np
        >>> from transferable import AutoRegressor
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = AutoRegressor().adapt(X, X[:, 0], X + 0.1)
        >>> model.label([[0.0, 0.0], [50.0, 0.0]]).unfamiliar.tolist()
        [False, True]
        """
        import pandas as pd

        return pd.DataFrame(self.stack_.label(self._validate_rows(X)))

    def predict_source_only(self, X: Any) -> NDArray[np.float64]:
        """Predict numbers by the best candidate of the source alone, for comparison.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        numbers : ndarray of shape (n_samples,)
            The number of each row.
        """
        return self.stack_.source_only(self._validate_rows(X))

    def spread(self, X: Any) -> NDArray[np.float64]:
        """Return how far the candidates lie apart for each row.

        Rows of large spread tend to be farther off, but spread neither is an error nor bounds one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        spread : ndarray of shape (n_samples,)
            Standard deviation of the candidates' numbers.
        """
        return self.stack_.label(self._validate_rows(X))["spread"]

    # -- audit ---------------------------------------------------------------------------------

    def audit_rows(self, n_rows: int = 20) -> RowsToLabel:
        """Choose target rows to measure, evenly over the predictions.

        Parameters
        ----------
        n_rows : int, default=20
            How many, at least eight; all rows of a smaller target.

        Returns
        -------
        chosen : RowsToLabel
            ``rows``, numbers of target rows in the order of the input, and ``weights``, the number
            of target rows that each stands for. The same model gives the same rows.
        """
        check_is_fitted(self)
        if not isinstance(n_rows, Integral) or n_rows < LEAST_MEASURED:
            raise ValueError(f"n_rows={n_rows!r}: choose at least {LEAST_MEASURED} rows.")
        return rows_to_measure(self._labels["prediction"], int(n_rows))

    def audit(self, rows: ArrayLike, labels: ArrayLike) -> MeasuredError:
        """Compare numbers of target rows with measured ones, and correct the others by these.

        Parameters
        ----------
        rows : array-like of shape (n_rows,)
            Numbers of target rows in the order of the input, best those of :meth:`audit_rows`; with
            those of earlier audits at least eight.
        labels : array-like of shape (n_rows,)
            What was measured there.

        Returns
        -------
        audit : MeasuredError
            The median error with an interval, whether the corrected predictions or those of the
            source alone are better, corrected numbers of all target rows, and a corrected model,
            which has :meth:`predict_interval`. This model stays as it is.
        """
        check_is_fitted(self)
        before, stack, n = self._labels, self.stack_, len(self._targets)
        at, given = checked_rows(rows, as_numbers(labels), np.arange(n))
        assert_all_finite(given, input_name="labels")
        stack = stack.corrected(at, given)
        if len(stack.known) < LEAST_MEASURED:
            raise ValueError(
                f"{len(stack.known)} measured rows, all audits together, are too few; measure at "
                f"least {LEAST_MEASURED}."
            )
        model, answers = clone(self), stack.answers
        vars(model).update(vars(self), stack_=stack)
        added = stack.added(stack.rows, answers)
        same = {name: before[name] for name in ("spread", "source_only", "unfamiliar")}
        now = {"prediction": stack.units.restored(answers + added)}
        model._labels = stack.with_interval(now | same)
        known = np.full(n, np.nan)
        known[stack.known] = stack.units.restored(stack.given)
        known[at] = given
        model.transduction_ = self.transduction_.copy()
        model.transduction_[self._targets] = numbers = model._answers(known)
        left_out = stack.correction.left_out * stack.units.deviation
        alone = known[stack.known] - before["source_only"][stack.known]
        found = MeasuredError.of(
            *(given, before["prediction"][at], before["source_only"][at]),
            better=better_of(left_out, alone, "corrected"),
            corrected=median_error(left_out),
            interval=stack.half_width(LEVEL),
            labels=numbers,
            model=model,
        )
        model.trust_ = self.trust_ and replace(self.trust_, measured=found.lines[-1])
        return found

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Return an interval for the number of each row, by rows that were measured.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the target domain.
        coverage : float in (0, 1), default=0.9
            Share of the rows whose number is to lie within.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2)
            Lower and upper ends. They are of one width, that of the left-out residuals.
        """
        rows = self._validate_rows(X)
        if len(self.stack_.known) < LEAST_MEASURED:
            raise ValueError(
                "Without measured target rows no interval holds, as the error cannot be known: "
                "measure those of audit_rows(20) and take audit(rows, labels).model."
            )
        if not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage!r}: take a share between 0 and 1, such as 0.9.")
        half = self.stack_.half_width(coverage)
        return self._predict_numbers(rows)[:, None] + np.array([-half, half])
