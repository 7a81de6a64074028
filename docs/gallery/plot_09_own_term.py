"""
Add a term to the objective
===========================

Some pictures are known to show the same object, for example as frames of one film. A term of the
objective gives linked rows similar scores, and TFDF minimises it with the others.
"""

# %%
# A term has a weight, a name for histories, and a form, the product of its matrix S with the
# scores. Here S is the Laplacian of the links, so that tr(F'SF) is the sum of squared differences.
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import laplacian

from transferable import TFDFV
from transferable._kernel.objective import Term
from transferable.datasets import load_printed_to_handwritten


class Links(Term):
    """Links between rows, given by their positions in the input."""

    name = "links"

    def __init__(self, pairs, domains, weight=1.0):
        place = np.argsort(domains.order)  # fits reorder the rows
        first, second = place[pairs].T
        n_rows = len(place)
        graph = csr_array((np.ones(len(first)), (first, second)), shape=(n_rows, n_rows))
        self.matrix, self.weight = csr_array(laplacian(graph + graph.T)), weight
        self.key = "links", pairs.tobytes()

    def form(self, F):
        """Return S F."""
        return self.matrix @ F


class LinkedTFDFV(TFDFV):
    """TFDF-V with an additional term."""

    def _objective(self, problem):
        objective = super()._objective(problem)
        links = Links(self.pairs, problem.domains)
        return replace(objective, fixed=[*objective.fixed, links])


# %%
# The links are made from true labels here: each joins two handwritten digits of one class.
task = load_printed_to_handwritten()
Xs, ys, Xt, yt = task.Xs[::3], task.ys[::3], task.Xt[::3], task.yt[::3]
rng = np.random.default_rng(0)
same = np.array([rng.choice(np.flatnonzero(yt == label)) for label in yt])
linked = np.column_stack([np.arange(len(yt)), same])[rng.permutation(len(yt))]
linked = linked[linked[:, 0] != linked[:, 1]]

counts = [0, 50, 100, 200, 400]
accuracy = []
for count in counts:
    model = TFDFV() if count == 0 else LinkedTFDFV()
    model.pairs = linked[:count] + len(Xs)  # target rows follow the source rows
    accuracy.append(model.adapt(Xs, ys, Xt).score(Xt, yt))

# %%
# Accuracy by the number of links.
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(counts, accuracy, "o-", color="#0072b2")
ax.set(xlabel="links between the 599 target rows", ylabel="target accuracy")
ax.set_title("Target accuracy by the number of links")
ax.grid(color="#e4e4e4")
