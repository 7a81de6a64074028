"""Pictures as Display objects, in scikit-learn's manner."""

from transferable.plots.confusion import ConfusionDisplay
from transferable.plots.curves import ConvergenceDisplay, SensitivityDisplay
from transferable.plots.gap import DomainGapDisplay
from transferable.plots.scatter import DomainScatterDisplay

__all__ = [
    "ConfusionDisplay",
    "ConvergenceDisplay",
    "DomainGapDisplay",
    "DomainScatterDisplay",
    "SensitivityDisplay",
]
