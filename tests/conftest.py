"""Fixtures shared by the whole suite."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder with the real datasets; tests that need it are skipped where there is none."""
    folder = os.environ.get("TRANSFERABLE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the real datasets: set TRANSFERABLE_DATA to the folder that holds them")
    return Path(folder)
