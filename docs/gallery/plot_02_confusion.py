"""
Compare confusion matrices
==========================

The confusion matrices of Fig. 1 of the TFDF paper, for the digits that come with the library.
"""

# %%
# Source: printed digits with labels. Target: handwritten digits without labels.
import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.neighbors import KNeighborsClassifier

from transferable import MEDA, TFDF
from transferable.datasets import load_printed_to_handwritten

task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[::3], task.ys[::3], task.Xt[::3], task.yt[::3]

# %%
# A model of the source alone, MEDA, and TFDF. TFDF adds class confusion to the objective of MEDA: a
# penalty for rows that score high for two classes.
predicted = {
    "1-NN, source alone": KNeighborsClassifier(1).fit(Xs, ys).predict(Xt),
    "MEDA": MEDA().adapt(Xs, ys, Xt).predict(Xt),
    "TFDF": TFDF().adapt(Xs, ys, Xt).predict(Xt),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 4.4), sharey=True, layout="constrained")
for ax, (name, labels) in zip(axes, predicted.items(), strict=True):
    ConfusionMatrixDisplay.from_predictions(
        yt,
        labels,
        normalize="true",
        values_format=".0%",
        cmap="Blues",
        colorbar=False,
        ax=ax,
        text_kw={"fontsize": 6},
    )
    ax.set_title(f"{name}: {(labels == yt).mean():.1%}")
    ax.label_outer()

# %%
# Each row is a true class, each column a predicted one. A column that is dark from top to bottom is
# a class that attracts rows of other classes.
