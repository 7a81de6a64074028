"""Fitted models of every class that can be saved, in the forms that their inputs give them.

`schemas.py` writes down what they hold, and `forging.py` and `forged.py` take them apart.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, csr_matrix
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from problems import small_problem
from transferable import all_estimators, model_selection
from transferable.classifiers import DMM, TFDF, TFDFV, AdaptedClassifier, AutoAdapter
from transferable.limits import LIMITS
from transferable.model_selection import LabelFreeSearch, RankSum
from transferable.tables import TableClassifier
from transferable.transformers import CORAL, JDA, PerDomainScaler

PROBLEM = small_problem(n_source=31, n_target=23, n_features=5)
NAMES = np.array(["ant", "bee", "cat"])
LABELS = NAMES[PROBLEM.ys]
ROWS = PROBLEM.Xs.round(1)
WORDS = np.array([["red", None], ["blue", "big"], ["red", "small"]], dtype=object)


def _adapted(estimator):
    return estimator.adapt(PROBLEM.Xs, LABELS, PROBLEM.Xt)


def _framed(estimator):
    columns = [f"c{i}" for i in range(PROBLEM.Xs.shape[1])]
    source, target = (pd.DataFrame(X, columns=columns) for X in (PROBLEM.Xs, PROBLEM.Xt))
    return estimator.adapt(source, LABELS.astype(object), target)


def _sparse(estimator):
    return estimator.adapt(csr_array(PROBLEM.Xs), PROBLEM.ys, csr_array(PROBLEM.Xt))


def _single(estimator):
    Xs, Xt = PROBLEM.Xs.astype(np.float32), PROBLEM.Xt.astype(np.float32)
    return estimator.adapt(Xs, PROBLEM.ys == 1, Xt)


def _several(estimator):
    halves = [PROBLEM.Xs[:16], PROBLEM.Xs[16:]]
    return estimator.adapt(halves, [LABELS[:16], LABELS[16:]], PROBLEM.Xt)


def _alone(estimator):
    return estimator.fit(PROBLEM.Xs, LABELS)


def _half_known(estimator):
    marks = np.r_[np.ones(len(PROBLEM.Xs)), -np.ones(len(PROBLEM.Xt))]
    known = np.r_[PROBLEM.ys, np.where(np.arange(len(PROBLEM.yt)) % 3, -1, PROBLEM.yt)]
    return estimator.set_params(target_labels="use").fit(PROBLEM.X, known, marks)


def _on_landmarks(estimator):
    return _adapted(estimator.set_params(n_landmarks=12))


FORMS = (_adapted, _framed, _sparse, _single, _several, _alone, _half_known, _on_landmarks)
SCORERS = {
    "sum": RankSum(("entropy", "circular")),
    **{
        name: getattr(model_selection, name)()
        for name in model_selection.__all__
        if name.endswith("Score")
    },
}
SETTINGS = {
    "scaled-tfdf": AdaptedClassifier(PerDomainScaler(), TFDF()),
    "principal-machine": AdaptedClassifier(PCA(3), SVC()),
    "pipeline-of-jda": AdaptedClassifier(
        make_pipeline(StandardScaler(), JDA(n_components=4)), None
    ),
    "kd_tree": AdaptedClassifier(CORAL(), KNeighborsClassifier(algorithm="kd_tree")),
    "ball_tree": AdaptedClassifier(CORAL(), KNeighborsClassifier(algorithm="ball_tree", p=1)),
    "tree": AdaptedClassifier(CORAL(), DecisionTreeClassifier()),
    "forest": AdaptedClassifier(CORAL(), RandomForestClassifier(3, random_state=0)),
    "kernel-jda": JDA(n_components=4, kernel="rbf"),
    "own-estimator": TFDFV(estimator=LogisticRegression()),
    "without-a-graph": TFDF(manifold=0.0, second_order=0.0),
    "shares": TFDF(class_shares="source"),
    "machine-of-moments": DMM(n_components=2),
    "search": LabelFreeSearch(TFDFV(), {"alignment": [0.1, 1.0]}, anchor=None),
    "average": LabelFreeSearch(
        TFDFV(), {"alignment": [0.1, 1.0]}, average=2, anchor=AdaptedClassifier()
    ),
    "pool-of-shares": AutoAdapter(effort="fast", class_shares=[0.5, 0.5, 0.0]),
    "scores": LabelFreeSearch(TFDFV(), {"manifold": [0.1, 1.0]}, scoring=SCORERS, refit="sum"),
}
PARTS = [
    SVC(probability=True),
    SVC(kernel="poly"),
    NuSVC(),
    LinearSVC(),
    KNeighborsClassifier(3, algorithm="brute"),
    KNeighborsClassifier(metric="mahalanobis", metric_params={"VI": np.eye(5)}),
    NearestCentroid(),
    GaussianNB(),
    LogisticRegression(),
    RidgeClassifier(),
    Ridge(),
    KernelRidge(),
    LinearDiscriminantAnalysis(),
    DummyClassifier(),
    DecisionTreeClassifier(random_state=0),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(3, random_state=np.random.RandomState(0), oob_score=True),
    ExtraTreesClassifier(3, random_state=0),
    BaggingClassifier(random_state=0, n_estimators=2),
    FrozenEstimator(GaussianNB().fit(ROWS, LABELS)),
    FeatureUnion([("a", RobustScaler()), ("b", PCA(2, random_state=0))]),
    ColumnTransformer(
        [("a", OneHotEncoder(drop="first", max_categories=3), [0, 1]), ("b", "drop", slice(2, 3))],
        remainder=StandardScaler(),
    ),
    make_pipeline(SimpleImputer(add_indicator=True), MinMaxScaler(), OrdinalEncoder()),
    make_pipeline(KNNImputer(), MaxAbsScaler(), QuantileTransformer(n_quantiles=10)),
    make_pipeline(PowerTransformer(), Normalizer(), GaussianNB()),
    make_pipeline(FunctionTransformer(np.log1p, validate=True), VarianceThreshold()),
    make_pipeline(MissingIndicator(features="all")),
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    TruncatedSVD(2, random_state=0),
    KMeans(3, random_state=0),
    StandardScaler(with_mean=False, with_std=False),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False),
    FunctionTransformer(np.log1p, inverse_func=np.expm1),
    FunctionTransformer(),
    KNNImputer(add_indicator=True),
    make_pipeline(PowerTransformer(standardize=False), StandardScaler(with_std=False)),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=4),
    OneHotEncoder(drop="if_binary"),
    OrdinalEncoder(min_frequency=4),
    OrdinalEncoder(max_categories=2),
    FeatureUnion([("a", PCA(2)), ("b", "drop")], transformer_weights={"a": 2.0}),
    ColumnTransformer([("a", StandardScaler(), np.array([0, 1]))], remainder="passthrough"),
    ColumnTransformer([("a", StandardScaler(), [True, False, True, False, False])]),
    RidgeClassifier(solver="sag"),
    Ridge(solver="lsqr"),
    LinearDiscriminantAnalysis(solver="lsqr"),
    LinearDiscriminantAnalysis(store_covariance=True),
    ExtraTreesClassifier(3, bootstrap=True, oob_score=True, class_weight={"ant": 2}),
    RandomForestClassifier(3, class_weight="balanced_subsample"),
    RandomForestClassifier(3, class_weight={"ant": 2, "bee": 1, "cat": 1}),
    BaggingClassifier(n_estimators=4, oob_score=True),
]
# Settings and rows that give a model attributes of other kinds.
MISSING = np.where(ROWS.mean() + 1 < ROWS, np.nan, ROWS)
VARIANTS = {
    "two-classes": lambda: RidgeClassifier().fit(ROWS, LABELS == "ant"),
    "two-targets": lambda: Ridge(solver="sag").fit(ROWS, PROBLEM.Xs[:, :2]),
    "two-kernels": lambda: KernelRidge().fit(ROWS, PROBLEM.Xs[:, :2]),
    "scaled-around-missing": lambda: StandardScaler().fit(MISSING),
    "powers-around-missing": lambda: PowerTransformer().fit(MISSING),
    "sparse-nu-machine": lambda: NuSVC().fit(csr_matrix(ROWS), LABELS),
    "sparse-kernel-ridge": lambda: KernelRidge().fit(csr_matrix(ROWS), PROBLEM.ys),
    "framed-columns": lambda: (
        ColumnTransformer([("a", StandardScaler(), ["a"])], remainder="passthrough")
        .set_output(transform="pandas")
        .fit(pd.DataFrame(ROWS, columns=list("abcde")))
    ),
    "mask-of-columns": lambda: ColumnTransformer(
        [("a", StandardScaler(), np.array([True, False, True, False, False]))]
    ).fit(ROWS),
}


def _table(X):
    frame = pd.DataFrame(X[:, :4].copy(), columns=list("abcd"))
    frame["kind"] = np.where(X[:, 4] > 0, "up", "down")
    frame.loc[3, "b"] = np.nan
    frame.loc[4, "kind"] = None
    return frame


def _of_tables(**settings):
    model = TableClassifier(settings.pop("estimator", TFDFV()), **settings)
    source = _table(PROBLEM.Xs).assign(label=LABELS)
    return model.adapt(source, "label", _table(PROBLEM.Xt))


def _audited():
    return _adapted(AutoAdapter()).audit(range(10), ["zebra", *LABELS[:9]]).model


def _of_many_sparse_rows():
    with patch.object(LIMITS, "block_values", 100):
        return _sparse(AutoAdapter(effort="fast"))


def _of_flags():
    Xs, Xt = ((X > 0).astype(float) for X in (PROBLEM.Xs, PROBLEM.Xt))
    return AutoAdapter().adapt(Xs, LABELS, Xt)


def _of_pictures():
    from PIL import Image

    from transferable.images import ImageClassifier

    def colours(pictures):
        return [np.asarray(picture).mean(axis=(0, 1)) for picture in pictures]

    with TemporaryDirectory() as folder:
        for k in range(24):
            place = Path(folder, ("near", "far")[k % 2], NAMES[k % 3], f"{k}.png")
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (80 * (k % 3), 9 * k, 40)).save(place)
        Path(folder, "far", "cut.png").write_bytes(b"")
        model = ImageClassifier(colours, estimator=AutoAdapter(effort="fast"), cache=None)
        model.adapt(f"{folder}/near", None, f"{folder}/far")
    return model.set_params(model=None)


def _part(model, X=ROWS):
    missing = X.copy()
    steps = repr(model)
    if "Imputer" in steps or "Missing" in steps:
        missing[::7, 0] = np.nan
    X = abs(missing) if "log1p" in steps else missing
    y = PROBLEM.ys if isinstance(model, Ridge | KernelRidge) else LABELS
    return model.fit(X, y)


def _of_deep_pictures(name):
    from transferable import deep

    rows = np.random.default_rng(0).integers(0, 255, (40, 3, 40, 40), dtype=np.uint8)
    more = {"ADDA": {"adversarial_epochs": 1}, "DeepTFDF": {"n_rounds": 1}}
    least = {"epochs": 1, "epoch_steps": 2, "batch_size": 4}
    model = getattr(deep, name)(**least, **more.get(name, {}))
    return model.adapt(rows[:20], np.arange(20) % 2, rows[20:])


def _deep(name):
    from transferable import deep

    p = small_problem(n_source=30, n_target=24, n_features=64)
    more = {"ADDA": {"adversarial_epochs": 1}, "DeepTFDF": {"n_rounds": 1}}
    least = {"epochs": 1, "epoch_steps": 3, "batch_size": 8, "input_shape": (1, 8, 8)}
    augment = deep.RandomAffine(shift=1)
    model = getattr(deep, name)(**least, augment=augment, **more.get(name, {}))
    return model.adapt(p.Xs, p.ys, p.Xt)


def _makers():
    """Functions that fit each model, by name."""
    for name, cls in all_estimators():
        for form in FORMS:
            yield f"{name}{form.__name__}", lambda cls=cls, form=form: form(cls())
        yield f"{name}_published", lambda cls=cls: _adapted(cls.as_published())
    for name, estimator in SETTINGS.items():
        yield name, lambda estimator=estimator: _adapted(estimator)
    for i, part in enumerate(PARTS):
        yield f"{type(part).__name__}-{i}", lambda part=part: _part(part)
    for part in (
        OneHotEncoder(),
        OrdinalEncoder(),
        SimpleImputer(missing_values=None, strategy="most_frequent"),
    ):
        yield f"words-{type(part).__name__}", lambda part=part: part.fit(WORDS)
    yield from VARIANTS.items()
    yield "labels", lambda: LabelEncoder().fit(LABELS)
    yield "sparse-machine", lambda: SVC().fit(csr_matrix(ROWS), LABELS)
    yield "sparse-neighbours", lambda: KNeighborsClassifier().fit(csr_matrix(ROWS), LABELS)
    yield (
        "framed",
        lambda: make_pipeline(StandardScaler(), LogisticRegression()).fit(
            pd.DataFrame(ROWS, columns=list("abcde")), LABELS
        ),
    )
    for scale in ("per-domain", "joint", "none", "unit"):
        yield f"table-{scale}", lambda scale=scale: _of_tables(scale=scale)
    yield "table-auto", lambda: _of_tables(estimator=None)
    yield "table-drop", lambda: _of_tables(drop=["a"], ids=["d"])
    if find_spec("torch"):
        from transferable import deep

        parts = {"RandomAffine", "Batch", "Training"}
        for name in [name for name in deep.__all__ if name not in parts]:
            yield f"deep-{name}", lambda name=name: _deep(name)
            yield f"pictured-{name}", lambda name=name: _of_deep_pictures(name)
    if find_spec("PIL"):
        yield "pictures", _of_pictures
    yield "pool-audited", _audited
    yield "pool-of-flags", _of_flags
    yield "pool-of-sparse", _of_many_sparse_rows
    yield "unfitted", lambda: TFDF()


MAKERS = dict(_makers())


@cache
def model(name):
    """A fitted model, or None where a class takes no input of this form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return MAKERS[name]()
        except (ValueError, TypeError):
            if not name.startswith(tuple(f"{known}_" for known, _ in all_estimators())):
                raise
            return None


def rows(name):
    """New rows for a model, in the form that it was fitted with."""
    if name.startswith("deep-"):
        return small_problem(n_source=30, n_target=24, n_features=64).Xt
    if name.startswith("pictured-"):
        return np.zeros((2, 3, 40, 40), dtype=np.uint8)
    if name == "pictures":
        return ["nowhere.png"]
    if name.startswith("table-"):
        return _table(PROBLEM.Xt)
    if name.startswith("words-"):
        return WORDS
    if name == "labels":
        return LABELS
    if name.endswith("_framed") or name.startswith("framed"):
        return pd.DataFrame(PROBLEM.Xt, columns=getattr(model(name), "feature_names_in_", None))
    return csr_array(PROBLEM.Xt) if "sparse" in name else PROBLEM.Xt
