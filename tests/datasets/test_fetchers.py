"""The fetchers give the published data: their 1-NN rows are the printed ones."""

import builtins
import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.neighbors import KNeighborsClassifier

from transferable.datasets import (
    DataFileError,
    _files,
    fetch_coil20,
    fetch_mnist_usps,
    fetch_office_caltech,
    fetch_tables,
)

# Published 1-NN accuracies in percent, in the order of `tasks()`.
SURF_1NN = [23.7, 25.8, 25.5, 26.0, 29.8, 25.5, 19.9, 23.0, 59.2, 26.3, 28.5, 63.4]


def nearest_neighbor(task) -> float:
    model = KNeighborsClassifier(n_neighbors=1).fit(task.Xs, task.ys)
    return 100 * model.score(task.Xt, task.yt)


def every_file() -> list:
    return list(_files.FILES.values())


def test_surf_1nn(data_home):
    surf = fetch_office_caltech(data_home=data_home, download=False)
    found = [nearest_neighbor(surf.task(*pair)) for pair in surf.tasks()]
    assert [round(accuracy, 1) for accuracy in found] == SURF_1NN


def test_decaf6_1nn(data_home):
    decaf = fetch_office_caltech("decaf6", data_home=data_home, download=False)
    assert round(nearest_neighbor(decaf.task("D", "W")), 1) == 91.5
    assert round(nearest_neighbor(decaf.task("W", "D")), 1) == 98.1


def test_mnist_usps_1nn(data_home):
    digits = fetch_mnist_usps(data_home=data_home, download=False)
    assert round(nearest_neighbor(digits.task("U", "M")), 2) == 44.70
    assert round(nearest_neighbor(digits.task("M", "U")), 2) == 65.94


def test_coil_1nn(data_home):
    coil = fetch_coil20(data_home=data_home, download=False)
    assert round(nearest_neighbor(coil.task("COIL1", "COIL2")), 2) == 83.61
    assert round(nearest_neighbor(coil.task("COIL2", "COIL1")), 2) == 82.78


def test_full_mnist_fits_the_frame_of_usps(data_home):
    """1-NN on all rows is 75.4 % (U->M) and 86.6 % (M->U); shrunk whole it would be 48 and 71."""
    pytest.importorskip("h5py")
    task = fetch_mnist_usps(full=True, data_home=data_home, download=False).task("U", "M")
    assert task.Xs.shape == (9298, 256)
    assert task.Xt.shape == (70000, 256)
    assert task.Xs.dtype == task.Xt.dtype == np.float32
    sample = slice(None, None, 35)
    found = task.ys[np.argmax(task.Xt[sample] @ task.Xs.T, axis=1)]
    assert 72 < 100 * np.mean(found == task.yt[sample]) < 79


def test_raw_rows_are_as_stored(data_home):
    options = {"preprocess": False, "data_home": data_home, "download": False}
    surf = fetch_office_caltech(**options).domain("D")
    assert surf.X.shape == (157, 800)
    np.testing.assert_array_equal(surf.X, surf.X.round())
    assert surf.X.max() > 1
    for collection, domain in (
        (fetch_mnist_usps(**options), "M"),
        (fetch_mnist_usps(full=True, **options), "M"),
        (fetch_coil20(**options), "COIL1"),
    ):
        X = collection.domain(domain).X
        assert X.min() == 0
        assert 0.99 < X.max() <= 1


def test_labels_index_the_class_names(data_home):
    for collection in (
        fetch_office_caltech(data_home=data_home, download=False),
        fetch_mnist_usps(data_home=data_home, download=False),
        fetch_coil20(data_home=data_home, download=False),
    ):
        domain = collection.domain(collection.domains[0])
        assert np.unique(domain.y).tolist() == list(range(len(domain.target_names)))


