"""The graph through anchors: its formula, sums that add up, anchors that nobody chose."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from transferable._linalg.arrays import Arrays, unit_rows
from transferable._linalg.search import Anchors, AnchorSums, spherical_means

RNG = np.random.default_rng(0)
ROWS = unit_rows(RNG.normal(size=(200, 6)))
CENTERS = unit_rows(RNG.normal(size=(15, 6)))
FEATURES = RNG.normal(size=(200, 4))


def literal_ties(rows, centers, s):
    """Weights on the s nearest, by how much nearer they are than the next, over their sum."""
    Z = np.zeros((len(rows), len(centers)))
    for i, row in enumerate(rows):
        cosines = centers @ row
        nearest = np.argsort(-cosines)
        for j in nearest[:s]:
            Z[i, j] = cosines[j] - cosines[nearest[s]]
    return Z / Z.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("s", [1, 3, 14])
def test_ties_are_weights_on_the_nearest_anchors(s):
    ties = Anchors(CENTERS, s).ties(ROWS)
    np.testing.assert_allclose(ties.toarray(), literal_ties(ROWS, CENTERS, s), atol=1e-10)
    np.testing.assert_allclose(ties.sum(axis=1), 1.0)


def test_ties_are_continuous_in_the_rows():
    moved = unit_rows(ROWS + 1e-7 * RNG.normal(size=ROWS.shape))
    ties = [Anchors(CENTERS, 3).ties(rows).toarray() for rows in (ROWS, moved)]
    assert 0 < np.abs(ties[0] - ties[1]).max() < 1e-4


def test_a_row_that_is_as_near_to_all_counts_for_some_alike():
    ties = Anchors(CENTERS, 3).ties(np.zeros((1, 6))).toarray()
    np.testing.assert_allclose(ties.sum(), 1.0)
    assert ties.max() <= 0.25 + 1e-12


def test_the_graph_is_that_of_the_reference():
    Z = literal_ties(ROWS, CENTERS, 3)
    W = Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T
    np.testing.assert_allclose(W.sum(axis=1), 1.0)  # hence the Laplacian is I - W
    sums = Anchors(CENTERS, 3).sums([(ROWS, FEATURES)], 4)
    np.testing.assert_allclose(sums.gram, FEATURES.T @ W @ FEATURES, atol=1e-9)


def test_sums_of_blocks_add_up_in_any_partition():
    anchors = Anchors(CENTERS, 3)
    whole = anchors.sums([(ROWS, FEATURES)], 4)
    cuts = [0, 0, 17, 18, 120, 200]  # one block is empty
    blocks = [slice(*ends) for ends in pairwise(cuts)]
    parts = [anchors.sums([(ROWS[rows], FEATURES[rows])], 4) for rows in blocks]
    added = sum(parts[1:], parts[0]) + AnchorSums.none(15, 4)
    np.testing.assert_allclose(added.counts, whole.counts, atol=1e-12)
    np.testing.assert_allclose(added.gram, whole.gram, atol=1e-12)
    together = anchors.sums(((ROWS[rows], FEATURES[rows]) for rows in blocks), 4)
    np.testing.assert_allclose(together.gram, whole.gram, atol=1e-12)


def test_an_anchor_that_no_row_is_tied_to_adds_nothing():
    opposite = np.vstack([CENTERS, -unit_rows(CENTERS.mean(axis=0, keepdims=True))])
    near = ROWS[np.sort(ROWS @ CENTERS.T, axis=1)[:, -3] > ROWS @ opposite[-1]]
    features = FEATURES[: len(near)]
    with_it = Anchors(opposite, 2).sums([(near, features)], 4)
    assert with_it.counts[-1] == 0
    without = Anchors(CENTERS, 2).sums([(near, features)], 4)
    np.testing.assert_allclose(with_it.gram, without.gram, atol=1e-12)
    assert np.isfinite(with_it.means).all()


def test_torch_and_sparse_rows_agree():
    torch = pytest.importorskip("torch")
    expected = Anchors(CENTERS, 3).sums([(ROWS, FEATURES)], 4)
    rows, centers, features = (torch.as_tensor(table) for table in (ROWS, CENTERS, FEATURES))
    found = Anchors(centers, 3, Arrays("cpu")).sums([(rows, features)], 4)
    np.testing.assert_allclose(found.gram.numpy(), expected.gram, atol=1e-12)
    sparse, landmarks = sp.csr_array(ROWS), sp.csr_array(CENTERS)
    found = Anchors(landmarks, 3).sums([(sparse, FEATURES)], 4)
    np.testing.assert_allclose(found.gram, expected.gram, atol=1e-12)
    found = Anchors(landmarks, 3, Arrays("cpu")).sums([(sparse, features)], 4)
    np.testing.assert_allclose(found.gram.numpy(), expected.gram, atol=1e-12)


def test_means_find_the_middle_of_clusters_and_leave_empty_centres_alone():
    true = unit_rows(np.eye(3))
    rows = unit_rows(np.repeat(true, 50, axis=0) + 0.1 * RNG.normal(size=(150, 3)))
    alone = -unit_rows(np.ones((1, 3)))
    found = spherical_means(rows, np.vstack([rows[::50], alone]))
    assert (np.diag(found[:3] @ true.T) > 0.99).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    np.testing.assert_array_equal(found[3:], alone)
