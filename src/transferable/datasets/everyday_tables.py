"""Pairs of ordinary tables: census, gas sensors, hearts, pupils and wines.

References
----------
.. [1] D. Dua, C. Graff (2019). UCI Machine Learning Repository. https://archive.ics.uci.edu
"""

import os
from collections.abc import Iterable

import pandas as pd
from sklearn.utils import Bunch

from transferable.datasets._files import DataFile, get_data_home
from transferable.datasets._registry import TABLES


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

    Raises
    ------
    ValueError
        If a name is unknown.
    DataFileError
        If a file is missing or does not match its checksum.

    References
    ----------
    .. [1] D. Dua, C. Graff (2019). UCI Machine Learning Repository.
       https://archive.ics.uci.edu

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

    def read(file: DataFile) -> pd.DataFrame:
        return pd.read_csv(file.locate(home, download=False))

    pairs = {}
    for name in wanted:
        source, target = map(read, TABLES[name])
        yt = target.pop("label").to_numpy()
        pairs[name] = Bunch(source=source, target=target, yt=yt, name=name)
    return pairs
