"""The built site, which `make docs` checks once it is there."""

from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "build" / "docs"


@pytest.fixture(scope="session")
def site():
    if not SITE.joinpath("index.html").exists():
        pytest.fail("there is no built site in build/docs; run `make docs`")
    return SITE
