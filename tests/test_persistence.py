"""Saved models: exact, refusing what is foreign, clear about what is damaged."""

import json
import os
import re
import tracemalloc
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

import transferable
from campaign import forging
from problems import small_problem
from saved import NAMES, NEW, PROBLEM, adapted, outputs
from transferable import persistence
from transferable.classifiers import TFDF, TFDFV, AdaptedClassifier, EasyTL
from transferable.persistence import ModelFileError, _schemas, about
from transferable.tables import TableClassifier
from transferable.transformers import CORAL, JDA, PerDomainScaler

pytestmark = pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning")

SAVED = Path(__file__).parent / "data" / "saved.tfm"


def fixture():
    """Return a target table and the model of SAVED: ``transferable.save(fixture()[1], SAVED)``."""

    def table(X):
        frame = pd.DataFrame(X, columns=list("abcd"))
        return frame.assign(kind=np.where(X[:, 0] > 0, "up", "down"))

    p = small_problem(n_source=24, n_target=16, n_features=4)
    model = TableClassifier(AdaptedClassifier(CORAL(), KNeighborsClassifier(3)))
    return table(p.Xt), model.adapt(table(p.Xs), NAMES[p.ys], table(p.Xt))


class Foreign(ClassifierMixin, BaseEstimator):
    """An estimator that this library knows nothing of."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def assert_exact(model, path, rows):
    transferable.save(model, path)
    again = transferable.load(path)
    expected, got = outputs(model, rows), outputs(again, rows)
    assert expected
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        assert got[name].dtype == values.dtype
        assert got[name].tobytes() == values.tobytes(), name


@pytest.fixture
def file(tmp_path):
    """A saved model."""
    path = tmp_path / "model.tfm"
    transferable.save(adapted(TFDFV()), path)
    return path


@pytest.mark.parametrize("name", dict(transferable.all_estimators()))
def test_every_estimator_comes_back_to_the_bit(name, tmp_path):
    model = adapted(dict(transferable.all_estimators())[name]())
    assert_exact(model, tmp_path / "model.tfm", NEW)


@pytest.mark.parametrize(
    "estimator",
    [
        AdaptedClassifier(PerDomainScaler(), TFDF()),
        AdaptedClassifier(PCA(3), SVC()),
        AdaptedClassifier(make_pipeline(StandardScaler(), JDA(n_components=4)), None),
        AdaptedClassifier(CORAL(), LogisticRegression()),
        AdaptedClassifier(CORAL(), KNeighborsClassifier(algorithm="kd_tree")),
        AdaptedClassifier(CORAL(), KNeighborsClassifier(algorithm="ball_tree", p=1)),
        AdaptedClassifier(CORAL(), DecisionTreeClassifier()),
        AdaptedClassifier(CORAL(), RandomForestClassifier(5, random_state=0)),
        AdaptedClassifier(CORAL(), ExtraTreesClassifier(5, random_state=0, bootstrap=True)),
        JDA(n_components=4, kernel="rbf"),
        TFDFV(estimator=LogisticRegression()),
    ],
    ids=str,
)
def test_with_parts_of_scikit_learn(estimator, tmp_path):
    assert_exact(adapted(estimator), tmp_path / "model.tfm", NEW)


def test_sparse_rows(tmp_path):
    model = TFDFV(manifold_dim=None)
    model.adapt(csr_array(PROBLEM.Xs), PROBLEM.ys, csr_array(PROBLEM.Xt))
    assert_exact(model, tmp_path / "model.tfm", csr_array(NEW))


@pytest.mark.parametrize(
    "model",
    [
        SVC(probability=True),
        LinearSVC(),
        NuSVC(),
        KNeighborsClassifier(metric="mahalanobis", metric_params={"VI": np.eye(12)}),
        BaggingClassifier(random_state=0),
        FeatureUnion([("a", RobustScaler()), ("b", PCA(2))]),
        ColumnTransformer([("a", OneHotEncoder(drop="first", max_categories=3), [0, 1])]),
        make_pipeline(SimpleImputer(), MinMaxScaler(), OrdinalEncoder()),
        GaussianNB(),
        KMeans(3, random_state=0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_estimators_of_scikit_learn(model, tmp_path):
    rows = PROBLEM.Xs.round()
    model.fit(rows, PROBLEM.ys)
    assert_exact(model, tmp_path / "model.tfm", rows)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_sparse_machines(tmp_path):
    model = SVC(probability=True).fit(csr_array(PROBLEM.Xs), PROBLEM.ys)
    assert_exact(model, tmp_path / "model.tfm", csr_array(NEW))


def test_pipelines_of_scikit_learn(tmp_path):
    model = make_pipeline(StandardScaler(), TFDFV())
    model.fit(PROBLEM.X, np.r_[PROBLEM.ys, np.full(len(PROBLEM.yt), -1)])
    assert_exact(model, tmp_path / "model.tfm", NEW)


@pytest.mark.parametrize("scale", ["per-domain", "joint", "none", "unit"])
def test_models_of_tables_with_their_preprocessing(scale, tmp_path):
    def table(X):
        frame = pd.DataFrame(X[:, :5].copy(), columns=list("abcde"))
        frame["kind"] = np.where(X[:, 5] > 0, "up", "down")
        frame.loc[3, "b"] = np.nan
        frame.loc[4, "kind"] = None
        return frame

    source = table(PROBLEM.Xs).assign(label=NAMES[PROBLEM.ys])
    model = TableClassifier(TFDFV(), scale=scale).adapt(source, "label", table(PROBLEM.Xt))
    assert_exact(model, tmp_path / "model.tfm", table(NEW))


def test_an_unfitted_estimator_keeps_its_parameters(tmp_path):
    transferable.save(TFDF(alignment=3.0), tmp_path / "model.tfm")
    again = transferable.load(tmp_path / "model.tfm")
    assert again.get_params() == TFDF(alignment=3.0).get_params()


def own_kernel(X, Y):
    return X @ Y.T


def with_nan(model):
    model._means = model._means * np.nan
    return model


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (lambda: adapted(AdaptedClassifier(CORAL(), Foreign())), "Foreign"),
        (lambda: adapted(TFDFV(kernel=own_kernel)), "own_kernel"),
        (lambda: adapted(AdaptedClassifier(CORAL(), GradientBoostingClassifier())), "Gradient"),
        (lambda: SGDClassifier().fit(PROBLEM.Xs, PROBLEM.ys), "holds .*SGDClassifier"),
        (lambda: with_nan(adapted(EasyTL())), "_means of EasyTL is of another"),
        (lambda: {"a": 1}, "dict"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(model, told, tmp_path):
    with pytest.raises(TypeError, match=told):
        transferable.save(model(), tmp_path / "model.tfm")
    assert list(tmp_path.iterdir()) == []


def test_parts_that_this_version_lacks_say_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "model.tfm"
    transferable.save(adapted(TFDFV()), path)
    monkeypatch.delitem(_schemas.ATTRIBUTES, "transferable.classifiers.tfdf.TFDFV")
    with pytest.raises(ModelFileError, match=r"TFDFV\. This version has no such parts.*fit the"):
        transferable.load(path)


@pytest.mark.parametrize("function", [os.system, eval, own_kernel], ids=lambda f: f.__name__)
def test_foreign_types_are_refused_by_name(function, tmp_path, monkeypatch):
    path = tmp_path / "stranger.tfm"
    with monkeypatch.context() as patch:
        patch.setattr(persistence, "readable", lambda content: (content, []))
        patch.setattr(persistence, "_restored", lambda content: None)
        transferable.save(FunctionTransformer(function), path)
    with pytest.raises(ModelFileError, match=rf"not trusted.*{function.__name__}"):
        transferable.load(path)


def test_functions_of_the_library_are_no_more_trusted_than_others():
    trusted = _schemas.TRUSTED
    assert "transferable.classifiers.tfdf.TFDF" in trusted
    assert not any(name.startswith("transferable.cli") for name in trusted)
    assert not any(name.split(".")[-1].startswith("choose_") for name in trusted)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_truncated(file, share):
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match=re.escape(str(file))):
        transferable.load(file)


@pytest.mark.parametrize("seed", range(5))
def test_a_changed_byte_never_goes_unnoticed(file, seed):
    """Unless it is one that the archive's format has no use for, such as a time stamp."""
    expected = transferable.load(file).predict(NEW)
    content = bytearray(file.read_bytes())
    position = np.random.default_rng(seed).integers(len(content))
    content[position] ^= 0xFF
    file.write_bytes(content)
    try:
        got = transferable.load(file).predict(NEW)
    except ModelFileError:
        return
    assert got.tobytes() == expected.tobytes()


