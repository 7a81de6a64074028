"""The loop: checkpoints, losses that are not finite, statistics of batch normalisation."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from problems import small_problem
from transferable import deep
from transferable.deep._training import schedule
from transferable.deep.networks import DomainNorm, Network

torch.set_num_threads(1)

PROBLEM = small_problem(n_source=60, n_target=48, n_features=6)
MARKED = np.r_[PROBLEM.ys, np.full(48, -1)]
LEAST = {"epochs": 3, "epoch_steps": 4, "batch_size": 16}


class StoppedError(Exception):
    """Somebody pulled the plug."""


class Same:
    """Leaves rows as they are; every one looks the same to a checkpoint."""

    def __init__(self, stop_after=None):
        self.calls, self.stop_after = 0, stop_after

    def __call__(self, x, generator):
        self.calls += 1
        if self.calls == self.stop_after:
            raise StoppedError
        return x + 0.01 * torch.randn(x.shape, generator=generator)

    def __repr__(self):
        return "Same()"


@pytest.mark.parametrize("call", [2, 10, 18, 26, 34])
@pytest.mark.parametrize(
    "model",
    [
        deep.DANN(**LEAST, warmup_epochs=1),
        deep.ADDA(**LEAST, adversarial_epochs=3),
        deep.MCD(**LEAST),
        deep.DeepTFDF(**LEAST, n_rounds=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_stopped_fit_goes_on_to_the_same_bit(model, call, tmp_path):
    model.set_params(augment=Same(), checkpoint=None)
    expected = model.fit(PROBLEM.X, MARKED).predict_proba(PROBLEM.Xt)
    epochs = len(model.history_)
    path = tmp_path / "fit.safetensors"
    model.set_params(checkpoint=path, augment=Same(stop_after=call))
    try:
        model.fit(PROBLEM.X, MARKED)
    except StoppedError:
        assert path.exists() == (call > 4)
        model.set_params(augment=Same()).fit(PROBLEM.X, MARKED)
    assert (model.predict_proba(PROBLEM.Xt) == expected).all()
    assert len(model.history_) == epochs
    assert not path.exists()


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "fit.safetensors"
    stopped = deep.DANN(**LEAST, checkpoint=path, augment=Same(stop_after=10))
    with pytest.raises(StoppedError):
        stopped.fit(PROBLEM.X, MARKED)
    with pytest.raises(ValueError, match="other rows or parameters; remove it"):
        stopped.set_params(learning_rate=0.1).fit(PROBLEM.X, MARKED)
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="is not a checkpoint"):
        stopped.fit(PROBLEM.X, MARKED)


class Explosive(torch.nn.Module):
    """Features that leave the numbers after so many passes in training."""

    def __init__(self, width, passes):
        super().__init__()
        self.layer, self.left = torch.nn.Linear(width, 8), passes

    def forward(self, x):
        self.left -= self.training
        return self.layer(x) * (1.0 if self.left >= 0 or not self.training else float("nan"))


def explosive(passes):
    return lambda shape, n: Network(Explosive(shape[0], passes), torch.nn.Linear(8, n))


def test_a_loss_that_is_not_finite_keeps_the_last_good_weights():
    good = deep.SourceOnly(**LEAST | {"epochs": 1}, network=explosive(100), schedule="constant")
    expected = good.fit(PROBLEM.X, MARKED).predict_proba(PROBLEM.Xt)
    model = deep.SourceOnly(**LEAST, network=explosive(6), schedule="constant")
    with pytest.warns(ConvergenceWarning, match=r"at step 7 \(training\): source. Lower learning_"):
        model.fit(PROBLEM.X, MARKED)
    assert (model.predict_proba(PROBLEM.Xt) == expected).all()
    assert len(model.history_) == 1


def test_without_a_good_epoch_there_is_no_model():
    model = deep.DeepCORAL(**LEAST, network=explosive(2))
    with pytest.raises(
        ValueError, match=r"at step 3 .*source and covariances. Lower learning_rate "
    ):
        model.fit(PROBLEM.X, MARKED)
    assert not hasattr(model, "network_")


def norm_net(input_shape, n_classes):
    features = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16))
    return Network(features, torch.nn.Linear(16, n_classes))


def statistics(model):
    (norm,) = (m for m in model.network_.modules() if isinstance(m, DomainNorm))
    assert norm.source.weight is norm.target.weight
    return norm.source.running_mean.numpy(), norm.target.running_mean.numpy()


def test_batch_normalisation_keeps_statistics_of_each_domain():
    far = PROBLEM.Xt + 100.0
    adapted = deep.DDC(**LEAST, network=norm_net, weight=1e-9).adapt(PROBLEM.Xs, PROBLEM.ys, far)
    source, target = statistics(adapted)
    assert np.abs(source - target).max() > 5
    Z = adapted.transform(PROBLEM.Xs, sample_domain=np.ones(60))
    assert np.abs(Z.mean(axis=0)).max() < 2 < np.abs(adapted.transform(PROBLEM.Xs)).max()
    alone = deep.SourceOnly(**LEAST, network=norm_net).adapt(PROBLEM.Xs, PROBLEM.ys, far)
    assert np.abs(alone.transform(PROBLEM.Xs).mean(axis=0)).max() < 2  # the source's statistics


def test_adabn_has_the_exact_statistics_of_the_target():
    model = deep.AdaBN(**LEAST, network=norm_net).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)
    layer = model.network_.features[0]
    with torch.no_grad():
        expected = layer(torch.tensor(PROBLEM.Xt, dtype=torch.float32)).mean(dim=0).numpy()
    np.testing.assert_allclose(statistics(model)[1], expected, atol=1e-5)
    with pytest.raises(ValueError, match="needs a network with batch normalisation"):
        deep.AdaBN(**LEAST, network="mlp").adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


def test_learning_rates():
    assert schedule("cosine", 0.0) == 1.0
    assert schedule("cosine", 1.0) == pytest.approx(0.0)
    assert schedule("inverse", 1.0) == pytest.approx(11**-0.75)
    assert schedule("constant", 0.7) == 1.0
    model = deep.DDC(**LEAST, warmup_epochs=1).fit(PROBLEM.X, MARKED)
    assert [entry["phase"] for entry in model.history_] == ["source", "adapting", "adapting"]
    last_steps = [(4 * epoch + 3) / 12 for epoch in range(3)]
    expected = [1e-3 * schedule("cosine", t) for t in last_steps]
    assert [entry["learning_rate"] for entry in model.history_] == pytest.approx(expected)
    assert "means" not in model.history_[0]
    assert model.history_[1]["means"] > 0


def test_free_class_shares_help_where_classes_are_absent():
    wide = small_problem(n_source=300, n_target=240, n_features=8, n_classes=6, shift=0.3, seed=1)
    left = np.isin(wide.yt, [0, 1])
    model = deep.DeepTFDF(epochs=6, epoch_steps=25, n_rounds=3, batch_size=64)
    accuracy = {}
    for shares in ("kept", "free"):
        model.set_params(class_shares=shares).adapt(wide.Xs, wide.ys, wide.Xt[left])
        assert {e["class_shares"] for e in model.history_ if "class_shares" in e} == {shares}
        accuracy[shares] = model.score(wide.Xt[left], wide.yt[left])
    assert accuracy["free"] > accuracy["kept"] - 0.01
    assert accuracy["free"] > 0.9
