"""The deep methods keep the contract of every estimator of the library."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from problems import small_problem
from transferable import deep
from transferable.base import DomainClassifier
from transferable.classifiers import AdaptedClassifier
from transferable.deep.networks import Network
from transferable.events import Progress, listen
from transferable.model_selection import LabelFreeSearch
from transferable.testing import parametrize_with_adapter_checks

torch.set_num_threads(1)

PROBLEM = small_problem(n_source=60, n_target=48, n_features=6)
MARKED = np.r_[PROBLEM.ys, np.full(len(PROBLEM.yt), -1)]
MARKS = np.where(np.arange(len(MARKED)) < 60, 1, -1)
LEAST = {"epochs": 2, "epoch_steps": 5, "batch_size": 32}
PENALISED = ("DDC", "DAN", "DeepCORAL", "CMD", "JDDA", "MCC", "DANN", "CDAN")


def norm_net(input_shape, n_classes):
    """A small network with batch normalisation."""
    features = torch.nn.Sequential(
        torch.nn.Linear(input_shape[0], 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU()
    )
    return Network(features, torch.nn.Linear(16, n_classes))


MORE = {
    "ADDA": {"adversarial_epochs": 1},
    "AdaBN": {"network": norm_net},
    "DeepTFDF": {"n_rounds": 1},
    "DeepCORAL": {"weight": 1.0},
    "JDDA": {"weight": 1.0},
}
OTHERS = ("Batch", "PenalisedClassifier", "RandomAffine", "Training")
NAMES = [name for name in deep.__all__ if name not in OTHERS]
every = pytest.mark.parametrize("name", NAMES)
NAMELESS = {
    f"check_columns_are_matched_by_name(library={library})": "rows become tensors without names"
    for library in ("pandas", "polars", "pyarrow")
}


def make(name, **more):
    return getattr(deep, name)(**LEAST | MORE.get(name, {}) | more)


# Some checks fit 10 rows of one domain; nothing of what they warn about is ours.
@pytest.mark.filterwarnings("default")
@parametrize_with_adapter_checks(
    [
        deep.DeepCORAL(epochs=8, epoch_steps=8, batch_size=32, learning_rate=5e-3, weight=1.0),
        deep.DeepTFDF(epochs=8, epoch_steps=8, batch_size=32, learning_rate=5e-3, n_rounds=1),
    ],
    expected_failed_checks=lambda _: NAMELESS,
)
def test_the_contract(estimator, check):
    check(estimator)


@every
def test_labels_probabilities_and_features(name):
    model = make(name).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    assert isinstance(model, DomainClassifier)
    p = model.predict_proba(PROBLEM.Xt)
    assert p.shape == (48, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(PROBLEM.Xt))
    np.testing.assert_array_equal(model.transduction_[60:], model.predict(PROBLEM.Xt))
    Z = model.transform(PROBLEM.Xt)
    assert Z.shape == (48, len(model.get_feature_names_out()))
    assert np.isfinite(Z).all()
    assert all(np.isfinite(entry["source"]) for entry in model.history_ if "source" in entry)
    assert len(model.history_[0]["shares"]) == 3


@every
def test_the_same_seed_gives_the_same_to_the_bit_whatever_the_order_of_rows(name):
    expected = make(name).fit(PROBLEM.X, MARKED)
    again = make(name).fit(PROBLEM.X, MARKED)
    assert (again.predict_proba(PROBLEM.Xt) == expected.predict_proba(PROBLEM.Xt)).all()
    order = np.random.default_rng(1).permutation(len(MARKED))
    shuffled = make(name).fit(PROBLEM.X[order], MARKED[order], MARKS[order])
    np.testing.assert_array_equal(shuffled.transduction_, expected.transduction_[order])
    assert (shuffled.predict_proba(PROBLEM.Xt) == expected.predict_proba(PROBLEM.Xt)).all()
    other = make(name, random_state=1).fit(PROBLEM.X, MARKED)
    assert (other.predict_proba(PROBLEM.Xt) != expected.predict_proba(PROBLEM.Xt)).any()


@every
def test_target_labels_are_never_read(name):
    expected = make(name).fit(PROBLEM.X, MARKED).predict_proba(PROBLEM.Xt)
    y = np.r_[PROBLEM.ys, np.random.default_rng(2).integers(50, 99, 48)]
    assert (make(name).fit(PROBLEM.X, y, MARKS).predict_proba(PROBLEM.Xt) == expected).all()


@pytest.mark.parametrize("name", PENALISED)
def test_no_weight_is_source_only_to_the_bit(name):
    expected = make("SourceOnly").fit(PROBLEM.X, MARKED).predict_proba(PROBLEM.Xt)
    without = make(name, weight=0.0).fit(PROBLEM.X, MARKED).predict_proba(PROBLEM.Xt)
    assert (without == expected).all()
    weighted = make(name, weight=1.0).fit(PROBLEM.X, MARKED).predict_proba(PROBLEM.Xt)
    assert (weighted != expected).any()


@pytest.mark.filterwarnings("ignore::transferable.exceptions.NoTargetWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "AdaBN"])
@pytest.mark.parametrize(
    "rows", [slice(0, 61), slice(0, 60)], ids=["one target row", "no target row"]
)
def test_next_to_no_target(name, rows):
    X, y, marks = PROBLEM.X[rows], MARKED[rows], MARKS[rows]
    model = make(name).fit(X, y, marks if (marks < 0).any() else None)
    assert set(model.transduction_) <= {0, 1, 2}


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_larger_than_a_domain_and_classes_absent_from_it(name):
    for size in (1000, 2):
        model = make(name, batch_size=size).fit(PROBLEM.X, MARKED)
        assert len(model.predict(PROBLEM.Xt)) == 48


def test_a_fit_is_all_or_nothing():
    model = make("SourceOnly").fit(PROBLEM.X, MARKED)
    before = model.predict_proba(PROBLEM.Xt)
    model.set_params(network=lambda shape, n: Network(torch.nn.Flatten(), torch.nn.Linear(6, 7)))
    with pytest.raises(ValueError, match=r"gives \(7,\) scores a row, but the source has 3"):
        model.fit(PROBLEM.X, MARKED)
    assert (model.predict_proba(PROBLEM.Xt) == before).all()


def test_torch_is_left_as_it_was():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    make("DANN", deterministic=True).fit(PROBLEM.X, MARKED)
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()


def test_clone_and_search():
    model = make("DeepCORAL", augment=None)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(make("SourceOnly"), {"learning_rate": [1e-4, 1e-2]}, cv=2)
    assert search.fit(PROBLEM.Xs, PROBLEM.ys).best_params_ == {"learning_rate": 1e-2}


def test_search_without_target_labels():
    search = LabelFreeSearch(make("DDC"), {"weight": [0.01, 0.1]})
    search.adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    assert search.best_params_["weight"] in (0.01, 0.1)
    assert len(search.predict(PROBLEM.Xt)) == 48


def test_the_learnt_features_carry_any_method():
    model = AdaptedClassifier(make("DeepCORAL")).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    assert np.mean(model.predict(PROBLEM.Xt) == PROBLEM.yt) > 0.6


def test_progress_is_told():
    heard = []
    with listen(lambda event: heard.append(event)):
        make("DeepTFDF").fit(PROBLEM.X, MARKED)
    told = [event.what for event in heard if isinstance(event, Progress)]
    assert "DeepTFDF: training" in told
    assert "DeepTFDF: round 1" in told
    assert "Solving the closed form" in told


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    with pytest.raises(ValueError, match='device="cuda" needs a GPU, but torch sees no CUDA GPU'):
        make("SourceOnly", device="cuda").fit(PROBLEM.X, MARKED)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"network": "resnet"}, "'resnet' names no network; take one of"),
        ({"network": torch.nn.Linear(6, 3)}, "pass a function that builds one"),
        ({"augment": torch.nn.Dropout()}, "pass a transform of single pictures as prepare="),
        ({"augment": lambda picture: picture}, "which function does not take"),
        ({"scoring": "circular"}, "'scoring' parameter"),
        ({"epochs": 0}, "'epochs' parameter"),
        ({"learning_rate": 0.0}, "'learning_rate' parameter"),
        ({"warmup_epochs": 2}, "warmup_epochs=2 leaves none of the 2 epochs"),
        ({"input_shape": (1, 2, 2)}, "has 4 values, but rows of X have 6"),
        ({"network": lambda shape, n: torch.nn.Linear(6, n)}, "`features` and `head`"),
        ({"network": "lenet"}, "takes pictures"),
        ({"network": lambda shape, n: Network(torch.nn.Linear(7, 2), None)}, "not take rows of sh"),
        ({"augment": deep.RandomAffine()}, "RandomAffine changes pictures"),
    ],
)
def test_bad_parameters_are_named(change, told):
    with pytest.raises((ValueError, TypeError), match=told):
        make("DeepCORAL", **change).fit(PROBLEM.X, MARKED)


def test_every_method_learns():
    easy = small_problem(n_source=120, n_target=90, n_features=6, shift=0.3, seed=3)
    for name in NAMES:
        model = make(name, epochs=4, epoch_steps=15, learning_rate=3e-3).adapt(
            easy.Xs, easy.ys, easy.Xt
        )
        assert np.mean(model.predict(easy.Xt) == easy.yt) > 0.8, name
