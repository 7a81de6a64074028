"""
How far apart are two domains?
==============================

Three measures of the gap before adaptation and after, over all rows and within each class.
"""

# %%
# TFDF-V maps rows into a space of its own before it decides; there the domains should be closer.
from transferable import TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.diagnostics import diagnose
from transferable.plots import DomainGapDisplay

task = load_printed_to_handwritten()
Xs, ys, Xt = task.Xs[::3], task.ys[::3], task.Xt[::3]

# %%
# Whether the domains differ beyond chance, and whether the source can be learnt.
print(*diagnose(Xs, ys, Xt).lines, sep="\n")

# %%
# The gap by its measures. Target classes are predicted: a small gap within classes is no proof that
# labels are right.
model = TFDFV().adapt(Xs, ys, Xt)
display = DomainGapDisplay.from_estimator(model, Xs, ys, Xt)
