"""COIL20: twenty objects on a turntable, split by the direction of view.

References
----------
.. [1] S. A. Nene, S. K. Nayar, H. Murase (1996). Columbia Object Image Library (COIL-20).
   Technical report CUCS-005-96.
.. [2] M. Long, J. Wang, G. Ding, J. Sun, P. S. Yu (2013). Transfer feature learning with joint
   distribution adaptation. ICCV.
"""

import os

from transferable.datasets._domains import DomainCollection, Rows
from transferable.datasets._files import get_data_home
from transferable.datasets._preprocessing import unit_rows
from transferable.datasets._readers import read_mat
from transferable.datasets._registry import COIL20

_PARTS = {"COIL1": "src", "COIL2": "tar"}


def fetch_coil20(
    *,
    preprocess: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> DomainCollection:
    """Give the two domains of COIL20, whose file is fetched when a task needs it.

    Each domain has 720 pictures of 32x32 pixels, flattened to 1024 features, of twenty
    objects [1]_.
    ``"COIL1"`` holds the views from the first and third quadrant of the turntable, ``"COIL2"``
    those from the second and fourth [2]_. Label ``k`` is the library's object ``k + 1``.

    Parameters
    ----------
    preprocess : bool, default=True
        Scale the rows to unit Euclidean length, as published. If False, they are as stored.
    data_home : str or path-like, default=None
        Folder of the files, see :func:`get_data_home`.
    download : bool, default=True
        Whether to download the file if it is missing.

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
    home = get_data_home(data_home)

    def read(domain: str) -> Rows:
        file = COIL20.locate(home, download=download)
        X, y = read_mat(file, f"X_{_PARTS[domain]}", f"Y_{_PARTS[domain]}")
        return X.T, y

    return DomainCollection(
        "COIL20",
        tuple(_PARTS),
        [f"object {k}" for k in range(1, 21)],
        read,
        unit_rows if preprocess else None,
    )
