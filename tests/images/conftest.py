"""Folders of drawn pictures, and a network by name."""

import pytest

from drawn import by_name, fill


@pytest.fixture
def photos(tmp_path):
    """Folders `source`, of classes, and `target`, without."""
    fill(tmp_path)
    return tmp_path


@pytest.fixture
def named(monkeypatch):
    """The network that "torchvision:tiny" names."""
    return by_name(monkeypatch)