def rewritten(path, **changes):
    """The archive with some members replaced, or left out where None is given."""
    parts = forging.members(path)
    parts |= {name.replace("_json", ".json"): content for name, content in changes.items()}
    forging.write(path, {name: content for name, content in parts.items() if content is not None})


def test_edited(file):
    with ZipFile(file) as archive:
        schema = archive.read("schema.json").decode()
    rewritten(file, schema_json=schema.replace("alignment", "alinement"))
    with pytest.raises(ModelFileError, match="was changed"):
        transferable.load(file)


def test_without_a_header(file):
    rewritten(file, transferable_json=None)
    with pytest.raises(ModelFileError, match=r"not written by transferable\.save"):
        transferable.load(file)


@pytest.mark.parametrize("number", [persistence.FORMAT + 1, persistence.FORMAT - 1, 0])
@pytest.mark.parametrize("load", [transferable.load, about])
def test_other_formats_say_what_to_do(file, load, number):
    with ZipFile(file) as archive:
        header = json.loads(archive.read("transferable.json"))
    header["format"] = number
    header["versions"]["transferable"] = "9.9"
    del header["bytes"]  # which not every format has
    rewritten(file, transferable_json=json.dumps(header))
    told = (
        f"{file} has format {number}, written by transferable 9.9; this is transferable "
        f"{transferable.__version__}, which reads format {persistence.FORMAT}. Fit and save the "
        "model again with this version."
    )
    with pytest.raises(ModelFileError) as refused:
        load(file)
    assert str(refused.value) == told


