"""
Plot convergence and sensitivity
================================

The objective in each round, and the accuracy as a function of two parameters: Figs. 3 and 5 of the
TFDF paper, for the digits that come with the library.
"""

# %%
# Kernel classifiers record the objective, its terms and the share of labels that changed.
from transferable import TFDF, TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.plots import ConvergenceDisplay, SensitivityDisplay

task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[::7], task.ys[::7], task.Xt[::7], task.yt[::7]
model = TFDF().adapt(Xs, ys, Xt)
display = ConvergenceDisplay.from_estimator(model)

# %%
# Target labels serve to draw these curves, and choose nothing.
display = SensitivityDisplay.from_estimator(
    TFDFV(manifold_dim=20),
    *(Xs, ys, Xt, yt),
    param_ranges={"alignment": [0.1, 1, 10, 100], "n_neighbors": [3, 5, 10, 20]},
)
