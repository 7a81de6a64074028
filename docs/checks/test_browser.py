"""Every page in a real browser, from files, with no network: both widths, both schemes, search."""

import re
import shutil
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra docs")
axe = pytest.importorskip("axe_playwright_python", reason="needs axe-core, of the extra docs")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")

SITE = Path(__file__).parents[2] / "build" / "docs"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
PAGES = [name for name in PAGES if not name.startswith("_static/")]
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--disable-quic"),
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
AXE = Path(axe.__file__).with_name("axe.min.js")
STANDARD = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
CONTRAST = {"type": "rule", "values": ["color-contrast"]}
VIOLATIONS = """async (rules) =>
    (await axe.run(document, {runOnly: rules, preload: false, resultTypes: ["violations"]}))
    .violations.flatMap(v => v.nodes.map(n =>
        v.id + ": " + n.target.join(" ") + " | " + n.html.slice(0, 120)))"""
UNLOADED = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
OVERFLOW = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right >
    innerWidth + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 120))"""
EXAMPLES = """() => { const r = [...document.querySelectorAll(".rubric")].find(e =>
    e.textContent.startsWith("Examples")); return r ? r.getBoundingClientRect().top : 0 }"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


def note(page, message):
    if message.type in {"error", "warning"}:
        page.wrong.append(message.text)


@pytest.fixture
def opened(browser, site):
    """Open a page of the site; what goes wrong is kept with it."""
    pages = []

    def run(name):
        page = browser.new_page(color_scheme="light")
        page.wrong = []
        page.on("console", lambda message: note(page, message))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("requestfailed", lambda request: page.wrong.append(request.url))
        page.set_viewport_size(WIDE)
        page.goto((site / name).as_uri())
        pages.append(page)
        return page

    yield run
    for page in pages:
        page.close()


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_and_can_be_read(opened, name):
    page = opened(name)
    page.add_script_tag(path=AXE)
    for scheme, rules in {"light": STANDARD, "dark": CONTRAST}.items():
        page.evaluate("scheme => document.documentElement.dataset.theme = scheme", scheme)
        for size in (NARROW, WIDE):
            page.set_viewport_size(size)
            assert page.evaluate(OVERFLOW) == [], (scheme, size)
        assert page.evaluate(VIOLATIONS, rules) == [], scheme
    assert page.evaluate(UNLOADED) == []
    assert page.wrong == []


@pytest.mark.parametrize("name", [n for n in PAGES if re.search(r"\.[A-Z]\w*\.html$", n)])
def test_examples_of_an_estimator_are_within_two_screens(opened, name):
    assert opened(name).evaluate(EXAMPLES) <= 2 * WIDE["height"]


def test_the_scheme_is_that_of_the_system(opened):
    page = opened("index.html")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == scheme


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("landmarks", "glossary.html"),
        ("class shares", "glossary.html"),
        ("class prior", "glossary.html"),
    ],
)
def test_search_works_by_keyboard(opened, words, found):
    page = opened("index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#search-results li a[href*='{found}']")
    assert page.wrong == []
