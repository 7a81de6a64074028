"""Public names: what `__all__` lists in the modules that people import from."""

import inspect
from importlib import import_module

TO_USE = (
    *("transferable.classifiers", "transferable.transformers", "transferable.deep"),
    *("transferable.tables", "transferable.images"),
    *("transferable.datasets", "transferable.model_selection"),
    *("transferable.diagnostics", "transferable.report", "transferable.plots"),
    *("transferable.metrics", "transferable.ratios", "transferable.persistence"),
    *("transferable.dask", "transferable.exceptions"),
)
TO_EXTEND = tuple(f"transferable.{name}" for name in ("base", "domains", "events", "limits"))
MODULES = (*TO_USE, *TO_EXTEND)
# Modules whose estimators have a page each; all other names stand on the page of their module.
PAGED = (
    *("transferable.classifiers", "transferable.transformers", "transferable.deep"),
    *("transferable.tables", "transferable.images", "transferable.model_selection"),
)


def public(module):
    """Return the public objects of one module by name."""
    there = import_module(module)
    return {name: getattr(there, name) for name in there.__all__}


def has_page(module, value):
    """Whether an object has a page of its own."""
    return module in PAGED and inspect.isclass(value) and hasattr(value, "fit")
