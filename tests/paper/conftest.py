"""Toy datasets under the real names, so that every experiment runs in a moment without data."""

import pytest

from paper import plans
from paper.records import Cell
from toys import install


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toy datasets in place of the real ones, with five methods."""
    install(monkeypatch)


@pytest.fixture
def cell(toy) -> Cell:
    return next(c for c in plans.cells_of("coil") if c.method == "PCA")
