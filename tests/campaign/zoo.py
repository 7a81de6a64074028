"""Fitted models of every class that can be saved, in the forms that their inputs give them.

Tests save and load them, and `forged.py` takes their files apart.
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
from sklearn.base import is_regressor
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, PairwiseKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from problems import small_problem
from transferable import AutoRegressor, all_estimators, model_selection
from transferable.classifiers import TFDF, TFDFV, AdaptedClassifier, AutoAdapter
from transferable.experimental import DMM
from transferable.limits import LIMITS
from transferable.model_selection import LabelFreeSearch, RankSum
from transferable.tables import TableClassifier, TableRegressor
from transferable.transformers import CORAL, JDA, PerDomainScaler

ESTIMATORS = [*all_estimators(), *all_estimators("regressor")]
PROBLEM = small_problem(n_source=31, n_target=23, n_features=5)
NAMES = np.array(["ant", "bee", "cat"])
LABELS = NAMES[PROBLEM.ys]
ROWS = PROBLEM.Xs.round(1)


def _answers(estimator, labels=LABELS):
    return PROBLEM.Xs @ np.arange(5.0) if is_regressor(estimator) else labels


def _adapted(estimator):
    return estimator.adapt(PROBLEM.Xs, _answers(estimator), PROBLEM.Xt)


def _framed(estimator):
    columns = [f"c{i}" for i in range(PROBLEM.Xs.shape[1])]
    source, target = (pd.DataFrame(X, columns=columns) for X in (PROBLEM.Xs, PROBLEM.Xt))
    return estimator.adapt(source, _answers(estimator, LABELS.astype(object)), target)


def _sparse(estimator):
    return estimator.adapt(csr_array(PROBLEM.Xs), _answers(estimator), csr_array(PROBLEM.Xt))


def _single(estimator):
    Xs, Xt = PROBLEM.Xs.astype(np.float32), PROBLEM.Xt.astype(np.float32)
    return estimator.adapt(Xs, _answers(estimator, PROBLEM.ys == 1), Xt)


def _several(estimator):
    halves, answers = [PROBLEM.Xs[:16], PROBLEM.Xs[16:]], _answers(estimator)
    return estimator.adapt(halves, [answers[:16], answers[16:]], PROBLEM.Xt)


def _alone(estimator):
    return estimator.fit(PROBLEM.Xs, _answers(estimator))


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
    LinearSVC(),
    KNeighborsClassifier(3, algorithm="brute"),
    KNeighborsClassifier(metric="mahalanobis", metric_params={"VI": np.eye(5)}),
    KNeighborsRegressor(3, weights="distance"),
    LogisticRegression(),
    RidgeClassifier(),
    Ridge(),
    KernelRidge(),
    GaussianProcessRegressor(1.5 * RBF([2.0] * 5) ** 2.0 + WhiteKernel(), normalize_y=True),
    DecisionTreeClassifier(random_state=0),
    DecisionTreeRegressor(random_state=0),
    RandomForestClassifier(3, random_state=np.random.RandomState(0), oob_score=True),
    RandomForestRegressor(3, random_state=0, criterion="absolute_error"),
    ExtraTreesClassifier(3, random_state=0, bootstrap=True, class_weight={"ant": 2}),
    ExtraTreesRegressor(3, random_state=0),
    GradientBoostingClassifier(n_estimators=3, random_state=0),
    GradientBoostingClassifier(n_estimators=3, init="zero", random_state=0),
    GradientBoostingRegressor(n_estimators=3, loss="huber", random_state=0),
    FeatureUnion([("a", RobustScaler()), ("b", PCA(2, random_state=0))]),
    FeatureUnion([("a", PCA(2)), ("b", "drop")], transformer_weights={"a": 2.0}),
    make_pipeline(MinMaxScaler(), MaxAbsScaler(), FunctionTransformer(), PCA(2, whiten=True)),
    make_pipeline(Normalizer(), StandardScaler(with_std=False), LogisticRegression()),
    StandardScaler(with_mean=False, with_std=False),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False),
]
NUMBERS = (
    Ridge,
    KernelRidge,
    GaussianProcessRegressor,
    KNeighborsRegressor,
    DecisionTreeRegressor,
    RandomForestRegressor,
)
NUMBERS += ExtraTreesRegressor, GradientBoostingRegressor
# Settings and rows that give a model attributes of other kinds.
MISSING = np.where(ROWS.mean() + 1 < ROWS, np.nan, ROWS)
VARIANTS = {
    "two-classes": lambda: RidgeClassifier().fit(ROWS, LABELS == "ant"),
    "two-boosted": lambda: GradientBoostingClassifier(n_estimators=3).fit(ROWS, LABELS == "ant"),
    "two-machine": lambda: SVC().fit(ROWS, LABELS == "ant"),
    "two-targets": lambda: Ridge(solver="sag").fit(ROWS, PROBLEM.Xs[:, :2]),
    "usual-process": lambda: GaussianProcessRegressor().fit(ROWS, PROBLEM.ys),
    "two-kernels": lambda: KernelRidge().fit(ROWS, PROBLEM.Xs[:, :2]),
    "sparse-kernel-ridge": lambda: KernelRidge().fit(csr_matrix(ROWS), PROBLEM.ys),
    "forest-around-missing": lambda: RandomForestClassifier(3).fit(MISSING, LABELS),
    "framed-columns": lambda: (
        make_pipeline(StandardScaler(), PCA(2))
        .set_output(transform="pandas")
        .fit(pd.DataFrame(ROWS, columns=list("abcde")))
    ),
}
# What files do not hold, by the words of the refusal.
REFUSED = {
    f" is {type(model).__name__}": model
    for model in (
        *(GaussianNB(), LinearDiscriminantAnalysis(), BaggingClassifier(), KMeans(3)),
        *(SimpleImputer(), OneHotEncoder(), PowerTransformer(), ColumnTransformer([])),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2),
    )
}
REFUSED |= {
    " is GaussianProcessClassifier": GaussianProcessClassifier(),
    ".kernel is PairwiseKernel": GaussianProcessRegressor(PairwiseKernel()),
    ".func is log1p": FunctionTransformer(np.log1p),
    ".weights is exp": KNeighborsClassifier(weights=np.exp),
    ".kernel is dot": SVC(kernel=np.dot),
    r".steps\[1\] is SimpleImputer": make_pipeline(StandardScaler(), SimpleImputer()),
    r".steps\[0\] is object": make_pipeline(object(), None),
}
REFUSED |= {
    f" is {type(model).__name__} of several outputs": model.fit(ROWS, ROWS[:, :2] > 0)
    for model in (
        *(RidgeClassifier(), KNeighborsClassifier(), KNeighborsRegressor()),
        *(RandomForestClassifier(3), DecisionTreeRegressor()),
    )
}


def _table(X):
    frame = pd.DataFrame(X[:, :4].copy(), columns=list("abcd"))
    frame["kind"] = np.where(X[:, 4] > 0, "up", "down")
    frame.loc[3, "b"] = np.nan
    frame.loc[4, "kind"] = None
    return frame


def _with_words(X):
    said = np.where(X[:, 0] > 0, "sturdy and quite cheap", "dull but never very dear")
    return _table(X).assign(said=said)


def _of_words():
    source = _with_words(PROBLEM.Xs).assign(label=LABELS)
    return TableClassifier(TFDFV()).adapt(source, "label", _with_words(PROBLEM.Xt))


def _of_numbers():
    source = _table(PROBLEM.Xs).assign(label=PROBLEM.Xs[:, 4])
    return TableRegressor().adapt(source, "label", _table(PROBLEM.Xt))


def _of_tables(**settings):
    model = TableClassifier(settings.pop("estimator", TFDFV()), **settings)
    source = _table(PROBLEM.Xs).assign(label=LABELS)
    return model.adapt(source, "label", _table(PROBLEM.Xt))


def _audited():
    return _adapted(AutoAdapter()).audit(range(10), ["zebra", *LABELS[:9]]).model


def _measured():
    return _adapted(AutoRegressor()).audit(range(10), np.arange(10.0)).model


def _of_many_sparse_rows():
    with patch.object(LIMITS, "block_values", 100):
        return _sparse(AutoAdapter(effort="fast"))


def _of_flags():
    Xs, Xt = ((X > 0).astype(float) for X in (PROBLEM.Xs, PROBLEM.Xt))
    return AutoAdapter().adapt(Xs, LABELS, Xt)


def colours(pictures):
    """An embedder of pictures."""
    return [np.asarray(picture).mean(axis=(0, 1)) for picture in pictures]


def _of_pictures():
    from PIL import Image

    from transferable.images import ImageClassifier

    with TemporaryDirectory() as folder:
        for k in range(24):
            place = Path(folder, ("near", "far")[k % 2], NAMES[k % 3], f"{k}.png")
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (80 * (k % 3), 9 * k, 40)).save(place)
        Path(folder, "far", "cut.png").write_bytes(b"")
        model = ImageClassifier(colours, estimator=AutoAdapter(effort="fast"), cache=None)
        model.adapt(f"{folder}/near", None, f"{folder}/far")
    return model.set_params(model=None)


def _part(model):
    return model.fit(ROWS, PROBLEM.Xs[:, 0] if isinstance(model, NUMBERS) else LABELS)


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
    for name, cls in ESTIMATORS:
        for form in FORMS:
            yield f"{name}{form.__name__}", lambda cls=cls, form=form: form(cls())
        yield f"{name}_published", lambda cls=cls: _adapted(cls.as_published())
    for name, estimator in SETTINGS.items():
        yield name, lambda estimator=estimator: _adapted(estimator)
    for i, part in enumerate(PARTS):
        yield f"{type(part).__name__}-{i}", lambda part=part: _part(part)
    yield from VARIANTS.items()
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
    search = LabelFreeSearch(AutoAdapter(effort="fast"), {"caution": [0.0]}, anchor=None)
    yield "table-searched", lambda: _of_tables(estimator=search)
    yield from {"table-words": _of_words, "table-numbers": _of_numbers}.items()
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
    yield "numbers-measured", _measured
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
            if not name.startswith(tuple(f"{known}_" for known, _ in ESTIMATORS)):
                raise
            return None


def rows(name):
    """New rows for a model, in the form that it was fitted with."""
    if name.startswith("deep-"):
        return small_problem(n_source=30, n_target=24, n_features=64).Xt
    if name.startswith("pictured-"):
        return np.zeros((2, 3, 40, 40), dtype=np.uint8)
    if name == "pictures":
        from transferable.images.embedding import Embedder, Embeddings
        from transferable.images.reading import Pictures

        files = Pictures([Path("a.png"), Path("b.png")], ["a.png", "b.png"])
        probe, found = Embedder(colours, cache=None).probe, np.eye(2, 3, dtype=np.float32) * 99
        return Embeddings(files, found, np.arange(2), {}, probe)
    if name == "table-words":
        return _with_words(PROBLEM.Xt)
    if name.startswith("table-"):
        return _table(PROBLEM.Xt)
    if name.endswith("_framed") or name.startswith("framed"):
        return pd.DataFrame(PROBLEM.Xt, columns=getattr(model(name), "feature_names_in_", None))
    return csr_array(PROBLEM.Xt) if "sparse" in name else PROBLEM.Xt
