"""Embedded task: digits printed in matplotlib's fonts against digits written by hand.

Both domains are made alike. The handwritten digits of scikit-learn come from 32x32 bitmaps whose
set pixels were counted in 4x4 blocks [1]_; here the outlines of the fonts are filled on the same
32x32 grid and counted in the same blocks.

References
----------
.. [1] E. Alpaydin, C. Kaynak (1998). Optical Recognition of Handwritten Digits. UCI Machine
   Learning Repository. https://doi.org/10.24432/C50P49
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.utils import Bunch, check_random_state

# The text faces that matplotlib ships; its other files hold symbols or old-style figures.
_FONTS = (
    *(f"DejaVuSans{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSansMono{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{style}" for style in ("", "-Bold", "-Italic", "-BoldItalic")),
    *(f"STIXGeneral{style}" for style in ("", "Bol", "Italic", "BolIta")),
    *("cmb10", "cmr10", "cmss10", "cmti10", "cmtt10"),
)
_COPIES = 8
_MAX_ANGLE = np.deg2rad(15)
_MIN_WIDTH = 0.65  # handwritten digits are narrower than printed ones
_GRID = 32
_BLOCK = 4

_DESCR = f"""Printed to handwritten digits
------------------------------
Source: the digits 0-9 in {len(_FONTS)} fonts, {_COPIES} copies of each, turned and narrowed.
Target: the 1,797 handwritten digits of ``sklearn.datasets.load_digits``.
Both: 8x8 pixels, each the number (0 to 16) of set pixels in a 4x4 block of a 32x32 bitmap.
"""

# An outline is its straight edges: rows (x0, y0, x1, y1), y upwards.
_Outline = NDArray[np.float64]


def load_printed_to_handwritten(*, random_state: int | np.random.RandomState | None = 0) -> Bunch:
    """Load printed digits (labelled source) and handwritten digits (target).

    Nothing is downloaded: the source is drawn from the fonts that matplotlib ships, each copy
    turned by up to 15 degrees and made up to a third narrower; the target is
    :func:`sklearn.datasets.load_digits`.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=0
        Seed of the angles and widths of the printed digits.

    Returns
    -------
    Bunch
        With the fields

        Xs : ndarray of shape (1680, 64)
            Printed digits, pixel values from 0 to 16.
        ys : ndarray of shape (1680,)
            The digit on each row of `Xs`.
        Xt : ndarray of shape (1797, 64)
            Handwritten digits, pixel values from 0 to 16.
        yt : ndarray of shape (1797,)
            The digit on each row of `Xt`; for scoring only.
        images : Bunch
            The same pixels as pictures: `images.source` of shape (1680, 8, 8) and
            `images.target` of shape (1797, 8, 8).
        target_names : ndarray of shape (10,)
            The digits.
        name : str
            ``"printed->handwritten"``.
        DESCR : str
            A description of the task.

    Examples
    --------
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> task = load_printed_to_handwritten()
    >>> task.Xs.shape, task.Xt.shape
    ((1680, 64), (1797, 64))
    """
    rng = check_random_state(random_state)
    outlines = [outline for font in _FONTS for outline in _digit_outlines(font)]
    printed = np.array([_draw(outline, rng) for _ in range(_COPIES) for outline in outlines])
    written = load_digits()
    return Bunch(
        Xs=printed.reshape(len(printed), -1),
        ys=np.tile(np.arange(10), len(printed) // 10),
        Xt=written.data,
        yt=written.target,
        images=Bunch(source=printed, target=written.images),
        target_names=written.target_names,
        name="printed->handwritten",
        DESCR=_DESCR,
    )


def _digit_outlines(font_name: str) -> list[_Outline]:
    """Read the outlines of the digits 0 to 9 from one of matplotlib's fonts."""
    import matplotlib
    from matplotlib.ft2font import FT2Font
    from matplotlib.path import Path as Outline

    path = Path(matplotlib.get_data_path(), "fonts", "ttf", f"{font_name}.ttf")
    if not path.is_file():
        raise FileNotFoundError(
            f"The font {path.name} is not in {path.parent}, where matplotlib keeps its fonts. "
            "Reinstall matplotlib to get it back."
        )
    font = FT2Font(str(path))
    font.set_size(256, 72)
    outlines = []
    for digit in "0123456789":
        font.load_char(ord(digit))
        polygons = map(np.asarray, Outline(*font.get_path()).to_polygons())
        outlines.append(np.vstack([np.hstack([p[:-1], p[1:]]) for p in polygons]))
    return outlines


def _draw(outline: _Outline, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Turn and narrow an outline at random, fit it to the grid and count its 4x4 blocks."""
    angle = rng.uniform(-_MAX_ANGLE, _MAX_ANGLE)
    width = rng.uniform(_MIN_WIDTH, 1)
    cos, sin = np.cos(angle), np.sin(angle)
    points = outline.reshape(-1, 2) * (width, 1) @ ((cos, sin), (-sin, cos))
    low, high = points.min(axis=0), points.max(axis=0)
    points = (points - (low + high) / 2) * (_GRID / (high - low).max()) + _GRID / 2
    blocks = _fill(points.reshape(-1, 4)).reshape(_GRID // _BLOCK, _BLOCK, -1, _BLOCK)
    return blocks.sum(axis=(1, 3), dtype=float)


def _fill(outline: _Outline) -> NDArray[np.bool_]:
    """Set the pixels whose centres an outline winds around; the first row is the top."""
    x0, y0, x1, y1 = outline.T
    centres = _GRID - np.arange(_GRID)[:, np.newaxis] - 0.5
    row, edge = np.nonzero((y0 <= centres) != (y1 <= centres))
    x0, y0, x1, y1 = outline[edge].T
    crossing = x0 + (x1 - x0) * (centres[row, 0] - y0) / (y1 - y0)
    column = np.clip(np.ceil(crossing - 0.5), 0, _GRID).astype(int)
    winding = np.zeros((_GRID, _GRID + 1), dtype=int)
    np.add.at(winding, (row, column), np.where(y1 > y0, 1, -1))
    return winding.cumsum(axis=1)[:, :_GRID] != 0
