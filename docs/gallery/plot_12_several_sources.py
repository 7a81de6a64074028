"""
Learn from several sources
==========================

Three sources have labelled rows, and not all are similar to the target. Each source is aligned with
the target separately and weighted by its similarity.
"""

# %%
# Sources: printed digits, the same rotated by 60 degrees, and mirrored. Target: handwritten digits.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import rotate

from transferable import TFDFV
from transferable.datasets import load_printed_to_handwritten

task = load_printed_to_handwritten()
Xt, yt = task.Xt[::3], task.yt[::3]
upright, labels = task.images.source[::7], task.ys[::7]
pictures = {
    "upright": upright,
    "rotated": rotate(upright, 60, axes=(1, 2), reshape=False, order=1),
    "mirrored": upright[:, :, ::-1],
}
tables = {name: shown.reshape(len(shown), 64) for name, shown in pictures.items()}

# %%
# Each source alone, all pooled as one, and as three sources: a list of arrays, and one of labels.
accuracy = {name: TFDFV().adapt(table, labels, Xt).score(Xt, yt) for name, table in tables.items()}
pooled = TFDFV().adapt(np.concatenate(list(tables.values())), np.tile(labels, 3), Xt)
several = TFDFV().adapt(list(tables.values()), [labels] * 3, Xt)
accuracy["pooled"] = pooled.score(Xt, yt)
accuracy["three\nsources"] = several.score(Xt, yt)

# %%
# The weight of a source is the squared share of target rows whose nearest row is in it. It uses no
# target label.
figure, (left, middle, right) = plt.subplots(
    *(1, 3), figsize=(10, 3.4), layout="constrained", width_ratios=(1, 1.1, 2)
)
left.imshow(np.vstack([np.hstack(shown[10:14]) for shown in pictures.values()]), cmap="Greys")
left.set(xticks=[], yticks=[3.5, 11.5, 19.5], yticklabels=list(pictures), title="sources")
middle.barh(list(pictures), several.source_weights_, color="#009e73")
middle.invert_yaxis()
middle.set(title="weight of each source")
for at, (name, share) in enumerate(accuracy.items()):
    right.bar(name, share, color="#0072b2" if at == 4 else "#808080")
    right.annotate(f"{share:.0%}", (at, share), ha="center", va="bottom")
right.set(title="target accuracy", ylim=(0, 1))

# %%
# As separate sources, dissimilar ones do less harm than in the pooled data. The most similar source
# alone is better still; if it is known, use it alone.
