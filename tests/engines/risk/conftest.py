"""The estimators of the engine, with every kind of last stage."""

import pytest
from sklearn.base import clone

from transferable import ARTL, MEDA, TFDF, TFDFV

ENGINE = {
    "ARTL": ARTL(),
    "MEDA": MEDA(manifold_dim=3),
    "TFDFV": TFDFV(),
    "TFDFV-second-order": TFDFV(second_order=0.1, manifold_dim=3),
    "TFDF": TFDF(),
    "TFDF-adam": TFDF(solver="adam", confusion_iter=5, confusion_form="printed"),
    "TFDF-lbfgs": TFDF(solver="lbfgs", confusion_iter=2),
}


@pytest.fixture(params=ENGINE)
def estimator(request):
    """An unfitted estimator of the engine."""
    return clone(ENGINE[request.param])


@pytest.fixture(params=["ARTL", "MEDA", "TFDFV", "TFDF"])
def method(request):
    """One estimator of each method."""
    return clone(ENGINE[request.param])
