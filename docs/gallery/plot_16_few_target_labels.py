"""
Use a few target labels
=======================

One, three or five rows of each class of the target have labels. ``target_labels="use"`` takes them
as known; the default ignores them.
"""

# %%
# Source: printed digits. Target: handwritten digits, a few of each class with labels.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from transferable import MEDA, TFDFV
from transferable.datasets import load_printed_to_handwritten

task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[::7], task.ys[::7], task.Xt[::3], task.yt[::3]
X = np.concatenate([Xs, Xt])
domain = np.repeat([1, -1], [len(Xs), len(Xt)])


def labelled(count, seed):
    """Return the target rows that have a label, `count` of each digit."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(np.flatnonzero(yt == digit), count, replace=False) for digit in range(10)]
    return np.concatenate(drawn)


# %%
# Rows without a label are marked by -1. Accuracy: on the rows without a label, mean of two draws.
counts = [1, 3, 5]
methods = {"MEDA": MEDA(), "TFDF-V": TFDFV()}
without = {name: method.adapt(Xs, ys, Xt).predict(Xt) for name, method in methods.items()}
curves = {
    (name, way): np.zeros(len(counts)) for name in (*methods, "logistic regression") for way in "+-"
}
for seed in range(2):
    for at, count in enumerate(counts):
        known = labelled(count, seed)
        rest = np.setdiff1d(np.arange(len(yt)), known)
        marked = np.full(len(yt), -1)
        marked[known] = yt[known]
        y = np.concatenate([ys, marked])
        for name, method in methods.items():
            model = clone(method).set_params(target_labels="use").fit(X, y, sample_domain=domain)
            curves[name, "+"][at] += model.score(Xt[rest], yt[rest]) / 2
            curves[name, "-"][at] += np.mean(without[name][rest] == yt[rest]) / 2
        with_known = np.append(np.arange(len(Xs)), len(Xs) + known)
        for way, rows in (("+", with_known), ("-", slice(len(Xs)))):
            plain = LogisticRegression(max_iter=2000).fit(X[rows] / 16, y[rows])
            curves["logistic regression", way][at] += plain.score(Xt[rest] / 16, yt[rest]) / 2

# %%
# Solid: with the labels. Dotted: without.
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
colours = {"MEDA": "#0072b2", "TFDF-V": "#009e73", "logistic regression": "#808080"}
for (name, way), curve in curves.items():
    style = "o-" if way == "+" else ":"
    ax.plot(counts, curve, style, color=colours[name], label=name if way == "+" else None)
ax.set(xlabel="labelled target rows of each class", ylabel="accuracy", xticks=counts)
ax.set_title("Accuracy on the target rows without a label")
ax.grid(color="#e4e4e4")
ax.legend(frameon=False)

# %%
# Labels help logistic regression, which does not adapt, most; it remains below the methods that
# adapt.
