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
