"""Tensors passed in under scikit-learn's array API dispatch, which scipy must know of at import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import numpy as np, sklearn, torch
from problems import small_problem
from transferable import MEDA, TFDF
from transferable.transformers import CORAL, TCA

P = small_problem(seed=1)
names = np.array(["a", "b", "c"])
rows = [torch.as_tensor(P[name]) for name in ("Xs", "ys", "Xt")]
new = rows[2]

def check(tensor, array):
    assert isinstance(tensor, torch.Tensor), type(tensor)
    np.testing.assert_allclose(tensor.numpy(), array, atol=1e-8)

for estimator in (TFDF(), TFDF(n_landmarks=20), MEDA(manifold_dim=3)):
    plain = estimator.adapt(P.Xs, P.ys, P.Xt)
    expected = [plain.predict(P.Xt), plain.predict_proba(P.Xt), plain.decision_function(P.Xt)]
    with sklearn.config_context(array_api_dispatch=True):
        model = estimator.adapt(*rows)
        found = [model.predict(new), model.predict_proba(new), model.decision_function(new)]
        for tensor, array in zip(found, expected):
            check(tensor, array)
        named = estimator.adapt(rows[0], names[P.ys], rows[2]).predict(new)
        assert named.dtype.kind == "U"
    # Without dispatch a tensor is what scikit-learn takes it for: something like an array.
    assert isinstance(model.predict(new), np.ndarray)

for estimator in (TCA(n_components=2), CORAL()):
    plain = estimator.adapt(P.Xs, P.ys, P.Xt).transform(P.Xt)
    with sklearn.config_context(array_api_dispatch=True):
        check(estimator.adapt(*rows).transform(new), plain)
print("done")
"""


def test_tensors_in_tensors_out():
    pytest.importorskip("torch")
    tests = str(Path(__file__).parent)
    path = os.pathsep.join([tests, *sys.path])
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "done", done.stderr
