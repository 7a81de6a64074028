"""
Choose settings without target labels
=====================================

Each setting has a score that uses no target label. The labels only serve to draw the figure.
"""

# %%
# Eighteen settings of TFDF-V on a subset of the digits.
import matplotlib.pyplot as plt
import numpy as np

from transferable import TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.model_selection import LabelFreeSearch

task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[::7], task.ys[::7], task.Xt[::7], task.yt[::7]
settings = {"alignment": [0.1, 1.0, 10.0], "manifold": [0.1, 1.0, 10.0], "ridge": [0.01, 1.0]}
search = LabelFreeSearch(TFDFV(manifold_dim=20), settings, anchor=None).adapt(Xs, ys, Xt)
print("chosen:", search.best_params_)

# %%
# The recommended score is the sum of two ranks. Circular validation trains on the predicted target
# and measures the accuracy on the source. Neighbour consistency is the share of neighbours with one
# label.
accuracy = np.array(
    [
        TFDFV(manifold_dim=20, **params).adapt(Xs, ys, Xt).score(Xt, yt)
        for params in search.cv_results_["params"]
    ]
)
scores = {
    "circular": "circular validation",
    "neighbors": "neighbour consistency",
    "recommended": "both, by rank",
}
columns = {
    name: next(key for key in search.cv_results_ if key.endswith(f"_{name}"))
    for name in scores
    if any(key.endswith(f"_{name}") for key in search.cv_results_)
}
figure, axes = plt.subplots(
    *(1, len(columns)), figsize=(3.4 * len(columns), 3.3), sharey=True, layout="constrained"
)
for ax, (name, column) in zip(np.atleast_1d(axes), columns.items(), strict=True):
    values = np.asarray(search.cv_results_[column], dtype=float)
    ax.scatter(values, accuracy, color="#0072b2")
    best = search.best_index_
    ax.scatter(values[best], accuracy[best], s=130, facecolors="none", edgecolors="#d55e00")
    ax.set(xlabel=scores[name])
np.atleast_1d(axes)[0].set_ylabel("target accuracy")
figure.suptitle("Target accuracy of 18 settings against scores without target labels")
print(f"chosen {accuracy[search.best_index_]:.1%}, best {accuracy.max():.1%}")

# %%
# The ring marks the chosen setting. A score is useful if accuracy increases with it. No single
# score is useful on all tasks; the two fail on different ones.
