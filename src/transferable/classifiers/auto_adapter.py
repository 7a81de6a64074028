"""AutoAdapter: a pool of adapted and source-only models that vote by agreement.

Candidates are data: :data:`KINDS` names those of each kind of rows, ``_pool`` fits them, and a
:class:`~transferable.classifiers._consensus.Consensus` averages their probabilities.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from transferable._kernel.class_shares import ClassShares, agreement, given_shares
from transferable._linalg.arrays import CPU, dense
from transferable._linalg.memory import memory_budget
from transferable._pool import Kind, Specification, fit_pool, flags, pool_of
from transferable._sklearn import CLASS_SHARES, JOBS, Interval, StrOptions
from transferable.base import DomainClassifier, Takes
from transferable.classifiers._consensus import SMOOTHED, Calibrated, Consensus, by_neighbours
from transferable.classifiers.self_training import SelfTraining
from transferable.classifiers.tfdf import TFDF, TFDFV
from transferable.domains import Domains
from transferable.limits import LIMITS
from transferable.transformers import GFK, JDA, MarginalizedDenoising
from transferable.trust import (
    LEAST_AUDITED,
    Audit,
    Probabilities,
    RowsToLabel,
    Trust,
    assess,
    changes_of,
    label_table,
    overlap,
    rows_to_label,
)

if TYPE_CHECKING:
    import pandas as pd

_TREES, _FEWEST_TREES = 100, 10
_FOREST_BYTES = 2**29  # unless `max_memory` is given
_STEPS = 300  # of logistic regression
_FEWEST_SCALED = 10  # target rows that suffice for their own scale, or directions
_FLOW = 40  # directions of each domain that the flow beside JDA's space joins
_WIDEST = 5000  # features up to which JDA's space is computed
_FEWEST_WORDS, _WORDS = 500, 0.1  # columns of sparse rows of words, and most values, as a share
_COLUMNS_NAMED, _MOVED = 3, 0.5  # columns of a verdict, with less of their values in common
_CHEAP = 0.1  # time of a model of scikit-learn, in those of an adapted one
_SHARED_BYTES = 2**31  # of results that candidates share, at most half of `max_memory`


# -- kinds of rows -----------------------------------------------------------------------------

_LINEAR = LogisticRegression(max_iter=_STEPS)
_FOREST = RandomForestClassifier(oob_score=True)
_LEFT = 0.06  # share of the kernel that landmarks may leave, of which a mean forgives more
_TFDF = TFDF(n_landmarks=_LEFT)
_ALONG_NO_FLOW = TFDF(n_landmarks=_LEFT, manifold_dim=None)
_UNALIGNED = TFDFV(n_landmarks=_LEFT, alignment=0, max_iter=1)
_OF_ALL = (
    Specification(Calibrated("logistic regression", "source-only", _LINEAR)),
    Specification(Calibrated("random forest", "source-only", _FOREST)),
    Specification(Calibrated("TFDF", "as given", _TFDF), fewest=1),
    # Centred rows along the flow beside their place in JDA's space.
    Specification(
        Calibrated("TFDF after JDA", "as given", _ALONG_NO_FLOW, [GFK(), JDA()]),
        fewest=_FEWEST_SCALED,
        widest=_WIDEST,
    ),
)
_PER_DOMAIN = (
    Specification(
        Calibrated("unaligned TFDF per domain", "per domain", _UNALIGNED), _FEWEST_SCALED
    ),
    Specification(
        Calibrated("TFDF per domain", "per domain", _TFDF), _FEWEST_SCALED, thorough=True
    ),
    Specification(
        Calibrated("logistic regression per domain", "per domain", _LINEAR),
        _FEWEST_SCALED,
        thorough=True,
    ),
)
_WITHOUT_FLOW = (
    Specification(
        Calibrated(
            "unaligned TFDF without flow",
            "no flow",
            clone(_UNALIGNED).set_params(manifold_dim=None),
        ),
        _FEWEST_SCALED,
    ),
    Specification(
        Calibrated("TFDF without flow", "no flow", _ALONG_NO_FLOW),
        _FEWEST_SCALED,
        thorough=True,
    ),
)


# Words have many columns, most of which no source row has: with more regularization the larger
# class wins wherever the words are new.
_OF_WORDS = (
    Specification(
        Calibrated("logistic regression of words", "source-only", clone(_LINEAR).set_params(C=10.0))
    ),
    Specification(
        Calibrated(
            "self-training on denoised words",
            "denoised",
            SelfTraining(clone(_LINEAR).set_params(C=3.0), trusted=0.5, max_iter=3),
            [MarginalizedDenoising()],
            beside=True,
        ),
        fewest=1,
    ),
    Specification(Calibrated("TFDF", "as given", _TFDF), fewest=1),
    Specification(Calibrated("TFDF per domain", "per domain", _TFDF), _FEWEST_SCALED),
)


def _are_words(X: Any) -> bool:
    """Return whether sparse rows look like words: wide, mostly zero, and no mere flags."""
    if not sp.issparse(X) or X.shape[1] < _FEWEST_WORDS or X.nnz > _WORDS * np.prod(X.shape):
        return False
    return bool(X.nnz and X.data.min() >= 0 and (X.data != X.data[0]).any())


# The first that recognises the rows counts, the last any. Tables come as numbers, once they are
# encoded, and say whether these are words.
KINDS = {
    "words": Kind(
        *(_are_words, _OF_WORDS, assess, by_neighbours),
        caution=0.1,
        shares={"denoised": 6.0, "as given": 1.0, "per domain": 2.0},
    ),
    "flags": Kind(flags, _OF_ALL + _WITHOUT_FLOW, assess, SMOOTHED),
    "numbers": Kind(
        *(None, _OF_ALL + _PER_DOMAIN, assess, SMOOTHED),
        shares={"as given": 0.65, "per domain": 0.35},
    ),
}


class AutoAdapter(DomainClassifier):
    """Adaptation without tuning: a pool of models, adapted and not, that check one another.

    Adaptation can do harm, which cannot be determined for sure without target labels. So models
    trained on the source alone (logistic regression, a random forest) are fitted beside variants of
    TFDF on different inputs. Each is weighted by its agreement with all others; the probabilities
    of the pool are averaged, and once more over each row's neighbours in the target.

    Parameters
    ----------
    effort : {"thorough", "fast"}, default="thorough"
        The adapted models: "fast" fits TFDF to the rows as they are, TFDF after an embedding by JDA
        and a geodesic flow, and, to each domain standardised by itself, TFDF without alignment;
        "thorough" also fits TFDF and logistic regression to domains standardised by themselves.
        Those that align estimate the target's class prior. Sparse rows and those of more than 5,000
        features are not embedded.
    kind : {"auto", "words", "flags", "numbers"}, default="auto"
        What the columns are, which decides the candidates. "auto" takes sparse rows of at least 500
        columns, mostly zeros, for words if no value is negative and they are not flags;
        :class:`~transferable.tables.TableClassifier` recognises columns of sentences.
    caution : float in [0, 1] or None, default=None
        Total prior weight of the models trained on the source alone. More is safer where adaptation
        harms, and gains less where it helps. None is 0.4, for words 0.1.
    class_shares : {"estimated", "auto", "source"} or mapping or array-like, default="estimated"
        Class prior of the target, as for :class:`TFDF`. A given one holds for every candidate, and
        the labels of the fitted rows have it to within a row.
    target_labels : {"ignore", "use"}, default="ignore"
        Whether known labels of target rows are used: they weight the candidates and correct the
        labels of neighbouring rows, as those of an :meth:`audit` do.
    max_seconds : float or None, default=None
        Time after which no further candidate is fitted. One that is being adapted then stops
        between two rounds and is left out; logistic regression is always fitted. A warning and
        ``candidates_`` report what was left out.
    max_memory : int, str or None, default=None
        Memory that the fit of a candidate may take, as for :class:`TFDF`. A forest that would take
        more, or half a gigabyte by default, has fewer trees, at least ten.
    n_jobs : int or None, default=None
        Processes that fit candidates in parallel, -1 for the number of cores; candidates that see
        the same scaled rows share one. Each may take `max_memory`. The result is the same for any
        number. Within a process, linear algebra uses its own threads.
    random_state : int, RandomState instance or None, default=0
        Seed of the forest and of the random steps of TFDF.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the source.
    transduction_ : ndarray of shape (n_samples,)
        The label of every fitted row, in input order; source rows have their given one.
    labels_ : DataFrame
        For each target row, in input order, `prediction`, `confidence`, `runner_up` (the most
        probable other label), `source_only` (the label by models of the source alone) and
        `unfamiliar`, as :meth:`label` gives them for any rows.
    candidates_ : DataFrame
        For each candidate `name`, `block` ("source-only" or "adapted"), `weight` in the average,
        `agreement` (Cohen's kappa with all others together), `seconds` and `error`, the reason why
        it was left out, else None.
    trust_ : Trust or None
        Whether the labels of the target rows can be used, without a label; None without a target.
    agreement_ : DataFrame of shape (n_members, n_members)
        Cohen's kappa of the target labels of every two candidates that were not left out.
    consensus_ : Consensus
        The fitted candidates and their average. It keeps the target rows, and at most 20,000 source
        rows in single precision.
    unfamiliar_ : ndarray of shape (n_target,)
        True for target rows that are far from all source rows and of uncertain label, as rows of
        classes that the source lacks are.
    class_shares_ : Series of shape (n_classes,)
        The mean probability of each class over the target rows, by label.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they were given as strings.

    See Also
    --------
    TFDF : One model, with settings of your own.

    Notes
    -----
    Target rows that are marked in y have no label to score: ``cross_val_score`` scores source rows
    only, and ``CalibratedClassifierCV`` takes the mark for a class. The page "Use it with
    scikit-learn and skada" has the ways that work.

    A model's probabilities are calibrated on held-out source rows. With prior weights u
    (``caution`` shared by the source-only block, the rest by the adapted one, .65 of which goes to
    models of rows as given and half to those of rows scaled by domain), candidate k has weight u_k
    max(kappa_k, 0.01)^2, kappa_k its agreement with the prior-weighted average of the others over
    the target rows. Where columns overlap by less than a half, candidates that compare values of
    both domains as they are have less prior weight, by the square of twice the overlap. A row's
    probabilities are four tenths its own average and six tenths that of its six nearest fitted
    target rows by cosine, itself among them if it was fitted. ``docs/trust.md`` has the
    measurements.

    Words have logistic regression (C=10), self-training on words beside denoised ones
    (:class:`~transferable.transformers.MarginalizedDenoising`), TFDF, and TFDF of each domain
    standardised by itself, whose prior weights are 1, 6, 1 and 2 tenths; the weight of a row's
    neighbours is six tenths of the kappa of the labels of rows and of their neighbours.

    Tables of flags have no scale: in place of candidates scaled by domain, the pool has TFDF and
    unaligned TFDF without a geodesic flow. Of candidates that are the same model of
    the same rows, one is kept.

    Without target rows the pool is the source-only block.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable import AutoAdapter
    >>> rng = np.random.default_rng(0)
    >>> ys = np.repeat(["cat", "dog"], 30)
    >>> centres = np.where((ys == "dog")[:, None], [6, 0, 0], [0, 6, 0])
    >>> Xs = rng.normal(size=(60, 3)) + centres
    >>> Xt = rng.normal(size=(60, 3)) + centres + 1
    >>> model = AutoAdapter(effort="fast").adapt(Xs, ys, Xt)
    >>> float(np.mean(model.predict(Xt) == ys))
    1.0
    >>> model.candidates_.name.tolist()
    ['logistic regression', 'random forest', 'TFDF', 'TFDF after JDA', 'unaligned TFDF per domain']
    """

    family = "pool"
    effort: Literal["thorough", "fast"] = "thorough"
    kind: Literal["auto", "words", "flags", "numbers"] = "auto"
    caution: float | None = None
    class_shares: ClassShares = "estimated"
    target_labels: Literal["ignore", "use"] = "ignore"
    max_seconds: float | None = None
    max_memory: int | str | None = None
    n_jobs: int | None = None
    random_state: int | RandomState | None = 0
    verbose: bool = False

    takes = Takes(several_sources=True, sample_weight=True, target_labels=True)
    _accept_sparse = True
    _scales_domains = True  # tables need not be scaled each by itself
    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "effort": [StrOptions({"thorough", "fast"})],
        "kind": [StrOptions({"auto", *KINDS})],
        "caution": [Interval(Real, 0, 1, closed="both"), None],
        "class_shares": [StrOptions({"estimated"}), *CLASS_SHARES],
        "target_labels": [StrOptions({"ignore", "use"})],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "max_memory": [Interval(Integral, 1, None, closed="left"), str, None],
        "n_jobs": JOBS,
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Return rows as the pool takes them: few sparse ones are centred too."""
        rows = super()._check_rows(X, reset=reset)
        words = sp.issparse(rows) and (
            self.kind == "words" or (self.kind == "auto" and _are_words(rows))
        )
        if reset and not words and rows.shape[0] * rows.shape[1] <= LIMITS.block_values:
            return dense(rows)
        if not sp.issparse(rows) or max(rows.nnz, rows.shape[1]) >= 2**31:
            return rows
        parts = (part.astype(np.int32, copy=False) for part in (rows.indices, rows.indptr))
        return sp.csr_array((rows.data, *parts), shape=rows.shape)  # trees need short indices

    def _fit_domains(self, domains: Domains) -> None:
        given = None
        if not isinstance(self.class_shares, str):
            given = given_shares(self.class_shares, domains)
        if self.kind == "auto":
            kind = next(
                k for k in KINDS.values() if not k.recognises or np.all(k.recognises(domains.X[:]))
            )
        else:
            kind = KINDS[self.kind]
        pool = pool_of(kind, domains, self._settings(domains, given), fast=self.effort == "fast")
        if given is not None:  # models that follow no shift
            follows = [hasattr(one.model, "class_shares") for one in pool]
            ratios = given / domains.prior
            pool = [
                one if adapts else replace(one, ratios=ratios)
                for one, adapts in zip(pool, follows, strict=True)
            ]
        members, self._candidates = fit_pool(
            pool,
            domains,
            domains.with_target(np.full(domains.n_target, -1)),
            n_jobs=self.n_jobs,
            max_seconds=self.max_seconds,
            max_memory=self.max_memory,
        )
        common = overlap(domains.Xs, domains.Xt) if domains.n_target else np.ones(1)
        mean = float(np.nanmean(common))
        consensus = Consensus.of(members, domains, kind, self.caution, given, mean)
        known = np.flatnonzero(domains.known >= 0)
        if len(known):
            consensus = consensus.corrected(known, domains.known[known])
        self.classes_, self.consensus_ = domains.classes, consensus
        self.trust_: Trust | None = None
        if domains.n_target:
            names = list(dict.fromkeys(member.view for member in members))
            views = dict(zip(names[-len(consensus.views) :], consensus.views, strict=True))
            columns = getattr(self, "feature_names_in_", range(len(common)))
            order = np.argsort(common, kind="stable")[:_COLUMNS_NAMED]
            self.trust_ = kind.judge(
                *(consensus.P, views, consensus.alone, domains.classes, domains.prior),
                one_column=domains.X.shape[1] == 1,
                moved=tuple((columns[k], float(common[k])) for k in order if common[k] < _MOVED),
            )
        codes = domains.with_target(consensus.P.argmax(axis=1))
        self.transduction_ = domains.restore(domains.classes[codes])
        self._targets = np.sort(domains.order[domains.target])  # their places in the input
        order = np.argsort(consensus.target.places)
        self._labels: dict[str, Any] = {
            "probabilities": consensus.P[order],
            "source_only": consensus.alone[order],
            "unfamiliar": consensus.unfamiliar()[order],
        }

    def _settings(self, domains: Domains, shares: Any) -> dict[type, dict[str, Any]]:
        """Return the settings of models of each type that depend on the rows."""
        seed = self.random_state
        if not isinstance(seed, Integral):  # candidates must not share one random state
            seed = int(check_random_state(seed).randint(2**31 - 1))
        n_source, n_target, width = domains.n_source, domains.n_target, domains.X.shape[1]
        memory = _FOREST_BYTES
        if self.max_memory is not None:
            memory = memory_budget(self.max_memory, CPU)
        taken = 16 * n_source * domains.n_classes  # a node of a tree holds a number for each class
        tfdf = {
            "max_memory": self.max_memory,
            "random_state": seed,
            # The other candidates check an estimated shift.
            "class_shares": self.class_shares if shares is None else shares,
        }
        return {
            RandomForestClassifier: {
                "n_estimators": int(np.clip(memory // taken, _FEWEST_TREES, _TREES)),
                "random_state": seed,
            },
            TFDF: tfdf,
            TFDFV: tfdf,
            GFK: {"n_components": max(1, min(_FLOW, width // 2, n_source, n_target))},
            JDA: {"max_memory": self.max_memory},
        }

    def _scores(self, rows: Any) -> Probabilities:
        return self.consensus_.probabilities(rows)

    def _probabilities(self, scores: Probabilities) -> Probabilities:
        return scores

    def _complete(
        self, rows: Any, ids: NDArray[Any], y: ArrayLike | None, kept: NDArray[np.intp]
    ) -> None:
        super()._complete(rows, ids, y, kept)
        own, self._targets = kept[self._targets], np.flatnonzero(ids < 0)
        target = self.consensus_.target
        target = replace(target, places=np.searchsorted(self._targets, own)[target.places])
        self.consensus_ = replace(self.consensus_, target=target)
        self._labels = self.consensus_.label(rows[self._targets])

    # -- tables --------------------------------------------------------------------------------

    @property
    def class_shares_(self) -> pd.Series:
        """The class prior of the target by label; without a target, that of the source."""
        import pandas as pd

        consensus = self.consensus_
        codes = consensus.source_labels
        P = consensus.P if len(consensus.P) else np.eye(len(self.classes_))[codes]
        return pd.Series(P.mean(axis=0), self.classes_, name="share")

    @property
    def candidates_(self) -> pd.DataFrame:
        """The candidates, with the reasons why some were left out."""
        import pandas as pd

        table = pd.DataFrame(self._candidates, dtype=object).astype({"seconds": float})
        fitted = table["error"].isna()
        table.insert(2, "weight", np.zeros(len(table)))
        table.insert(3, "agreement", np.full(len(table), np.nan))
        table.loc[fitted, "weight"] = self.consensus_.agreed
        if len(self.consensus_.agreement):
            table.loc[fitted, "agreement"] = self.consensus_.agreement
        return table

    @property
    def agreement_(self) -> pd.DataFrame:
        """Cohen's kappa of the target labels of every two candidates that were not left out."""
        import pandas as pd

        names = [member.name for member in self.consensus_.members]
        codes = self.consensus_.tables.argmax(axis=2)
        kappas = [[agreement(one, other) for other in codes] for one in codes]
        return pd.DataFrame(kappas, names, names)

    @property
    def labels_(self) -> pd.DataFrame:
        """The labels of the target rows, in the order of the input."""
        return label_table(self.classes_, **self._labels)

    @property
    def unfamiliar_(self) -> NDArray[np.bool_]:
        """Whether target rows are far from all source rows and of uncertain label."""
        return self._labels["unfamiliar"]

    def label(self, X: Any) -> pd.DataFrame:
        """Label rows of the target domain, with what is known of each label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, those that were fitted or new ones.

        Returns
        -------
        table : DataFrame
            A row for each, with the columns of ``labels_``. New rows are unfamiliar if the target
            rows nearest to them are.

        Examples
        --------
        >>> import numpy as np
        >>> from transferable import AutoAdapter
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(60) % 2
        >>> Xs, Xt = (rng.normal(size=(60, 3)) + 6 * y[:, None] for _ in range(2))
        >>> model = AutoAdapter(effort="fast").adapt(Xs, y, Xt)
        >>> model.label([[0.0, 0.0, 0.0], [6.0, 6.0, 6.0]]).prediction.tolist()
        [0, 1]
        """
        with np.errstate(under="ignore"):
            found = self.consensus_.label(self._validate_rows(X))
        return label_table(self.classes_, **found)

    def predict_source_only(self, X: Any) -> NDArray[Any]:
        """Predict labels by the candidates of the source alone, for comparison.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to label.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The label of each row.
        """
        with np.errstate(under="ignore"):
            return self.classes_[self.consensus_.source_only(self._validate_rows(X))]

    # -- audit ---------------------------------------------------------------------------------

    def audit_rows(self, n_rows: int = 30, *, random_state: int | None = 0) -> RowsToLabel:
        """Choose target rows for a person to label.

        Half of them are drawn where adapting changed the label of the source alone, a sixth of the
        unfamiliar rows, and the rest elsewhere, each part spread over the confidence. Rows whose
        label is known already, by an audit or the fit, are left out.

        Parameters
        ----------
        n_rows : int, default=30
            How many, at least ten; all rows of a smaller target.
        random_state : int or None, default=0
            Seed of the draw.

        Returns
        -------
        chosen : RowsToLabel
            ``rows``, numbers of target rows in the order of the input, and ``weights``, the number
            of target rows that each stands for.

        Examples
        --------
        >>> import numpy as np
        >>> from transferable import AutoAdapter
        >>> rng = np.random.default_rng(0)
        >>> ys = np.arange(60) % 2
        >>> Xs = rng.normal(size=(60, 3)) + 3 * ys[:, None]
        >>> yt = rng.permutation(ys)
        >>> Xt = rng.normal(size=(60, 3)) + 3 * yt[:, None] + 0.5
        >>> model = AutoAdapter(effort="fast").adapt(Xs, ys, Xt)
        >>> rows, weights = model.audit_rows(20)
        >>> found = model.audit(rows, yt[rows])
        >>> bool(found.low <= np.mean(model.predict(Xt) == yt) <= found.high)
        True
        """
        check_is_fitted(self)
        if not isinstance(n_rows, Integral) or n_rows < LEAST_AUDITED:
            raise ValueError(f"n_rows={n_rows!r}: choose at least {LEAST_AUDITED} rows.")
        consensus = self.consensus_
        left = np.setdiff1d(np.arange(len(consensus.P)), consensus.known[0])
        chosen = rows_to_label(
            *(consensus.strata[left], consensus.P.max(axis=1)[left], min(int(n_rows), len(left))),
            np.random.default_rng(random_state),
        )
        return RowsToLabel(consensus.target.places[left[chosen.rows]], chosen.weights)

    def audit(self, rows: ArrayLike, labels: ArrayLike) -> Audit:
        """Compare labels of target rows with those that a person gave, and correct the others.

        Parameters
        ----------
        rows : array-like of shape (n_rows,)
            Numbers of target rows in the order of the input, best those of :meth:`audit_rows`; with
            those of earlier audits at least ten, or all rows of a smaller target.
        labels : array-like of shape (n_rows,)
            Their true labels; those that the source lacks count as wrong and are reported.

        Returns
        -------
        audit : Audit
            The accuracy with an interval, whether adapted or source-only labels are better, unknown
            classes, corrected labels of all target rows, and a corrected model. This model stays as
            it is.
        """
        check_is_fitted(self)
        found = Audit.of(self.consensus_, rows, labels, self.classes_)
        consensus, P = found.model, self._labels["probabilities"].copy()
        P[consensus.target.places] = consensus.P
        transduction = self.transduction_.copy()
        transduction[self._targets] = self.classes_[P.argmax(axis=1)]
        labelled: Any = found.labels
        every = transduction[self._targets].astype(labelled.dtype)
        every[consensus.target.places] = labelled
        model = clone(self)
        alone, trust = self.classes_[self._labels["source_only"]], self.trust_
        if isinstance(trust, Trust) and found.corrected is not None:
            trust = trust.measured(found.rows, found.corrected, changes_of(alone, every))
        vars(model).update(
            vars(self),
            trust_=trust,
            consensus_=consensus,
            transduction_=transduction,
            _labels=self._labels | {"probabilities": P},
        )
        return replace(found, labels=every, model=model)
