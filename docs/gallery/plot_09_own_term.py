"""
Your own term in twenty lines
=============================

You know something that no method asks for: which pictures show the same thing, because they are
frames of one film. A term says that linked rows should get one label, and TFDF minimises it with
the rest.
"""

# %%
# A term has a weight, a name for histories, and a form: what its matrix S does to a table of
# scores. Here S is the Laplacian of the links, so that tr(F'SF) is the sum of squared differences.
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import laplacian

from transferable import TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.kernel.objective import Term


class Links(Term):
    """Rows, by their place in the input, that show the same thing."""

    name = "links"

    def __init__(self, pairs, domains, weight=1.0):
        place = np.argsort(domains.order)  # the library keeps rows in an order of its own
        first, second = place[pairs].T
        n_rows = len(place)
        graph = csr_array((np.ones(len(first)), (first, second)), shape=(n_rows, n_rows))
        self.matrix, self.weight = csr_array(laplacian(graph + graph.T)), weight
        self.key = "links", pairs.tobytes()

    def form(self, F):
        """Return S F."""
        return self.matrix @ F


class LinkedTFDFV(TFDFV):
    """TFDF-V with one term more."""

    def _objective(self, problem):
        objective = super()._objective(problem)
        links = Links(self.pairs, problem.domains)
        return replace(objective, fixed=[*objective.fixed, links])


# %%
# Links are made from true labels here, as a film would give them: each joins two handwritten digits
# of one kind.
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
    model.pairs = linked[:count] + len(Xs)  # target rows come after the source's
    accuracy.append(model.adapt(Xs, ys, Xt).score(Xt, yt))

# %%
# What the knowledge is worth.
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(counts, accuracy, "o-", color="#0072b2")
ax.set(xlabel="links between the 599 target rows", ylabel="target accuracy")
ax.grid(color="#e4e4e4")
