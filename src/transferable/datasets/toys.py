"""Two small domains that differ in one known way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.utils import Bunch

Shift = Literal["covariate", "label", "concept", "subspace"]
Shape = Literal["gaussians", "moons"]
Rows = NDArray[np.float64]
Codes = NDArray[np.intp]

_RADIUS = 2.0  # of the circle that the centres of classes lie on
_OWN = 0.7  # of the opinions in a review, that are of its domain alone
_MEANT = 0.95  # of the opinions, that are those of the rating
_POOL = 10  # rows that are drawn for each that covariate shift selects
_TURN = np.pi / 6  # by a shift of strength 1


def make_shifted(
    shift: Shift = "subspace",
    *,
    shape: Shape = "gaussians",
    n_source: int = 200,
    n_target: int = 200,
    n_features: int = 2,
    n_classes: int = 2,
    strength: float = 1.0,
    noise: float | None = None,
    class_shares: Sequence[float] | None = None,
    target_shares: Sequence[float] | None = None,
    random_state: int = 0,
) -> Bunch:
    """Make a labelled source and a target that is shifted in one way.

    Parameters
    ----------
    shift : {"covariate", "label", "concept", "subspace"}, default="subspace"
        Kind of shift. "covariate": the frequency of rows, with the labels of the source. "label":
        the class prior, with the source's rows of each class. "concept": the rule that labels rows
        is rotated, with the rows of the source; no method can detect it without target labels.
        "subspace": all rows are rotated together, out of the plane of the classes if there are
        further features.
    shape : {"gaussians", "moons"}, default="gaussians"
        Classes round centres on a circle, or two interleaved half circles, in the first two
        features. Further features are noise.
    n_source, n_target : int, default=200
        Rows of each domain.
    n_features : int, default=2
        Features, two at least.
    n_classes : int, default=2
        Classes; moons are two.
    strength : float, default=1.0
        Strength of the shift; 0 is none. "concept" and "subspace" rotate by 30 degrees times this.
    noise : float or None, default=None
        Standard deviation of rows about centre or moon; None is 0.7 for Gaussians, 0.1 for moons.
    class_shares : sequence of float or None, default=None
        Class prior of the source; None is uniform. "covariate" selects rows afterwards.
    target_shares : sequence of float or None, default=None
        Class prior of the target; None is the source's, which "label" tilts towards the first
        class. With "concept" the rule has precedence.
    random_state : int, default=0
        Seed: the same number gives the same rows.

    Returns
    -------
    Bunch
        As :meth:`DomainCollection.task` returns: `Xs`, `ys`, `Xt`, `yt` (for scoring only), `name`
        and `target_names`.

    Raises
    ------
    ValueError
        If a parameter is out of range, or shares do not match the classes.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from transferable import TFDF
    >>> from transferable.datasets import make_shifted
    >>> task = make_shifted("subspace", n_classes=4, n_features=6, strength=1.5)
    >>> alone = KNeighborsClassifier(1).fit(task.Xs, task.ys).score(task.Xt, task.yt)
    >>> adapted = TFDF().adapt(task.Xs, task.ys, task.Xt).score(task.Xt, task.yt)
    >>> alone < 0.75 < 0.9 < adapted
    True
    """
    for name, word, known in (("shift", shift, get_args(Shift)), ("shape", shape, get_args(Shape))):
        if word not in known:
            raise ValueError(f"{name}={word!r} is unknown; choose from {', '.join(known)}.")
    sizes = {
        "n_source": (n_source, 1),
        "n_target": (n_target, 1),
        "n_features": (n_features, 2),
        "n_classes": (n_classes, 2),
        "strength": (strength, 0),
        "noise": (0 if noise is None else noise, 0),
    }
    for name, (value, least) in sizes.items():
        if not value >= least:
            raise ValueError(f"{name}={value} is too little; give {least} or more.")
    if shape == "moons" and n_classes != 2:
        raise ValueError(f"Moons are two classes, not n_classes={n_classes}; take Gaussians.")
    tilt = strength * np.linspace(1.0, -1.0, n_classes) if shift == "label" else 0.0
    source_shares = _shares(class_shares, n_classes, "class_shares")
    shares = source_shares * np.exp(tilt)
    shares /= shares.sum()
    if target_shares is not None:
        shares = _shares(target_shares, n_classes, "target_shares")
    scale = (0.7 if shape == "gaussians" else 0.1) if noise is None else noise
    population = _Population(shape, n_classes, n_features, scale)
    rng = np.random.default_rng(random_state)
    side = strength if shift == "covariate" else 0.0
    Xs, ys = population.draw(n_source, source_shares, -side, rng)
    Xt, yt = population.draw(n_target, shares, side, rng)
    if shift == "subspace":
        Xt = Xt @ _turn(n_features, strength * _TURN).T
    if shift == "concept":
        yt = population.rule(Xt[:, :2] @ _turn(2, strength * _TURN))
    names = np.array([str(code) for code in range(n_classes)])
    return Bunch(Xs=Xs, ys=ys, Xt=Xt, yt=yt, name=f"{shape}, {shift} shift", target_names=names)


_OPINIONS = {  # by any reviewer, of books, and of kitchen devices
    "good": (
        "excellent wonderful perfect recommended favourite",
        "gripping moving witty touching thoughtful vivid unforgettable clever",
        "sturdy sharp quiet reliable handy powerful compact durable",
    ),
    "bad": (
        "terrible awful disappointing useless regrettable",
        "tedious shallow predictable wooden confusing rambling pretentious dull",
        "flimsy rusty noisy leaking wobbly brittle clumsy blunt",
    ),
}
_THINGS = (
    "story plot author chapter ending hero style novel prose narrator",
    "blade handle lid motor pan kettle button knob plug gasket",
)
_REVIEW = (
    "The {thing} is {one} and the {other} {two}.",
    "I bought it last month: {one}, {two}, with a {three} {thing}.",
    "This {thing} is {one}! And the {other} was {two} too.",
    "{one} {thing}, {two} {other}, all in all {three}.",
    "My sister found the {thing} {one}, and I found the {other} rather {two}.",
)


def make_reviews(
    n_source: int = 300, n_target: int = 300, *, random_state: int | None = 0
) -> Bunch:
    """Draw short made-up reviews of books and of kitchen devices, half of them good.

    Some opinions are of both, others of one alone: a "sturdy" lid is good, a "gripping" one is
    not heard of. Models of the source do not know the latter words; those that adapt learn them
    from the words beside them.

    Parameters
    ----------
    n_source : int, default=300
        Reviews of books.
    n_target : int, default=300
        Reviews of kitchen devices.
    random_state : int or None, default=0
        Seed.

    Returns
    -------
    task : Bunch
        ``source``, a frame with the columns ``review`` and ``rating`` ("good" or "bad"),
        ``target``, one with ``review``, and ``yt``, the ratings of the target.

    Examples
    --------
    >>> from transferable.datasets import make_reviews
    >>> task = make_reviews()
    >>> task.source.review[0], task.source.rating[0]
    ('Shallow narrator, dull chapter, all in all wooden.', 'bad')
    """
    import pandas as pd

    rng = np.random.default_rng(random_state)
    tables = []
    for k, n in enumerate((n_source, n_target)):
        things, labels = (
            _THINGS[k].split(),
            rng.permutation(np.array(["bad", "good"])[np.arange(n) % 2]),
        )
        texts = []
        for label in labels:
            opinions = []
            for _ in range(3):
                kind = label if rng.random() < _MEANT else {"good": "bad", "bad": "good"}[label]
                opinions.append(
                    str(rng.choice(_OPINIONS[kind][(k + 1) * (rng.random() < _OWN)].split()))
                )
            one, other = rng.choice(things, 2, replace=False)
            text = _REVIEW[rng.integers(len(_REVIEW))].format(
                thing=one, other=other, one=opinions[0], two=opinions[1], three=opinions[2]
            )
            texts.append(text[0].upper() + text[1:])
        tables.append(pd.DataFrame({"review": texts, "rating": labels}))
    source, target = tables
    return Bunch(source=source, target=target[["review"]], yt=target["rating"].to_numpy())


def make_drifted(
    n_source: int = 300, n_target: int = 300, *, drift: float = 1.0, random_state: int | None = 0
) -> Bunch:
    """Draw made-up readings of gas sensors that have drifted, with a concentration to predict.

    Four sensors answer to the logarithm of the concentration, and to temperature and humidity. In
    the target they have lost some of their gain, and the weather is colder.

    Parameters
    ----------
    n_source : int, default=300
        Readings of the first months, with a concentration.
    n_target : int, default=300
        Readings of the last months.
    drift : float, default=1.0
        Strength of the drift and of the change of weather; 0 is none.
    random_state : int or None, default=0
        Seed.

    Returns
    -------
    task : Bunch
        ``source``, a frame with the columns ``sensor_1`` to ``sensor_4``, ``temperature``,
        ``humidity`` and ``concentration``, ``target``, one without the last, and ``yt``, the
        concentrations of the target.

    Examples
    --------
    >>> from transferable.datasets import make_drifted
    >>> list(make_drifted().target)
    ['sensor_1', 'sensor_2', 'sensor_3', 'sensor_4', 'temperature', 'humidity']
    """
    import pandas as pd

    rng = np.random.default_rng(random_state)
    gain, warmth = rng.uniform(0.8, 1.6, 4), rng.normal(0, 0.03, 4)
    loss, offset = rng.uniform(0.05, 0.2, 4), rng.normal(0.1, 0.1, 4)
    tables = []
    for n, moved in ((n_source, 0.0), (n_target, drift)):
        level = np.exp(rng.normal(0.5, 0.6, n))
        weather = np.column_stack([rng.normal(20 - 8 * moved, 5, n), rng.normal(50, 12, n)])
        answer = np.log1p(level)[:, None] * gain * (1 - moved * loss) + moved * offset
        sensors = answer + (weather[:, :1] - 20) * warmth + 0.05 * rng.normal(size=(n, 4))
        columns = {f"sensor_{k + 1}": sensors[:, k].round(3) for k in range(4)}
        columns |= {"temperature": weather[:, 0].round(1), "humidity": weather[:, 1].round()}
        tables.append(pd.DataFrame(columns | {"concentration": level.round(3)}))
    source, target = tables
    yt = target.pop("concentration").to_numpy()
    return Bunch(source=source, target=target, yt=yt)


class _Population:
    """A distribution of rows and labels that both domains are drawn from."""

    def __init__(self, shape: Shape, n_classes: int, n_features: int, noise: float) -> None:
        self.shape, self.n_classes = shape, n_classes
        self.n_features, self.noise = n_features, noise

    def draw(
        self, n_rows: int, shares: NDArray[np.float64], side: float, rng: Generator
    ) -> tuple[Rows, Codes]:
        """Draw rows with labels; `side` selects them, whatever their label, along the diagonal."""
        n_drawn = n_rows * _POOL if side else n_rows
        codes = np.repeat(np.arange(self.n_classes), _counts(n_drawn, shares))
        X = self.noise * rng.normal(size=(len(codes), self.n_features))
        X[:, :2] += self._middle(codes, rng.uniform(size=len(codes)))
        along = X[:, 0] + X[:, 1]
        weights = side * (along - along.mean()) / (along.std() or 1.0)
        kept = np.argsort(-weights - rng.gumbel(size=len(codes)), kind="stable")[:n_rows]
        return X[kept], codes[kept]

    def rule(self, X: Rows) -> Codes:
        """Return the class whose middle is nearest to each row, by the first two features."""
        places = np.linspace(0.0, 1.0, 101) if self.shape == "moons" else np.zeros(1)
        codes = np.repeat(np.arange(self.n_classes), len(places))
        middles = self._middle(codes, np.tile(places, self.n_classes))
        distances = np.linalg.norm(X[:, None] - middles, axis=2)
        return codes[distances.argmin(axis=1)]

    def _middle(self, codes: Codes, place: NDArray[np.float64]) -> Rows:
        """Return rows of these classes without noise; both shapes are centred at the origin."""
        if self.shape == "gaussians":
            angle = 2 * np.pi * codes / self.n_classes
            return _RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])
        angle, sign = np.pi * place, 1.0 - 2.0 * codes
        arc = np.column_stack([np.cos(angle), np.sin(angle)]) - [0.5, 0.25]
        return sign[:, None] * arc


def _turn(n_features: int, angle: float) -> Rows:
    """Return a rotation of the first two features into the next two, or of these two alone."""
    planes = [(0, 1)] if n_features < 4 else [(0, 2), (1, 3)]
    turn = np.eye(n_features)
    for i, j in planes:
        turn[[i, j], [i, j]] = np.cos(angle)
        turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
    return turn


def _counts(n_rows: int, shares: NDArray[np.float64]) -> Codes:
    """Return the number of rows of each class, as near to the shares as whole rows are."""
    return np.diff(np.rint(n_rows * np.cumsum(np.r_[0.0, shares])).astype(np.intp))


def _shares(given: Sequence[float] | None, n_classes: int, name: str) -> NDArray[np.float64]:
    shares = np.full(n_classes, 1.0 / n_classes) if given is None else np.asarray(given, float)
    if shares.shape != (n_classes,) or shares.min() < 0 or abs(shares.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"{name}={given} must be {n_classes} numbers, one for each class, of at least 0 and "
            "with the sum 1."
        )
    return shares
