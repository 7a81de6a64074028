"""The queue of the deep benchmarks and the tables made of its records."""

import deep
import deep_jobs
import deep_render


def test_every_job_has_a_key_of_its_own_and_the_first_are_what_matters():
    jobs = deep_jobs.jobs()
    assert len({deep_jobs.key(job) for job in jobs}) == len(jobs)
    assert {job["method"] for job in jobs[:4]} == {"DeepTFDF", "SourceOnly"}
    assert {job["table"] for job in jobs} >= {"full", "half", "framing", "skada", "features"}


def test_tables_come_from_records(tmp_path, monkeypatch):
    page, file = tmp_path / "deep.md", tmp_path / "records.jsonl"
    page.write_text("# Page\n<!-- full -->\nold\n<!-- /full -->\n<!-- half -->\n<!-- /half -->\n")
    for seed, accuracy in ((0, 97.0), (1, 99.0)):
        job = {"table": "full", "method": "DeepTFDF", "task": "M->U", "seed": seed}
        deep.write(file, job | {"adapted": accuracy, "test": 96.0, "key": str(seed)})
    assert [record["key"] for record in deep.read(file)] == ["0", "1"]
    monkeypatch.setattr(deep_render, "PAGE", page)
    deep_render.render(file)
    text = page.read_text()
    assert "| DeepTFDF | 98.00 (97.00 to 99.00) | 96.00 (96.00 to 96.00) | - | - | 2 |" in text
    assert "old" not in text
    assert "<!-- half -->\nNot measured yet.\n<!-- /half -->" in text


def test_a_failed_job_says_why_and_stops_nothing():
    record = deep.attempt(
        {"table": "nothing", "method": "DDC", "task": "M->U", "seed": 0}, "cpu", 1
    )
    assert "KeyError" in record["error"]
    assert "failed" in deep.told(record)


def test_framings_are_28_pixels_wide():
    digit = deep_jobs.np.full((2, 16, 16), 255, dtype="uint8")
    frames = {name: deep_jobs.in_frame(digit, name) for name in deep_jobs.FRAMINGS}
    filled = {name: (frame > 0).any(axis=0) for name, frame in frames.items()}
    assert {name: int(mask.sum()) for name, mask in filled.items()} == {
        "pad6": 16 * 16,
        "box": 20 * 20,
        "resized": 28 * 28,
    }
