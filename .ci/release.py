"""Check that a release is told everywhere: version, changelog, citation, and TAG if it is set."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def text(path):
    """What a file of the repository says."""
    return ROOT.joinpath(path).read_text(encoding="utf-8")


def problems(tag):
    """What does not agree; of no tag, what would not when it comes."""
    version = re.search(r'^__version__ = "(.+)"', text("src/transferable/__init__.py"), re.M)[1]
    cited = re.search(r"^version: (.+)", text("CITATION.cff"), re.M)[1]
    sections = re.findall(r"^## \[(.+?)\]", text("CHANGELOG.md"), re.M)
    if cited != version:
        yield f"CITATION.cff has version {cited}, the library {version}."
    if tag and tag != f"v{version}":
        yield f"The tag is {tag}, the library's version {version}."
    if version not in sections and (tag or "Unreleased" not in sections):
        yield f"CHANGELOG.md has no section [{version}]."


if __name__ == "__main__":
    found = list(problems(os.environ.get("TAG")))
    sys.exit("\n".join(found) or 0)
