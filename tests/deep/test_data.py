"""Rows of every kind train the same network: arrays, pictures, memory maps, datasets."""

import tracemalloc

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from transferable import deep
from transferable.deep._data import draw

torch.set_num_threads(1)

RNG = np.random.default_rng(0)
YS = np.arange(40) % 3
PICTURES = RNG.integers(0, 256, size=(40, 16, 16), dtype=np.uint8)
PICTURES[:, :4, :4] = 80 * YS[:, None, None]
TARGET = RNG.integers(0, 256, size=(30, 16, 16), dtype=np.uint8)
LEAST = {"network": "lenet", "epochs": 2, "epoch_steps": 3, "batch_size": 8}


class Labelled(Dataset):
    """Pictures one at a time, with or without labels."""

    def __init__(self, rows, labels=None):
        self.rows, self.labels = rows, labels

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = torch.from_numpy(self.rows[i])
        return row if self.labels is None else (row, self.labels[i])


def fitted(Xs, Xt, ys=YS, **more):
    return deep.DeepCORAL(**LEAST | more).adapt(Xs, ys, Xt)


@pytest.fixture(scope="module")
def expected():
    return fitted(PICTURES, TARGET).predict_proba(TARGET)


def mapped(path, rows):
    table = np.memmap(path, mode="w+", dtype=rows.dtype, shape=rows.shape)
    table[:] = rows
    table.flush()
    return np.memmap(path, mode="r", dtype=rows.dtype, shape=rows.shape)


def test_pictures_with_channels_or_flat(expected):
    channels = fitted(PICTURES[:, None], TARGET[:, None])
    assert (channels.predict_proba(TARGET[:, None]) == expected).all()
    assert channels.input_shape_ == (1, 16, 16)
    flat = fitted(PICTURES.reshape(40, -1), TARGET.reshape(30, -1), input_shape=(1, 16, 16))
    assert (flat.predict_proba(TARGET.reshape(30, -1)) == expected).all()


def test_bytes_are_shares_of_255(expected):
    got = fitted(PICTURES, TARGET).predict_proba(TARGET / 255)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_memory_maps_are_read_where_they_lie(expected, tmp_path):
    Xs, Xt = mapped(tmp_path / "source", PICTURES), mapped(tmp_path / "target", TARGET)
    model = fitted(Xs, Xt)
    assert (model.predict_proba(Xt) == expected).all()
    stacked = mapped(tmp_path / "both", np.concatenate([PICTURES, TARGET]))
    y = np.r_[YS, np.full(30, -1)]
    assert (deep.DeepCORAL(**LEAST).fit(stacked, y).predict_proba(TARGET) == expected).all()


def test_datasets_keep_their_order():
    source, target = Labelled(PICTURES, YS), Labelled(TARGET)
    model = fitted(source, target, ys=None)
    assert (
        fitted(Labelled(PICTURES), target).predict_proba(TARGET) == model.predict_proba(target)
    ).all()
    assert model.transduction_.shape == (70,)
    turned = fitted(Labelled(PICTURES[::-1].copy(), YS[::-1]), target, ys=None)
    assert (turned.predict_proba(TARGET) != model.predict_proba(target)).any()
    with pytest.raises(ValueError, match="rows without labels"):
        fitted(Labelled(PICTURES), target, ys=None)


def test_streamed_rows_take_constant_memory(tmp_path):
    def peak(n):
        path = tmp_path / f"rows{n}"
        rows = np.memmap(path, mode="w+", dtype=np.float32, shape=(n, 1024))
        rows[:, 0] = np.arange(n) % 2
        rows.flush()
        del rows
        X = np.memmap(path, mode="r", dtype=np.float32, shape=(n, 1024))
        y = np.r_[np.arange(n // 2) % 2, np.full(n - n // 2, -1)]
        tracemalloc.start()
        deep.SourceOnly(epochs=1, epoch_steps=2, batch_size=8).fit(X, y)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    # 32 MiB of rows more, and no copy of them; both domains have more rows than a block.
    assert peak(14336) - peak(6144) < 2**22


def test_rows_of_another_shape_are_refused():
    model = fitted(PICTURES, TARGET)
    with pytest.raises(ValueError, match=r"rows of shape \(1, 16, 8\), but the network"):
        model.predict(TARGET[:, :, :8])
    with pytest.raises(ValueError, match="both domains must be described alike"):
        fitted(PICTURES, TARGET[:, :, :8])
    with pytest.raises(ValueError, match="give one label each"):
        fitted(PICTURES, TARGET, ys=YS[:5])


def test_an_epoch_shows_every_row_before_any_comes_again():
    generator = torch.Generator().manual_seed(0)
    rows = draw(10, 5, 4, generator)
    assert rows.shape == (5, 4)
    assert sorted(rows.ravel()[:10].tolist()) == list(range(10))
    assert sorted(draw(3, 2, 8, generator)[0].tolist()) == [0, 1, 2]


def test_pictures_are_turned_scaled_and_shifted_by_little():
    x = torch.zeros(64, 1, 28, 28)
    x[:, :, 10:18, 10:18] = 1.0
    change = deep.RandomAffine()
    moved = change(x, torch.Generator().manual_seed(0))
    assert moved.shape == x.shape
    assert torch.equal(moved, change(x, torch.Generator().manual_seed(0)))
    areas = moved.sum(dim=(1, 2, 3)) / 64
    assert 0.6 < areas.min() < 0.9
    assert 1.1 < areas.max() < 1.5
    still = deep.RandomAffine(rotation=0, scale=(1.0, 1.0), shift=0)
    torch.testing.assert_close(still(x, torch.Generator()), x, atol=1e-5, rtol=0)
    grid = torch.arange(28.0)
    across = (moved.sum(dim=(1, 2)) * grid).sum(dim=1) / moved.sum(dim=(1, 2, 3))
    assert (across - 13.5).abs().max() < 2.6
    assert (across - 13.5).abs().max() > 1


def test_bad_input_names_the_way_out():
    rows = np.random.default_rng(0).normal(size=(12, 3))
    labels, model = np.arange(12) % 2, deep.SourceOnly(epochs=1)
    with pytest.raises(ValueError, match="seem to be Xs, Xt, ys"):
        model.adapt(rows, rows[:6], labels)
    with pytest.raises(ValueError, match=r"X holds missing values .*TableClassifier"):
        model.adapt(rows, labels, np.full((6, 3), np.nan))
    for given in ({"yt": labels[:6]}, {"sample_weight": np.ones(12)}):
        with pytest.raises(ValueError, match=r"SourceOnly takes no .*; leave it out"):
            model.adapt(rows, labels, rows[:6], **given)
