"""
Weights instead of alignment
============================

The domains share one rule from rows to labels, and differ only in which rows are frequent. Then
nothing has to be aligned: source rows that look like target rows count more.
"""

# %%
# The class is 1 inside a band that bends. The source lies mostly left, the target right.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from transferable.classifiers import ImportanceWeighted

rng = np.random.default_rng(0)


def rows(centre, n_rows=300):
    """Make rows around a centre, labelled by one rule."""
    X = rng.normal(loc=centre, scale=(1.1, 0.8), size=(n_rows, 2))
    return X, (X[:, 1] > np.sin(1.3 * X[:, 0])).astype(int)


(Xs, ys), (Xt, yt) = rows((-0.6, 0.0)), rows((1.4, 0.6))

# %%
# A straight line cannot follow the rule everywhere; weights say where it matters.
plain = LogisticRegression().fit(Xs, ys)
weighted = ImportanceWeighted(LogisticRegression(), ratio="kliep").adapt(Xs, ys, Xt)
weights = weighted.sample_weight_[: len(Xs)]
print(f"{weighted.effective_sample_size_:.0f} of {len(Xs)} source rows' worth of information")

figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), sharey=True, layout="constrained")
bend = np.linspace(-4, 5, 200)
for ax, name, model, size in (
    (axes[0], "all rows alike", plain, np.ones(len(Xs))),
    (axes[1], "weighted", weighted, weights),
):
    for label, colour in enumerate(("#0072b2", "#d55e00")):
        ax.scatter(
            *Xs[ys == label].T, s=12 * size[ys == label], facecolors="none", edgecolors=colour
        )
        ax.scatter(*Xt[yt == label].T, s=12, marker="x", color=colour, linewidths=0.8)
    inner = getattr(model, "estimator_", model)
    slope, level = inner.coef_[0], inner.intercept_[0]
    ax.plot(bend, -(level + slope[0] * bend) / slope[1], color="#222222", label="learnt")
    ax.plot(bend, np.sin(1.3 * bend), color="#222222", linestyle=":", label="true")
    ax.set(title=f"{name}: {np.mean(model.predict(Xt) == yt):.0%}", xlim=(-4, 5), ylim=(-2.6, 3.2))
axes[0].legend(frameon=False)

# %%
# Circles are the source, as large as they count; crosses the target. Weights cost information: if
# few rows carry all of it, a warning says so, and aligning is the better way.
