"""
Adapt the features of a network
===============================

A network learns features from the source, and TFDF-V adapts on them. The network is trained once.
Needs torch, the extra ``deep``. :doc:`/deep` has measurements on large data.
"""

# %%
# Train a small network on printed digits alone.
import matplotlib.pyplot as plt
import numpy as np

from transferable import TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.deep import SourceOnly
from transferable.plots import DomainScatterDisplay

task = load_printed_to_handwritten()
Xs, Xt = task.Xs[::3] / 16, task.Xt[::3] / 16
ys, yt = task.ys[::3], task.yt[::3]
network = SourceOnly(network="mlp", epochs=15).adapt(Xs, ys, Xt)

# %%
# ``transform`` returns the features of the last hidden layer. Any method takes them.
domain = np.repeat([1, -1], [len(Xs), len(Xt)])
features = network.transform(np.concatenate([Xs, Xt]), domain)
Fs, Ft = features[domain > 0], features[domain < 0]
accuracy = {
    "network alone": network.score(Xt, yt),
    "TFDF-V on features": TFDFV().adapt(Fs, ys, Ft).score(Ft, yt),
    "TFDF-V on pixels": TFDFV().adapt(Xs, ys, Xt).score(Xt, yt),
}

# %%
# TFDF-V improves on the network. These digits have 64 pixels: a network learns little from them,
# and TFDF-V is better on the pixels.
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for at, (name, right) in enumerate(accuracy.items()):
    ax.bar(name, right, color=("#808080", "#009e73", "#0072b2")[at])
    ax.annotate(f"{right:.0%}", (at, right), ha="center", va="bottom")
ax.set(title="target accuracy", ylim=(0, 1.1))

# %%
# The rows as pixels and as features, by principal components.
display = DomainScatterDisplay.from_tables(
    {"pixels": np.concatenate([Xs, Xt]), "features of the network": features},
    domain,
    np.concatenate([ys, yt]),
)
