"""The kernel classifiers against the paper's equations, transcribed in benchmarks/literal.py."""

from functools import partial
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import Bunch

import transferable
from literal import Literal, Settings
from problems import domains_of, made, published, rounds_of, small_problem
from transferable import ARTL, MEDA
from transferable._kernel.choose import Balance, parameters
from transferable._linalg.arrays import to_numpy
from transferable.classifiers.published import Adam, PublishedTFDF, PublishedTFDFV
from transferable.domains import Domains

# The printed equations take the target's classes to be as frequent as the source's.
TFDF = partial(published, class_shares="source")
TFDFV = partial(transferable.TFDFV, class_shares="source")


def way(**settings):
    """A way to compute, skipped where what it needs is not there."""
    device = settings.get("device", "cpu")
    absent = (device != "cpu" and find_spec("torch") is None) or (device == "cuda" and not cuda())
    name = "-".join(str(value) for value in settings.values())
    reason = f"device={device} needs torch and, for cuda, a GPU"
    return pytest.param(settings, id=name, marks=pytest.mark.skipif(absent, reason=reason))


def cuda():
    import torch

    return torch.cuda.is_available()


FORMS = ("printed", "normalised")
PAIRS = list(product(FORMS, FORMS))
WEIGHTS = {"ridge": 0.1, "alignment": 10.0, "manifold": 1.0, "variance": 0.05}
SHARED = WEIGHTS | {
    "second_order": 0.5,
    "balance": 0.4,
    "n_neighbors": 5,
    "manifold_dim": 3,
    "max_iter": 4,
}
CONFUSED = {"confusion": 0.2, "confusion_iter": 6, "learning_rate": 0.01}
NEAREST = KNeighborsClassifier(1)
# The same objective over all rows or over features, with every row a landmark; numpy and torch.
DEVICES = ("cpu", "torch", "cuda")
EXACT = [way(n_landmarks=None, device=device) for device in DEVICES]
WAYS = [*EXACT, *(way(n_landmarks=10_000, device=device) for device in DEVICES)]


def canonical(**shape):
    """A problem whose rows are in the library's own order, so that halves of rows agree too."""
    domains = domains_of(small_problem(**shape))
    return domains.Xs, domains.y, domains.Xt


def aligned_as(form, **settings):
    """TFDF-V whose alignment has this form, from the nearest source rows unless told otherwise."""
    settings = {"estimator": NEAREST, "class_shares": "source"} | settings
    if form == "printed":
        return PublishedTFDFV(**settings)
    return transferable.TFDFV(**settings)


def transcribed(problem, **settings):
    return Literal(*problem, Settings(**settings)).tfdf_v()


