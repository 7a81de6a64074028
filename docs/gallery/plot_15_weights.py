"""
Weight source rows under covariate shift
========================================

The same rule from features to labels holds in both domains; only the distribution of the rows
differs. Source rows are weighted by the density ratio of the target to the source.
"""

# %%
# The class is 1 above a curve. Most source rows are on the left, most target rows on the right.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from transferable.classifiers import ImportanceWeighted

rng = np.random.default_rng(0)


def rows(centre, n_rows=300):
    """Return rows around a centre, labelled by one rule."""
    X = rng.normal(loc=centre, scale=(1.1, 0.8), size=(n_rows, 2))
    return X, (X[:, 1] > np.sin(1.3 * X[:, 0])).astype(int)


(Xs, ys), (Xt, yt) = rows((-0.6, 0.0)), rows((1.4, 0.6))

# %%
# A straight line cannot follow the curve everywhere. Weights make it fit where the target is.
plain = LogisticRegression().fit(Xs, ys)
weighted = ImportanceWeighted(LogisticRegression(), ratio="kliep").adapt(Xs, ys, Xt)
weights = weighted.sample_weight_[: len(Xs)]
print(f"effective sample size: {weighted.effective_sample_size_:.0f} of {len(Xs)} source rows")

figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), sharey=True, layout="constrained")
bend = np.linspace(-4, 5, 200)
for ax, name, model, size in (
    (axes[0], "equal weights", plain, np.ones(len(Xs))),
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
# Circles: source rows, sized by weight. Crosses: target rows. Weights reduce the effective sample
# size; if it is too small, the fit warns, and alignment is the better choice.
