"""The engine against the paper's equations, transcribed in benchmarks/literal.py."""

from functools import partial
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import transferable
from literal import Literal, Settings
from problems import small_problem
from transferable import ARTL, MEDA
from transferable.domains import Domains
from transferable.engines.risk.features import ManifoldFeatures
from transferable.engines.risk.objective import Objective
from transferable.engines.risk.rows import leading
from transferable.terms.base import FixedForm, FixedTerm, Term
from transferable.terms.means import Means
from transferable.terms.risk import SourceLoss, Variance
from transferable.terms.smoothness import Smoothness

# The printed equations take the target's classes to be as frequent as the source's.
TFDF = partial(transferable.TFDF, class_shares="source")
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
    p = small_problem(**shape)
    domains = Domains.from_stacked(p.X, np.r_[p.ys, np.full(len(p.yt), -1)])
    return domains.Xs, domains.y, domains.Xt


def transcribed(problem, **settings):
    return Literal(*problem, Settings(**settings)).tfdf_v()


def assert_agree(model, reference, rtol=1e-8):
    """Same labels, scores to rtol of the largest."""
    expected = reference.scores()
    F = model._scores(np.vstack([model._validate_rows(X) for X in (reference.Xs, reference.Xt)]))
    np.testing.assert_array_equal(model.transduction_, expected.argmax(axis=1))
    np.testing.assert_allclose(F, expected, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("second_order", [0.0, 0.5])
@pytest.mark.parametrize("manifold_dim", [None, 3])
def test_tfdfv(n_classes, form, second_order, manifold_dim, way):
    settings = SHARED | {
        "alignment_form": form,
        "second_order": second_order,
        "manifold_dim": manifold_dim,
    }
    for seed in range(3):
        problem = canonical(seed=seed, n_classes=n_classes)
        model = TFDFV(**settings, **way, estimator=NEAREST).adapt(*problem)
        assert_agree(model, transcribed(problem, **settings))


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


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize(("alignment_form", "confusion_form"), PAIRS)
def test_tfdf_by_lbfgs(alignment_form, confusion_form, way):
    """A line search magnifies rounding errors: objectives are compared more closely than scores."""
    settings = SHARED | CONFUSED | {"solver": "lbfgs", "confusion_iter": 2}
    settings |= {"alignment_form": alignment_form, "confusion_form": confusion_form}
    problem = canonical(seed=1)
    model = TFDF(**settings, **way, estimator=NEAREST).adapt(*problem)
    reference = transcribed(problem, **settings).tfdf()
    assert_agree(model, reference, rtol=1e-2)
    assert model.history_[-1]["objective"] == pytest.approx(reference.history[-1], rel=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_tfdfv_by_lbfgs_approaches_the_closed_form(way):
    """It minimises the same objective: it ends little above the closed form's and never below."""
    problem = canonical(seed=2)
    settings = SHARED | way | {"estimator": NEAREST, "max_iter": 30}
    exact = TFDFV(**settings).adapt(*problem)
    descended = TFDFV(**settings, solver="lbfgs").adapt(*problem)
    np.testing.assert_array_equal(descended.transduction_, exact.transduction_)
    low, high = (model.history_[-1]["objective"] for model in (exact, descended))
    assert low - 1e-9 <= high <= 1.02 * low


@pytest.mark.parametrize("solver", ["adam", "lbfgs", "closed_form"])
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
    model = TFDFV(**settings, alignment_form="printed", estimator=NEAREST).adapt(*problem)
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
    settings = SHARED | {"max_iter": 1, "alignment_form": "printed"}
    problem = canonical(seed=5, shift=2.0)
    model = TFDFV(**settings).adapt(*problem)
    assert_agree(model, transcribed(problem, **settings, start="source"))


def test_a_class_without_pseudo_labels():
    """The target holds two of four classes; the two others cannot be aligned, and are not."""
    Xs, ys, Xt = canonical(seed=6, n_classes=4, n_target=24)
    nearest = NEAREST.fit(Xs, ys).predict(Xt)
    Xt = Xt[np.isin(nearest, [0, 1])]
    for form in FORMS:
        settings = SHARED | {"alignment_form": form, "manifold_dim": None}
        model = TFDFV(**settings, estimator=NEAREST).adapt(Xs, ys, Xt)
        assert set(model.transduction_[len(ys) :]) < {0, 1, 2, 3}
        assert_agree(model, transcribed((Xs, ys, Xt), **settings))


@pytest.mark.parametrize("name", ["poly", "linear", "callable"])
def test_other_kernels(name):
    functions = {
        "poly": lambda A, B: (0.5 * A @ B.T + 1.0) ** 3,
        "linear": lambda A, B: A @ B.T,
        "callable": lambda A, B: np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2)),
    }
    kernel = functions[name] if name == "callable" else name
    problem, settings = canonical(seed=7), SHARED | {"manifold_dim": None}
    model = TFDFV(**settings, kernel=kernel, alignment_form="printed", estimator=NEAREST)
    reference = Literal(*problem, Settings(**settings), kernel=functions[name]).tfdf_v()
    assert_agree(model.adapt(*problem), reference)


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize(("alignment_form", "confusion_form"), PAIRS)
def test_gradient_of_the_whole_objective(alignment_form, confusion_form, n_landmarks):
    """Against central differences in random directions."""
    forms = {"alignment_form": alignment_form, "confusion_form": confusion_form}
    model = TFDF(**(SHARED | CONFUSED), **forms, n_landmarks=n_landmarks)
    solver, labelled = solver_of(model)
    rng = np.random.default_rng(0)
    beta = rng.normal(size=solver.zero().shape) / 10

    def value(b):
        return sum(solver.values(b, labelled).values())

    gradient = solver.gradient(beta, labelled)
    for _ in range(10):
        direction = rng.normal(size=beta.shape)
        numeric = (value(beta + 1e-5 * direction) - value(beta - 1e-5 * direction)) / 2e-5
        assert np.vdot(gradient, direction) == pytest.approx(numeric, rel=1e-5)


