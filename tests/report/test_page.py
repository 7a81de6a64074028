"""What the report says, to whom, and that nothing in it can act."""

import base64
import hashlib
import json
import re
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from plots.test_style import contrast
from problems import small_problem
from report.examples import Page, fixed_trust, report_data
from transferable import TFDFV
from transferable.classifiers import AdaptedClassifier
from transferable.report import describe, render_report, write_report
from transferable.report.sections import fit, pictures, uncertain
from transferable.tables import TableClassifier
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
        "A-distance, before → after",
        "The 33 least certain rows",
        "squared error on the source",
        "33 target rows got their true label",
        "transferable adapt source.csv target.csv --label kind",
        "ridge",
        "python",
        "seed",
    ):
        assert words in page.text, words


def test_the_answer_comes_first(source):
    cards = re.findall(r'class="card [^"]*" id="(\w+)"', source)
    assert cards == ["trust", "accuracy", "changed", "shifted", "next"]
    assert source.index('id="next"') < source.index("<nav")
    for words in ("Can I trust it?", "Probably", "80 %", "66 % to 94 %", "What to do next"):
        assert source.index(words) < source.index("<nav"), words
    folded = re.findall(r"<details><summary><h2 id=\"(\w+)\"", source)
    assert folded[-1] == "fit", "convergence and parameters are last, and folded"


def test_a_warning_changes_the_answer():
    task = small_problem(n_source=42, n_target=33)
    model = TFDFV().adapt(task.Xs, task.ys, task.Xt)
    trust = fixed_trust(model, task)
    swapped = type(trust.estimate)(trust.estimate.source_only, trust.estimate.adapted)
    doubtful = type(trust)(trust.labels, trust.source_only, swapped, trust.shares)
    page = render_report(describe(model, task.Xs, task.ys, task.Xt, trust=doubtful))
    assert "Not yet" in page
    assert "by hand" in page
    unknown = render_report(describe(model, task.Xs, task.ys, task.Xt, trust=False))
    assert "Not estimated." in unknown


def test_is_well_formed_and_its_identifiers_are_its_own(page):
    assert page.misplaced == []
    assert page.open == []
    found = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(found) == len(set(found))


def assert_runs_only_its_own_script(source, page):
    assert not {"link", "iframe", "object", "embed", "base", "img"} & {t for t, _ in page.elements}
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href", "action"):
            assert (attributes.get(name) or "#").startswith("#")
    data, script = page.all("script")
    assert data["type"] == "application/json"
    assert script == {}
    (policy,) = (m for m in page.all("meta") if m.get("http-equiv"))
    content = re.search(r"<script>(.*)</script>", source, flags=re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    assert policy["content"].startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}';" in policy["content"]


def test_asks_for_nothing_from_elsewhere_and_runs_its_own_script_only(page, source):
    assert_runs_only_its_own_script(source, page)
    assert not re.search(r"url\((?!#)|@import", source)


def test_can_be_read_without_seeing_and_without_a_mouse(page):
    assert page.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    found = {attributes.get("id") for _, attributes in page.elements}
    drawings = page.all("svg")
    assert len(drawings) >= 4
    assert all(d["role"] == "img" and d["aria-label"] for d in drawings)
    for attributes in page.all("a"):
        assert attributes["href"][1:] in found
    assert len(page.all("caption")) == len(page.all("table"))
    assert all("scope" in attributes for attributes in page.all("th"))


def test_colours_of_text_have_the_contrast_that_wcag_asks():
    style = files("transferable.report").joinpath("style.css").read_text(encoding="utf-8")
    schemes = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    assert len(schemes) == 3, "light, dark and print"
    for scheme in schemes:
        colour = dict(re.findall(r"--(\w+): (#\w{6})", scheme))
        for ink in ("ink", "quiet", "accent", "good", "fair", "doubtful"):
            for paper in ("paper", "wash"):
                assert contrast(colour[ink], colour[paper]) >= 4.5, (ink, paper)


