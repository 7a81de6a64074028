"""Folders of drawn pictures."""

import numpy as np
import pytest

from drawn import SHAPES, draw


@pytest.fixture
def photos(tmp_path):
    """Folders `source`, of classes, and `target`, without."""
    rng = np.random.default_rng(0)
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    for k, shape in enumerate(SHAPES * 12):
        (tmp_path / "source" / shape).mkdir(exist_ok=True)
        draw(shape, rng, night=False).save(tmp_path / "source" / shape / f"{k:02}.png")
        draw(shape, rng, night=True).save(tmp_path / "target" / f"{k:02} {shape}.jpg")
    return tmp_path
