"""Reproducing figures: convergence and sensitivity, as Figs. 3 and 5 of the TFDF paper.

The paper's own figures need its datasets and come from the command line,
`transferable reproduce fig-convergence fig-sensitivity`. Here the same pictures are drawn for
printed to handwritten digits, which needs no download.
"""

# %% The task, and three methods of the paper's figure.
import numpy as np

from transferable import ARTL, MEDA, TFDF
from transferable.datasets import load_printed_to_handwritten
from transferable.plots import ConfusionDisplay, ConvergenceDisplay, SensitivityDisplay

task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[:560], task.ys[:560], task.Xt[:600], task.yt[:600]
models = {type(m).__name__: m.adapt(Xs, ys, Xt) for m in (ARTL(), MEDA(), TFDF())}

# %% How the objective and its terms fall from round to round.
ConvergenceDisplay.from_estimator(models["TFDF"]).figure_.savefig("convergence.png", dpi=150)
for name, model in models.items():
    print(f"{name}: {model.n_iter_} rounds, {np.mean(model.predict(Xt) == yt):.1%} correct")

# %% Which digits each method takes for which, as in Fig. 1.
predicted = {name: model.predict(Xt) for name, model in models.items()}
ConfusionDisplay.from_predictions(yt, predicted).figure_.savefig("confusion.png", dpi=150)

# %% How much depends on two of the parameters. Target labels draw the curves; they choose nothing.
display = SensitivityDisplay.from_estimator(
    TFDF(manifold_dim=20),
    *(Xs, ys, Xt, yt),
    param_ranges={"alignment": [0.1, 1, 10, 100], "n_neighbors": [3, 5, 10, 20]},
)
display.figure_.savefig("sensitivity.png", dpi=150)