def test_names_from_a_strangers_file_are_text_and_nothing_else():
    data = report_data(
        names=HOSTILE,
        facts={
            "source_name": HOSTILE[0],
            "target_name": HOSTILE[1],
            "command": f"transferable adapt {HOSTILE[0]}",
        },
        label=HOSTILE[1],
        feature_names=[HOSTILE[i % 3] for i in range(6)],
        notes=list(HOSTILE),
        parameters={HOSTILE[0]: HOSTILE[1]},
        ids=pd.DataFrame({HOSTILE[0]: [HOSTILE[i % 3] for i in range(33)]}),
    )
    source = render_report(data)
    page = Page(source)
    assert_runs_only_its_own_script(source, page)
    assert "<script>alert(1)</script>" in page.text, "shown as it stands"
    assert not any(c in source for c in "\x00\x1b\u202e")
    assert r"\x00\x1b[31m\u202e 日本" in page.text, "escaped as on a terminal"


def test_least_certain_rows_come_with_their_ids_and_lead_to_their_points():
    data = report_data(ids=pd.DataFrame({"plot": [f"plot {i}" for i in range(33)]}))
    ranked = np.sort(data.probabilities, axis=1)
    first = int(np.argmin(ranked[:, -1] - ranked[:, -2]))
    anchor, name = re.search(
        r'scope="row"><a href="#(p\d+)">([^<]+)', uncertain(data).html()
    ).groups()
    assert name == f"plot {first}"
    drawn = pictures(data).html()
    assert drawn.count(f'id="{anchor}"') == 1
    points = json.loads(re.search(r'id="points">(.*?)</script>', drawn)[1])
    code, told, sure = points["points"][int(anchor[1:])]
    assert points["classes"][code] == data.predicted[first]
    assert told == name
    assert sure == pytest.approx(data.confidence[first], abs=1e-3)


def test_many_classes_have_a_key_that_says_which_share_a_colour():
    names = tuple(f"class {i:02}" for i in range(40))
    source = render_report(report_data(names=names))
    key = re.search(r'<ul class="key by-class">.*?</ul>', source)[0]
    assert "30 smaller classes, which share a colour" in key
    colours = re.findall(r'<i class="c(\d+)">', key)
    assert len(colours) == len(set(colours)) == 10
    assert source.count("<option") == 41
    assert 'class="matrix many"' in source


def test_numbers_are_aligned_and_no_count_of_nothing_is_told(source):
    assert "0 indicators" not in source
    head = re.search(r'<table id="rows">.*?</thead>', source, flags=re.DOTALL)[0]
    assert '<th scope="col" class="n">confidence</th>' in head
    assert '<th scope="col">prediction</th>' in head


def test_the_second_stage_is_explained_where_there_is_one():
    data = report_data()
    assert "the second stage" in fit(data).html()
    assert "second stage" not in fit(report_data(TFDFV(manifold_dim=None, max_iter=3))).html()


class _Bare:
    """A method that gives labels and scores and nothing else."""

    def __init__(self, model):
        self.model = model

    def adapt(self, *task):
        self.model.adapt(*task)
        return self

    def __getattr__(self, name):
        if name == "predict_proba":
            raise AttributeError(name)
        return getattr(self.model, name)


def test_without_true_labels_confidence_or_history_it_says_so():
    data = report_data(_Bare(AdaptedClassifier(CORAL(), SVC())), yt=None, notes=[])
    page = Page(render_report(data))
    for words in ("keeps no record", "labels without confidence"):
        assert words in page.text
    assert "true label" not in page.text
    assert "Notes on the input" not in page.text


def test_two_classes_whose_scores_are_a_single_column():
    data = report_data(names=("yes", "no"))
    assert data.space(np.arange(5)).shape[1] == 1
    assert 'id="p' in pictures(data).html()


def test_writes_a_whole_file_about_tables_and_tells_its_progress(tmp_path):
    task = small_problem(n_source=42, n_target=33)
    names = np.array(["ant", "bee", "cat"])
    table = pd.DataFrame(task.Xs, columns=list("abcdef")).assign(kind=names[task.ys])
    target = pd.DataFrame(task.Xt + 100, columns=list("abcdef")).assign(who=range(33))
    model = TableClassifier(TFDFV(), ids=["who"], scale="per-domain").adapt(table, "kind", target)
    steps = []

    def track(sections):
        for section in sections:
            steps.append(section)
            yield section

    path = tmp_path / "report.html"
    write_report(path, model, table, "kind", target, yt=names[task.yt], track=track)
    assert "Can I trust it?" in path.read_text(encoding="utf-8")
    assert len(steps) == 9
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    data = describe(model, table, "kind", target, trust=False)
    assert data.gaps[0].overall["A-distance"] == 2, "before, the rows are as they were given"
    assert data.shifts[0].distance == 1
