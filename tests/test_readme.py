"""What the documents show runs, and what they list is what there is."""

import re
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from transferable import all_estimators, datasets
from transferable.cli import app

ROOT = Path(__file__).parents[1]
README = ROOT.joinpath("README.md").read_text(encoding="utf-8")
OWN_DATA = ROOT.joinpath("docs", "own-data.md").read_text(encoding="utf-8")
METHODS = ROOT.joinpath("docs", "methods.md").read_text(encoding="utf-8")


def test_python_blocks_run(tmp_path, monkeypatch):
    """In order and in one session, with fewer digits and the two files that the demo writes."""
    monkeypatch.chdir(tmp_path)
    task = datasets.load_printed_to_handwritten()
    task.update(Xs=task.Xs[:420], ys=task.ys[:420])
    monkeypatch.setattr(datasets, "load_printed_to_handwritten", lambda **_: task)
    assert CliRunner().invoke(app, ["demo", "--export", "."]).exit_code == 0

    session = {}
    blocks = re.findall(r"^```python\n(.*?)^```", README + OWN_DATA, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) > 8
    for block in blocks:
        exec(compile(block, "README.md", "exec"), session)  # noqa: S102
    assert np.mean(session["later"] == task.yt[1500:]) > 0.5
    assert set(session["target"]["digit"]) <= set(range(10))


def test_the_readme_is_short():
    assert len(README.splitlines()) < 120


def listed(page):
    return set(re.findall(r"^\| `(\w+)`", page, flags=re.MULTILINE))


def test_methods_listed_are_the_methods_there_are():
    assert listed(METHODS) == {name for name, _ in all_estimators()}
    assert {"TFDF", "MEDA"} <= listed(README) < listed(METHODS)


def test_the_layout_names_every_package_and_module():
    page = ROOT.joinpath("CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = page.split("## Layout")[1].split("\n## ")[0].splitlines()
    first_column = [row.split(" | ")[0] for row in rows if row.startswith("| `")]
    named = re.findall(r"`([\w.]+)/?`", " ".join(first_column))
    there = {
        path.name
        for path in ROOT.joinpath("src", "transferable").iterdir()
        if path.suffix == ".py" or path.joinpath("__init__.py").exists()
    }
    assert sorted(named) == sorted(there - {"__init__.py"})


def test_the_index_leads_to_every_page_and_links_lead_somewhere():
    pages = sorted(ROOT.joinpath("docs").glob("*.md"))
    index = ROOT.joinpath("docs", "index.md").read_text(encoding="utf-8")
    parts = {"index.md", "reproduction-notes.md"}  # `make paper` puts the notes into its page
    for name in {page.name for page in pages} - parts:
        assert f"]({name})" in index, name
    for page in (*pages, ROOT / "README.md"):
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert page.parent.joinpath(link).exists(), f"{page.name}: {link}"
