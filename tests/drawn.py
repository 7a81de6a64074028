"""Drawn pictures: three shapes, dark on light paper and light on dark, and an embedder of them."""

import numpy as np
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
