"""TFDF, TFDF-V, MEDA and ARTL over Dask collections."""

from __future__ import annotations

from transferable import classifiers as local
from transferable.dask._estimators import DaskRiskClassifier

__all__ = ["ARTL", "MEDA", "TFDF", "TFDFV"]


class TFDFV(DaskRiskClassifier, local.TFDFV, of=local.TFDFV):
    """TFDF-V over Dask arrays and dataframes, by landmarks.

    Kernel least squares that aligns domains, as :class:`transferable.TFDFV` describes it.

    Attributes
    ----------
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client that is used now. All others are as in memory.

    See Also
    --------
    transferable.TFDFV : The same in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import TFDFV
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(0.2, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = TFDFV(n_landmarks=50).adapt(Xs, ys, Xt)
    >>> model.predict(Xt)
    dask.array<_array, shape=(300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """


class TFDF(DaskRiskClassifier, local.TFDF, of=local.TFDF):
    """TFDF over Dask arrays and dataframes, by landmarks.

    :class:`TFDFV`, then the same objective with class confusion.

    Attributes
    ----------
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client that is used now. All others are as in memory.

    See Also
    --------
    transferable.TFDF : The same in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import TFDF
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(0.2, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = TFDF(n_landmarks=50).adapt(Xs, ys, Xt)
    >>> model.predict(Xt)
    dask.array<_array, shape=(300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """


class MEDA(DaskRiskClassifier, local.MEDA, of=local.MEDA):
    """MEDA over Dask arrays and dataframes, by landmarks.

    Alignment of means on geodesic flow features, as :class:`transferable.MEDA` describes it.

    Attributes
    ----------
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client that is used now. All others are as in memory.

    See Also
    --------
    transferable.MEDA : The same in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import MEDA
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(0.2, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = MEDA(n_landmarks=50, manifold_dim=2).adapt(Xs, ys, Xt)
    >>> model.predict(Xt)
    dask.array<_array, shape=(300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """


class ARTL(DaskRiskClassifier, local.ARTL, of=local.ARTL):
    """ARTL over Dask arrays and dataframes, by landmarks.

    Alignment of means of unit rows, as :class:`transferable.ARTL` describes it.

    Attributes
    ----------
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client that is used now. All others are as in memory.

    See Also
    --------
    transferable.ARTL : The same in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import ARTL
    >>> rng = da.random.default_rng(0)
    >>> Xs, Xt = rng.normal(size=(400, 5), chunks=(100, 5)), rng.normal(0.2, size=(300, 5))
    >>> ys = (Xs[:, 0] > 0).astype(int)
    >>> model = ARTL(n_landmarks=50).adapt(Xs, ys, Xt)
    >>> model.predict(Xt)
    dask.array<_array, shape=(300,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    """
