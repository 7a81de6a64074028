"""Pictures as people have them: datasets that decode, networks and transforms of one's own."""

import os
import random
import tracemalloc

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset

import transferable
from transferable import deep
from transferable.deep.networks import Network

torch.set_num_threads(1)

RNG = np.random.default_rng(0)
YS = np.arange(36) % 3
LEAST = {"network": "lenet", "epochs": 2, "epoch_steps": 3, "batch_size": 8}


def drawn(codes, channels=3, light=0):
    """Pictures of 16 x 16 pixels with a bright band in one of three places."""
    pictures = RNG.integers(0, 60, size=(len(codes), channels, 16, 16), dtype=np.uint8) + light
    for picture, code in zip(pictures, codes, strict=True):
        picture[:, 5 * code : 5 * code + 5] += 150
    return pictures.astype(np.uint8)


SOURCE, TARGET = drawn(YS), drawn(YS[:27], light=40)


class Pictures(Dataset):
    """Pictures of pillow with their labels; every read is a line of a file."""

    def __init__(self, pictures, labels=None, log=None):
        self.pictures, self.labels, self.log = pictures, labels, log

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        if self.log is not None:
            with open(self.log, "a") as file:
                file.write(f"{os.getpid()} {i}\n")
        picture = Image.fromarray(self.pictures[i].transpose(1, 2, 0))
        return picture if self.labels is None else (picture, int(self.labels[i]))


class Folder(Pictures):
    """As torchvision's ImageFolder: names of classes and of files."""

    classes = ("low", "middle", "top")

    def __init__(self, pictures, labels, **more):
        super().__init__(pictures, labels, **more)
        self.targets = list(labels)
        self.samples = [(f"/data/{c}/{i}.png", c) for i, c in enumerate(labels)]


def as_tensor(picture):
    return torch.from_numpy(np.asarray(picture).transpose(2, 0, 1) / np.float32(255))


def flipped(picture):
    """At random, by every source of random numbers that transforms use."""
    rolls = random.random() < 0.5, np.random.random() < 0.5, bool(torch.rand(()) < 0.5)  # noqa: NPY002, S311
    row = as_tensor(picture)
    return row.flip(2) if sum(rolls) % 2 else row


def uneven(picture):
    return as_tensor(picture)[:, : 16 - picture.getpixel((0, 0))[0] % 2]


def own_network(input_shape, n_classes):
    """A network with batch normalisation."""
    filters = torch.nn.Sequential(
        torch.nn.Conv2d(input_shape[0], 4, 5, stride=2),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
    )
    return Network(filters, torch.nn.Linear(144, n_classes))


class Noise:
    """An augmentation without a name of its own."""

    def __init__(self, stop_after=None):
        self.calls, self.stop_after = 0, stop_after

    def __call__(self, x, generator):
        self.calls += 1
        if self.calls == self.stop_after:
            raise KeyboardInterrupt
        return x + 0.01 * torch.randn(x.shape, generator=generator)


def memory_map(path, rows):
    table = np.memmap(path, mode="w+", dtype=rows.dtype, shape=rows.shape)
    table[:] = rows
    return table


KINDS = {
    "grey": lambda rows, path: rows[:, 0],
    "one channel": lambda rows, path: rows[:, :1],
    "RGB": lambda rows, path: rows,
    "single precision": lambda rows, path: rows.astype(np.float32) / 255,
    "memory map": lambda rows, path: memory_map(path, rows),
    "tensors": lambda rows, path: [*map(torch.from_numpy, rows)],
    "pillow": lambda rows, path: Pictures(rows),
}


class Endless(IterableDataset):
    def __iter__(self):
        return iter(Pictures(SOURCE, YS))


