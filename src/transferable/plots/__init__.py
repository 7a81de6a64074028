"""Pictures as Display objects, in scikit-learn's manner."""

from transferable.plots.confusion import ConfusionDisplay

__all__ = ["ConfusionDisplay"]
