"""
Compare decision boundaries before and after adaptation
=======================================================

Two moons in the source, the same moons rotated in the target: the decision regions of a classifier
of the source alone, and of six methods that adapt.
"""

# %%
# The target moons are rotated by 45 degrees. They have no labels in training.
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
# Kernel methods of this library compare rows by angle, which two features do not determine well.
# Kernel features of landmark rows describe the position instead. CORAL and optimal transport move
# the rows.
svm = SVC(gamma=2.0, C=10.0)


def on_features(method):
    """Return a method that works on kernel features."""
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
# Circles: source rows. Crosses: target rows in the colour of their true class, which no model sees.
# Background: prediction for target rows. Titles: accuracy on the target.
BLUE, ORANGE = "#0072b2", "#d55e00"
rows = np.concatenate([Xs, Xt])
low, high = rows.min(axis=0) - 0.3, rows.max(axis=0) + 0.3
x, y = np.meshgrid(np.linspace(low[0], high[0], 110), np.linspace(low[1], high[1], 110))
grid = np.column_stack([x.ravel(), y.ravel()])


def draw(ax, name, model):
    """Draw the decision regions, the rows and the accuracy on the target."""
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
# Six methods. In each, the boundary follows the target rows.
figure, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    draw(ax, name, model)
