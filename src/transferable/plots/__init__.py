"""Pictures as Display objects, in scikit-learn's manner."""

from transferable.plots.displays import DomainGapDisplay, DomainScatterDisplay

__all__ = ["DomainGapDisplay", "DomainScatterDisplay"]
