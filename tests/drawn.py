"""Drawn pictures: three shapes, dark on light paper and light on dark, and embedders of them."""

import copy
import sys
import types

import numpy as np
import pytest
from PIL import Image, ImageDraw

SHAPES = ("bar", "disc", "frame")


def draw(shape, rng, *, night):
    """A shape of any place and size on paper of one of two styles."""
    paper, ink = ((25, 30, 60), (190, 200, 160)) if night else ((235, 235, 225), (30, 30, 40))
    picture = Image.new("RGB", (48, 40), paper)
    pen = ImageDraw.Draw(picture)
    x, y, r = rng.integers(16, 28), rng.integers(16, 24), rng.integers(9, 14)
    box = [int(v) for v in (x - r, y - r, x + r, y + r)]
    if shape == "bar":
        pen.rectangle([box[0], int(y) - 3, box[2], int(y) + 3], fill=ink)
    elif shape == "disc":
        pen.ellipse(box, fill=ink)
    else:
        pen.rectangle(box, outline=ink, width=2)
    noise = rng.normal(scale=6, size=(40, 48, 3))
    return Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))


def embedder(pictures):
    """Contrast with the paper on a grid, in rows, columns and over all."""
    rows = []
    for picture in pictures:
        grey = np.asarray(picture.convert("L").resize((24, 20)), dtype=np.float64)
        ink = np.abs(grey - np.median(grey)) / 100
        spread = np.sort(ink.mean(axis=0)), np.sort(ink.mean(axis=1))
        rows.append(np.concatenate([*spread, [ink.mean(), (ink > 0.5).mean()]]))
    return np.array(rows)


def fill(folder):
    """Make folders `source`, of classes, and `target`, without."""
    rng = np.random.default_rng(0)
    for name in ("source", "target"):
        (folder / name).mkdir()
    for k, shape in enumerate(SHAPES * 12):
        (folder / "source" / shape).mkdir(exist_ok=True)
        draw(shape, rng, night=False).save(folder / "source" / shape / f"{k:02}.png")
        draw(shape, rng, night=True).save(folder / "target" / f"{k:02} {shape}.jpg")


def by_name(monkeypatch):
    """Let "torchvision:tiny" name a small network, and return it: its weights may change."""
    torch = pytest.importorskip("torch")
    body = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(3 * 36, 8), torch.nn.Linear(8, 4)
    )

    def prepare(picture):
        small = np.asarray(picture.resize((6, 6)), dtype=np.float32)
        return torch.tensor(np.abs(small / 255 - 0.5))

    weights = types.SimpleNamespace(DEFAULT=types.SimpleNamespace(transforms=lambda: prepare))
    module = types.ModuleType("torchvision")
    module.models = types.ModuleType("torchvision.models")
    module.models.get_model = lambda name, weights: copy.deepcopy(body)
    module.models.get_model_weights = lambda name: weights
    monkeypatch.setitem(sys.modules, "torchvision", module)
    monkeypatch.setitem(sys.modules, "torchvision.models", module.models)
    return body
