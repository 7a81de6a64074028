"""
Estimate accuracy without target labels
=======================================

``estimate_accuracy`` estimates the accuracy on a target without labels. Here the labels are known,
and the estimate is compared with the true accuracy.
"""

# %%
# Tasks of increasing difficulty: rotated digits, and printed ones.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import rotate

from transferable import TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.model_selection import estimate_accuracy

task = load_printed_to_handwritten()
source, target = task.images.target[:400], task.images.target[400:800]


def turned(degrees):
    """Return handwritten digits as source, and others, rotated, as target."""
    pictures = rotate(target, degrees, axes=(1, 2), reshape=False, order=1)
    return source.reshape(400, 64), task.yt[:400], pictures.reshape(400, 64), task.yt[400:800]


tasks = {f"rotated {degrees}°": turned(degrees) for degrees in (0, 20, 40, 60, 90)}
tasks["printed to written"] = (task.Xs[::3], task.ys[::3], task.Xt[:400], task.yt[:400])
tasks["written to printed"] = (task.Xt[:400], task.yt[:400], task.Xs[::3], task.ys[::3])

# %%
# The estimate combines three agreements: of models trained on halves of the source, of other
# methods, and of neighbouring rows. Confidence is the mean of the highest probability of each row.
records = {}
for name, (Xs, ys, Xt, yt) in tasks.items():
    model = TFDFV().adapt(Xs, ys, Xt)
    records[name] = model.score(Xt, yt), estimate_accuracy(model, Xt, Xs, ys)

# %%
# Diagonal: estimate equal to the true accuracy. Bars: interval of the estimate.
figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
ax.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
for at, (name, (truth, estimate)) in enumerate(records.items()):
    error = [[estimate.accuracy - estimate.low], [estimate.high - estimate.accuracy]]
    ax.errorbar(truth, estimate.accuracy, yerr=error, fmt="o", color=f"C{at}", label=name)
    ax.scatter(truth, estimate.methods["confidence"], marker="x", color=f"C{at}")
ax.set(xlabel="true accuracy", ylabel="estimate", xlim=(0, 1.02), ylim=(0, 1.02))
ax.set_title("Estimated and true accuracy of seven tasks")
ax.legend(loc="lower right", frameon=False, fontsize=9, title="● estimate   × confidence")

# %%
# Up to 20 degrees the estimate is close to the true accuracy. From 40 degrees on, the methods make
# the same errors, the estimate is too high, and its interval does not cover the true accuracy. An
# audit with thirty labelled target rows is more reliable.
for name, (truth, estimate) in records.items():
    print(f"{name:20} true {truth:4.0%}   estimated {estimate}")
print("errors:", np.round([e.accuracy - t for t, e in records.values()], 2))
