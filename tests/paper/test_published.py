"""The printed numbers and their contradictions."""

import pytest

from paper.plans import ABLATION, COMPARED
from paper.tables import contradicted_averages, published


@pytest.mark.parametrize(
    ("dataset", "n_tasks", "n_methods", "tfdf"),
    [
        ("surf", 12, 13, 54.1),
        ("decaf6", 12, 17, 92.5),
        ("digits", 2, 13, 85.2),
        ("coil", 2, 12, 92.7),
    ],
)
def test_tables_are_complete_and_give_the_papers_averages(dataset, n_tasks, n_methods, tfdf):
    cells = published("accuracy", dataset)
    assert len({task for _, task in cells}) == n_tasks
    assert len({method for method, _ in cells}) == n_methods
    own = [value for (method, _), value in cells.items() if method == "TFDF"]
    assert sum(own) / n_tasks == pytest.approx(tfdf, abs=0.06)


def test_contradictions_are_found_by_recomputing():
    found = {name: {s.method for s in contradicted_averages(name)} for name in ("surf", "decaf6")}
    assert found == {"surf": {"SVM", "CORAL", "McDA"}, "decaf6": {"DNN"}}
    assert contradicted_averages("digits") == contradicted_averages("coil") == []
    svm = contradicted_averages("surf")[0]
    assert (svm.printed, round(svm.recomputed, 1)) == (41.1, 41.7)


def test_ablation_and_times_cover_the_same_datasets():
    for dataset in COMPARED:
        assert {method for method, _ in published("ablation", dataset)} == set(ABLATION)
        assert {m for m, _ in published("minutes", dataset)} == {"JDA", "MEDA", "TFDF"}


def test_a_dataset_the_paper_does_not_have_has_no_numbers():
    assert published("accuracy", "efficientnet") == {}
    assert contradicted_averages("efficientnet") == []