def assert_agree(model, reference, rtol=1e-8):
    """Same labels, scores to rtol of the largest."""
    expected = reference.scores()
    F = model._scores(np.vstack([model._validate_rows(X) for X in (reference.Xs, reference.Xt)]))
    n = len(reference.Xs)  # rows whose label is given
    np.testing.assert_array_equal(model.transduction_[n:], expected[n:].argmax(axis=1))
    np.testing.assert_allclose(F, expected, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("second_order", [0.0, 0.5])
@pytest.mark.parametrize("manifold_dim", [None, 3])
def test_tfdfv(n_classes, form, second_order, manifold_dim, way):
    settings = SHARED | {"second_order": second_order, "manifold_dim": manifold_dim}
    for seed in range(3):
        problem = canonical(seed=seed, n_classes=n_classes)
        model = aligned_as(form, **settings, **way).adapt(*problem)
        centred = form == "normalised"
        assert_agree(model, transcribed(problem, **settings, alignment_form=form, centred=centred))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("solver", ["adam", "closed_form"])
@pytest.mark.parametrize(("alignment_form", "confusion_form"), PAIRS)
def test_tfdf(solver, alignment_form, confusion_form, way):
    if solver == "adam" and way["n_landmarks"]:
        way = way | {"n_landmarks": None}  # Adam's steps depend on what the coefficients are of
    settings = SHARED | CONFUSED | {"solver": solver}
    settings |= {"alignment_form": alignment_form, "confusion_form": confusion_form}
    for seed in range(3):
        problem = canonical(seed=seed)
        model = TFDF(**settings, **way, estimator=NEAREST).adapt(*problem)
        reference = transcribed(problem, **settings).tfdf()
        assert_agree(model, reference)
        objectives = [entry["objective"] for entry in model.history_]
        assert objectives[-6:] == pytest.approx(reference.history[-6:], rel=1e-8)


@pytest.mark.parametrize("way", WAYS)
def test_the_defaults_of_tfdf(way):
    settings = SHARED | {"confusion": 0.2}
    forms = {"alignment_form": "normalised", "confusion_form": "normalised"}
    for seed in range(3):
        problem = canonical(seed=seed)
        model = transferable.TFDF(**settings, **way, estimator=NEAREST, class_shares="source")
        reference = transcribed(
            problem, **settings, **forms, solver="closed_form", confusion_iter=10, centred=True
        ).tfdf()
        assert_agree(model.adapt(*problem), reference)


def at(rounds, w):
    """The rounds with these coefficients."""
    rounds.w = rounds.base.problem.arrays.table(w)
    rounds.F = rounds.solver.scores(rounds.w)
    rounds.x = rounds.F if rounds.solver.n_landmarks is None else rounds.w
    return rounds


def values(rounds, w):
    """The objective with these coefficients, term by term."""
    at(rounds, w).record()
    return rounds.history.pop()


def gradient(rounds, w):
    """Its slope in them, as Adam takes it."""
    return to_numpy(Adam.gradient(at(rounds, w)))


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize(("alignment_form", "confusion_form"), PAIRS)
def test_objective_and_gradient_anywhere(alignment_form, confusion_form, way):
    """As printed, with half the derivative of the printed class confusion."""
    settings = SHARED | CONFUSED
    settings |= {"alignment_form": alignment_form, "confusion_form": confusion_form}
    p = small_problem(seed=1)
    domains = domains_of(p)
    target = np.random.default_rng(0).integers(3, size=domains.n_target)
    rounds = rounds_of(TFDF(**settings, **way), domains, target)
    reference = Literal(domains.Xs, domains.y, domains.Xt, Settings(**settings))
    reference.labels = domains.with_target(target)
    V = reference.mmcd()
    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=reference.beta.shape) / 10
        value = values(rounds, w)["objective"]
        assert value == pytest.approx(reference.objective(w, V), rel=1e-10)
        expected = reference.gradient(w, V)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(gradient(rounds, w), expected, atol=1e-10 * scale)


@pytest.mark.parametrize("way", WAYS)
def test_descent_approaches_the_closed_form(way):
    """L-BFGS on the same objective ends little above the closed form's and never below."""
    rounds = rounds_of(TFDFV(**(SHARED | way)), domains_of(small_problem(seed=2)))
    shape = rounds.solver.updated([])[0].shape

    def function(x):
        w = x.reshape(shape)
        return values(rounds, w)["objective"], gradient(rounds, w).ravel()

    start, most = np.zeros(int(np.prod(shape))), {"maxiter": 600, "maxfun": 2000}
    high = minimize(function, start, jac=True, method="L-BFGS-B", options=most).fun
    low = made(rounds).history[-1]["objective"]
    assert low - 1e-9 <= high <= 1.02 * low
    assert high < 0.9 * function(start)[0]


@pytest.mark.parametrize("solver", ["adam", "closed_form"])
def test_every_solver_lowers_class_confusion_over_landmarks(solver):
    """The start of TFDF has the whole objective too; it must not rise while labels are the same."""
    settings = SHARED | CONFUSED | {"solver": solver, "n_landmarks": 20}
    history = TFDF(**settings).adapt(*canonical(seed=1)).history_
    last, first = history[-1], history[-CONFUSED["confusion_iter"] - 1]
    assert last["changed"] == 0
    assert last["objective"] < first["objective"]


@pytest.mark.parametrize("rule", ["adaptive", "printed"])
def test_estimated_balance(rule):
    settings = SHARED | {"balance": rule, "manifold_dim": None}
    problem = canonical(seed=3, n_source=40, n_target=30)
    model = aligned_as("printed", **settings).adapt(*problem)
    assert_agree(model, transcribed(problem, **settings))
    assert 0.0 <= model.balance_ <= 1.0


