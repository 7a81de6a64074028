"""Scatter terms and the landmark discrepancy against sums written out."""

import numpy as np
import pytest
import scipy.sparse as sp

from problems import random_codes
from transferable.domains import Groups
from transferable.terms.scatter import BetweenScatter, EdgeScatter, WithinScatter
from transferable.terms.weighted_rows import WeightedDiscrepancy

CODES = np.array([0, 1, 1, -1, 0, 2, 1, -1])


@pytest.fixture
def F():
    return np.random.default_rng(0).normal(size=(8, 3))


def test_within_and_between_add_up_to_the_total(F):
    member = CODES >= 0
    total = np.sum((F[member] - F[member].mean(axis=0)) ** 2)
    within, between = WithinScatter(CODES).value(F), BetweenScatter(CODES).value(F)
    assert within == pytest.approx(
        sum(np.sum((F[g == CODES] - F[g == CODES].mean(axis=0)) ** 2) for g in range(3))
    )
    assert within + between == pytest.approx(total)


def test_no_group_means_no_scatter(F):
    nobody = np.full(8, -1)
    assert WithinScatter(nobody).value(F) == 0.0
    assert BetweenScatter(nobody).value(F) == 0.0


def test_edges_sum_squared_differences(F):
    W = np.zeros((8, 8))
    W[0, 3] = W[3, 0] = 2.0
    W[4, 5] = W[5, 4] = 1.0
    expected = 2 * np.sum((F[0] - F[3]) ** 2) + np.sum((F[4] - F[5]) ** 2)
    assert EdgeScatter(sp.csr_array(W)).value(F) == pytest.approx(expected)


def test_landmark_discrepancy_is_its_three_sums():
    codes = random_codes(1, 12, 9, 3)
    rng = np.random.default_rng(2)
    Z, w, share = rng.normal(size=(21, 4)), rng.random(21), 0.4
    term = WeightedDiscrepancy(Groups(codes, 12, 3), share=share)
    term.weights = w[:, None]
    source = np.arange(21) < 12
    V = w[:, None] * Z / share

    def gap(members):
        difference = V[members & source].sum(0) / (members & source).sum()
        return np.sum((difference - V[members & ~source].sum(0) / (members & ~source).sum()) ** 2)

    expected = gap(np.ones(21, dtype=bool))
    for c in (0, 1):  # the last class has no target row
        members = codes == c
        pairs = V[members & source][:, None] - V[members & ~source][None]
        expected += gap(members) + np.mean(np.sum(pairs**2, axis=2))
    assert term.value(Z) == pytest.approx(expected)
    assert w @ term.product_for_weights(Z, w) == pytest.approx(expected)
