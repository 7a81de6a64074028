"""Benchmarks of the literature: named domains, any ordered pair of which is a task."""

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.preprocessing import normalize, scale
from sklearn.utils import Bunch

from transferable.datasets._files import (
    FILES,
    MNIST,
    TABLES,
    DataFileError,
    Rows,
    get_data_home,
    read_idx,
    read_mat,
    read_usps,
)

_CLASSES = "backpack bike calculator headphones keyboard laptop monitor mouse mug projector"
# Files of Office-Caltech10, the name of Caltech in their names, and the number of features.
_OFFICE_CALTECH = {
    "surf": ("surf/{}_SURF_L10.mat", "Caltech10", 800),
    "decaf6": ("decaf6/{}_decaf.mat", "caltech", 4096),
    "efficientnet-lite0": ("effnet_lite0/{}_effnet_lite0.mat", "caltech10", 1280),
}
_N_ROWS = {"C": 1123, "A": 958, "W": 295, "D": 157}


class DomainCollection:
    """Named domains of one dataset, read from disk when a task needs them.

    The fetchers of this package return it. Nothing is kept in memory between calls, so changing
    the arrays of one task changes no other.

    Parameters
    ----------
    name : str
        Name of the dataset.
    domains : sequence of str
        Names of the domains, in the order in which papers list them.
    target_names : sequence of str
        Names of the classes: label ``k`` is ``target_names[k]``.
    read : callable
        ``read(domain)`` gives the rows and the integer labels of one domain.
    preprocess : callable or None, default=None
        Applied to the rows of each domain by itself. None leaves them as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from transferable.datasets import DomainCollection
    >>> rows = {"day": np.zeros((3, 2)), "night": np.ones((4, 2))}
    >>> photos = DomainCollection(
    ...     "photos", ["day", "night"], ["cat"], lambda d: (rows[d], np.zeros(len(rows[d]), int))
    ... )
    >>> photos.tasks()
    [('day', 'night'), ('night', 'day')]
    >>> photos.task("day", "night").Xt.shape
    (4, 2)
    """

    def __init__(
        self,
        name: str,
        domains: Sequence[str],
        target_names: Sequence[str],
        read: Callable[[str], Rows],
        preprocess: Callable[[NDArray[np.floating]], NDArray[np.floating]] | None = None,
    ) -> None:
        self.name = name
        self.domains = tuple(domains)
        self.target_names = np.array(target_names)
        self._read = read
        self._preprocess = preprocess

    def __repr__(self) -> str:
        """Name the dataset and its domains."""
        return f"DomainCollection({self.name!r}, domains={self.domains})"

    def tasks(self) -> list[tuple[str, str]]:
        """Return every pair (source, target) of different domains, in the order of papers."""
        return list(permutations(self.domains, 2))

    def task(self, source: str, target: str) -> Bunch:
        """Load one adaptation task.

        Parameters
        ----------
        source, target : str
            Names of two different domains.

        Returns
        -------
        Bunch
            With the fields `Xs`, `ys` (rows and labels of the source), `Xt`, `yt` (of the target;
            `yt` is for scoring only), `name` (such as ``"C->A"``) and `target_names`.

        Raises
        ------
        DataFileError
            If a file of one of the two domains is not available.
        """
        if source == target:
            raise ValueError(f"Source and target are both {source!r}; name two different domains.")
        for name in (source, target):
            self._check(name)
        ours, theirs = self.domain(source), self.domain(target)
        domains = {"Xs": ours.X, "ys": ours.y, "Xt": theirs.X, "yt": theirs.y}
        return Bunch(**domains, name=f"{source}->{target}", target_names=self.target_names)

    def domain(self, name: str) -> Bunch:
        """Load one domain.

        Parameters
        ----------
        name : str
            Name of the domain.

        Returns
        -------
        Bunch
            With the fields `X` (rows), `y` (labels), `name` and `target_names`.
        """
        self._check(name)
        X, y = self._read(name)
        if self._preprocess is not None:
            X = self._preprocess(X)
        return Bunch(X=X, y=y, name=name, target_names=self.target_names)

    def _check(self, domain: str) -> None:
        if domain not in self.domains:
            raise ValueError(
                f"{domain!r} is not a domain of {self.name}; choose from {', '.join(self.domains)}."
            )


