"""
Which classes are taken for which
=================================

The confusion matrices of Fig. 1 of the TFDF paper, for digits that come with the library.
"""

# %%
# Printed digits are labelled, handwritten ones are not.
from sklearn.neighbors import KNeighborsClassifier

from transferable import MEDA, TFDF
from transferable.datasets import load_printed_to_handwritten
from transferable.plots import ConfusionDisplay

task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[::3], task.ys[::3], task.Xt[::3], task.yt[::3]

# %%
# A model of the source alone, MEDA, and TFDF, which adds to MEDA's objective that no row should
# score high for two classes at once.
predicted = {
    "1-NN, source alone": KNeighborsClassifier(1).fit(Xs, ys).predict(Xt),
    "MEDA": MEDA().adapt(Xs, ys, Xt).predict(Xt),
    "TFDF": TFDF().adapt(Xs, ys, Xt).predict(Xt),
}
display = ConfusionDisplay.from_predictions(yt, predicted)

# %%
# Read a row from left to right: of the digits that are an 8, how many are taken for what? A column
# that is dark from top to bottom is a class that swallows others, the first thing to look for.
