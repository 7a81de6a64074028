"""Every command and snippet of README.md and docs runs, but for those that are marked and listed.

A page's blocks run in order, in one session and one empty folder: ``python`` and ``pycon`` as they
are, ``sh``, ``bash`` and ``console`` through the command line. ``<!-- not run: reason -->`` before
a block leaves it out. ``<!-- setup: ... -->`` holds Python, or commands, that run unseen.
"""

import ast
import contextlib
import doctest
import importlib
import inspect
import re
import shlex
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import sklearn
from typer.testing import CliRunner

from transferable import all_estimators, datasets
from transferable.cli import app

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        *sorted(ROOT.glob("docs/*.md")),
        *sorted(ROOT.glob("docs/families/*.md")),
    )
}
REASONS = {"clone", "install", "GPU", "cluster", "hours", "network"}
PYTHON, SHELL = {"python", "pycon", "setup"}, {"sh", "bash", "console"}
SHOWN = {"text", "json", "csv", "toml", "yaml", "html", "css"}
# Blocks that do not run: the reasons of each page, in order.
NOT_RUN = {
    "README.md": ["install", "install"],
    "docs/cluster.md": ["install", "cluster"],
    "docs/deep.md": ["install", "network"],
    "docs/index.md": ["install"],
    "docs/many-rows.md": ["GPU"],
    "docs/reliability.md": ["hours"],
    "docs/tutorial-pictures.md": ["install", "network"],
}
_PART = re.compile(
    r"^ *<!-- not run: (?P<reason>\w+)[^>]*-->\n"
    r"|^ *<!-- setup:(?P<setup>.*?)-->"
    r"|^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<code>.*?)^ *```$",
    flags=re.DOTALL | re.MULTILINE,
)
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)#:\s]*)(?:#[^)]*)?\)")


class Block(NamedTuple):
    """A block of code of a page: its first line, and why it does not run."""

    line: int
    language: str
    code: str
    reason: str | None


def blocks(page):
    """Return the blocks of a page, set-up among them, in order."""
    found, reason, marked = [], None, 0
    for part in _PART.finditer(page):
        if part["reason"]:
            reason, marked = part["reason"], part.end()
            continue
        if part["setup"]:
            code, line = part["setup"], page.count("\n", 0, part.start("setup"))
            language = "sh" if code.split()[0] == "transferable" else "setup"
        else:
            code, line = part["code"], page.count("\n", 0, part.start("code"))
            code = re.sub(f"^{part['indent']}", "", code, flags=re.MULTILINE)
            language = part["language"].strip()
        near = not page[marked : part.start()].strip()
        found.append(Block(line, language, code, reason if near else None))
        reason = None
    return found


def commands(block):
    """Return the commands of a shell's block."""
    lines = re.sub(r" *\\\n\s*", " ", block.code).splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [parts for line in lines if (parts := shlex.split(line, comments=True))]


def run_command(words):
    """Run a line of a shell; standard output may go to a file."""
    assert words[0] == "transferable", f"{shlex.join(words)}: mark the block as not run"
    target = words[words.index(">") + 1] if ">" in words else None
    arguments = words[1 : words.index(">")] if target else words[1:]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, f"{shlex.join(words)}: {done.output}\n{done.exception!r}"
    if target:
        Path(target).write_text(done.stdout, encoding="utf-8")


