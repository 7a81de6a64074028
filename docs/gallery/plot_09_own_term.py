"""
Your own term in twenty lines
=============================

You know something that no method asks for: which pictures show the same thing, because they are
frames of one film. A term says that linked rows should get one label, and TFDF minimises it with
the rest.
"""

# %%
# A term declares a weight and what it knows. Bound to rows, it says what its matrix does to a table
# of scores: here the Laplacian of the links, so that tr(F'SF) is the sum of squared differences.
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import laplacian

from transferable import TFDFV
from transferable.datasets import load_printed_to_handwritten
from transferable.engines.risk.objective import Objective
from transferable.terms.base import FixedForm, FixedTerm


class LinkForm(FixedForm):
    """The sum of squared differences of scores over links."""

    def __init__(self, matrix, weight):
        self.matrix, self.weight, self.key = matrix, weight, ("links", matrix.data.tobytes())

    def apply(self, F):
        """S F."""
        return self.weight * (self.matrix @ F)


@dataclass(frozen=True)
class Links(FixedTerm):
    """Rows, by their place in the input, that show the same thing."""

    pairs: np.ndarray
    weight: float = 1.0
    name: ClassVar[str] = "links"

    def bind(self, rows):
        """The form over rows, which the library keeps in an order of its own."""
        n_rows = len(rows.domains.order)
        place = np.argsort(rows.domains.order)
        first, second = place[self.pairs].T
        graph = csr_array((np.ones(len(first)), (first, second)), shape=(n_rows, n_rows))
        return LinkForm(csr_array(laplacian(graph + graph.T)), self.weight)


class LinkedTFDFV(TFDFV):
    """TFDF-V with one entry more."""

    def _objective(self):
        start = super()._objective()
        return Objective(start.ridge, [*start.terms, Links(self.pairs)])


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
