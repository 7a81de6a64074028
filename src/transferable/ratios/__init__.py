"""How much more likely rows of the source are in the target: ratios of densities.

Each function takes two tables and gives every row of the first the ratio of the second's density to
the first's at that row, scaled so that ratios are 1 on average. Classifiers weight source rows by
them (:class:`~transferable.classifiers.ImportanceWeighted`), and so does importance-weighted
validation. All assume that the source covers the target.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transferable.ratios._samples import effective_sample_size
from transferable.ratios.discriminators import logistic_ratio, nearest_neighbor_ratio
from transferable.ratios.kernel_sums import kliep, rulsif, ulsif
from transferable.ratios.mean_matching import kernel_mean_matching

__all__ = [
    "RATIOS",
    "effective_sample_size",
    "kernel_mean_matching",
    "kliep",
    "logistic_ratio",
    "nearest_neighbor_ratio",
    "rulsif",
    "ulsif",
]

# By the names that `ratio=` takes.
RATIOS: dict[str, Callable[[Any, Any], NDArray[np.float64]]] = {
    "kliep": kliep,
    "kmm": kernel_mean_matching,
    "logistic": logistic_ratio,
    "nearest": nearest_neighbor_ratio,
    "rulsif": rulsif,
    "ulsif": ulsif,
}
