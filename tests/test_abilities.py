"""The table of what estimators take: it is what the classes state, and that is what they do."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from abilities import ABILITIES, PAGE, estimators, markdown
from problems import small_problem

P = small_problem(seed=2, n_source=36, n_target=30, n_features=5)
Y = np.r_[P.ys, np.zeros_like(P.yt)]
MARKS = np.repeat([1, -1], [len(P.ys), len(P.yt)])
NEW = small_problem(seed=2, n_source=39, n_target=33, n_features=5).Xt[-3:]
MODELS = estimators()
NETWORKS = [name for name in MODELS if name.startswith("deep.")]
# Their abilities are those of one base: some stand for all.
TRIED = [name for name in MODELS if name not in NETWORKS] + ["deep.SourceOnly", "deep.DeepCORAL"]
LESS = {  # work, where defaults take more than these rows need
    "max_iter": 2,
    "effort": "fast",
    "param_grid": {"ridge": [0.1, 1.0]},
    "epochs": 1,
    "epoch_steps": 2,
    "batch_size": 8,
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*reduced to:UserWarning"),
    pytest.mark.filterwarnings("ignore:The setting .* is left out:UserWarning"),
]


def quick(name):
    model = clone(MODELS[name])
    if name == "AdaptedClassifier":  # weights cannot change its nearest neighbour
        model.set_params(estimator=LogisticRegression())
    return model.set_params(**{k: v for k, v in LESS.items() if k in model.get_params(deep=False)})


def does(fit, *refusals):
    """Whether a fit is made, and not refused by an error of the kind that is expected."""
    try:
        return fit() is not None
    except refusals:
        return False


def matters(fit, plain, *refusals):
    """Whether a fit is made and differs from the plain one."""
    if not does(fit, *refusals):
        return False
    one, other = (
        model.transform(P.X, MARKS) if hasattr(model, "transform") else model.predict_proba(P.X)
        for model in (fit(), plain())
    )
    return one.shape != other.shape or not np.allclose(one, other)


def several_sources(model):
    ids = np.where(MARKS < 0, -1, 1 + (P.X[:, 0] > 0))
    return matters(
        lambda: clone(model).fit(P.X, Y, sample_domain=ids),
        lambda: clone(model).fit(P.X, Y, sample_domain=MARKS),
        ValueError,
    )


def weights(model):
    weight = np.where(np.arange(len(P.ys)) % 2, 1.8, 0.2)
    return matters(
        lambda: clone(model).adapt(P.Xs, P.ys, P.Xt, sample_weight=weight),
        lambda: clone(model).adapt(P.Xs, P.ys, P.Xt),
        *(TypeError, ValueError),
    )


def target_labels(model):
    names = [name for name in model.get_params() if name.split("__")[-1] == "target_labels"]
    model.set_params(**dict.fromkeys(names, "use"))
    y = np.r_[P.ys, np.where(np.arange(len(P.yt)) < 6, P.yt, -1)]
    if not names or not does(lambda: model.fit(P.X, y, sample_domain=MARKS), ValueError):
        return False
    return bool(np.all(model.transduction_[len(P.ys) :][:6] == P.yt[:6]))


def no_labels(model):
    return does(lambda: model.adapt(P.Xs, None, P.Xt), ValueError)


def sparse(model):
    rows = csr_array(P.Xs), P.ys, csr_array(P.Xt)
    return does(lambda: model.adapt(*rows), TypeError)


def landmarks(model):
    if "n_landmarks" not in model.get_params(deep=False):
        return False
    model.set_params(n_landmarks=12, **({"kernel": "rbf"} if hasattr(model, "kernel") else {}))
    model.adapt(P.Xs, P.ys, P.Xt)
    return len(model.landmarks_) == 12 if hasattr(model, "landmarks_") else model.n_landmarks_ == 12


def gpu(model):
    if "device" not in model.get_params(deep=False):
        return False
    assert does(lambda: clone(model).set_params(device="cpu").adapt(P.Xs, P.ys, P.Xt))
    unknown = clone(model).set_params(device="abacus")
    assert not does(lambda: unknown.adapt(P.Xs, P.ys, P.Xt), ValueError, RuntimeError)
    return True


def new_rows(model):
    model.adapt(P.Xs, P.ys, P.Xt)
    return len(model.predict(NEW) if hasattr(model, "predict") else model.transform(NEW)) == 3


def probabilities(model):
    if not hasattr(model, "predict_proba"):
        return False
    table = model.adapt(P.Xs, P.ys, P.Xt).predict_proba(NEW)
    return table.shape == (3, 3) and np.allclose(table.sum(axis=1), 1.0, atol=1e-5)


TRIALS = dict(
    zip(
        ABILITIES,
        (
            several_sources,
            weights,
            target_labels,
            no_labels,
            sparse,
            landmarks,
            gpu,
            new_rows,
            probabilities,
        ),
        strict=True,
    )
)


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("ability", ABILITIES)
def test_what_is_stated_is_what_is_done(ability, name):
    assert TRIALS[ability](quick(name)) == ABILITIES[ability](MODELS[name])


def test_networks_state_the_same():
    stated = {tuple(has(MODELS[name]) for has in ABILITIES.values()) for name in NETWORKS}
    assert len(stated) == 1


def test_every_column_tells_something():
    for ability, has in ABILITIES.items():
        told = {bool(has(model)) for model in MODELS.values()}
        assert told == ({True} if ability == "new rows" else {True, False}), ability


def test_the_page_has_the_table():
    page = PAGE.read_text(encoding="utf-8")
    table = re.search(r"<!-- abilities -->\n(.*)\n<!-- end abilities -->", page, flags=re.DOTALL)[1]
    assert table == markdown(MODELS), "renew docs/methods.md with `make methods-table`"
