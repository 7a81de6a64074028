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


def test_importing_an_estimator_leaves_matplotlib_and_typer_alone():
    code = (
        "import sys\n"
        "from transferable import TFDF\n"
        "print(sorted({'matplotlib', 'typer', 'pooch'} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]", loaded.stderr


def test_an_import_leaves_what_a_process_shares_as_it_is():
    """Whatever other libraries do when they are imported is not ours."""
    for extra in ("torch", "dask"):
        pytest.importorskip(extra)
    code = (
        "import importlib, pkgutil, sys\n"
        "import transferable\n"
        "from transferable.testing import global_state\n"
        "names = [m.name for m in pkgutil.walk_packages(transferable.__path__, 'transferable.')]\n"
        "def load():\n"
        "    for name in names:\n"
        "        if not name.endswith('__main__'):\n"
        "            importlib.import_module(name)\n"
        "load()\n"
        "for name in [name for name in sys.modules if name.startswith('transferable')]:\n"
        "    del sys.modules[name]\n"
        "before = global_state()\n"
        "load()\n"
        "after = global_state()\n"
        "print(len(names) > 100, [name for name in before if before[name] != after[name]])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == "True []", told.stdout + told.stderr
