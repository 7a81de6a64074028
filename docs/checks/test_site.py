"""Links, titles, pictures and size of the built site, and a place for every public name."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from sphinx.util.inventory import InventoryFile

sys.path.insert(0, str(Path(__file__).parents[1]))
from _site.public import MODULES, has_page, public

MAX_PAGES = 149


class Page(HTMLParser):
    """What a page links to, loads, and can be linked to by."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors, self.silent = [], [], set(), []
        self.texts, self.titles, self.inside = [], [], []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in {"img", "script", "source", "iframe"} and given.get("src"):
            self.loads.append(given["src"])
        if tag == "link" and given.get("href"):
            self.loads.append(given["href"])
        if tag == "img" and not given["src"].endswith("_thumb.png"):  # their titles follow
            alt = given.get("alt") or "plot 00"  # what the gallery takes for figures without titles
            self.silent += [given["src"]] if re.match(r"plot \d+", alt) else []
        if tag in {"title", "h1"} or (tag == "a" and given.get("href")):
            self.inside.append((tag, []))

    def handle_data(self, data):
        for _, parts in self.inside:
            parts.append(data)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1][0] == tag:
            text = "".join(self.inside.pop()[1]).strip()
            (self.texts if tag == "a" else self.titles).append(text)


@pytest.fixture(scope="module")
def pages(site):
    found = {
        path.resolve(): Page(path) for path in site.rglob("*.html") if "_static" not in path.parts
    }
    assert len(found) > 50
    return found


def test_the_site_is_small(site):
    assert len(list(site.rglob("*.html"))) <= MAX_PAGES


def test_every_page_has_a_title(pages):
    for path, page in pages.items():
        assert len(page.titles) == 2, f"{path.name}: one <title> and one <h1>, not {page.titles}"
        assert all(page.titles), path.name


def test_no_page_shows_the_address_of_an_object(pages):
    assert not [path.name for path, page in pages.items() if "object at 0x" in page.source]


def test_texts_of_links_are_titles(pages):
    untitled = re.compile(r"https?://\S+|\S+\.(md|rst|html|py)|\.\.?/\S*")
    found = [(path.name, t) for path, p in pages.items() for t in p.texts if untitled.fullmatch(t)]
    assert not found


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
    missing = [
        f"{module}.{name}"
        for module in MODULES
        for name in public(module)
        if f"{module}.{name}" not in documented
    ]
    assert not missing


def test_every_estimator_has_a_page(site):
    for module in MODULES:
        for name, value in public(module).items():
            there = site.joinpath("reference", f"{module}.{name}.html").exists()
            assert there == has_page(module, value), f"{module}.{name}"


def test_every_page_of_the_repository_is_a_page_of_the_site(site):
    for page in Path(__file__).parents[1].glob("*.md"):
        assert site.joinpath(f"{page.stem}.html").exists(), page.name


def test_the_gallery_has_a_picture_for_each_example(site):
    examples = sorted(Path(__file__).parents[1].glob("gallery/plot_*.py"))
    assert 12 <= len(examples) <= 17
    for example in examples:
        assert list(site.glob(f"_images/sphx_glr_{example.stem}_*.png")), example.name
