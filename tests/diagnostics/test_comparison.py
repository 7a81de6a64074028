"""Methods beside each other."""

from time import perf_counter, sleep

import numpy as np

from problems import small_problem
from transferable import TFDFV
from transferable.diagnostics import MethodOutcome, compare_methods, source_only_methods
from transferable.events import rounds
from transferable.transformers import CORAL

TASK = small_problem(n_source=40, n_target=30)


def outcome(*labels):
    return MethodOutcome("some", np.array(labels), 0.0)


def test_every_method_labels_every_target_row_and_is_left_unfitted():
    methods = {**source_only_methods(), "TFDFV": TFDFV(), "CORAL": CORAL()}
    seen = []

    def track(items):
        for item in items:
            seen.append(item[0])
            yield item

    outcomes = compare_methods(methods, TASK.Xs, TASK.ys, TASK.Xt, track=track)
    assert [o.name for o in outcomes] == list(methods) == seen
    assert all(o.predicted.shape == (30,) and not o.failure for o in outcomes)
    assert not hasattr(methods["TFDFV"], "classes_")


def test_a_method_that_fails_does_not_stop_the_others():
    methods = {"bad": TFDFV(n_neighbors=5000), "good": CORAL()}
    bad, good = compare_methods(methods, TASK.Xs, TASK.ys, TASK.Xt)
    assert bad.predicted is None
    assert "n_neighbors=5000" in bad.failure
    assert good.predicted is not None


class Slow(CORAL):
    """Takes a minute, in a thousand rounds."""

    def _fit_domains(self, domains):
        for _ in rounds(1000):
            sleep(0.06)
        super()._fit_domains(domains)


def test_a_fit_is_stopped_at_its_next_round_when_time_is_up():
    methods = {"slow": Slow(), "late": CORAL()}
    start = perf_counter()
    slow, late = compare_methods(methods, TASK.Xs, TASK.ys, TASK.Xt, max_seconds=0.5)
    assert perf_counter() - start < 30
    assert (slow.predicted, slow.left_out, slow.failure) == (None, True, "no time was left")
    assert slow.seconds > 0.1
    assert late.left_out
