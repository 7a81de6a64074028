"""Colours are legible on white and on black paper."""

import pytest
from matplotlib.colors import to_rgb

from transferable.plots.displays import CLASS_COLOURS, DOMAIN_COLOURS


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