def test_printed_confusion_in_closed_form_ends_where_the_gradient_vanishes():
    settings = SHARED | CONFUSED | {"confusion_form": "printed", "confusion_iter": 300}
    problem = canonical(seed=9)
    model = TFDF(**settings, solver="closed_form", alignment_form="printed").adapt(*problem)
    reference = Literal(*problem, Settings(**settings))
    reference.labels = model.transduction_
    assert model.history_[-1]["changed"] == 0
    gradient = reference.gradient(model._beta, reference.mmcd(), factor=4.0)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)


@pytest.mark.parametrize("n_landmarks", [None, 20])
@pytest.mark.parametrize("second_order", [0.0, 0.5])
def test_the_closed_form_is_where_the_gradient_vanishes(second_order, n_landmarks):
    settings = SHARED | {"second_order": second_order, "n_landmarks": n_landmarks}
    solver, labelled = solver_of(TFDFV(**settings))
    gradient = solver.gradient(solver.solve(labelled), labelled)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


def solver_of(model, objective=None):
    """The solver of a method's objective on a small problem, and the terms at some labels."""
    p = small_problem(seed=8)
    domains = Domains.from_stacked(p.X, np.r_[p.ys, np.full(len(p.yt), -1)])
    rows = model._rows(domains, ManifoldFeatures.fit(domains, 3))
    solver = model._solver(objective or model._objective(), rows)
    return solver, solver.at(p.yt)


@pytest.mark.parametrize("n_landmarks", [None, 10_000])
def test_the_ablation_is_a_list_with_entries_removed(n_landmarks):
    """Leaving terms out is the same as giving them no weight."""
    names = {Means: "alignment", Smoothness: "manifold", Variance: "variance"}
    settings = SHARED | {"second_order": 0.0, "n_landmarks": n_landmarks}
    whole = TFDFV(**settings)
    for kind, name in names.items():
        solver, labelled = solver_of(whole, whole._objective().without(kind))
        other, weightless = solver_of(TFDFV(**(settings | {name: 0.0})))
        assert name not in solver.fixed
        np.testing.assert_array_equal(solver.solve(labelled), other.solve(weightless))


class Tilt(FixedTerm):
    """A term of somebody's own: every other row's scores are to be small."""

    name, weight = "tilt", 2.0

    def bind(self, rows):
        return TiltForm()


class TiltForm(FixedForm):
    key, weight = "tilt", 2.0

    def apply(self, F):
        out = self.weight * F
        out[1::2] = 0.0
        return out


def test_a_term_of_ones_own_serves_both_solvers():
    """It is the same quadratic form over all rows and over as many landmarks."""
    scores = []
    for n_landmarks in (None, 10_000):
        model = TFDFV(**(SHARED | {"n_landmarks": n_landmarks}))
        plain = model._objective()
        solver, labelled = solver_of(model, Objective(plain.ridge, [*plain.terms, Tilt()]))
        coefficients = solver.solve(labelled)
        scores.append(solver.scores(coefficients))
        np.testing.assert_allclose(solver.gradient(coefficients, labelled), 0.0, atol=1e-9)
        F = scores[-1]
        value = solver.values(coefficients, labelled)["tilt"]
        assert value == pytest.approx(2.0 * np.sum(F[::2] ** 2))
    np.testing.assert_allclose(*scores, atol=1e-8)


def test_a_term_that_offers_nothing_a_solver_can_use_is_refused_by_name():
    class Nothing(Term):
        name, weight = "nothing", 1.0

    for n_landmarks in (None, 20):
        model = TFDFV(**(SHARED | {"n_landmarks": n_landmarks}))
        with pytest.raises(TypeError, match=r"Solver has no use for the term .*Nothing"):
            solver_of(model, Objective(0.1, [SourceLoss(), Nothing()]))


def test_the_seed_decides_the_one_random_step_and_nothing_else():
    rng = np.random.default_rng(0)
    ys = np.arange(60) % 3
    Xs = rng.normal(size=(60, 300)) + 3.0 * np.eye(300)[ys]
    Xt = Xs + rng.normal(size=300)
    wide = [TFDFV(manifold_dim=None, random_state=seed).adapt(Xs, ys, Xt) for seed in (0, 0)]
    assert wide[0].balance_ == wide[1].balance_
    bases = [leading(Xs, 30, seed) for seed in (0, 1)]
    assert not np.array_equal(bases[0], bases[1])
    narrow = [TFDFV(random_state=seed).adapt(Xs[:, :9], ys, Xt[:, :9]) for seed in (0, None)]
    np.testing.assert_array_equal(narrow[0].transduction_, narrow[1].transduction_)
    assert narrow[0].balance_ == narrow[1].balance_
