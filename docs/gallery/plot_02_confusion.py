"""
Compare confusion matrices
==========================

The confusion matrices of Fig. 1 of the TFDF paper, for the digits that come with the library.
"""

# %%
# Source: printed digits with labels. Target: handwritten digits without labels.
from sklearn.neighbors import KNeighborsClassifier

from transferable import MEDA, TFDF
from transferable.datasets import load_printed_to_handwritten
from transferable.plots import ConfusionDisplay

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
display = ConfusionDisplay.from_predictions(yt, predicted)

# %%
# Each row is a true class, each column a predicted one. A column that is dark from top to bottom is
# a class that attracts rows of other classes.
