"""What the benchmark of methods makes of its records."""

import pytest

import methods

RECORDS = [
    {
        "dataset": "coil",
        "task": task,
        "method": name,
        "accuracy": accuracy,
        "consistency": consistency,
        "seconds": 1.0,
    }
    for name, accuracies, consistency in (
        ("TFDFV", (0.5, 0.7), 0.9),
        ("TFDF", (0.6, 0.65), 0.8),
        ("TFDFV as published", (0.4, 0.4), 0.1),
        ("TFDF as published", (0.5, 0.4), 0.1),
    )
    for task, accuracy in zip(("1->2", "2->1"), accuracies, strict=True)
]


def table(records):
    return {row.pop("method"): list(row.values()) for row in methods.table("coil", records)}


def test_the_choice_without_labels_follows_consistency_alone():
    rows = table(RECORDS)
    assert rows["chosen without labels"] == pytest.approx([50.0, 70.0, 60.0, None])
    assert next(iter(rows)) == "TFDF"  # the best mean


def test_methods_without_a_result_on_every_task_have_no_mean_and_come_last():
    failed = [{**RECORDS[0], "method": "JDA", "accuracy": None}]
    alone = [{**RECORDS[1], "method": "JDA", "accuracy": 1.0, "consistency": 0.0}]
    assert "JDA" not in table([*RECORDS, *failed])
    rows = table([*RECORDS, *failed, *alone])
    assert list(rows)[-1] == "JDA"
    assert rows["JDA"] == [None, 100.0, None, 1.0]


def test_tasks_that_few_methods_have_done_are_left_out():
    begun = {**RECORDS[0], "task": "3->1"}
    assert table([*RECORDS, begun]) == table(RECORDS)


def test_gains_of_class_confusion_task_by_task():
    assert [list(row.values())[1:] for row in methods.confusion(RECORDS)] == [
        ["1->2", 50.0, "+10.0", 40.0, "+10.0"],
        ["2->1", 70.0, "-5.0", 40.0, "+0.0"],
        ["mean", 60.0, "+2.5", 40.0, "+5.0"],
    ]


def test_every_method_enters_beside_models_of_the_source():
    entered = methods.methods()
    assert {"1-NN", "TFDF", "SPL", "TFDF as published"} <= set(entered)
    assert "AdaptedClassifier" not in entered
