"""The page on which a person labels rows, in a real browser, and the way of its labels back."""

import json
import re
import shutil

import pandas as pd
import pytest

from cli.test_audit import CORRECTED, FILES, adapted, fill, made  # noqa: F401 (fixtures)
from report.test_browser import CHROMIUM, NARROW, WIDE, browser, expect, opened  # noqa: F401
from transferable.labelling import write_page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")
MANY = [f"class {i}" for i in range(30)]


@pytest.fixture
def page_of(tmp_path):
    """Write a page with awkward rows."""

    def write(classes, sep=",", **given):
        rows = pd.DataFrame(
            {
                "row": [5, 9, 12],
                "who": ["007", "a,b", 'q"x'],
                "text": ["a long one " * 60, "</script><b>bold</b>", None],
                "size": [1.5, 2.0, float("nan")],
            }
        )
        write_page(tmp_path / "label.html", rows, classes, sep=sep, **given)
        return rows, tmp_path / "label.html"

    return write


def download(page, folder):
    """Press the button, and return the path of what came."""
    with page.expect_download() as coming:
        page.get_by_role("button", name="Download labels").click()
    path = folder / coming.value.suggested_filename
    coming.value.save_as(path)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "390"])
def test_the_page_fits_its_width_and_asks_for_nothing(page_of, opened, size, scheme):  # noqa: F811
    page = opened(page_of(MANY)[1], size, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.get_by_role("button", name="class 3", exact=True).click()
    assert not page.wrong
    assert {url.split(":")[0] for url in page.asked} == {"file"}
    assert len(page.asked) == 1


def test_labels_survive_a_reload_and_are_downloaded_as_a_table(page_of, opened, tmp_path):  # noqa: F811
    rows, path = page_of(["cat", "a;b"], sep=";")
    page = opened(path)
    expect(page.locator("#row")).to_have_text("Row 5, 1 of 3")
    assert "</script><b>bold</b>" not in page.locator("#cells").inner_text()
    page.get_by_role("button", name="a;b").click()
    expect(page.locator("#cells")).to_contain_text("</script><b>bold</b>")
    page.get_by_role("button", name="None of these").click()
    for _ in range(10):  # a busy browser writes down a little later what the page keeps
        page.wait_for_timeout(300)
        page.reload()
        if page.locator("#count").inner_text() == "2 of 3 rows done":
            break
    expect(page.locator("#count")).to_have_text("2 of 3 rows done")
    page.get_by_text("All rows").click()
    expect(page.locator("#rows")).to_contain_text("Row 9: none of these")
    found = pd.read_csv(download(page, tmp_path), sep=";", dtype={"who": str})
    wanted = rows.iloc[:2].assign(label=["a;b", "?"])
    pd.testing.assert_frame_equal(found, wanted)


def test_keys_answer_undo_and_skip(page_of, opened):  # noqa: F811
    page = opened(page_of(MANY)[1])
    for key in ("2", "x", "0"):
        page.keyboard.press(key)
    page.get_by_text("All rows").click()
    for text in ("Row 5: class 1", "Row 9: cannot tell", "Row 12: none of these"):
        expect(page.locator("#rows")).to_contain_text(text)
    expect(page.locator("#kept")).to_contain_text("labels: 2; marked “cannot tell”: 1")
    page.keyboard.press("u")
    expect(page.locator("#row")).to_have_text("Row 12, 3 of 3")
    expect(page.locator("#count")).to_have_text("2 of 3 rows done")
    page.get_by_label("Search classes").fill("29")
    page.keyboard.press("Enter")
    expect(page.locator("#rows")).to_contain_text("Row 12: class 29")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("button", name="Cannot tell", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_a_digit_is_its_own_key(page_of, opened):  # noqa: F811
    page = opened(page_of([*"0123456789"])[1])
    page.keyboard.press("7")
    page.get_by_text("All rows").click()
    expect(page.locator("#rows")).to_contain_text("Row 5: 7")
    expect(page.locator("#none kbd")).to_be_hidden()


def test_a_class_cannot_have_the_mark_of_unknown_ones(page_of):
    with pytest.raises(ValueError, match=re.escape("a class is called '?'")):
        page_of(["cat", "?"])


def test_labels_clicked_and_typed_give_the_same_audit(adapted, opened, invoke):  # noqa: F811
    result = invoke("audit", *FILES, "--rows", 20, "--page", "clicked.html")
    assert result.exit_code == 0, result.stderr
    assert "--labelled clicked.csv" in result.stdout
    invoke("audit", *FILES, "--rows", 20)
    typed = fill()
    page = opened(adapted / "clicked.html")
    for label in typed["label"]:
        page.get_by_role("button", name=label, exact=True).click()
    clicked = download(page, adapted)
    pd.testing.assert_frame_equal(
        pd.read_csv(clicked, dtype=str), pd.read_csv("to-label.csv", dtype=str)
    )
    shutil.copy("to-label.csv", "typed.csv")
    both = []
    for name in ("typed", "clicked"):
        command = [
            *CORRECTED[:3],
            f"{name}.csv",
            *CORRECTED[4:],
            "--json",
            "--out",
            f"{name}-out.csv",
        ]
        result = invoke("audit", *command, "--save", f"{name}.tfm")
        assert result.exit_code == 0, result.stderr
        both.append(json.loads(result.stdout) | {"files": None})
    assert both[0] == both[1]
    assert (adapted / "typed-out.csv").read_bytes() == (adapted / "clicked-out.csv").read_bytes()
