"""
Plot convergence and sensitivity
================================

The objective in each round, and the accuracy as a function of two parameters: Figs. 3 and 5 of the
TFDF paper, for the digits that come with the library.
"""

# %%
# Kernel classifiers record the objective, its terms and the share of labels that changed.
import matplotlib.pyplot as plt
import pandas as pd

from transferable import TFDF, TFDFV
from transferable.datasets import load_printed_to_handwritten

task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[::7], task.ys[::7], task.Xt[::7], task.yt[::7]
model = TFDF().adapt(Xs, ys, Xt)
history = pd.DataFrame(model.history_)
figure, axes = plt.subplots(3, 3, figsize=(10, 6), sharex=True, layout="constrained")
figure.suptitle("The objective of TFDF by round")
history.plot(subplots=True, ax=axes, marker="o", markersize=3, xlabel="round")

# %%
# Target labels serve to draw these curves, and choose nothing.
grid = {"alignment": [0.1, 1, 10, 100], "n_neighbors": [3, 5, 10, 20]}
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, grid.items(), strict=True):
    models = [TFDFV(manifold_dim=20, **{name: value}).adapt(Xs, ys, Xt) for value in values]
    accuracies = [100 * (model.predict(Xt) == yt).mean() for model in models]
    ax.plot([str(value) for value in values], accuracies, "o-")
    ax.set_xlabel(name)
figure.suptitle("Accuracy by alignment and by number of neighbors")
axes[0].set_ylabel("accuracy on the target (%)")
