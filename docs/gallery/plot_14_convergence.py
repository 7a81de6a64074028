"""
Convergence and sensitivity
===========================

How the objective falls from round to round, and how much depends on two of the parameters: Figs. 3
and 5 of the TFDF paper, for digits that come with the library.
"""

# %%
# Every risk classifier records its objective, its terms, and how many labels changed.
from transferable import TFDF, TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.plots import ConvergenceDisplay, SensitivityDisplay

task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[::7], task.ys[::7], task.Xt[::7], task.yt[::7]
model = TFDF().adapt(Xs, ys, Xt)
display = ConvergenceDisplay.from_estimator(model)

# %%
# Target labels draw these curves; they choose nothing.
display = SensitivityDisplay.from_estimator(
    TFDFV(manifold_dim=20),
    *(Xs, ys, Xt, yt),
    param_ranges={"alignment": [0.1, 1, 10, 100], "n_neighbors": [3, 5, 10, 20]},
)
