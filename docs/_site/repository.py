"""Files of the repository that are pages of the site, and links that lead to them.

Pages are read in the repository as well, so that their links are those of its folders; on the site
each leads to the page that shows the file, or to the file itself.
"""

import posixpath
import re
from pathlib import Path

SHOWN = {
    "development/changelog": "CHANGELOG.md",
    "development/contributing": "CONTRIBUTING.md",
    "development/records": "benchmarks/records/README.md",
    "development/security": "SECURITY.md",
}
INSTEAD = {
    "README.md": "index.md",
    "docs/gallery": "examples/index.rst",
}
PAGES = {path: f"{page}.md" for page, path in SHOWN.items()} | INSTEAD
PARTS = {"index"}  # the root
OTHERS = "how-to"  # takes the pages that no section lists
_TOCTREE = re.compile(r"^```{toctree}\n(.*?)^```", re.M | re.S)
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


def _on_site(link, folder, page):
    """A link of a file in `folder` of the repository, as it is on a page of the site."""
    path = posixpath.normpath(posixpath.join(folder, link))
    inside = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if inside and inside.startswith("gallery/"):
        inside = f"examples/{Path(inside).stem}.rst"
    start = posixpath.dirname(page) or "."
    return posixpath.relpath(inside if inside else f"../{path}", start)


def unlisted(folder):
    """Pages of a folder that no table of contents names."""
    trees = [_TOCTREE.findall(path.read_text(encoding="utf-8")) for path in folder.glob("*.md")]
    listed = {line for blocks in trees for block in blocks for line in block.split()}
    return sorted({path.stem for path in folder.glob("*.md")} - listed - PARTS)


def read(app, page, source):
    """Give a page the text of its file, with links that lead somewhere."""
    root = Path(app.srcdir).parent
    folder = posixpath.join("docs", posixpath.dirname(page))
    if page in SHOWN:
        shown = root / SHOWN[page]
        app.env.note_dependency(str(shown))
        source[0], folder = shown.read_text(encoding="utf-8"), "."
    if page == OTHERS and (others := unlisted(Path(app.srcdir))):
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(others) + "\n```\n"
    if Path(app.env.doc2path(page)).suffix == ".md":
        source[0] = _LINK.sub(
            lambda link: _replaced(link, folder, page),
            source[0],
        )


def _replaced(link, folder, page):
    target, anchor = link.groups()
    there = _on_site(target, folder, page)
    moved = posixpath.normpath(posixpath.join(folder, target)) in PAGES
    return there + ("" if moved else anchor or "")


def setup(app):
    """Change sources as they are read."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
