"""
Adapt from printed to handwritten digits
========================================

The digits that both models label correctly, those that only TFDF does, and those that neither does.
"""

# %%
# Source: 1,680 digits drawn from fonts. Target: 1,797 handwritten digits.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from transferable import TFDF
from transferable.datasets import load_printed_to_handwritten

task = load_printed_to_handwritten()
before = SVC().fit(task.Xs, task.ys).predict(task.Xt)
after = TFDF().adapt(task.Xs, task.ys, task.Xt).predict(task.Xt)
for name, labels in {"source alone": before, "TFDF": after}.items():
    print(f"{name:12} {np.mean(labels == task.yt):.1%} of the handwritten digits")

# %%
# For each class: two printed digits, one handwritten digit that both models label correctly, one
# that only TFDF labels correctly, and one that TFDF labels wrongly. Titles: prediction of the
# source-only model and of TFDF.
kinds = {
    "right before\nand after": (before == task.yt) & (after == task.yt),
    "right only\nafter": (before != task.yt) & (after == task.yt),
    "still wrong": (before != task.yt) & (after != task.yt),
}
figure, axes = plt.subplots(5, 10, figsize=(10, 6.2), layout="constrained")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.axis("off")
for digit in range(10):
    for row, source in enumerate(np.flatnonzero(task.ys == digit)[[0, 60]]):
        axes[row, digit].imshow(task.images.source[source], cmap="Greys")
    for row, chosen in enumerate(kinds.values(), start=2):
        found = np.flatnonzero(chosen & (task.yt == digit))
        if len(found):
            axes[row, digit].imshow(task.images.target[found[0]], cmap="Blues")
            labels = f"{before[found[0]]} → {after[found[0]]}"
            axes[row, digit].set_title(labels, fontsize=9, pad=2)
for row, name in enumerate(["printed", "printed", *kinds]):
    axes[row, 0].axis("on")
    axes[row, 0].spines[:].set_visible(False)
    axes[row, 0].set_ylabel(name, rotation=0, ha="right", va="center")
