"""Estimators of the library over Dask arrays and dataframes, on one machine or many.

They have the names, the objectives and the solves that they have in memory. They need Dask, the
extra ``dask``.

Landmarks, balance, class shares, temperatures and first labels are chosen from a pool, the first
20,000 rows of each domain in an order that depends on their content alone; so are they in memory,
and the two agree to rounding whatever the partitions. Class shares that are given are met by the
labels of all target rows.
"""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"transferable.dask needs {error.name}, which is not installed: pip install "
        '"transferable[dask]"'
    ) from error

from transferable.dask.classifiers import ARTL, MEDA, TFDF, TFDFV
from transferable.dask.transformers import CORAL, JDA, TCA, PerDomainScaler

__all__ = ["ARTL", "CORAL", "JDA", "MEDA", "TCA", "TFDF", "TFDFV", "PerDomainScaler"]
