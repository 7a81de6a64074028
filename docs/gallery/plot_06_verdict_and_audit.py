"""
A verdict, and an audit of thirty rows
======================================

:class:`~transferable.AutoAdapter` labels handwritten digits by printed ones and judges the labels
without any true one. Thirty rows that a person labels then measure the accuracy, and improve the
other labels. In a notebook, each value below shows itself.
"""

import matplotlib.pyplot as plt

from transferable import AutoAdapter
from transferable.datasets import load_printed_to_handwritten

task = load_printed_to_handwritten()
Xt, yt = task.Xt[::3], task.yt[::3]
model = AutoAdapter(effort="fast").adapt(task.Xs, task.ys, Xt)
model.trust_

# %%
# The labels, with what is known of each.

model.labels_.head()

# %%
# An audit: rows to label, and what their labels show. Here the truth is known.

rows, weights = model.audit_rows(30)
result = model.audit(rows, yt[rows])
result

# %%
# The corrected model carries the measured accuracy.

result.model.trust_

# %%
# The intervals before and after the audit, and the accuracy by all true labels, which neither has
# seen.

figure, ax = plt.subplots(figsize=(6.5, 1.8), layout="constrained")
for height, (name, fitted) in enumerate({"audited": result.model, "estimated": model}.items()):
    trust = fitted.trust_
    ax.plot([trust.low, trust.high], [height, height], lw=6, color="#0072b2", alpha=0.5)
    ax.plot(fitted.score(Xt, yt), height, "o", color="#d55e00")
    ax.annotate(name, (0.02, height), va="center")
ax.set(xlim=(0, 1), ylim=(-0.6, 1.6), yticks=[], xlabel="accuracy", title="intervals and truth")

# %%
# The class prior of the target.

result.model.class_shares_.to_frame().round(3)
