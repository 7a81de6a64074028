"""Office-Caltech10: photographs of ten kinds of object in four domains.

References
----------
.. [1] B. Gong, Y. Shi, F. Sha, K. Grauman (2012). Geodesic flow kernel for unsupervised domain
   adaptation. CVPR.
.. [2] J. Donahue et al. (2014). DeCAF: a deep convolutional activation feature for generic visual
   recognition. ICML.
"""

import os
from typing import Literal

from transferable.datasets._domains import DomainCollection, Rows
from transferable.datasets._files import DataFileError, get_data_home
from transferable.datasets._preprocessing import standardized_shares, unit_rows
from transferable.datasets._readers import read_mat
from transferable.datasets._registry import OFFICE_CALTECH

_CLASSES = (
    "backpack",
    "bike",
    "calculator",
    "headphones",
    "keyboard",
    "laptop",
    "monitor",
    "mouse",
    "mug",
    "projector",
)
_N_ROWS = {"C": 1123, "A": 958, "W": 295, "D": 157}
_N_FEATURES = {"surf": 800, "decaf6": 4096, "efficientnet-lite0": 1280}


def fetch_office_caltech(
    features: Literal["surf", "decaf6", "efficientnet-lite0"] = "surf",
    *,
    preprocess: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> DomainCollection:
    """Give the four domains of Office-Caltech10, whose files are fetched when a task needs them.

    The domains are Caltech (``"C"``, 1123 rows), Amazon (``"A"``, 958), webcam (``"W"``, 295) and
    DSLR (``"D"``, 157); the labels 0 to 9 are backpack, bike, calculator, headphones, keyboard,
    laptop, monitor, mouse, mug and projector.

    Parameters
    ----------
    features : {"surf", "decaf6", "efficientnet-lite0"}, default="surf"
        ``"surf"``: histograms of 800 visual words [1]_. ``"decaf6"``: 4096 activations of a
        convolutional network [2]_; only W and D have a public address, so the files of C and A
        must be put in the data folder by hand. ``"efficientnet-lite0"``: 1280 averages of the
        last feature map of EfficientNet-Lite0, with no public address. They are no published
        feature set: compare methods with each other on them, never with printed DeCAF6 numbers.
    preprocess : bool, default=True
        Prepare the rows as published. SURF and DeCAF6: each row divided by its sum, then each
        column standardised within its domain (population standard deviation).
        EfficientNet-Lite0: rows of unit Euclidean length. If False, the rows are as stored.
    data_home : str or path-like, default=None
        Folder of the files, see :func:`get_data_home`.
    download : bool, default=True
        Whether to download files that are missing and have a public address.

    Returns
    -------
    DomainCollection
        The domains ``"C"``, ``"A"``, ``"W"``, ``"D"``.

    References
    ----------
    .. [1] B. Gong, Y. Shi, F. Sha, K. Grauman (2012). Geodesic flow kernel for unsupervised
       domain adaptation. CVPR.
    .. [2] J. Donahue et al. (2014). DeCAF: a deep convolutional activation feature for generic
       visual recognition. ICML.

    Examples
    --------
    >>> from transferable.datasets import fetch_office_caltech
    >>> surf = fetch_office_caltech()
    >>> surf.tasks()[:3]
    [('C', 'A'), ('C', 'W'), ('C', 'D')]
    >>> surf.task("C", "A").Xs.shape  # doctest: +SKIP
    (1123, 800)
    """
    if features not in OFFICE_CALTECH:
        raise ValueError(
            f"features={features!r} is unknown; choose from {', '.join(OFFICE_CALTECH)}."
        )
    home = get_data_home(data_home)

    def read(domain: str) -> Rows:
        file = OFFICE_CALTECH[features][domain].locate(home, download=download)
        X, y = read_mat(file, "fts" if features == "surf" else "feas", "labels")
        expected = (_N_ROWS[domain], _N_FEATURES[features])
        if X.shape != expected or len(y) != len(X):
            raise DataFileError(
                f"{file.name} in {file.parent} holds data of shape {X.shape} and {len(y)} labels, "
                f"expected {expected} and {expected[0]}. Replace it with the published file."
            )
        return X, y

    published = unit_rows if features == "efficientnet-lite0" else standardized_shares
    return DomainCollection(
        f"Office-Caltech10 ({features})",
        tuple(_N_ROWS),
        _CLASSES,
        read,
        published if preprocess else None,
    )
