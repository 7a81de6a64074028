"""The report in a real browser: both widths, both schemes, mouse, touch and keyboard."""

import json
import re
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from report.examples import report_data
from transferable.report.sections import render_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra test")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # milliseconds: a machine may have other work
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")

WIDE, NARROW = (1280, 800), (390, 844)
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--disable-quic"),
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
ODD = "a very long name of a class that nobody would want to read twice"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A small report, and one with forty classes, long names and no ids."""
    folder = tmp_path_factory.mktemp("report")
    ids = pd.DataFrame({"plot": [f"plot {i:03}" for i in range(33)]})
    few = report_data(ids=ids)
    many = report_data(names=tuple(f"{i:02} {ODD}" for i in range(40)))
    columns = [f"{ODD.replace(' ', '_')}_{name}" for name in many.telling_columns]
    many = replace(many, telling_columns=many.telling_columns.set_axis(columns, axis=1))
    found = {}
    for name, data in {"few": few, "many": many}.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(render_report(data), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Open a page; what went wrong and what was asked for is kept with it."""
    pages = []

    def run(path, size=WIDE, scheme="light", **options):
        page = browser.new_page(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **options
        )
        page.wrong, page.asked = [], []
        page.on("console", lambda message: page.wrong.append(message.text))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield run
    for page in pages:
        page.close()


@pytest.mark.parametrize("name", ["few", "many"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
def test_fits_its_width_and_answers_on_the_first_screen(reports, opened, name, scheme, size):
    page = opened(reports[name], size, scheme)
    assert page.evaluate("document.getElementById('next').getBoundingClientRect().bottom") < size[1]
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    wide = page.evaluate(
        "[...document.querySelectorAll('svg, table:not(.wide table), figure, .card, pre')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth).length"
    )
    assert wide == 0
    boxes = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => e.tagName !== 'SELECT' &&"
        " e.scrollHeight > e.clientHeight + 1 && e.clientHeight > 0 &&"
        " ['auto', 'scroll'].includes(getComputedStyle(e).overflowY)).length"
    )
    assert boxes == 0, "nothing scrolls inside the page"
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    shade = sum(map(int, paper[4:-1].split(",")))
    assert shade > 720 if scheme == "light" else shade < 120
    assert page.wrong == []
    assert page.asked == [reports[name].as_uri()]


def test_the_checks_above_would_notice(tmp_path, opened):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://127.0.0.1:9/x.png'><script>nonsense()</script>")
    page = opened(bad)
    assert any("nonsense" in text for text in page.wrong)
    assert "http://127.0.0.1:9/x.png" in page.asked


def test_panels_stand_beside_each_other_or_below(reports, opened):
    where = "[...document.querySelectorAll('svg.points')].map(e => e.getBoundingClientRect().top)"
    wide, narrow = (opened(reports["few"], size).evaluate(where) for size in (WIDE, NARROW))
    assert wide[0] == wide[1]
    assert narrow[1] > narrow[0] + 200


@pytest.mark.parametrize("touch", [False, True])
def test_points_tell_what_they_are(reports, opened, touch):
    page = opened(reports["few"], NARROW if touch else WIDE, has_touch=touch)
    told = json.loads(page.locator("#points").text_content())
    mark = page.locator("svg.points .p.t").last
    code, name, sure = told["points"][int(mark.get_attribute("data-r"))]
    mark.scroll_into_view_if_needed()
    (mark.tap if touch else mark.hover)(force=True)
    said = f"{name}: {told['classes'][code]}, confidence {sure:.2f}"
    expect(page.locator("#tip")).to_have_text(said)
    expect(page.locator(".p.chosen"), "before and after").to_have_count(2)


def test_rows_are_sorted_searched_and_lead_to_their_points(reports, opened):
    page = opened(reports["few"])
    shown = page.locator("#rows tbody tr:visible th")
    head = page.locator("#rows thead button", has_text="confidence")
    cells = page.locator("#rows tbody td:nth-child(3)")
    for turn in (1, -1):
        head.click()
        expect(cells).to_have_text(sorted(cells.all_text_contents(), key=float)[::turn])
    page.locator("#search").fill("plot 01")
    expect(shown).to_have_text([re.compile("^plot 01")] * 10)
    page.mouse.move(0, 0)  # so that the page does not scroll a point below the pointer
    link = page.locator("#rows a:visible").first
    name = link.text_content()
    link.press("Enter")
    expect(page.locator("#tip")).to_have_text(re.compile(f"^{re.escape(name)}: "))
    expect(page.locator("#rows tr.chosen")).to_have_count(1)


def test_long_names_of_columns_can_be_told_apart_on_a_phone(reports, opened):
    heads = opened(reports["many"], NARROW).locator("table.even thead th")
    shown = [head for head in heads.all_inner_texts() if "twice" in head]
    assert len(set(shown)) == 6
    cut = heads.evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length")
    assert cut == 0


def test_one_class_can_be_looked_at_alone(reports, opened):
    page = opened(reports["many"])
    page.locator("#only").select_option(index=5)
    shown = page.locator("svg.points .p:not(.dim)").count()
    assert 0 < shown < page.locator("svg.points .p").count() / 5
    page.locator("#by-domain").check()
    expect(page.locator(".key.by-domain")).to_be_visible()
    expect(page.locator(".key.by-class")).to_be_hidden()


def test_the_keyboard_reaches_everything_and_shows_where_it_is(reports, opened):
    page = opened(reports["few"])
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "(e => [e.tagName, e.id || e.textContent.trim(),"
                " getComputedStyle(e).outlineStyle])(document.activeElement)"
            )
        )
    assert seen[0][1] == "Skip to the report"
    reached = {name for _, name, _ in seen}
    assert {"only", "search", "confidence"} <= reached
    assert all(style != "none" for tag, _, style in seen if tag in ("A", "BUTTON", "SUMMARY"))
    page.locator("summary").last.focus()
    page.keyboard.press("Enter")
    assert page.locator("details").last.get_attribute("open") is not None


def test_prints_with_everything_unfolded(reports, opened, tmp_path):
    page = opened(reports["few"])
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
