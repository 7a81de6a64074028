"""Estimators of the library over Dask arrays and dataframes, on one machine or many.

They have the names, objectives and solvers of those in memory, and need Dask, the extra ``dask``.

Landmarks, balance, class prior, temperatures and first labels are chosen from a pool, the first
20,000 rows of each domain in an order that depends only on their content, as in memory, so that the
two agree to rounding whatever the partitions. A given class prior is met by the labels of all
target rows.
"""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    from transferable.exceptions import installing

    raise ImportError(
        f"transferable.dask needs {error.name}, which is not installed: {installing('dask')}"
    ) from error

from transferable.dask.estimators import ARTL, CORAL, MEDA, TFDF, TFDFV, PerDomainScaler

__all__ = ["ARTL", "CORAL", "MEDA", "TFDF", "TFDFV", "PerDomainScaler"]
