"""Pictures as Display objects, in scikit-learn's manner."""

from transferable.plots.gap import DomainGapDisplay
from transferable.plots.scatter import DomainScatterDisplay

__all__ = ["DomainGapDisplay", "DomainScatterDisplay"]