def fetch_office_caltech(
    features: Literal["surf", "decaf6", "efficientnet-lite0"] = "surf",
    *,
    preprocess: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> DomainCollection:
    """Return the four domains of Office-Caltech10, whose files are fetched when a task needs them.

    The domains are Caltech (``"C"``, 1123 rows), Amazon (``"A"``, 958), webcam (``"W"``, 295) and
    DSLR (``"D"``, 157); the labels 0 to 9 are backpack, bike, calculator, headphones, keyboard,
    laptop, monitor, mouse, mug and projector.

    Parameters
    ----------
    features : {"surf", "decaf6", "efficientnet-lite0"}, default="surf"
        ``"surf"``: histograms of 800 visual words [1]_. ``"decaf6"``: 4096 activations of a
        convolutional network [2]_; only W and D have a public address, so the files of C and A
        must be put in the data folder by hand. ``"efficientnet-lite0"``: 1280 averages of the
        last feature map of EfficientNet-Lite0, with no public address. They are not a published
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
    if features not in _OFFICE_CALTECH:
        raise ValueError(
            f"features={features!r} is unknown; choose from {', '.join(_OFFICE_CALTECH)}."
        )
    home = get_data_home(data_home)
    path, caltech, n_features = _OFFICE_CALTECH[features]
    names = {"C": caltech, "A": "amazon", "W": "webcam", "D": "dslr"}

    def read(domain: str) -> Rows:
        file = FILES[f"office_caltech10_{path.format(names[domain])}"].locate(
            home, download=download
        )
        X, y = read_mat(file, "fts" if features == "surf" else "feas", "labels")
        expected = (_N_ROWS[domain], n_features)
        if X.shape != expected or len(y) != len(X):
            raise DataFileError(
                f"{file.name} in {file.parent} holds data of shape {X.shape} and {len(y)} labels, "
                f"expected {expected} and {expected[0]}. Replace it with the published file."
            )
        return X, y

    published = normalize if features == "efficientnet-lite0" else _standardized_shares
    name, classes = f"Office-Caltech10 ({features})", _CLASSES.split()
    return DomainCollection(name, tuple(_N_ROWS), classes, read, published if preprocess else None)


def fetch_coil20(
    *,
    preprocess: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> DomainCollection:
    """Return the two domains of COIL20, whose file is fetched when a task needs it.

    Each domain has 720 pictures of 32x32 pixels, flattened to 1024 features, of twenty
    objects [1]_.
    ``"COIL1"`` holds the views from the first and third quadrant of the turntable, ``"COIL2"``
    those from the second and fourth [2]_. Label ``k`` is the library's object ``k + 1``.

    Parameters
    ----------
    preprocess : bool, default=True
        Scale the rows to unit Euclidean length, as published. If False, they are as stored.
    data_home, download
        As for :func:`fetch_office_caltech`.

    Returns
    -------
    DomainCollection
        The domains ``"COIL1"`` and ``"COIL2"``.

    References
    ----------
    .. [1] S. A. Nene, S. K. Nayar, H. Murase (1996). Columbia Object Image Library (COIL-20).
       Technical report CUCS-005-96.
    .. [2] M. Long, J. Wang, G. Ding, J. Sun, P. S. Yu (2013). Transfer feature learning with
       joint distribution adaptation. ICCV.

    Examples
    --------
    >>> from transferable.datasets import fetch_coil20
    >>> coil = fetch_coil20()
    >>> coil.domains
    ('COIL1', 'COIL2')
    >>> coil.task("COIL1", "COIL2").Xs.shape  # doctest: +SKIP
    (720, 1024)
    """
    read = _src_tar_reader("coil20/COIL_1.mat", ("COIL1", "COIL2"), data_home, download)
    names = [f"object {k}" for k in range(1, 21)]
    published = normalize if preprocess else None
    return DomainCollection("COIL20", ("COIL1", "COIL2"), names, read, published)


def fetch_mnist_usps(
    full: bool = False,
    *,
    preprocess: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> DomainCollection:
    """Return the domains USPS and MNIST, whose files are fetched when a task needs them.

    Both have 256 features: pictures of 16x16 pixels between 0 and 1. Labels are the digits
    [1]_, [2]_.

    Parameters
    ----------
    full : bool, default=False
        False gives the task of the literature: 1800 digits of USPS and 2000 of MNIST, whose
        pictures were shrunk whole from 28x28. True gives all 9298 and 70000, training rows first.
        MNIST leaves a margin of 4 pixels around its digits and USPS leaves none, so the full
        MNIST is brought to the frame of USPS: its central 20x20 pixels are averaged over the
        areas of 16x16 pixels. Reading the full USPS needs h5py, the extra ``data``.
    preprocess : bool, default=True
        Scale the rows to unit Euclidean length, as published. If False, they are pixels.
    data_home, download
        As for :func:`fetch_office_caltech`.

    Returns
    -------
    DomainCollection
        The domains ``"U"`` (USPS) and ``"M"`` (MNIST).

    References
    ----------
    .. [1] Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998). Gradient-based learning applied to
       document recognition. Proceedings of the IEEE 86(11).
    .. [2] J. J. Hull (1994). A database for handwritten text recognition research. IEEE TPAMI
       16(5).

    Examples
    --------
    >>> from transferable.datasets import fetch_mnist_usps
    >>> digits = fetch_mnist_usps()
    >>> digits.tasks()
    [('U', 'M'), ('M', 'U')]
    >>> digits.task("U", "M").Xs.shape  # doctest: +SKIP
    (1800, 256)
    """
    home = get_data_home(data_home)

    def read_full(domain: str) -> Rows:
        if domain == "U":
            return read_usps(FILES["usps_full/usps.h5"].locate(home, download=download))
        rows, digits = [], []
        for files in MNIST:
            images, labels = (file.locate(home, download=download) for file in files)
            pictures = read_idx(images, ndim=3)
            rows.append(_to_usps_frame(pictures).reshape(len(pictures), -1))
            digits.append(read_idx(labels, ndim=1))
        return np.concatenate(rows), np.concatenate(digits).astype(np.int64)

    read_small = _src_tar_reader("mnist_usps/USPS_vs_MNIST.mat", ("U", "M"), data_home, download)
    return DomainCollection(
        "MNIST-USPS (full)" if full else "MNIST-USPS",
        ("U", "M"),
        [str(digit) for digit in range(10)],
        read_full if full else read_small,
        normalize if preprocess else None,
    )


def fetch_tables(
    names: Iterable[str] | None = None, *, data_home: str | os.PathLike[str] | None = None
) -> dict[str, Bunch]:
    """Read pairs of ordinary tables, columns as they are: text, missing values and all.

    Five pairs of tables of the UCI repository [1]_ and twelve further cuts of the same tables,
    whose names begin with that of their table: ``"adult"`` (private to public employees),
    ``"gas"`` (sensors that drifted), ``"heart"`` (one hospital to another), ``"student"`` (one
    school to another), ``"wine"`` (red to white). They have no public address as pairs: the files
    are read from ``tables/`` of the data folder, their checksums verified.

    Parameters
    ----------
    names : iterable of str or None, default=None
        The pairs to read, all of them by default.
    data_home : str or path-like, default=None
        Folder of the files, see :func:`get_data_home`.

    Returns
    -------
    dict of Bunch
        For each name a pair with the fields `source` (a DataFrame with the column ``label``),
        `target` (a DataFrame without it), `yt` (the labels of the target, for scoring only) and
        `name`.

    References
    ----------
    .. [1] D. Dua, C. Graff (2019). `UCI Machine Learning Repository
       <https://archive.ics.uci.edu>`__.

    Examples
    --------
    >>> from transferable.datasets import fetch_tables
    >>> heart = fetch_tables(["heart"])["heart"]  # doctest: +SKIP
    >>> heart.source.shape, heart.target.shape  # doctest: +SKIP
    ((303, 14), (294, 13))
    """
    wanted = list(TABLES) if names is None else list(names)
    unknown = [name for name in wanted if name not in TABLES]
    if unknown:
        raise ValueError(
            f"{', '.join(map(repr, unknown))}: no such pair of tables; choose from "
            f"{', '.join(TABLES)}."
        )
    home = get_data_home(data_home)
    pairs = {}
    for name in wanted:
        source, target = (pd.read_csv(f.locate(home, download=False)) for f in TABLES[name])
        yt = target.pop("label").to_numpy()
        pairs[name] = Bunch(source=source, target=target, yt=yt, name=name)
    return pairs


def _src_tar_reader(
    path: str, domains: Sequence[str], data_home: str | os.PathLike[str] | None, download: bool
) -> Callable[[str], Rows]:
    """Return a reader of two domains, which lie as columns of X_src and X_tar in one file."""
    home = get_data_home(data_home)

    def read(domain: str) -> Rows:
        part = ("src", "tar")[domains.index(domain)]
        file = FILES[path].locate(home, download=download)
        X, y = read_mat(file, f"X_{part}", f"Y_{part}")
        return X.T, y

    return read


def _standardized_shares(X: NDArray[np.floating]) -> NDArray[np.floating]:
    """Divide each row of non-negative features by its sum, then standardise each column."""
    return scale(normalize(X, norm="l1"))


def _to_usps_frame(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Average the central 20x20 pixels of 28x28 pictures over the areas of 16x16 pixels."""
    # In quarter pixels a side is 80 long, and each of the 16 new pixels covers 5 of them.
    quarters = np.repeat(np.eye(20, dtype=np.float32), 4, axis=0)
    average = quarters.reshape(16, 5, 20).mean(axis=1)
    digits = images[:, 4:24, 4:24].astype(np.float32) / 255
    return average @ digits @ average.T