@pytest.mark.parametrize("manifold_dim", [None, 3])
def test_meda_is_the_normalised_first_order_with_self_loops(manifold_dim):
    shared = {"ridge": 0.1, "alignment": 10.0, "manifold": 1.0, "balance": 0.3, "n_neighbors": 5}
    problem = canonical(seed=4)
    model = MEDA(**shared, manifold_dim=manifold_dim, max_iter=4).adapt(*problem)
    settings = shared | {"variance": 0.0, "second_order": 0.0, "alignment_form": "normalised"}
    settings |= {"manifold_dim": manifold_dim, "max_iter": 4, "self_loops": True}
    assert_agree(model, transcribed(problem, **settings))


def test_artl_is_meda_without_flow_at_equal_balance():
    for seed in range(3):
        problem = canonical(seed=seed)
        artl = ARTL(n_neighbors=5).adapt(*problem)
        meda = MEDA(n_neighbors=5, manifold_dim=None, balance=0.5).adapt(*problem)
        rows = np.vstack([problem[0], problem[2]])
        np.testing.assert_array_equal(artl.decision_function(rows), meda.decision_function(rows))
        settings = {"variance": 0.0, "second_order": 0.0, "alignment_form": "normalised"}
        assert_agree(artl, transcribed(problem, **settings, n_neighbors=5, self_loops=True))


def test_start_from_the_source_alone():
    settings = SHARED | {"max_iter": 1}
    problem = canonical(seed=5, shift=2.0)
    model = aligned_as("printed", **settings, estimator=None).adapt(*problem)
    assert_agree(model, transcribed(problem, **settings, start="source"))


def test_a_class_without_pseudo_labels():
    """The target holds two of four classes; the two others cannot be aligned, and are not."""
    Xs, ys, Xt = canonical(seed=6, n_classes=4, n_target=24)
    nearest = NEAREST.fit(Xs, ys).predict(Xt)
    Xt = Xt[np.isin(nearest, [0, 1])]
    for form in FORMS:
        settings = SHARED | {"manifold_dim": None}
        model = aligned_as(form, **settings).adapt(Xs, ys, Xt)
        assert set(model.transduction_[len(ys) :]) < {0, 1, 2, 3}
        centred = form == "normalised"
        reference = transcribed((Xs, ys, Xt), **settings, alignment_form=form, centred=centred)
        assert_agree(model, reference)


@pytest.mark.parametrize("name", ["poly", "linear", "callable"])
def test_other_kernels(name):
    functions = {
        "poly": lambda A, B: (0.5 * A @ B.T + 1.0) ** 3,
        "linear": lambda A, B: A @ B.T,
        "callable": lambda A, B: np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2)),
    }
    kernel = functions[name] if name == "callable" else name
    problem, settings = canonical(seed=7), SHARED | {"manifold_dim": None}
    model = aligned_as("printed", **settings, kernel=kernel)
    reference = Literal(*problem, Settings(**settings), kernel=functions[name]).tfdf_v()
    assert_agree(model.adapt(*problem), reference)


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize(("alignment_form", "confusion_form"), PAIRS)
def test_gradient_of_the_whole_objective(alignment_form, confusion_form, n_landmarks):
    """Against central differences in random directions; the printed confusion counts half."""
    forms = {"alignment_form": alignment_form, "confusion_form": confusion_form}
    model = TFDF(**(SHARED | CONFUSED), **forms, n_landmarks=n_landmarks)
    p = small_problem(seed=8)
    rounds = rounds_of(model, domains_of(p), p.yt)
    rng = np.random.default_rng(0)
    w = rng.normal(size=rounds.solver.updated([])[0].shape) / 10

    def value(w):
        found = values(rounds, w)
        return found["objective"] - (confusion_form == "printed") * found["confusion"] / 2

    slope = gradient(rounds, w)
    for _ in range(10):
        direction = rng.normal(size=w.shape)
        numeric = (value(w + 1e-5 * direction) - value(w - 1e-5 * direction)) / 2e-5
        assert np.vdot(slope, direction) == pytest.approx(numeric, rel=1e-5)


def test_printed_confusion_in_closed_form_ends_where_the_gradient_vanishes():
    settings = SHARED | CONFUSED | {"confusion_form": "printed", "confusion_iter": 300}
    problem = canonical(seed=9)
    model = TFDF(**settings, solver="closed_form", alignment_form="printed").adapt(*problem)
    reference = Literal(*problem, Settings(**settings))
    reference.labels = model.transduction_
    assert model.history_[-1]["changed"] == 0
    gradient = reference.gradient(model._machine.coefficients, reference.mmcd(), factor=4.0)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize("second_order", [0.0, 0.5])
