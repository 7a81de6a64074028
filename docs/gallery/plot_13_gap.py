"""
Measure the gap between two domains
===================================

Three measures of the gap before and after adaptation, over all rows and within each class.
"""

# %%
# TFDF-V classifies in a space in which the domains are more similar than in the features.
from transferable import TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.diagnostics import diagnose
from transferable.plots import DomainGapDisplay

task = load_printed_to_handwritten()
Xs, ys, Xt = task.Xs[::3], task.ys[::3], task.Xt[::3]

# %%
# ``diagnose`` tests whether the domains differ, and whether the source classes can be separated.
print(*diagnose(Xs, ys, Xt).lines, sep="\n")

# %%
# The classes of the target are predictions: a small gap within classes does not prove that the
# labels are correct.
model = TFDFV().adapt(Xs, ys, Xt)
display = DomainGapDisplay.from_estimator(model, Xs, ys, Xt)