class Listed(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_pictures_is_saved(kind, tmp_path):
    Xs, Xt = (KINDS[kind](rows, tmp_path / name) for rows, name in ((SOURCE, "s"), (TARGET, "t")))
    if kind == "tensors":
        Xs, Xt = Listed(Xs), Listed(Xt)
    model = deep.DeepCORAL(
        **LEAST, prepare=as_tensor if kind == "pillow" else None, checkpoint=tmp_path / "fit"
    )
    model.adapt(Xs, YS, Xt)
    expected = model.predict_proba(Xt)
    transferable.save(model.set_params(prepare=None), tmp_path / "model.tfm")
    again = transferable.load(tmp_path / "model.tfm")
    again.set_params(prepare=as_tensor if kind == "pillow" else None)
    assert (again.predict_proba(Xt) == expected).all()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stopped_fit_of_ones_own_goes_on_to_the_same_bit(workers, tmp_path):
    source, target = Pictures(SOURCE, YS), Pictures(TARGET)
    path = tmp_path / "fit.safetensors"
    model = deep.DeepTFDF(
        **LEAST | {"network": own_network}, n_rounds=2, prepare=(flipped, as_tensor)
    )
    expected = model.set_params(augment=Noise()).adapt(source, None, target).predict_proba(target)
    model.set_params(checkpoint=path, augment=Noise(stop_after=10), num_workers=workers)
    with pytest.raises(KeyboardInterrupt):
        model.adapt(source, None, target)
    model.set_params(augment=Noise(), num_workers=0)  # another number of workers
    assert path.exists()
    assert (model.adapt(source, None, target).predict_proba(target) == expected).all()
    assert not path.exists()


def test_other_files_are_another_fit(tmp_path):
    path = tmp_path / "fit.safetensors"
    model = deep.DDC(**LEAST, prepare=as_tensor, checkpoint=path, augment=Noise(stop_after=8))
    source, target = Folder(SOURCE, YS), Pictures(TARGET)
    with pytest.raises(KeyboardInterrupt):
        model.adapt(source, None, target)
    source.samples[3] = ("/data/0/other.png", 0)
    with pytest.raises(ValueError, match="other rows or parameters"):
        model.adapt(source, None, target)
    source.samples = [(f"/moved/{c}/{i}.png", c) for i, c in enumerate(YS)]
    model.set_params(augment=Noise()).adapt(source, None, target)


class Large(Dataset):
    """Pictures of 3 x 224 x 224 numbers that are made when they are read."""

    def __init__(self, n):
        self.targets = np.arange(n) % 2

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return torch.full((3, 224, 224), 0.1 * (i % 7)), int(self.targets[i])


def small_network(input_shape, n_classes):
    pooled = torch.nn.AvgPool2d(32), torch.nn.Flatten(), torch.nn.Linear(147, 8)
    return Network(torch.nn.Sequential(*pooled), torch.nn.Linear(8, n_classes))


def test_memory_does_not_grow_with_the_pictures():
    def peak(n):
        tracemalloc.start()
        settings = LEAST | {"network": small_network, "epochs": 1}
        deep.DDC(**settings).adapt(Large(n), None, Large(n))
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    # 230 MB of pictures more, of which no more than a block is in memory.
    assert peak(300) - peak(108) < 2**23


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_is_read_by_workers_and_only_for_steps(workers, tmp_path):
    log = tmp_path / "reads"
    source = Folder(SOURCE, YS, log=log)
    model = deep.SourceOnly(
        **LEAST, prepare=as_tensor, num_workers=workers, callback=lambda entry: log.rename(
            tmp_path / f"epoch {entry['epoch']}"
        )
    )  # fmt: skip
    model.adapt(source, None, Pictures(TARGET))
    lines = [line.split() for line in (tmp_path / "epoch 1").read_text().splitlines()]
    here = [i for pid, i in lines if pid == str(os.getpid())]
    assert len(lines) <= 3 * 8 + 2  # three steps, and a row to see its shape, twice
    if workers:
        assert set(here) == {"0"}


def test_given_order_and_the_same_for_any_number_of_workers():
    source, target = Pictures(SOURCE, YS), Pictures(TARGET)
    settings = LEAST | {"prepare": (flipped, as_tensor), "network": own_network}
    models = [
        deep.DeepCORAL(**settings, num_workers=workers).adapt(source, None, target)
        for workers in (0, 1, 2)
    ]
    first = models[0].predict_proba(target)
    assert all((model.predict_proba(target) == first).all() for model in models)
    assert (models[0].transduction_[36:] == models[0].predict(target)).all()
    state = random.getstate(), torch.get_rng_state()
    models[0].adapt(source, None, target)
    assert random.getstate() == state[0]
    assert torch.equal(torch.get_rng_state(), state[1])


def test_transforms_for_training_and_for_prediction():
    seen = {"training": 0, "prediction": 0}

    def counting(name):
        def prepare(picture):
            seen[name] += 1
            return as_tensor(picture)

        return prepare

    pair = counting("training"), counting("prediction")
    model = deep.SourceOnly(**LEAST, prepare=pair)
    model.adapt(Pictures(SOURCE, YS), None, Pictures(TARGET))
    assert seen["training"] == 2 * 3 * 8
    before = dict(seen)
    model.predict(Pictures(TARGET))
    assert seen["training"] == before["training"]
    assert seen["prediction"] >= before["prediction"] + len(TARGET)


def test_names_of_classes_and_pooled_sources():
    names = np.array(Folder.classes)[YS]
    parts = [Folder(SOURCE[::2], YS[::2]), Subset(Folder(SOURCE, YS), range(1, 36, 2))]
    whole = ConcatDataset(parts)
    settings = LEAST | {"prepare": as_tensor, "epochs": 6, "epoch_steps": 12}
    target = Pictures(TARGET)
    expected = deep.DDC(**settings).adapt(whole, None, target)
    assert expected.classes_.tolist() == sorted(Folder.classes)
    assert set(expected.predict(target)) <= set(Folder.classes)
    assert (expected.transduction_[:36] == np.r_[names[::2], names[1::2]]).mean() > 0.9
    listed = deep.DDC(**settings).adapt(parts, None, target)
    assert (listed.predict_proba(target) == expected.predict_proba(target)).all()
    arrays = deep.DDC(**LEAST).adapt([SOURCE[:18], SOURCE[18:]], [YS[:18], YS[18:]], TARGET)
    pooled = deep.DDC(**LEAST).adapt(SOURCE, YS, TARGET)
    assert (arrays.predict_proba(TARGET) == pooled.predict_proba(TARGET)).all()
    with pytest.raises(ValueError, match="list of 2 sources, so ys must be a list of as many"):
        deep.DDC(**LEAST).adapt([SOURCE[:18], SOURCE[18:]], [YS], TARGET)
    with pytest.raises(ValueError, match=r"ys\[1\] has shape \(3,\), but Xs\[1\] has 18 rows"):
        deep.DDC(**LEAST).adapt([SOURCE[:18], SOURCE[18:]], [YS[:18], YS[:3]], TARGET)


@pytest.mark.parametrize(
    ("source", "prepare", "told"),
    [
        (DataLoader(Pictures(SOURCE, YS)), as_tensor, r"pass its dataset \(loader.dataset\)"),
        (Pictures(SOURCE, YS), None, "gives pictures of pillow; pass what makes tensors"),
        (Pictures(SOURCE, YS), (as_tensor,), "prepare has 1 entries"),
        (Pictures(SOURCE[:0]), as_tensor, "a length and at least one row"),
        (Pictures(SOURCE), as_tensor, "rows without labels"),
        (Pictures(SOURCE, YS), uneven, "alike"),
        ("photos/source", as_tensor, r"'photos/source' was given for rows; pass .*ImageFolder"),
        (Endless(), as_tensor, "An IterableDataset was given for rows"),
    ],
)
def test_wrong_kinds_are_named(source, prepare, told):
    with pytest.raises((TypeError, ValueError), match=told):
        deep.DDC(**LEAST, prepare=prepare).adapt(source, None, Pictures(TARGET))


def test_patience_needs_a_score():
    with pytest.raises(ValueError, match=r'patience=2 waits .* scoring="info'):
        deep.DDC(**LEAST, patience=2).adapt(SOURCE, YS, TARGET)


def test_half_precision():
    settings = LEAST | {"network": own_network, "epoch_steps": 8}
    for method in (deep.DeepCORAL, deep.MCD, deep.ADDA):
        model = method(**settings, precision="bf16").adapt(SOURCE, YS, TARGET)
        single = method(**settings).adapt(SOURCE, YS, TARGET)
        p, q = model.predict_proba(TARGET), single.predict_proba(TARGET)
        assert p.dtype == np.float32
        assert (p != q).any()
        assert np.abs(p - q).mean() < 0.1
        assert next(model.network_.parameters()).dtype == torch.float32


def test_an_optimiser_and_a_schedule_of_ones_own(tmp_path):
    groups = []

    def rmsprop(given):
        groups.extend(given)
        return torch.optim.RMSprop(given, alpha=0.9)

    model = deep.DDC(
        **LEAST, optimizer=rmsprop, schedule=lambda t: 1.0 - t, backbone_rate=0.1,
        checkpoint=tmp_path / "fit",
    ).adapt(SOURCE, YS, TARGET)  # fmt: skip
    assert [group["rate_scale"] for group in groups] == [0.1, 1.0]
    assert [len(group["params"]) for group in groups] == [6, 2]
    assert [entry["learning_rate"] for entry in model.history_] == pytest.approx(
        [1e-3 * (1 - 2 / 6), 1e-3 * (1 - 5 / 6)]
    )
    still = deep.SourceOnly(**LEAST, backbone_rate=0.0, optimizer="adamw", weight_decay=0.0)
    still.adapt(SOURCE, YS, TARGET)
    torch.manual_seed(np.random.RandomState(0).randint(2**31 - 2))
    begun = deep.networks.lenet((3, 16, 16), 3)
    assert torch.equal(still.network_.features[0].weight, begun.features[0].weight)
    assert not torch.equal(still.network_.head[1].weight, begun.head[1].weight)


def test_a_callback_sees_every_epoch_and_ends_training():
    entries = []

    def stop(entry):
        entries.append(entry)
        return entry["epoch"] == 2

    model = deep.DeepTFDF(**LEAST | {"epochs": 5}, callback=stop).adapt(SOURCE, YS, TARGET)
    assert model.history_ == entries
    assert len(entries) == 2
    assert entries[0]["bytes"] > 10**7


@pytest.mark.parametrize("scoring", ["neighbors", "information", "agreement"])
def test_the_epoch_with_the_best_label_free_score_is_kept(scoring, tmp_path):
    settings = LEAST | {"epochs": 6, "learning_rate": 0.02, "schedule": "constant"}
    model = deep.MCC(**settings, scoring=scoring, warmup_epochs=1).adapt(SOURCE, YS, TARGET)
    scores = [entry.get("score", -np.inf) for entry in model.history_]
    assert scores[0] == -np.inf  # of the source alone
    assert len(scores) == 6
    best = len(scores) - 1 - int(np.argmax(scores[::-1]))
    stopped = deep.MCC(**settings, warmup_epochs=1, callback=lambda entry: entry["epoch"] > best)
    expected = stopped.adapt(SOURCE, YS, TARGET).predict_proba(TARGET)
    assert (model.predict_proba(TARGET) == expected).all()
    patient = deep.MCC(**settings, scoring=scoring, patience=1, warmup_epochs=1)
    path = tmp_path / "fit.safetensors"
    patient.set_params(checkpoint=path, augment=Noise(stop_after=10))
    with pytest.raises(KeyboardInterrupt):
        patient.adapt(SOURCE, YS, TARGET)
    entries = patient.set_params(augment=Noise()).adapt(SOURCE, YS, TARGET).history_
    scores = [entry["score"] for entry in entries[1:]]
    assert len(entries) == 6 or scores[-1] < max(scores)