def test_the_closed_form_is_where_the_gradient_vanishes(second_order, n_landmarks):
    settings = SHARED | {"second_order": second_order, "n_landmarks": n_landmarks}
    p = small_problem(seed=8)
    rounds = made(rounds_of(TFDFV(**settings), domains_of(p), p.yt))
    np.testing.assert_allclose(gradient(rounds, rounds.w), 0.0, atol=1e-9)


def of_sources(model, n_sources):
    """Rounds of several sources and other class shares, before the first is made."""
    p = small_problem(seed=8)
    ids = np.r_[1 + np.arange(len(p.ys)) % n_sources, np.full(len(p.yt), -1)]
    domains = Domains.from_stacked(p.X, np.r_[p.ys, np.full(len(p.yt), -1)], ids)
    rounds = rounds_of(model, domains, p.yt[domains.order[domains.n_source :] - len(p.ys)])
    rounds.restart(np.array([0.2, 0.5, 0.3]), rounds.target, rounds.labelling)
    return rounds


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize("n_sources", [1, 3])
@pytest.mark.parametrize("second_order", [0.0, 0.5])
def test_shares_and_sources_end_where_the_gradient_vanishes(second_order, n_sources, n_landmarks):
    settings = SHARED | {"second_order": second_order, "n_landmarks": n_landmarks}
    rounds = made(of_sources(TFDFV(**settings), n_sources))
    np.testing.assert_allclose(gradient(rounds, rounds.w), 0.0, atol=1e-9)


@pytest.mark.parametrize("n_sources", [1, 3])
def test_gradient_of_the_whole_objective_with_shares_and_sources(n_sources):
    """Means, covariances, manifold, variance and class confusion, against central differences."""
    rounds = of_sources(TFDF(**(SHARED | CONFUSED), n_landmarks=None), n_sources)
    rng = np.random.default_rng(0)
    w = rng.normal(size=rounds.solver.updated([])[0].shape) / 10
    slope = gradient(rounds, w)
    for _ in range(5):
        direction = rng.normal(size=w.shape)
        ends = [values(rounds, w + step * direction)["objective"] for step in (1e-5, -1e-5)]
        numeric = (ends[0] - ends[1]) / 2e-5
        assert np.vdot(slope, direction) == pytest.approx(numeric, rel=1e-5)


def test_the_published_class_with_our_forms_and_centre_is_our_class(monkeypatch):
    for published_class in (PublishedTFDF, PublishedTFDFV):
        monkeypatch.setattr(published_class, "_centred", True)
    problem = canonical(seed=1)
    forms = {"alignment_form": "normalised", "estimator": None}
    one = PublishedTFDFV(**SHARED, **forms).adapt(*problem)
    other = TFDFV(**SHARED).adapt(*problem)
    np.testing.assert_array_equal(one._machine.coefficients, other._machine.coefficients)
    one = TFDF(**SHARED).adapt(*problem)
    other = transferable.TFDF(**SHARED, class_shares="source").adapt(*problem)
    np.testing.assert_array_equal(one._machine.coefficients, other._machine.coefficients)
    assert one.history_ == other.history_


def test_the_seed_decides_the_one_random_step_and_nothing_else():
    rng = np.random.default_rng(0)
    ys = np.arange(60) % 3
    Xs = rng.normal(size=(60, 300)) + 3.0 * np.eye(300)[ys]
    Xt = Xs + rng.normal(size=300)
    wide = [TFDFV(manifold_dim=None, random_state=seed).adapt(Xs, ys, Xt) for seed in (0, 0)]
    assert wide[0].balance_ == wide[1].balance_
    domains = domains_of(Bunch(X=np.vstack([Xs, Xt]), ys=ys, yt=ys))
    problems = [parameters(TFDFV(manifold_dim=None, random_state=s), domains) for s in (0, 0, 1)]
    same, again, other = (Balance("adaptive", p.domains, p.Z, p.random_state).Z for p in problems)
    np.testing.assert_array_equal(same, again)
    assert same.shape == (120, 64)
    assert not np.array_equal(same, other)
    narrow = [TFDFV(random_state=seed).adapt(Xs[:, :9], ys, Xt[:, :9]) for seed in (0, None)]
    np.testing.assert_array_equal(narrow[0].transduction_, narrow[1].transduction_)
    assert narrow[0].balance_ == narrow[1].balance_
