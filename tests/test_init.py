"""The top level: public names, nothing else, at no cost."""

import subprocess
import sys

import pytest

import transferable


def test_every_public_name_is_there():
    for name in transferable.__all__:
        assert getattr(transferable, name) is not None
    assert dir(transferable) == sorted(transferable.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'TDFD'"):
        transferable.TDFD  # noqa: B018


def run(code, folder):
    """Run lines in a new process, in which `absent` fails if one of some modules is imported."""
    absent = """
import importlib, pkgutil, sys
def absent(*names):
    assert not set(names) & set(sys.modules), set(names) & set(sys.modules)
"""
    command = [sys.executable, "-c", absent + code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr


def test_no_step_imports_what_a_later_one_needs(tmp_path):
    run(
        """
import transferable.cli
absent("numpy", "scipy", "sklearn", "matplotlib", "pooch", "pandas")
for name in [name for name in sys.modules if name.split(".")[0] in ("typer", "transferable")]:
    del sys.modules[name]
import transferable
absent("numpy")
from transferable import TFDF
absent("matplotlib", "typer", "pooch", "faiss")
transferable.all_estimators()
absent("transferable.deep")
model = TFDF(n_neighbors=3).adapt([[0.0], [1.0]] * 9, [0, 1] * 9, [[0.0], [1.0]] * 9)
transferable.save(model, "model.tfm")
transferable.load("model.tfm").predict([[0.0]])
absent("torch", "PIL", "transferable.images")
from transferable.datasets import load_printed_to_handwritten
load_printed_to_handwritten()
absent("matplotlib.pyplot", "matplotlib.font_manager", "matplotlib.backends.backend_agg")
import transferable.plots
absent("matplotlib.pyplot")
""",
        tmp_path,
    )


@pytest.mark.processes
def test_an_import_leaves_what_a_process_shares_as_it_is(tmp_path):
    """Whatever other libraries do when they are imported is not ours."""
    for extra in ("torch", "dask"):
        pytest.importorskip(extra)
    run(
        """
import transferable
walk = pkgutil.walk_packages(transferable.__path__, "transferable.")
names = [module.name for module in walk if not module.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
for name in [name for name in sys.modules if name.startswith("transferable")]:
    del sys.modules[name]
from transferable.testing import global_state
before = global_state()
for name in names:
    importlib.import_module(name)
after = global_state()
assert [name for name in before if before[name] != after[name]] == []
""",
        tmp_path,
    )
