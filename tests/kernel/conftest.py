"""The kernel classifiers, with every kind of last stage."""

import pytest
from sklearn.base import clone

from problems import published
from transferable import ARTL, MEDA, TFDF, TFDFV

CLASSIFIERS = {
    "ARTL": ARTL(),
    "MEDA": MEDA(manifold_dim=3),
    "TFDFV": TFDFV(),
    "TFDFV-second-order": TFDFV(second_order=0.1, manifold_dim=3),
    "TFDF": TFDF(),
    "TFDF-adam": published(solver="adam", confusion_iter=5, confusion_form="printed"),
    "TFDF-published": TFDF.as_published(confusion_iter=3),
    "TFDFV-published": TFDFV.as_published(manifold_dim=3),
}


@pytest.fixture(params=CLASSIFIERS)
def estimator(request):
    """An unfitted kernel classifier."""
    return clone(CLASSIFIERS[request.param])


@pytest.fixture(params=["ARTL", "MEDA", "TFDFV", "TFDF"])
def method(request):
    """One estimator of each method."""
    return clone(CLASSIFIERS[request.param])
