"""
Several sources
===============

Three laboratories have labelled rows, and not all of them look like yours. Each source is aligned
with the target by itself and counts by how near it is.
"""

# %%
# Printed digits as they are, turned by 60 degrees, and mirrored; handwritten ones are unlabelled.
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
    "turned": rotate(upright, 60, axes=(1, 2), reshape=False, order=1),
    "mirrored": upright[:, :, ::-1],
}
tables = {name: shown.reshape(len(shown), 64) for name, shown in pictures.items()}

# %%
# Each by itself, all in one heap, and as three sources: a list of tables, and of labels.
accuracy = {name: TFDFV().adapt(table, labels, Xt).score(Xt, yt) for name, table in tables.items()}
heap = TFDFV().adapt(np.concatenate(list(tables.values())), np.tile(labels, 3), Xt)
several = TFDFV().adapt(list(tables.values()), [labels] * 3, Xt)
accuracy["one heap"] = heap.score(Xt, yt)
accuracy["three\nsources"] = several.score(Xt, yt)

# %%
# What each source counts was found without a target label: by how many target rows have their
# nearest row there.
figure, (left, middle, right) = plt.subplots(
    *(1, 3), figsize=(10, 3.4), layout="constrained", width_ratios=(1, 1.1, 2)
)
left.imshow(np.vstack([np.hstack(shown[10:14]) for shown in pictures.values()]), cmap="Greys")
left.set(xticks=[], yticks=[3.5, 11.5, 19.5], yticklabels=list(pictures))
middle.barh(list(pictures), several.source_weights_, color="#009e73")
middle.invert_yaxis()
middle.set(xlabel="weight of the source")
for at, (name, share) in enumerate(accuracy.items()):
    right.bar(name, share, color="#0072b2" if at == 4 else "#808080")
    right.annotate(f"{share:.0%}", (at, share), ha="center", va="bottom")
right.set(ylabel="target accuracy", ylim=(0, 1))

# %%
# Told apart, sources that mislead do less harm than in one heap, and the nearest by itself is
# better still: if you know which that is, take it.
