"""The comparison of two source trees: equal ones are equal, and what differs is found."""

import numpy as np
import pytest

import differential
import transferable.classifiers

TWO = ["--before", str(differential.OWN), "--only", "toy, no"]


def test_a_tree_equals_itself(capsys):
    assert differential.main(TWO) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:26].rstrip() for line in lines[:2]] == [
        "ok  toy, nothing automatic",
        "ok  toy, no target",
    ]
    assert lines[2:] == ["2 of 2 problems equal, 0 not"]


def test_a_planted_error_is_found(capsys):
    assert differential.main([*TWO, "--planted"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 of 2 planted errors found, 0 not"


def test_a_planted_error_that_is_not_there_fails(capsys, monkeypatch):
    monkeypatch.setattr(differential, "PLANTED", 0.0)
    assert differential.main([*TWO[:3], "toy, no target", "--planted"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 of 1 planted errors found, 1 not"


def test_a_tree_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"failed with status \[2, 2\]"):
        differential.main(["--before", str(tmp_path), "--after", str(tmp_path)])


def test_no_problem_with_the_word_is_a_failure():
    assert differential.main([*TWO[:3], "no such problem"]) == 1


def test_titles_differ():
    titles = [problem.title for problem in differential.problems()]
    assert len(set(titles)) == len(titles) >= 40


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"scores": np.array([0.0, 2.0 + 1e-6])}, (5e-7, "")),
        ({"scores": np.array([0.0, np.nan])}, (np.inf, "")),
        ({"scores": np.zeros(3)}, (0.0, "scores: shape (2,) before, (3,) after")),
        ({"predictions": np.array([1, 2, 4])}, (0.0, "predictions: 1 of 3 differ")),
        ({"transduction_": np.ones(2)}, (np.inf, None)),
    ],
)
def test_what_differs_is_reported(changed, said):
    before = {"scores": np.array([0.0, 2.0]), "predictions": np.array([1, 2, 3])}
    assert differential.difference(before, before) == (0.0, "")
    apart, words = differential.difference(before, before | changed)
    assert apart == pytest.approx(said[0], rel=1e-3)
    assert said[1] is None or words == said[1]


def test_errors_are_differences_even_if_equal():
    error = {"error": np.array("ValueError: no")}
    assert differential.difference(error, error) == (
        np.inf,
        "before: ValueError: no; after: ValueError: no",
    )


def test_parameters_that_a_tree_lacks_are_renamed_or_left_out(monkeypatch):
    class Earlier:
        def __init__(self, *, graph="auto", n_anchors="auto", record_history=True):
            self.graph, self.n_anchors, self.record_history = graph, n_anchors, record_history

    class Later:
        def __init__(self, *, graph="auto"):
            self.graph = graph

    parameters = {"graph": "anchors", "n_anchors": 12, "record_history": False}
    problem = differential.Problem("", parameters=parameters)
    monkeypatch.setattr(transferable.classifiers, "TFDF", Earlier)
    earlier = differential.estimator(problem)
    assert (earlier.graph, earlier.n_anchors, earlier.record_history) == ("anchors", 12, False)
    monkeypatch.setattr(transferable.classifiers, "TFDF", Later)
    assert differential.estimator(problem).graph == 12
    monkeypatch.undo()
    assert differential.estimator(problem).graph == 12


def test_times_of_both_trees_are_compared_by_turns(capsys, monkeypatch):
    monkeypatch.setattr(differential, "timed", lambda: [differential.Problem("small", rows="toy")])
    assert differential.time_of("small") > 0
    asked = []
    monkeypatch.setattr(differential, "start", lambda tree, *_: asked.append(tree) or tree)
    monkeypatch.setattr(differential, "finished", lambda tree: [f"{len(str(tree)) + len(asked)}"])
    assert differential.main(["--before", "a", "--after", "bcd", "--timing"]) == 0
    assert list(map(str, asked)) == ["a", "bcd"] * differential.REPEATS
    assert "2.00 s before    5.00 s after, ratio 2.500" in capsys.readouterr().out
