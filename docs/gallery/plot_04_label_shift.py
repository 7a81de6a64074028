"""
Handle label shift
==================

The target lacks half of the classes. Alignment that assumes the class prior of the source moves
rows of the remaining classes into the missing ones.
"""

# %%
# Source: printed digits of all ten classes. Target: handwritten digits of the classes 0 to 4.
import matplotlib.pyplot as plt
import numpy as np

from transferable import TFDF
from transferable.datasets import load_printed_to_handwritten

task = load_printed_to_handwritten()
Xs, ys = task.Xs[::3], task.ys[::3]
left = task.yt < 5
Xt, yt = task.Xt[left], task.yt[left]

# %%
# Three class priors for the target: that of the source, as published methods assume; an estimate,
# which is the default; and a known prior, for example from a census.
known = {digit: float(np.mean(yt == digit)) for digit in range(10)}
models = {
    "source": TFDF(class_shares="source"),
    "auto": TFDF(class_shares="auto"),
    "known": TFDF(class_shares=known),
}
for model in models.values():
    model.adapt(Xs, ys, Xt)

# %%
# Left: share of the target rows that each model assigns to each class. Right: accuracy.
figure, (shares, accuracy) = plt.subplots(
    *(1, 2), figsize=(9.5, 3.4), layout="constrained", width_ratios=(2.2, 1)
)
colours = dict(zip(models, ("#808080", "#0072b2", "#009e73"), strict=True))
for at, (name, model) in enumerate(models.items()):
    predicted = model.predict(Xt)
    counts = np.array([np.mean(predicted == digit) for digit in range(10)])
    shares.bar(np.arange(10) + 0.25 * (at - 1), counts, 0.25, color=colours[name], label=name)
    right = np.mean(predicted == yt)
    accuracy.bar(name, right, color=colours[name])
    accuracy.annotate(f"{right:.0%}", (at, right), ha="center", va="bottom")
shares.step(
    np.arange(-0.5, 10), [*known.values(), 0.0], where="post", color="#222222", label="true"
)
shares.set(xlabel="digit", xticks=range(10), title="class prior of the target")
shares.legend(title="class_shares", frameon=False)
accuracy.set(ylim=(0, 1.08), title="accuracy")
