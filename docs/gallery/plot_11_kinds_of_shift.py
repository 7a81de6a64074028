"""
Compare four kinds of shift
===========================

Domains differ in different ways, and no method suits all of them. ``make_shifted`` makes data that
differ in one known way.
"""

# %%
# Circles: source rows. Crosses: target rows. Colours: classes.
import matplotlib.pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

from transferable import TFDF
from transferable.datasets import make_shifted

COLOURS = ("#0072b2", "#d55e00", "#009e73")
shifts = ("covariate", "label", "concept", "subspace")
tasks = {
    shift: make_shifted(shift, n_classes=3, strength=1.5, noise=0.5, random_state=1)
    for shift in shifts
}

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharex=True, sharey=True, layout="constrained")
for ax, (shift, task) in zip(axes, tasks.items(), strict=True):
    for label, colour in enumerate(COLOURS):
        own = task.Xs[task.ys == label]
        ax.scatter(*own.T, s=10, facecolors="none", edgecolors=colour, linewidths=0.7)
        ax.scatter(*task.Xt[task.yt == label].T, s=12, marker="x", color=colour, linewidths=0.8)
    ax.set(title=shift, xlim=(-4, 4), ylim=(-4, 4))

# %%
# Accuracy of the nearest neighbour in the source, and of TFDF. Under covariate and label shift the
# classes stay where they are, and a model of the source alone is sufficient. Under concept shift
# the rows are distributed as before, and nothing can be learnt without target labels.
for shift, task in tasks.items():
    alone = KNeighborsClassifier(1).fit(task.Xs, task.ys).score(task.Xt, task.yt)
    adapted = TFDF().adapt(task.Xs, task.ys, task.Xt).score(task.Xt, task.yt)
    print(f"{shift:10}  source alone {alone:.0%}  TFDF {adapted:.0%}")
