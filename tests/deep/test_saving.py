"""Deep models in the library's model files, and the library without torch."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import transferable
from problems import small_problem
from transferable import deep
from transferable.deep.networks import Network

torch.set_num_threads(1)

PROBLEM = small_problem(n_source=30, n_target=24, n_features=64)
LEAST = {"epochs": 1, "epoch_steps": 3, "batch_size": 8, "input_shape": (1, 8, 8)}
MORE = {"ADDA": {"adversarial_epochs": 1}, "DeepTFDF": {"n_rounds": 1}, "AdaBN": {}}
NAMES = [name for name in deep.__all__ if name not in ("Batch", "RandomAffine", "Training")]


def fitted(name, **more):
    settings = LEAST | {"augment": deep.RandomAffine(shift=1)} | MORE.get(name, {}) | more
    return getattr(deep, name)(**settings).adapt(PROBLEM.Xs, PROBLEM.ys, PROBLEM.Xt)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_comes_back_to_the_bit(name, tmp_path):
    model = fitted(name)
    transferable.save(model, tmp_path / "model.tfm")
    again = transferable.load(tmp_path / "model.tfm")
    assert (again.predict_proba(PROBLEM.Xt) == model.predict_proba(PROBLEM.Xt)).all()
    assert (again.transform(PROBLEM.Xt) == model.transform(PROBLEM.Xt)).all()
    assert again.history_ == model.history_
    assert repr(again.get_params()) == repr(model.get_params())


def own_network(shape, n_classes):
    return Network(torch.nn.Flatten(), torch.nn.Linear(64, n_classes))


def test_a_network_of_ones_own_is_not_saved(tmp_path):
    model = fitted("SourceOnly", network=own_network)
    with pytest.raises(TypeError, match="network is own_network, which cannot be saved"):
        transferable.save(model, tmp_path / "model.tfm")


def test_weights_that_do_not_fit_their_network(tmp_path):
    model = fitted("SourceOnly", network="mlp-bn")
    model.network = "mlp"  # as a file would say that was put together by hand
    with pytest.raises(TypeError, match="weights do not fit the network 'mlp' for rows of"):
        transferable.save(model, tmp_path / "model.tfm")


def test_loading_leaves_random_numbers_alone(tmp_path):
    transferable.save(fitted("MCD"), tmp_path / "model.tfm")
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    transferable.load(tmp_path / "model.tfm")
    assert torch.equal(torch.rand(2), expected)


BLOCK = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            raise ModuleNotFoundError(f"No module named {name}", name=name)

sys.meta_path.insert(0, Absent())
"""


def without(module, code):
    """What Python says of code where a module cannot be imported."""
    blocked = BLOCK.replace("MODULE", repr(module)) + code
    return subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True)


@pytest.mark.parametrize("module", ["torch", "safetensors"])
def test_without_the_extra_one_line_names_it(module):
    done = without(module, "import transferable.deep")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert f"needs {module}" in last
    assert "pip install '.[deep]' in a clone of the source" in last


def test_a_saved_deep_model_without_torch(tmp_path):
    transferable.save(fitted("DDC"), tmp_path / "model.tfm")
    path = str(tmp_path / "model.tfm")
    done = without("torch", f"import transferable; transferable.load({path!r})")
    assert done.returncode == 1
    assert "pip install '.[deep]' in a clone of the source" in done.stderr.strip().splitlines()[-1]


def test_history_tells_no_target_accuracy():
    entry = fitted("DeepTFDF").history_[-1]
    told = {"epoch", "phase", "source", "labels", "learning_rate", "seconds", "entropy", "shares"}
    assert told <= set(entry)
    assert not any("accuracy" in name for name in entry)
    assert sum(entry["shares"]) == pytest.approx(1.0)
    np.testing.assert_equal(np.isfinite(entry["entropy"]), True)
