"""What the benchmark of methods makes of its records."""

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


def test_the_choice_without_labels_follows_consistency_alone():
    rows = methods.render(RECORDS).splitlines()
    (chosen,) = [row for row in rows if "chosen without labels" in row]
    assert chosen == "| *chosen without labels* | 50.0 | 70.0 | 60.0 |  |"
    assert rows[4].startswith("| TFDF |")  # the best mean


def test_methods_without_a_result_on_every_task_have_no_mean_and_come_last():
    failed = [{**RECORDS[0], "method": "JDA", "accuracy": None}]
    alone = [{**RECORDS[1], "method": "JDA", "accuracy": 1.0, "consistency": 0.0}]
    assert "JDA" not in methods.render([*RECORDS, *failed])
    rows = methods.render([*RECORDS, *failed, *alone]).splitlines()
    assert rows[-1] == "| JDA | - | 100.0 | - | 1.0 |"


def test_tasks_that_few_methods_have_done_are_left_out():
    begun = {**RECORDS[0], "task": "3->1"}
    assert methods.render([*RECORDS, begun]) == methods.render(RECORDS)


def test_gains_of_class_confusion_task_by_task():
    assert methods.render_confusion(RECORDS).splitlines()[2:] == [
        "| COIL20 | 1->2 | 50.0 | +10.0 | 40.0 | +10.0 |",
        "| COIL20 | 2->1 | 70.0 | -5.0 | 40.0 | +0.0 |",
        "| COIL20 | *mean* | 60.0 | +2.5 | 40.0 | +5.0 |",
    ]


def test_parts_go_between_their_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- one -->\nold\n<!-- end one -->\nb\n")
    methods.write(page, {"one": lambda records: f"{len(records)} new"}, [1, 2])
    assert page.read_text() == "a\n<!-- one -->\n2 new\n<!-- end one -->\nb\n"


def test_every_method_enters_beside_models_of_the_source():
    entered = methods.methods()
    assert {"1-NN", "TFDF", "SPL", "TFDF as published"} <= set(entered)
    assert "AdaptedClassifier" not in entered
