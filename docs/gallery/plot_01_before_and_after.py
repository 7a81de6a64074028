"""
What adaptation does
====================

Where a classifier draws the line between two classes before it has seen the target, and where six
methods draw it after.
"""

# %%
# Two classes form two moons. The target's are turned by 45 degrees, and nobody has labelled them.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from transferable import MEDA, TFDF
from transferable.classifiers import AdaptedClassifier, LabelPropagation
from transferable.transformers import CORAL, JDA, LandmarkFeatures, OTMapping

Xs, ys = make_moons(200, noise=0.08, random_state=0)
Xt, yt = make_moons(200, noise=0.08, random_state=1)
turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
Xt = (Xt - Xt.mean(axis=0)) @ turn.T + Xt.mean(axis=0)

# %%
# These methods compare rows by angle, and two numbers are little to compare: kernel features of
# landmark rows say where a row lies. CORAL and optimal transport move the points themselves.
svm = SVC(gamma=2.0, C=10.0)


def on_features(method):
    """Let a method work on kernel features."""
    return AdaptedClassifier(LandmarkFeatures(n_landmarks=100, gamma=1.0), method)


models = {
    "TFDF": on_features(TFDF(manifold_dim=None)),
    "MEDA": on_features(MEDA(manifold_dim=None)),
    "LabelPropagation": on_features(LabelPropagation()),
    "JDA": AdaptedClassifier(JDA(n_components=5, kernel="rbf", gamma=1.0)),
    "CORAL": AdaptedClassifier(CORAL(), svm),
    "OTMapping": AdaptedClassifier(OTMapping(), svm),
}
for model in models.values():
    model.adapt(Xs, ys, Xt)

# %%
# Circles are the labelled source, crosses the target in the colour of its true class, which no
# model has seen. The ground shows what each model says of new target rows.
BLUE, ORANGE = "#0072b2", "#d55e00"
rows = np.concatenate([Xs, Xt])
low, high = rows.min(axis=0) - 0.3, rows.max(axis=0) + 0.3
x, y = np.meshgrid(np.linspace(low[0], high[0], 110), np.linspace(low[1], high[1], 110))
grid = np.column_stack([x.ravel(), y.ravel()])


def draw(ax, name, model):
    """Draw regions and rows, and tell the share of target rows that are right."""
    ax.contourf(
        *(x, y, model.predict(grid).reshape(x.shape)),
        levels=[-0.5, 0.5, 1.5],
        cmap=ListedColormap([BLUE, ORANGE]),
        alpha=0.25,
    )
    for label, colour in enumerate((BLUE, ORANGE)):
        ax.scatter(*Xs[ys == label].T, s=14, facecolors="none", edgecolors=colour, linewidths=0.7)
        ax.scatter(*Xt[yt == label].T, s=16, marker="x", color=colour, linewidths=1.0)
    ax.set(title=f"{name}: {np.mean(model.predict(Xt) == yt):.0%}", xticks=[], yticks=[])


figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
draw(axes[0], "before: source alone", svm.fit(Xs, ys))
draw(axes[1], "after: TFDF", models["TFDF"])

# %%
# Six ways to the same end. What they share is that the line follows the crosses.
figure, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    draw(ax, name, model)