def missing_package(code):
    """Import what code imports, without warnings; return a package that is not installed."""
    for node in ast.walk(ast.parse(code)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if name != "__main__" and find_spec(name.partition(".")[0]) is None:
                return name.partition(".")[0]
            with warnings.catch_warnings(), contextlib.suppress(ImportError):
                warnings.simplefilter("ignore")
                importlib.import_module(name)
    return None


def run_python(page, block, session):
    """Run a block in the session of its page; return a package that it lacks."""
    if block.language == "pycon":
        test = doctest.DocTestParser().get_doctest(block.code, session, page, page, block.line)
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        failures, _ = doctest.DocTestRunner(optionflags=flags).run(test, clear_globs=False)
        session.update(test.globs)
        assert not failures
        return None
    if missing := missing_package(block.code):
        return missing
    exec(compile("\n" * block.line + block.code, page, "exec"), session)  # noqa: S102
    return None


@cache
def few_digits():
    """Return fewer printed digits, so that pages run in seconds."""
    task = datasets.load_printed_to_handwritten()
    task.update(Xs=task.Xs[:300], ys=task.ys[:300], Xt=task.Xt[:300], yt=task.yt[:300])
    task.images.update(source=task.images.source[:300], target=task.images.target[:300])
    return task


def runs(block):
    """Whether a block runs: it is code and has no mark."""
    return not block.reason and block.language in {*SHELL, *PYTHON}


@pytest.mark.filterwarnings("ignore:The inplace keyword", "ignore:FigureCanvasAgg is non-inter")
@pytest.mark.parametrize(
    "page", [name for name, text in PAGES.items() if any(map(runs, blocks(text)))]
)
def test_snippets_run(page, tmp_path, monkeypatch):
    task = few_digits()
    monkeypatch.setattr(datasets, "load_printed_to_handwritten", lambda **_: task)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRANSFERABLE_DATA", raising=False)
    session, lacking = {"__name__": "__main__"}, set()
    with sklearn.config_context():
        for block in filter(runs, blocks(PAGES[page])):
            if block.language in SHELL:
                for words in commands(block):
                    run_command(words)
            else:
                lacking.add(run_python(page, block, session))
    if lacking - {None}:
        pytest.skip(f"ran, apart from blocks that need {', '.join(sorted(lacking - {None}))}")


def test_every_block_has_a_language():
    for page, text in PAGES.items():
        for block in blocks(text):
            known = block.language.startswith("{") or block.language in {*PYTHON, *SHELL, *SHOWN}
            assert known, f"{page}, line {block.line}: {block.language!r}"


def test_blocks_that_do_not_run_are_listed():
    found = {page: [b.reason for b in blocks(text) if b.reason] for page, text in PAGES.items()}
    assert {page: reasons for page, reasons in found.items() if reasons} == NOT_RUN
    assert {reason for reasons in NOT_RUN.values() for reason in reasons} <= REASONS
    marks = {page: len(re.findall("<!-- not run", text)) for page, text in PAGES.items()}
    assert {page: count for page, count in marks.items() if count} == {
        page: len(reasons) for page, reasons in NOT_RUN.items()
    }, "a mark stands directly before its block"


def test_links_lead_somewhere_and_are_titles():
    for page, text in PAGES.items():
        for title, link in _LINK.findall(text):
            where = f"{page}: [{title}]({link})"
            assert ROOT.joinpath(page).parent.joinpath(link).exists(), where
            assert not re.search(r"^(https?:|\S+/\S*$)|\.(md|html|py)\b", title), where


def test_marks_and_languages_are_read():
    page = "<!-- setup:\nx = 1\n-->\n\n<!-- not run: GPU, long -->\n```sh\nnvidia-smi\n```\n"
    page += (
        "1. Then\n\n   ```console\n   $ transferable adapt a \\\n       b  # c\n   out\n   ```\n"
    )
    setup, marked, shown = blocks(page)
    assert (setup.language, setup.code.strip(), setup.reason) == ("setup", "x = 1", None)
    assert (marked.language, marked.reason) == ("sh", "GPU")
    assert commands(shown) == [["transferable", "adapt", "a", "b"]]


def test_the_readme_is_short():
    assert len(PAGES["README.md"].splitlines()) < 120


def test_every_estimator_has_a_family_and_a_row_in_the_table_of_methods():
    pages = {path.stem for path in ROOT.glob("docs/families/*.md")}
    table = PAGES["docs/methods.md"]
    for name, cls in all_estimators():
        where = f"`family` in {inspect.getsourcefile(cls)}"
        assert cls.family in pages, f"{where} is {cls.family!r}; docs/families has {sorted(pages)}"
        assert f"\n| `{name}` |" in table, f"{name} has no row in docs/methods.md"
    assert pages == {cls.family for _, cls in all_estimators()}


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
