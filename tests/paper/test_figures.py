"""Figures draw what the cells and records hold."""

import numpy as np
import pytest

from paper import figures
from paper.plans import SENSITIVITY, cells_of
from toys import record_of

pytestmark = pytest.mark.usefixtures("toy")


def lines_of(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_confusion_shows_the_source_only_model_twice():
    axes = figures.confusion(cells_of("fig-confusion")).axes
    assert len(axes) == 4
    titles = [ax.get_title(loc="left") for ax in axes]
    assert "Source D" in titles[0]
    assert "TFDF" in titles[-1]


def test_convergence_has_a_curve_of_each_method_and_covariances_add_to_means():
    cells = cells_of("fig-convergence")
    mmd, mmcd, accuracy = figures.convergence(cells).axes
    assert lines_of(mmd).keys() == {"JDA", "MEDA", "TFDF"}
    for name, line in lines_of(mmd).items():
        # Covariances only add to what the means differ by.
        assert np.all(lines_of(mmcd)[name].get_ydata() >= line.get_ydata())
    assert all(0 <= y <= 100 for line in lines_of(accuracy).values() for y in line.get_ydata())


def test_tsne_shows_as_many_rows_of_every_class_and_domain():
    axes = figures.tsne(cells_of("fig-tsne")[:1], rows_per_class=5).axes
    assert [ax.get_title(loc="left") for ax in axes] == ["before adaptation", "JDA"]
    for ax in axes:
        assert [len(points.get_offsets()) for points in ax.collections] == [15, 15]


def test_sensitivity_follows_the_grid_and_leaves_other_parameters_alone():
    cells = cells_of("fig-sensitivity")
    records = {}
    for cell in cells:
        # The value itself as accuracy, in per cent, where the number of neighbours changed.
        p = cell.changes.get("n_neighbors")
        records[cell.key] = record_of(cell, accuracy=0.9 if p is None else p / 100)
    axes = figures.sensitivity(cells, records).axes
    assert len(axes) == len(SENSITIVITY)
    line = lines_of(axes[0])["M → U"]
    np.testing.assert_allclose(line.get_xdata(), [5, 10, 15, 20, 30])
    np.testing.assert_allclose(line.get_ydata(), [5, 90, 15, 20, 30])  # 10 is the setting
    assert len(lines_of(axes[1])["M → U"].get_xdata()) == 9


def test_figures_are_saved_as_png_and_svg(tmp_path):
    figure = figures.confusion(cells_of("fig-confusion")[:1])
    path = figures.save(figure, tmp_path / "figures", "fig-confusion")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "figures" / "fig-confusion.svg").read_text()