def test_efficientnet_rows_match_those_of_surf(data_home):
    deep = fetch_office_caltech("efficientnet-lite0", data_home=data_home, download=False)
    surf = fetch_office_caltech(data_home=data_home, download=False)
    for name in deep.domains:
        domain = deep.domain(name)
        assert domain.X.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(domain.X, axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(domain.y, surf.domain(name).y)


def test_tasks_in_the_order_of_the_tables():
    pairs = ["CA", "CW", "CD", "AC", "AW", "AD", "WC", "WA", "WD", "DC", "DA", "DW"]
    assert ["".join(pair) for pair in fetch_office_caltech().tasks()] == pairs


def test_unknown_features():
    with pytest.raises(ValueError, match=r"'vgg'.*surf, decaf6, efficientnet-lite0"):
        fetch_office_caltech("vgg")


@pytest.mark.parametrize("domain", ["C", "A"])
def test_missing_decaf6_domain(tmp_path, domain):
    decaf = fetch_office_caltech("decaf6", data_home=tmp_path)
    with pytest.raises(DataFileError, match=r"_decaf\.mat is not in .*no public address"):
        decaf.domain(domain)


def write_decaf6_amazon(home: Path, content: dict) -> None:
    folder = home / "office_caltech10_decaf6"
    folder.mkdir()
    savemat(folder / "amazon_decaf.mat", content)


def test_own_decaf6_file_is_used(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(958)[:, np.newaxis] % 10 + 1
    write_decaf6_amazon(tmp_path, {"feas": rng.random((958, 4096)), "labels": labels})
    domain = fetch_office_caltech("decaf6", data_home=tmp_path, download=False).domain("A")
    np.testing.assert_array_equal(domain.y, np.arange(958) % 10)
    np.testing.assert_allclose(domain.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(domain.X.std(axis=0), 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"feas": np.ones((5, 4096)), "labels": np.ones(5)}, r"\(5, 4096\).*\(958, 4096\)"),
        ({"fts": np.ones((958, 4096), np.uint8)}, "'feas' and 'labels'"),
    ],
    ids=["shape", "variables"],
)
def test_wrong_decaf6_file(tmp_path, content, message):
    write_decaf6_amazon(tmp_path, content)
    with pytest.raises(DataFileError, match=message):
        fetch_office_caltech("decaf6", data_home=tmp_path).domain("A")


def test_not_a_matlab_file(tmp_path):
    folder = tmp_path / "office_caltech10_decaf6"
    folder.mkdir()
    (folder / "amazon_decaf.mat").write_bytes(b"<html>not found</html>" * 20)
    with pytest.raises(DataFileError, match="not a MATLAB file"):
        fetch_office_caltech("decaf6", data_home=tmp_path).domain("A")


def test_fetches_over_http(site, tmp_path, monkeypatch):
    """Columns of the stored matrices become rows, labels start at 0, and both ways are a task."""
    rng = np.random.default_rng(0)
    source, target = rng.random((2, 1024, 20))
    labels = np.arange(1, 21)
    savemat(
        tmp_path / "made.mat", {"X_src": source, "X_tar": target, "Y_src": labels, "Y_tar": labels}
    )
    body = (tmp_path / "made.mat").read_bytes()
    sha256 = hashlib.sha256(body).hexdigest()
    stored = _files.FILES["coil20/COIL_1.mat"]
    file = dataclasses.replace(stored, sha256=sha256, url=site.serve("/coil", body))
    monkeypatch.setitem(_files.FILES, stored.path, file)
    task = fetch_coil20(data_home=tmp_path, preprocess=False).task("COIL2", "COIL1")
    np.testing.assert_array_equal(task.Xs, target.T)
    np.testing.assert_array_equal(task.Xt, source.T)
    np.testing.assert_array_equal(task.ys, np.arange(20))
    assert site.requests == ["/coil"]
    assert (tmp_path / "coil20" / "COIL_1.mat").is_file()


def test_full_usps_without_h5py(data_home, monkeypatch):
    original = builtins.__import__

    def refuse(name, *args):
        if name == "h5py":
            raise ImportError(name)
        return original(name, *args)

    monkeypatch.setattr(builtins, "__import__", refuse)
    usps = fetch_mnist_usps(full=True, data_home=data_home, download=False)
    with pytest.raises(ImportError, match=r"pip install '\.\[data\]' in a clone of the source"):
        usps.domain("U")


def test_nothing_is_downloaded_without_a_checksum():
    for file in every_file():
        assert file.url is None or (file.url.startswith("https://") and len(file.sha256) == 64)


def test_tables_keep_their_columns_and_hide_the_targets_labels(data_home):
    pairs = fetch_tables(data_home=data_home)
    assert len(pairs) == 17
    for pair in pairs.values():
        assert [*pair.source.columns.drop("label")] == [*pair.target.columns]
        assert len(pair.yt) == len(pair.target)
    assert pairs["adult"].source["education"].dtype.kind not in "if"
    assert pairs["heart"].target.isna().to_numpy().sum() == 782


def test_unknown_and_missing_tables_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"'wein'.*choose from adult"):
        fetch_tables(["wein"])
    with pytest.raises(DataFileError, match=r"source\.csv is not in .*heart"):
        fetch_tables(["heart"], data_home=tmp_path)
