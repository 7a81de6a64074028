"""What the report says, to whom, and that nothing in it can act."""

import re
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from plots.test_style import contrast
from report.examples import Page, report_data
from transferable.classifiers import AdaptedClassifier
from transferable.report import render_report, write_report
from transferable.report.outcome import confidence
from transferable.report.spaces import pictures
from transferable.transformers import CORAL

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$\\frac{ \x00\x1b[31m\u202e 日本 ]]>",
)


@pytest.fixture(scope="module")
def source():
    return render_report(report_data())


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def test_says_what_was_given_what_came_out_and_how_to_repeat_it(page):
    for words in (
        "33 rows of target.csv",
        "42 labelled rows of source.csv",
        "a note on the input",
        "given for evaluation only",
        "A-distance",
        "MMCD after",
        "By t-SNE",
        "By principal components",
        "target, predicted",
        "The 20 least certain rows",
        "squared error on the source",
        "33 target rows got their true label",
        "transferable adapt source.csv target.csv --label kind",
        "ridge",
        "python",
        "seed",
    ):
        assert words in page.text, words


def test_is_well_formed_and_its_identifiers_are_its_own(page):
    assert page.misplaced == []
    assert page.open == []
    found = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(found) == len(set(found))


def test_asks_for_nothing_from_elsewhere_and_runs_nothing(page, source):
    assert not {"script", "link", "iframe", "object", "embed", "form", "base"} & {
        tag for tag, _ in page.elements
    }
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    assert not re.search(r"url\((?!#)|@import", source)
    (policy,) = (m for m in page.all("meta") if m.get("http-equiv"))
    assert policy["content"].startswith("default-src 'none'")


def test_can_be_read_without_seeing_and_without_a_mouse(page):
    assert page.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    found = {attributes.get("id") for _, attributes in page.elements}
    pictures = page.all("svg")
    assert len(pictures) >= 9
    for attributes in pictures:
        assert attributes["role"] == "img"
        assert attributes["aria-labelledby"] in found
    for attributes in page.all("a"):
        assert attributes["href"][1:] in found
    assert len(page.all("caption")) == len(page.all("table"))
    assert all("scope" in attributes for attributes in page.all("th"))
    regions = [a for a in page.all("div") if a.get("role") == "region"]
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in regions)


def test_colours_of_text_have_the_contrast_that_wcag_asks():
    style = files("transferable.report").joinpath("style.css").read_text(encoding="utf-8")
    schemes = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    assert len(schemes) == 3, "light, dark and print"
    for scheme in schemes:
        colour = dict(re.findall(r"--(\w+): (#\w{6})", scheme))
        for ink in ("ink", "quiet", "accent"):
            for paper in ("paper", "wash"):
                assert contrast(colour[ink], colour[paper]) >= 4.5, (ink, paper)


def test_names_from_a_strangers_file_are_text_and_nothing_else():
    data = report_data(
        names=HOSTILE,
        source_name=HOSTILE[0],
        target_name=HOSTILE[1],
        label=HOSTILE[1],
        command=f"transferable adapt {HOSTILE[0]}",
        feature_names=[HOSTILE[i % 3] for i in range(6)],
        notes=list(HOSTILE),
        parameters={HOSTILE[0]: HOSTILE[1]},
        versions={"transferable": HOSTILE[1]},
        ids=pd.DataFrame({HOSTILE[0]: [HOSTILE[i % 3] for i in range(33)]}),
    )
    source = render_report(data)
    page = Page(source)
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "img"})
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)
    assert "<script>alert(1)</script>" in page.text, "shown as it stands"
    assert not any(c in source for c in "\x00\x1b\u202e")
    assert "日本" in page.text


def test_least_certain_rows_come_with_their_ids_and_the_least_certain_first():
    data = report_data(ids=pd.DataFrame({"plot": [f"plot {i}" for i in range(33)]}))
    ranked = np.sort(data.probabilities, axis=1)
    first = int(np.argmin(ranked[:, -1] - ranked[:, -2]))
    table = confidence(data).html()
    assert re.search(r'scope="row">([^<]+)', table)[1] == f"plot {first}"


def test_without_true_labels_confidence_or_history_it_says_so():
    model = AdaptedClassifier(CORAL(), SVC())
    task_free = {"probabilities": None, "yt": None, "seed": None, "seconds": None, "notes": []}
    page = Page(render_report(report_data(_Certain(model), **task_free)))
    for words in ("keeps no record", "labels without confidence", "none was set"):
        assert words in page.text
    assert "true label" not in page.text


class _Certain:
    """A classifier as the report gets it, with probabilities that the test throws away."""

    def __init__(self, model):
        self.model = model

    def adapt(self, *task):
        self.model.adapt(*task)
        return self

    def predict_proba(self, X):
        return np.empty((len(X), 2))

    def __getattr__(self, name):
        return getattr(self.model, name)


def test_two_classes_whose_scores_are_a_single_column():
    data = report_data(names=("yes", "no"))
    assert data.after.shape[1] == 1
    assert "By t-SNE" in pictures(data).html()


def test_writes_the_same_page_whole_and_tells_its_progress(tmp_path, source):
    steps = []

    def track(sections):
        for section in sections:
            steps.append(section)
            yield section

    write_report(tmp_path / "report.html", report_data(), track=track)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == source
    assert len(steps) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_before_are_the_rows_as_given_where_a_scaling_has_brought_the_domains_together():
    data = report_data()
    apart = data.Xs, data.Xt + 100
    told = report_data(as_given=apart)
    assert told.gaps["before adaptation"].overall["A-distance"] == 2
    np.testing.assert_array_equal(told.after, data.after)
