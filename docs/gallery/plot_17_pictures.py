"""
Label a folder of pictures
==========================

Source: a folder of shapes on light paper, one subfolder for each class. Target: a folder of shapes
on dark paper. Result: a table of files and labels. The embedder is a small function here; for
photographs name a network, see :doc:`/tutorial-pictures`. Needs pillow.
"""

# %%
# Draw the pictures of both folders.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw

from transferable.images import ImageClassifier, open_picture

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())


def draw(shape, paper, ink):
    """Return a shape at a random place, of a random size."""
    picture = Image.new("RGB", (48, 40), paper)
    pen = ImageDraw.Draw(picture)
    x, y, r = (int(v) for v in (rng.integers(16, 28), rng.integers(16, 24), rng.integers(9, 14)))
    if shape == "bar":
        pen.rectangle([x - r, y - 3, x + r, y + 3], fill=ink)
    elif shape == "disc":
        pen.ellipse([x - r, y - r, x + r, y + r], fill=ink)
    else:
        pen.rectangle([x - r, y - r, x + r, y + r], outline=ink, width=2)
    noise = rng.normal(scale=8, size=(40, 48, 3))
    return Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))


for k, shape in enumerate(["bar", "disc", "frame"] * 20):
    for place, colours in {
        f"light/{shape}": ((235, 235, 225), (30, 30, 40)),
        "dark": ((25, 30, 60), (190, 200, 160)),
    }.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        draw(shape, *colours).save(folder / place / f"{k:02} {shape}.png")

# %%
# The embedding of a picture: the distribution of its contrast with the paper.


def contrast(pictures):
    """Return the sorted contrasts of columns and rows."""
    rows = []
    for picture in pictures:
        grey = np.asarray(picture.convert("L").resize((24, 20)), dtype=float)
        ink = np.abs(grey - np.median(grey)) / 100
        rows.append(np.concatenate([np.sort(ink.mean(axis=0)), np.sort(ink.mean(axis=1))]))
    return np.array(rows)


model = ImageClassifier(contrast, cache=None).adapt(folder / "light", None, folder / "dark")
print(model.labels_.head())
truth = model.labels_.file.str.extract(r" (\w+)\.png")[0]
print(f"target accuracy {np.mean(model.labels_.prediction == truth):.1%}")

# %%
# The pictures with the least certain labels, which are the first to check.
least = model.labels_.sort_values("confidence").head(6)
figure, axes = plt.subplots(1, 6, figsize=(9, 2))
for axis, row in zip(axes, least.itertuples(), strict=True):
    axis.imshow(open_picture(folder / "dark" / row.file))
    axis.set_title(f"{row.prediction}\n{row.confidence:.0%}", fontsize=9)
    axis.axis("off")
figure.tight_layout()
