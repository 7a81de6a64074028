"""What the displays of rows and gaps draw, in legible colours."""

import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from problems import small_problem
from transferable import TFDFV
from transferable.diagnostics import domain_gap
from transferable.plots import CLASS_COLOURS, DOMAIN_COLOURS, DomainGapDisplay, DomainScatterDisplay

TASK = small_problem(n_source=40, n_target=30)
DOMAIN = np.repeat([1, -1], [40, 30])


@pytest.fixture(scope="module")
def model():
    return TFDFV(manifold_dim=None, max_iter=4).adapt(TASK.Xs, TASK.ys, TASK.Xt)


def titles(display):
    return [ax.get_title(loc="left") for ax in display.axes_]


def test_scatter_shows_every_row_before_and_after(model):
    display = DomainScatterDisplay.from_estimator(model, TASK.Xs, TASK.ys, TASK.Xt)
    assert titles(display) == ["before adaptation", "after TFDFV"]
    assert [len(c.get_offsets()) for c in display.collections_] == [40, 30, 40, 30]


def test_scatter_colours_by_class_or_by_domain(model):
    display = DomainScatterDisplay({"plane": TASK.X[:, :2]}, DOMAIN, np.r_[TASK.ys, TASK.yt])
    by_class = display.plot(by="class").collections_
    assert len(np.unique(by_class[0].get_edgecolors(), axis=0)) == 3
    by_domain = display.plot(by="domain").collections_
    colours = [np.unique(rows.get_edgecolors(), axis=0) for rows in by_domain]
    assert [len(c) for c in colours] == [1, 1]
    assert not np.array_equal(*colours)


def test_scatter_keeps_the_shares_of_domains_and_classes_when_it_draws_fewer_rows():
    labels = np.r_[np.repeat(["a", "b"], [300, 100]), np.repeat(["a", "b"], [50, 150])]
    domain = np.repeat([1, -1], [400, 200])
    X = np.random.default_rng(0).normal(size=(600, 3))
    display = DomainScatterDisplay.from_tables({"X": X}, domain, labels, max_rows=60)
    groups, counts = np.unique(
        np.c_[display.source, display.labels == "a"], axis=0, return_counts=True
    )
    np.testing.assert_allclose(counts, [15, 5, 10, 30], atol=1)
    assert len(groups) == 4


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_scatter_maps_a_single_column_and_rows_that_are_all_the_same(method):
    for X in (np.arange(70.0)[:, None], np.ones((70, 4))):
        display = DomainScatterDisplay.from_tables({"X": X}, DOMAIN, method=method)
        assert np.isfinite(display.points["X"]).all()


def test_scatter_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="at least one"):
        DomainScatterDisplay({}, DOMAIN)
    with pytest.raises(ValueError, match="by='colour'"):
        DomainScatterDisplay({"plane": TASK.X[:, :2]}, DOMAIN).plot(by="colour")


def test_gap_marks_are_the_measured_distances(model):
    display = DomainGapDisplay.from_estimator(model, TASK.Xs, TASK.ys, TASK.Xt, TASK.yt)
    assert titles(display) == ["A-distance", "MMD", "MMCD"]
    before = domain_gap(TASK.Xs, TASK.Xt, TASK.ys, TASK.yt)
    expected = [before.overall["MMD"], *(before.by_class[c]["MMD"] for c in range(3))]
    np.testing.assert_allclose(display.lines_[2].get_xdata(), expected)


def test_gap_shows_the_classes_that_are_furthest_apart_where_there_are_many():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 6)
    Xs = rng.normal(size=(240, 3))
    Xt = rng.normal(size=(240, 3)) + np.where(y < 10, 0, 50)[:, None]
    display = DomainGapDisplay({"before": domain_gap(Xs, Xt, y, y)}).plot()
    shown = [tick.get_text() for tick in display.axes_[0].get_yticklabels()]
    assert shown == ["all rows", *map(str, range(10, 40))]


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        DomainGapDisplay({})


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
@pytest.mark.parametrize("names", [("a", "b", "c"), ("touring bike", "video projector", "mug")])
def test_saves_without_a_screen_and_cuts_nothing_off(kind, names):
    labels = np.array(names)[np.r_[TASK.ys, TASK.yt]]
    gap = domain_gap(TASK.Xs, TASK.Xt, labels[:40], labels[40:])
    for display in (
        DomainGapDisplay({"before": gap, "after": gap}).plot(),
        DomainScatterDisplay({"plane": TASK.X[:, :2]}, DOMAIN, labels).plot(),
    ):
        figure, buffer = display.figure_, io.BytesIO()
        figure.savefig(buffer, format=kind)
        assert buffer.getbuffer().nbytes > 1000
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        drawn = figure.get_tightbbox(canvas.get_renderer())
        width, height = figure.get_size_inches()
        assert min(drawn.x0, drawn.y0) >= 0
        assert drawn.x1 <= width
        assert drawn.y1 <= height


def test_draws_on_given_axes_and_says_how_many_it_needs(model):
    axes = Figure().subplots(1, 2)
    display = DomainScatterDisplay.from_estimator(model, TASK.Xs, TASK.ys, TASK.Xt, ax=axes)
    assert list(display.axes_) == list(axes)
    gaps = {"a": domain_gap(TASK.Xs, TASK.Xt), "b": domain_gap(TASK.Xs, TASK.Xt)}
    assert DomainGapDisplay(gaps).plot(ax=Figure().subplots(3)).axes_[2].get_legend() is not None
    with pytest.raises(ValueError, match="3 measures but 2 axes"):
        DomainGapDisplay(gaps).plot(ax=axes)


@pytest.mark.parametrize("name", [r"$\frac{$", "_hidden", "two\nlines", "a$b$c", "x" * 300, ""])
def test_names_from_a_strangers_file_are_drawn_as_they_stand(name):
    labels = np.where(np.arange(70) % 2, name, "other")
    display = DomainScatterDisplay({name: TASK.X[:, :2]}, DOMAIN, labels).plot()
    display.figure_.savefig(io.BytesIO(), format="svg")
    gap = domain_gap(TASK.Xs, TASK.Xt, labels[:40], labels[40:])
    DomainGapDisplay({name: gap, "after": gap}).plot().figure_.savefig(io.BytesIO(), format="png")


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("paper", ["#ffffff", "#15181d"])
@pytest.mark.parametrize("colour", sorted({*CLASS_COLOURS, *DOMAIN_COLOURS}))
def test_marks_have_the_contrast_that_wcag_asks_of_graphics(colour, paper):
    assert contrast(colour, paper) >= 3
