"""TFDF, TFDF-V, MEDA and ARTL over Dask collections."""

from __future__ import annotations

from transferable import classifiers as local
from transferable.dask._estimators import DaskRiskClassifier

__all__ = ["ARTL", "MEDA", "TFDF", "TFDFV"]


class TFDFV(DaskRiskClassifier, local.TFDFV, of=local.TFDFV):
    """TFDF-V over Dask arrays and dataframes, by landmarks.

    Kernel least squares that aligns domains, as :class:`transferable.TFDFV` describes it.

    Parameters
    ----------
    client : distributed.Client, default=None
        Who computes; None is the current client, or threads of this process where there is none.
        It is not part of a pickle.
    **parameters
        Those of :class:`transferable.TFDFV`. The graph is off, ``manifold=0``: that of nearest
        neighbours reaches across partitions. ``n_landmarks`` is a number, "auto" for 1,000;
        ``max_memory`` bounds what the workers keep of the rows' features together, by default 45 %
        of their memory; ``device`` is "cpu".

    Attributes
    ----------
    classes_, n_iter_, balance_, manifold_dim_, temperature_, class_shares_, history_, n_landmarks_
        As in memory.
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client that is used now.

    See Also
    --------
    transferable.TFDFV : The same in memory.

    Notes
    -----
    The objective, its terms and the solve are those in memory. Landmarks, the balance, class shares
    and temperatures are chosen from a pool, the first 20,000 rows of each domain in an order that
    depends on their content alone; so is it in memory, and the two agree to rounding whatever the
    partitions. Shares that
    are given as ``class_shares`` are met on the pool's rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import TFDFV
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> task = load_printed_to_handwritten()
    >>> Xs, Xt = (da.from_array(X, chunks=(500, -1)) for X in (task.Xs, task.Xt))
    >>> model = TFDFV(n_landmarks=100).adapt(Xs, da.from_array(task.ys, chunks=500), Xt)
    >>> model.predict(Xt)
    dask.array<_of_array, shape=(1797,), dtype=int64, chunksize=(500,), chunktype=numpy.ndarray>
    """


class TFDF(DaskRiskClassifier, local.TFDF, of=local.TFDF):
    """TFDF over Dask arrays and dataframes, by landmarks.

    :class:`TFDFV`, then the same objective with class confusion.

    Parameters
    ----------
    client : distributed.Client, default=None
        Who computes; None is the current client, or threads of this process where there is none.
        It is not part of a pickle.
    **parameters
        Those of :class:`transferable.TFDF`. The graph is off, ``manifold=0``: that of nearest
        neighbours reaches across partitions. ``n_landmarks`` is a number, "auto" for 1,000;
        ``max_memory`` bounds what the workers keep of the rows' features together, by default 45 %
        of their memory; ``device`` is "cpu".

    Attributes
    ----------
    classes_, n_iter_, balance_, manifold_dim_, temperature_, class_shares_, history_, n_landmarks_
        As in memory.
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client that is used now.

    See Also
    --------
    transferable.TFDF : The same in memory.

    Notes
    -----
    The objective, its terms and the solve are those in memory. Landmarks, the balance, class shares
    and temperatures are chosen from a pool, the first 20,000 rows of each domain in an order that
    depends on their content alone; so is it in memory, and the two agree to rounding whatever the
    partitions. Shares that
    are given as ``class_shares`` are met on the pool's rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import TFDF
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> task = load_printed_to_handwritten()
    >>> Xs, Xt = (da.from_array(X, chunks=(500, -1)) for X in (task.Xs, task.Xt))
    >>> model = TFDF(n_landmarks=100).adapt(Xs, da.from_array(task.ys, chunks=500), Xt)
    >>> model.predict(Xt)
    dask.array<_of_array, shape=(1797,), dtype=int64, chunksize=(500,), chunktype=numpy.ndarray>
    """


class MEDA(DaskRiskClassifier, local.MEDA, of=local.MEDA):
    """MEDA over Dask arrays and dataframes, by landmarks.

    Alignment of means on geodesic flow features, as :class:`transferable.MEDA` describes it.

    Parameters
    ----------
    client : distributed.Client, default=None
        Who computes; None is the current client, or threads of this process where there is none.
        It is not part of a pickle.
    **parameters
        Those of :class:`transferable.MEDA`. The graph is off, ``manifold=0``: that of nearest
        neighbours reaches across partitions. ``n_landmarks`` is a number, "auto" for 1,000;
        ``max_memory`` bounds what the workers keep of the rows' features together, by default 45 %
        of their memory; ``device`` is "cpu".

    Attributes
    ----------
    classes_, n_iter_, balance_, manifold_dim_, temperature_, class_shares_, history_, n_landmarks_
        As in memory.
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client that is used now.

    See Also
    --------
    transferable.MEDA : The same in memory.

    Notes
    -----
    The objective, its terms and the solve are those in memory. Landmarks, the balance, class shares
    and temperatures are chosen from a pool, the first 20,000 rows of each domain in an order that
    depends on their content alone; so is it in memory, and the two agree to rounding whatever the
    partitions. First
    labels are those of the nearest of the pool's source rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import MEDA
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> task = load_printed_to_handwritten()
    >>> Xs, Xt = (da.from_array(X, chunks=(500, -1)) for X in (task.Xs, task.Xt))
    >>> model = MEDA(n_landmarks=100).adapt(Xs, da.from_array(task.ys, chunks=500), Xt)
    >>> model.predict(Xt)
    dask.array<_of_array, shape=(1797,), dtype=int64, chunksize=(500,), chunktype=numpy.ndarray>
    """


class ARTL(DaskRiskClassifier, local.ARTL, of=local.ARTL):
    """ARTL over Dask arrays and dataframes, by landmarks.

    Alignment of means of unit rows, as :class:`transferable.ARTL` describes it.

    Parameters
    ----------
    client : distributed.Client, default=None
        Who computes; None is the current client, or threads of this process where there is none.
        It is not part of a pickle.
    **parameters
        Those of :class:`transferable.ARTL`. The graph is off, ``manifold=0``: that of nearest
        neighbours reaches across partitions. ``n_landmarks`` is a number, "auto" for 1,000;
        ``max_memory`` bounds what the workers keep of the rows' features together, by default 45 %
        of their memory; ``device`` is "cpu".

    Attributes
    ----------
    classes_, n_iter_, balance_, manifold_dim_, temperature_, class_shares_, history_, n_landmarks_
        As in memory.
    transduction_ : dask array or dask series
        The labels of the rows that were fitted, of the target's after ``adapt``, when computed.
    client_ : distributed.Client or None
        The client that is used now.

    See Also
    --------
    transferable.ARTL : The same in memory.

    Notes
    -----
    The objective, its terms and the solve are those in memory. Landmarks, the balance, class shares
    and temperatures are chosen from a pool, the first 20,000 rows of each domain in an order that
    depends on their content alone; so is it in memory, and the two agree to rounding whatever the
    partitions. First
    labels are those of the nearest of the pool's source rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from transferable.dask import ARTL
    >>> from transferable.datasets import load_printed_to_handwritten
    >>> task = load_printed_to_handwritten()
    >>> Xs, Xt = (da.from_array(X, chunks=(500, -1)) for X in (task.Xs, task.Xt))
    >>> model = ARTL(n_landmarks=100).adapt(Xs, da.from_array(task.ys, chunks=500), Xt)
    >>> model.predict(Xt)
    dask.array<_of_array, shape=(1797,), dtype=int64, chunksize=(500,), chunktype=numpy.ndarray>
    """