def test_a_file_that_does_not_fit_this_version_names_the_one_that_wrote_it(file, monkeypatch):
    monkeypatch.setattr("skops.io.loads", lambda *_, **__: {}["gone"])
    with pytest.raises(ModelFileError, match=r"KeyError.*saved by\s+transferable \d"):
        transferable.load(file)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        transferable.load(tmp_path / "nothing.tfm")


def test_a_failure_leaves_the_old_file_and_no_other(file, monkeypatch):
    before = file.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        transferable.save(TFDF(), file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_about_tells_without_loading(file, monkeypatch):
    monkeypatch.setattr("skops.io.loads", None)
    header = about(file)
    assert header["class"] == "TFDFV"
    assert header["versions"]["transferable"] == transferable.__version__


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_the_file_of_the_present_format_loads_and_predicts():
    """If what models hold has changed: raise FORMAT, and save the fixture again as it says."""
    table, fresh = fixture()
    assert about(SAVED)["format"] == persistence.FORMAT
    model = transferable.load(SAVED)
    assert "".join(label[0] for label in model.predict(table)) == "abcabcbbcaaaabca"
    np.testing.assert_array_equal(model.predict_proba(table), fresh.predict_proba(table))


@pytest.mark.parametrize("missing", ["versions", "sha256", "bytes", "format", "class"])
def test_a_header_that_lacks_a_field_says_which(file, missing):
    header = json.loads(forging.members(file)["transferable.json"])
    del header[missing]
    rewritten(file, transferable_json=json.dumps(header))
    with pytest.raises(ModelFileError, match=f"header without '{missing}'"):
        transferable.load(file)


def test_members_that_the_header_does_not_name_are_never_unpacked(file):
    with ZipFile(file, "a", compression=ZIP_DEFLATED) as archive:
        archive.writestr("bomb.npy", bytes(2**28))
    assert file.stat().st_size < 2**20
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"was changed.*bomb\.npy"):
        transferable.load(file)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_members_of_another_size_than_the_header_tells_are_never_unpacked(file):
    parts = forging.members(file)
    header = json.loads(parts["transferable.json"])
    header["bytes"]["schema.json"] += 1
    rewritten(file, transferable_json=json.dumps(header))
    with pytest.raises(ModelFileError, match=r"was changed.*schema\.json"):
        transferable.load(file)


def test_a_model_larger_than_memory_is_refused(file):
    parts = forging.members(file)
    header = json.loads(parts["transferable.json"])
    header["bytes"] = dict.fromkeys(header["bytes"], 2**60)
    with ZipFile(file, "w") as archive:
        for name, content in (parts | {"transferable.json": json.dumps(header)}).items():
            archive.writestr(name, content)
            if name != "transferable.json":
                archive.getinfo(name).file_size = 2**60
    with pytest.raises(ModelFileError, match=r"unpacks to [\d,]{20,} bytes"):
        transferable.load(file)
