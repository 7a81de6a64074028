"""Every link of the built site leads somewhere, and every public name has its place."""

import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from sphinx.util.inventory import InventoryFile

sys.path.insert(0, str(Path(__file__).parents[1]))
from _site.public import public_modules

BOILERPLATE = {"genindex.html", "search.html", "py-modindex.html"}


class Page(HTMLParser):
    """What a page links to, loads, and can be linked to by."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors, self.silent = [], [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in {"img", "script", "source", "iframe"} and given.get("src"):
            self.loads.append(given["src"])
        if tag == "link" and given.get("href"):
            self.loads.append(given["href"])
        if tag == "img" and "alt" not in given:
            self.silent.append(given.get("src"))


@pytest.fixture(scope="module")
def pages(site):
    found = {
        path.resolve(): Page(path) for path in site.rglob("*.html") if "_static" not in path.parts
    }
    assert len(found) > 100
    return found


def broken(path, target, pages):
    """Why a link of a page leads nowhere; None if it leads somewhere."""
    parts = urlsplit(target)
    if parts.scheme in {"http", "https", "mailto", "data"}:
        return None
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not there.exists():
        return f"{path.name}: {target} is not there"
    wanted = unquote(parts.fragment)
    if wanted and there in pages and wanted not in pages[there].anchors:
        return f"{path.name}: {target} has no such anchor"
    return None


def test_links_and_pictures_are_there(pages):
    problems = [
        problem
        for path, page in pages.items()
        for target in (*page.links, *page.loads)
        if (problem := broken(path, target, pages))
    ]
    assert not problems, "\n".join(problems[:50])


def test_the_checker_sees_what_is_broken(pages):
    path = next(iter(pages))
    assert broken(path, "nowhere.html", pages)
    assert broken(path, f"{path.name}#nowhere", pages)


def test_nothing_is_loaded_from_elsewhere(pages):
    elsewhere = {
        (path.name, target)
        for path, page in pages.items()
        for target in page.loads
        if urlsplit(target).scheme in {"http", "https"} or target.startswith("//")
    }
    assert not elsewhere


def test_pictures_say_what_they_show(pages):
    assert not [(path.name, page.silent) for path, page in pages.items() if page.silent]


def test_every_public_name_is_in_the_reference(site):
    with site.joinpath("objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    documented = {
        name for kind, names in inventory.items() if kind.startswith("py:") for name in names
    }
    homes = {}  # names that several modules export need one home only
    for module in public_modules():
        for name in import_module(module).__all__:
            homes.setdefault(id(getattr(import_module(module), name)), set()).add(
                f"{module}.{name}"
            )
    missing = [sorted(names) for names in homes.values() if not names & documented]
    assert len(homes) > 150
    assert not missing


def test_every_page_of_the_repository_is_a_page_of_the_site(site):
    for page in Path(__file__).parents[1].glob("*.md"):
        if page.name != "reproduction-notes.md":  # a part of another page
            assert site.joinpath(f"{page.stem}.html").exists(), page.name


def test_the_gallery_has_a_picture_for_each_example(site):
    examples = sorted(Path(__file__).parents[1].glob("gallery/plot_*.py"))
    assert len(examples) >= 12
    for example in examples:
        assert list(site.glob(f"_images/sphx_glr_{example.stem}_*.png")), example.name
