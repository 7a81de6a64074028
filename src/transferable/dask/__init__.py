"""Estimators of the library over Dask arrays and dataframes, on one machine or many.

They have the names that they have in memory. They need Dask, the extra ``dask``.
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
