"""What the report says, to whom, and that nothing in it can act."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from problems import small_problem
from report.examples import Page, fixed_trust, report_data
from test_plots import contrast
from transferable import TFDFV, AutoAdapter
from transferable.classifiers import AdaptedClassifier
from transferable.datasets import make_shifted
from transferable.events import listen
from transferable.report.data import Facts, describe
from transferable.report.sections import pictures, render_report, short, write_report
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


def section(page, key):
    """The markup of one section."""
    return re.search(rf'<section aria-labelledby="{key}">.*?</section>', page, flags=re.DOTALL)[0]


def test_says_what_was_given_what_came_out_and_how_to_repeat_it(page):
    for words in (
        "33 rows of target.csv",
        "42 labelled rows of source.csv",
        "a note on the input",
        "given for evaluation only",
        "A-distance, before → after",
        "Agreement of the candidates",
        "random forest (same model and input as TFDF)",
        "0.72",
        "The 33 least certain rows",
        "squared error on the source",
        "33 target rows got their true label",
        "source.csv → target.csv",
        "2026-08-02",
        "transferable adapt source.csv target.csv --label kind",
        "ridge",
        "python",
        "seed",
    ):
        assert words in page.text, words


def test_the_verdict_and_the_next_step_come_first(source):
    assert re.findall(r'class="card[^"]*" id="(\w+)"', source) == ["trust", "next"]
    first = source[: source.index("<nav")]
    for words in (
        "These labels can be used",
        "66 to 94 %",
        "measured with the true labels",
        "transferable audit target.csv predictions.csv --rows 30",
        "Unlabelled rows cannot show",
    ):
        assert words in first, words
    assert re.findall(r'<h2 id="(\w+)"', source) == [
        *("changed", "balance", "agreement", "label", "uncertain", "evaluation", "pictures"),
        *("columns", "gap", "given", "repeat", "fit"),
    ]
    folded = re.findall(r"<details><summary><h2 id=\"(\w+)\"", source)
    assert folded == ["columns", "gap", "given", "repeat", "fit"], "details are last, and folded"


@pytest.mark.parametrize("state", ["use", "check", "reject"])
@pytest.mark.parametrize("own", [True, False])
def test_every_state_has_its_colour_and_the_words_of_the_assessment(state, own):
    data = report_data()
    trust = fixed_trust(data.predicted, state, own=own)
    source = render_report(replace(data, trust=trust))
    assert f'class="card {state}"' in source
    lines = trust.trust.lines
    title, estimate = lines[0].split(": ")
    assert ('class="range"' in source) == (state != "reject")
    shown = Page(source).text.replace("\n", " ")
    for line in filter(None, (title, estimate[1:], *lines[1:])):
        assert line.removesuffix(".") in shown, line
    for claim in ("paid", "harm", "pays"):
        assert claim not in shown
    plain = replace(data, trust=trust, facts=Facts())
    command = "model.audit_rows(30)" if own else "().adapt(Xs, ys, Xt).audit_rows(30)"
    assert command in render_report(plain)


def test_without_a_verdict_there_is_none():
    source = render_report(report_data(trust=None))
    assert "Not judged" in source
    assert re.findall(r'<h2 id="(\w+)"', source)[:2] == ["balance", "uncertain"]


def test_rows_to_label_are_shown_without_what_was_predicted():
    data = report_data(ids=pd.DataFrame({"plot": [f"plot {i}" for i in range(33)]}))
    label = section(render_report(data), "label")
    named = re.findall(r'scope="row">(plot \d+)', label)
    assert named == [f"plot {i}" for i in range(29, -1, -1)]
    assert not re.search("ant|bee|cat", Page(label).text)
    assert label.count("<td") == 30 * data.telling_columns.shape[1]


def test_rows_to_label_show_the_columns_that_moved_most_first():
    rng = np.random.default_rng(0)
    source = pd.DataFrame(rng.normal(size=(60, 14)), columns=[f"n{k}" for k in range(14)])
    source = source.assign(place=np.tile(["sea", "land"], 30), kind=np.arange(60) % 2)
    target = source.drop(columns="kind").assign(n9=source["n9"] + 9.0, n5=source["n5"] + 1.0)
    target["place"] = "sea"
    model = TableClassifier(TFDFV(max_iter=2)).adapt(
        source.drop(columns="kind"), source["kind"], target
    )
    data = describe(model, source, "kind", target, trust=False)
    assert next(iter(data.telling_columns)) == "n9"
    assert set(list(data.telling_columns)[1:3]) == {"place", "n5"}
    assert data.telling_columns.shape == (60, 12)
    assert data.telling_columns["place"].tolist() == ["sea"] * 60
    Xs, Xt = (table.filter(like="n").to_numpy() for table in (source.drop(columns="kind"), target))
    names = list(
        describe(TFDFV().adapt(Xs, source["kind"], Xt), Xs, source["kind"], Xt).telling_columns
    )
    assert (names[0], len(names)) == ("column 10", 12)


def test_rows_to_label_of_another_method_are_drawn_from_its_own_labels():
    data = report_data()
    data = replace(data, trust=fixed_trust(data.predicted, own=False))
    differ = data.predicted != data.trust.source_only
    assert len(set(data.to_label.tolist())) == 30
    assert differ[data.to_label].sum() >= min(15, differ.sum())
    assert not data.unfamiliar.any(), "that is known of the pool's own rows only"


def test_auto_adapter_is_told_as_it_judges_itself():
    task = small_problem(n_source=60, n_target=50)
    model = AutoAdapter(effort="fast").adapt(task.Xs, task.ys, task.Xt)
    data = describe(model, task.Xs, task.ys, task.Xt)
    assert data.trust.trust == model.trust_
    np.testing.assert_array_equal(data.to_label, model.audit_rows(30).rows)
    np.testing.assert_array_equal(data.unfamiliar, model.unfamiliar_)
    source = render_report(data)
    assert model.trust_.title in source
    kept = list(model.agreement_)
    assert [name in section(source, "agreement") for name in kept] == [True] * len(kept)


def test_many_kinds_of_changes_are_in_a_table():
    data = report_data()
    kinds = [("ant", "bee", 9), ("bee", "cat", 5), ("cat", "ant", 3), ("bee", "ant", 1)]
    trust = replace(data.trust, trust=replace(data.trust.trust, changes=kinds))
    source = render_report(replace(data, trust=trust))
    for alone, now, rows in kinds:
        assert f'<th scope="row">{alone}</th><td>{now}</td><td class="n">{rows}</td>' in source


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
        for ink in ("ink", "quiet", "accent", "use", "check", "reject"):
            for paper in ("paper", "wash"):
                assert contrast(colour[ink], colour[paper]) >= 4.5, (ink, paper)
        for state in ("use", "check", "reject"):  # a tenth of it, for less, behind its words
            parts = [(int(colour[c][i : i + 2], 16) for i in (1, 3, 5)) for c in (state, "paper")]
            tinted = "#" + "".join(
                f"{round(a / 10 + b * 9 / 10):02x}" for a, b in zip(*parts, strict=True)
            )
            assert contrast(colour[state], tinted) >= 4.5, state


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
    page = render_report(data)
    listed = section(page, "uncertain")
    anchor, name = re.search(r'scope="row"><a href="#(p\d+)">([^<]+)', listed).groups()
    assert name == f"plot {first}"
    marked = re.findall(r">plot (\d+)</a> <small>unfamiliar</small>", listed)
    assert sorted(marked) == list("01234")
    assert "Unfamiliar rows, 5 of 33," in listed
    drawn = section(page, "pictures")
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
    assert "in per cent" not in source, "so large a matrix cannot be read"


def test_numbers_are_aligned_and_no_count_of_nothing_is_told(source):
    assert "0 indicators" not in source
    head = re.search(r'<table id="rows">.*?</thead>', source, flags=re.DOTALL)[0]
    assert '<th scope="col" class="n">confidence</th>' in head
    assert '<th scope="col">prediction</th>' in head


def test_the_second_stage_is_explained_where_there_is_one():
    data = report_data()
    assert "the second stage" in section(render_report(data), "fit")
    single = report_data(TFDFV(manifold_dim=None, max_iter=3))
    assert "second stage" not in render_report(single)


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


def test_sections_without_content_are_left_out():
    data = report_data(_Bare(AdaptedClassifier(CORAL(), SVC())), yt=None, notes=[])
    source = render_report(data)
    assert "uncertain" not in re.findall(r'<h2 id="(\w+)"', source)
    for words in ("Convergence", "true label", "Notes on the input", "without confidence"):
        assert words not in source, words


def test_two_classes_lie_along_a_score_in_a_band_for_each_domain():
    data = report_data(names=("yes", "no"))
    assert data.space(np.arange(5)).shape[1] == 1
    page = render_report(data)
    drawn = section(page, "pictures")
    assert "by the score between the classes; source rows above, target rows below, at" in drawn
    after = drawn[drawn.index("After") :]
    dots, triangles = (
        [float(y) for y in re.findall(pattern, after)]
        for pattern in (r'cy="([\d.]+)"', r'd="M[\d.]+ ([\d.]+)l')
    )
    assert max(dots) < min(triangles)
    assert ">runner-up<" not in section(page, "uncertain"), "it is the other class"
    assert "below 50" not in page


def test_a_single_column_is_named():
    task = small_problem(n_source=42, n_target=33)
    model = TFDFV(manifold_dim=None).adapt(task.Xs[:, :1], task.ys, task.Xt[:, :1])
    data = describe(model, task.Xs[:, :1], task.ys, task.Xt[:, :1], trust=False)
    assert "Before adaptation, by column 1; source rows above" in render_report(data)


def test_outliers_neither_turn_nor_squeeze_the_picture():
    data = report_data()
    far = data.before[1].copy()
    far[0] = 1e6
    page = render_report(replace(data, before=(data.before[0], far)))
    drawn = section(page, "pictures")
    assert "; rows farther out, drawn at the edge: 1<" in drawn
    before = drawn[drawn.index("Before") : drawn.index("After")]
    xs = np.array([float(x) for x in re.findall(r'cx="([\d.]+)"', before)])
    assert np.ptp(xs) > 100, "the others still fill a third of its width"
    assert "farther" not in render_report(data)


def test_long_names_stay_distinct():
    names = [f"mean temperature in the northern part of the plant {i}" for i in range(10)]
    assert len({short(name, 24) for name in names}) == 10
    assert all(len(short(name, 24)) == 24 for name in names)


def test_writes_a_whole_file_about_tables_and_tells_its_progress(tmp_path):
    task = small_problem(n_source=42, n_target=33)
    names = np.array(["ant", "bee", "cat"])
    table = pd.DataFrame(task.Xs, columns=list("abcdef")).assign(kind=names[task.ys])
    target = pd.DataFrame(task.Xt + 100, columns=list("abcdef")).assign(who=range(33))
    model = TableClassifier(TFDFV(), ids=["who"], scale="per-domain").adapt(table, "kind", target)
    steps = []
    path = tmp_path / "report.html"
    with listen(steps.append):
        write_report(path, model, table, "kind", target, yt=names[task.yt])
    assert re.search(r'class="card (use|check|reject)"', path.read_text(encoding="utf-8"))
    told = [step.share for step in steps if getattr(step, "what", "") == "Writing the report"]
    assert len(told) == 14
    assert told == sorted(told)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    data = describe(model, table, "kind", target, trust=False)
    assert data.gaps[0].overall["A-distance"] == 2, "before, the rows are as they were given"
    assert data.shifts[0].distance == 1


def test_a_table_classifier_of_arrays_and_of_fewer_rows_than_are_labelled():
    task = small_problem(n_source=42, n_target=12)
    model = TableClassifier(AutoAdapter(effort="fast")).adapt(task.Xs, task.ys, task.Xt)
    source = render_report(describe(model, task.Xs, task.ys, task.Xt))
    assert "model.audit_rows(12)" in source
    assert section(source, "label").count("<tr>") == 13


def test_a_pool_draws_the_target_alone_after_adaptation():
    """Its members scale each domain by itself, so that source rows have no place among these."""
    task = make_shifted(n_features=4)
    model = AutoAdapter(effort="fast").adapt(task.Xs, task.ys, task.Xt)
    data = describe(model, task.Xs, task.ys, task.Xt)
    before, after = pictures(data)["panels"]
    assert {source for _, source, *_ in before["marks"]} == {True, False}
    assert {source for _, source, *_ in after["marks"]} == {False}
    assert "target rows" in after["title"]
    assert len(data.gaps) == 1
    assert "before →" not in render_report(data)
