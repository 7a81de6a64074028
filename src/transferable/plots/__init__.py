"""Pictures as Display objects, in scikit-learn's manner."""

from transferable.plots.confusion import ConfusionDisplay
from transferable.plots.convergence import ConvergenceDisplay
from transferable.plots.gap import DomainGapDisplay
from transferable.plots.scatter import DomainScatterDisplay
from transferable.plots.sensitivity import SensitivityDisplay

__all__ = [
    "ConfusionDisplay",
    "ConvergenceDisplay",
    "DomainGapDisplay",
    "DomainScatterDisplay",
    "SensitivityDisplay",
]
