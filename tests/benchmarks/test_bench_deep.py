"""The queue of the deep benchmarks and the tables made of its records."""

import deep
import deep_jobs
import deep_render
import recording


def test_every_job_has_a_key_of_its_own_and_the_first_are_what_matters():
    jobs = deep_jobs.jobs()
    assert len({deep_jobs.key(job) for job in jobs}) == len(jobs)
    assert {job["method"] for job in jobs[:4]} == {"DeepTFDF", "SourceOnly"}
    assert {job["table"] for job in jobs} >= {"full", "half", "framing", "skada", "features"}


def test_tables_come_from_records(tmp_path, monkeypatch):
    file = tmp_path / "records.jsonl"
    for seed, accuracy in ((0, 97.0), (1, 99.0)):
        job = {"table": "full", "method": "DeepTFDF", "task": "M->U", "seed": seed}
        deep.write(file, job | {"adapted": accuracy, "test": 96.0, "key": str(seed)})
    assert [record["key"] for record in deep.read(file)] == ["0", "1"]
    monkeypatch.setattr(recording, "RECORDS", tmp_path)
    deep_render.render(file)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["full.csv"]
    (row,) = recording.read("deep/full.csv")
    assert (row["runs"], row["M->U adapted"], row["M->U adapted, spread"]) == (
        "2", "98.00", "97.00 to 99.00",
    )  # fmt: skip
    assert row["U->M test"] == ""


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
