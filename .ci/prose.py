"""Check the prose of pages, docstrings, help and messages: no banned phrase, not too many words.

``make lint`` runs it beside codespell. .ci/banned-phrases.txt has the phrases.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_WORDS = 19_500  # of docs/**/*.md, as `wc -w` counts
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(path for path in ROOT.glob("docs/**/*.md") if "reference" not in path.parts),
]
EXAMPLES = sorted(ROOT.glob("docs/gallery/plot_*.py"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TEMPLATES = sorted((ROOT / "src").rglob("*.html"))
_CODE = re.compile(r"^ *```.*?^ *```|`+[^`]*`+|<!--.*?-->|\]\([^)]*\)|\S*://\S*", re.M | re.S)


def prose(path):
    """Return the text of a file with code blanked out, line by line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        _, head, body = text.split('"""', 2)
        comments = [line if line.startswith("#") else "" for line in body.splitlines()]
        text = head + "\n".join(comments)
    blank = _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    return blank.splitlines()


def texts(path):
    """Return docstrings, help and messages of a module, with the number of each first line.

    They are the constants of several words.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            text = _CODE.sub(lambda code: "\n" * code[0].count("\n"), node.value)
            yield node.lineno, " ".join(text.split())


def phrases():
    """Return the banned phrases and what to write instead."""
    lines = (ROOT / ".ci" / "banned-phrases.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" => ") for line in lines if line and not line.startswith("#")]
    return [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in pairs]


def problems():
    """Return what is wrong, one line each."""
    banned = phrases()
    lines = [(path, enumerate(prose(path), start=1)) for path in (*PAGES, *EXAMPLES, *TEMPLATES)]
    lines += [(path, texts(path)) for path in SOURCES]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: {advice}"
        for path, numbered in lines
        for number, line in numbered
        for pattern, advice in banned
        for match in pattern.finditer(line)
    ]
    docs = [path for path in PAGES if path.parent != ROOT]
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in docs)
    if words > MAX_WORDS:
        found.append(f"docs: {words} words; at most {MAX_WORDS}: shorten, or move to records")
    return found


if __name__ == "__main__":
    found = problems()
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
