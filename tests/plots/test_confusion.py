"""The confusion matrices' display."""

import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from transferable.plots import ConfusionDisplay

Y_TRUE = np.array(["a", "a", "b", "b", "c"])
Y_PRED = {
    "first": np.array(["a", "b", "b", "b", "c"]),
    "second": np.array(["b", "b", "a", "c", "c"]),
}


def texts(ax):
    """What is written in the cells of a panel."""
    at = {tuple(map(round, t.get_position())): t.get_text() for t in ax.texts}
    return {place: text for place, text in at.items() if "correct" not in text}


def test_cells_show_per_cent_of_the_true_class():
    display = ConfusionDisplay.from_predictions(Y_TRUE, Y_PRED)
    first, second = display.axes_
    # Positions are (column, row): predicted, then true.
    assert texts(first) == {(0, 0): "50", (1, 0): "50", (1, 1): "100", (2, 2): "100"}
    assert texts(second) == {(1, 0): "100", (0, 1): "50", (2, 1): "50", (2, 2): "100"}


def test_errors_and_hits_are_on_opposite_sides_of_the_colours():
    display = ConfusionDisplay.from_predictions(Y_TRUE, Y_PRED)
    for image in display.images_:
        shares = np.asarray(image.get_array())
        assert (np.diag(shares) >= 0).all()
        assert (shares[~np.eye(3, dtype=bool)] <= 0).all()
        np.testing.assert_allclose(np.abs(shares).sum(axis=1), 1)


def test_titles_name_the_method_and_its_accuracy():
    display = ConfusionDisplay.from_predictions(Y_TRUE, Y_PRED)
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["first", "second"]
    shown = [t.get_text() for ax in display.axes_ for t in ax.texts if "correct" in t.get_text()]
    assert shown == ["80.0 % correct", "20.0 % correct"]


def test_panels_may_be_about_different_rows():
    display = ConfusionDisplay.from_predictions(
        {"all": Y_TRUE, "some": Y_TRUE[:2]}, {"all": Y_PRED["first"], "some": Y_TRUE[:2]}
    )
    assert display.matrices["all"].sum() == 5
    assert display.matrices["some"].sum() == 2
    assert display.matrices["some"].shape == (3, 3)


def test_a_class_without_rows_is_drawn_empty():
    display = ConfusionDisplay.from_predictions(Y_TRUE, Y_PRED, labels=["a", "b", "c", "d"])
    assert np.isfinite(np.asarray(display.images_[0].get_array())).all()


def test_labels_choose_and_order_the_classes():
    display = ConfusionDisplay.from_predictions(Y_TRUE, Y_PRED, labels=["c", "a", "b"])
    shown = [tick.get_text() for tick in display.axes_[0].get_xticklabels()]
    assert shown == ["c", "a", "b"]


def test_draws_on_given_axes():
    axes = Figure().subplots(2, 1)
    display = ConfusionDisplay.from_predictions(Y_TRUE, Y_PRED, ax=axes)
    assert display.figure_ is axes[0].figure
    single = Figure().subplots()
    assert ConfusionDisplay({"one": np.eye(2)}, ["a", "b"]).plot(ax=single).axes_[0] is single


def test_wrong_number_of_axes_says_how_many():
    with pytest.raises(ValueError, match="2 confusion matrices but 3 axes"):
        ConfusionDisplay.from_predictions(Y_TRUE, Y_PRED, ax=Figure().subplots(3, 1))


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        ConfusionDisplay({}, ["a"])


def test_many_classes_are_drawn_without_numbers():
    y = np.arange(40)
    display = ConfusionDisplay.from_predictions(y, {"same": y})
    assert texts(display.axes_[0]) == {}


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_saves_without_a_screen(kind):
    buffer = io.BytesIO()
    ConfusionDisplay.from_predictions(Y_TRUE, Y_PRED).figure_.savefig(buffer, format=kind)
    assert buffer.getbuffer().nbytes > 1000


def test_leaves_the_users_matplotlib_alone():
    code = "import sys, transferable.plots; print('matplotlib.pyplot' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert loaded.stdout.strip() == "False", loaded.stderr


@pytest.mark.parametrize("labels", [["a", "b", "c"], ["touring bike", "video projector", "mug"]])
@pytest.mark.parametrize("n_panels", [1, 4])
def test_nothing_is_cut_off(labels, n_panels):
    panels = {f"method {i}": np.eye(3) for i in range(n_panels)}
    figure = ConfusionDisplay(panels, labels).plot().figure_
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = figure.get_tightbbox(canvas.get_renderer())
    width, height = figure.get_size_inches()
    assert min(drawn.x0, drawn.y0) >= 0
    assert drawn.x1 <= width
    assert drawn.y1 <= height
