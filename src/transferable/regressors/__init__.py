"""Methods that predict numbers for the target domain."""

from transferable.regressors.adapted import AdaptedRegressor, ImportanceWeightedRegressor
from transferable.regressors.auto_regressor import AutoRegressor

__all__ = ["AdaptedRegressor", "AutoRegressor", "ImportanceWeightedRegressor"]
