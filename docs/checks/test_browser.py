"""The site in a real browser, from files and with no network: both widths, both schemes, search."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra docs")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")

OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--disable-quic"),
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
WIDE, NARROW = (1280, 800), (390, 844)
PAGES = [
    "index.html",
    "methods.html",
    "families/objective.html",
    "examples/index.html",
    "examples/plot_01_before_and_after.html",
    "reference/generated/transferable.classifiers.TFDF.html",
]


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
    """Open a page of the site; what went wrong is kept with it."""
    pages = []

    def run(name, size=WIDE, scheme="light"):
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        page.wrong = []
        page.on("console", lambda message: note(page, message))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("requestfailed", lambda request: page.wrong.append(request.url))
        page.goto((site / name).as_uri())
        pages.append(page)
        return page

    yield run
    for page in pages:
        page.close()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_and_nothing_goes_wrong(opened, name, scheme, size):
    page = opened(name, size, scheme)
    assert page.wrong == []
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    unloaded = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
    assert page.evaluate(unloaded) == []


def test_search_works_by_keyboard(opened):
    page = opened("index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("landmarks")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a[href*='scaling.html']")
    assert page.wrong == []
