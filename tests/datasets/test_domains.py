"""Any ordered pair of domains is a task, read when asked for."""

import numpy as np
import pytest

from transferable.datasets import DomainCollection


@pytest.fixture
def collection() -> DomainCollection:
    def read(domain: str):
        if domain == "lost":
            raise OSError("no file")
        return np.full((3, 2), 4.0), np.array([0, 1, 1])

    return DomainCollection("toys", ["a", "b", "lost"], ["car", "doll"], read, np.sqrt)


def test_tasks_follow_the_order_of_the_domains(collection):
    assert collection.tasks() == [
        *(("a", "b"), ("a", "lost")),
        *(("b", "a"), ("b", "lost")),
        *(("lost", "a"), ("lost", "b")),
    ]


def test_task_holds_both_domains_preprocessed(collection):
    task = collection.task("a", "b")
    assert task.name == "a->b"
    assert task.target_names.tolist() == ["car", "doll"]
    for X, y in ((task.Xs, task.ys), (task.Xt, task.yt)):
        np.testing.assert_array_equal(X, np.full((3, 2), 2.0))
        np.testing.assert_array_equal(y, [0, 1, 1])


def test_a_task_reads_only_its_own_domains(collection):
    assert collection.task("b", "a").Xs.shape == (3, 2)
    with pytest.raises(OSError, match="no file"):
        collection.task("a", "lost")


def test_tasks_share_no_memory(collection):
    collection.task("a", "b").Xs[:] = 0
    assert collection.task("a", "b").Xs.min() == 2


def test_unknown_domain(collection):
    message = "'c' is not a domain of toys; choose from a, b, lost"
    for ask in (lambda: collection.task("c", "lost"), lambda: collection.domain("c")):
        with pytest.raises(ValueError, match=message):
            ask()


def test_a_domain_is_no_target_of_itself(collection):
    with pytest.raises(ValueError, match="both 'a'"):
        collection.task("a", "a")


def test_repr_names_the_domains(collection):
    assert repr(collection) == "DomainCollection('toys', domains=('a', 'b', 'lost'))"
