"""The figures of the families: one toy before adaptation and after, drawn for the site."""

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from transferable import TFDF, AutoAdapter
from transferable.classifiers import AdaptedClassifier, ImportanceWeighted, SelfTraining
from transferable.transformers import CORAL, TCA, OTMapping, SubspaceAlignment

COLOURS = ("#0072b2", "#d55e00", "#009e73")
ROWS = {"facecolors": "none", "linewidths": 0.8}


def domain(rng, turn, shift):
    """Return 150 rows of three classes, turned by an angle in degrees and moved."""
    y = np.arange(150) % 3
    centres = np.array([[-1.6, 0.0], [1.6, 0.0], [0.0, 2.2]])
    X = centres[y] + rng.normal(size=(150, 2)) @ [[0.65, 0.2], [0.1, 0.5]]
    cos, sin = np.cos(np.deg2rad(turn)), np.sin(np.deg2rad(turn))
    return X @ [[cos, sin], [-sin, cos]] + shift, y


_RNG = np.random.default_rng(0)
Xs, ys = domain(_RNG, 0, (0.0, 0.0))
Xt, yt = domain(_RNG, 25, (1.0, -0.3))
SVM = SVC(gamma=0.5).fit(Xs, ys)


def scatter(ax, source, target, size=14):
    """Draw source rows as circles and target rows as crosses, in the colours of their classes."""
    for label, colour in enumerate(COLOURS):
        own = size if np.isscalar(size) else size[ys == label]
        ax.scatter(*source[ys == label].T, s=own, edgecolors=colour, **ROWS)
        ax.scatter(*target[yt == label].T, s=18, marker="x", color=colour, linewidths=1.0)
    ax.set(xticks=[], yticks=[])


def regions(ax, title, model, size=14):
    """Draw the prediction for each place, and the rows."""
    rows = np.concatenate([Xs, Xt])
    low, high = rows.min(axis=0) - 0.4, rows.max(axis=0) + 0.4
    x, y = np.meshgrid(np.linspace(low[0], high[0], 160), np.linspace(low[1], high[1], 160))
    labels = model.predict(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    levels = [-0.5, 0.5, 1.5, 2.5]
    ax.contourf(x, y, labels, levels=levels, cmap=ListedColormap(COLOURS), alpha=0.22)
    scatter(ax, Xs, Xt, size)
    ax.set_title(f"{title}: {model.score(Xt, yt):.0%} of target rows")


def classifier(title, model):
    """Draw what a classifier predicts once it has adapted."""
    return lambda ax: regions(ax, title, model.adapt(Xs, ys, Xt))


def moved(title, transformer, inner=SVM):
    """Draw the transformed rows, and the accuracy of a classifier of the source on them."""

    def draw(ax):
        domain = np.repeat([1, -1], 150)
        y = np.r_[ys, np.full(150, -1)]
        Z = transformer.fit_transform(np.concatenate([Xs, Xt]), y, sample_domain=domain)
        scatter(ax, Z[:150], Z[150:])
        right = inner.fit(Z[:150], ys).score(Z[150:], yt)
        ax.set_title(f"{title}: {right:.0%} of target rows")
        return Z

    return draw


def transported(ax):
    """Draw the rows that transport moves, each with its way."""
    Z = moved("OTMapping, then the SVM", OTMapping(), SVC(gamma=0.5))(ax)
    for start, end in zip(Xs, Z[:150], strict=True):
        ax.plot(*np.array([start, end]).T, color="#999999", linewidth=0.4, zorder=0)


def weighted(ax):
    """Draw source rows as large as their weights."""
    model = ImportanceWeighted(LogisticRegression(), ratio="kliep").adapt(Xs, ys, Xt)
    regions(ax, "ImportanceWeighted", model, 14 * model.sample_weight_[:150])


AFTER = {
    "objective": classifier("TFDF", TFDF()),
    "components": moved(
        "TCA, then 1-NN", TCA(n_components=2, kernel="rbf", gamma=0.5), KNeighborsClassifier(1)
    ),
    "subspace": moved("SubspaceAlignment, then the SVM", SubspaceAlignment(2), SVC(gamma=0.5)),
    "moments": moved("CORAL, then the SVM", CORAL(), SVC(gamma=0.5)),
    "transport": transported,
    "weighting": weighted,
    "pseudo-labels": classifier("SelfTraining", SelfTraining(LogisticRegression())),
    "pool": classifier("AutoAdapter", AutoAdapter(effort="fast")),
    "parts": classifier("AdaptedClassifier(CORAL(), SVC())", AdaptedClassifier(CORAL(), SVC())),
}


def draw(family, path):
    """Save the figure of one family."""
    figure = Figure(figsize=(9, 3.7), layout="constrained")
    before, after = figure.subplots(1, 2)
    regions(before, "Source only, an SVM", SVM)
    AFTER[family](after)
    figure.savefig(path, dpi=110)
