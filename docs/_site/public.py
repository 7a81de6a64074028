"""Public names: what `__all__` lists in the modules that people import from."""

import inspect
from importlib import import_module

# In the order in which people meet them; the last five are for those who add methods.
MODULES = tuple(
    f"transferable.{name}"
    for name in (
        *("classifiers", "regressors", "transformers", "experimental", "deep", "tables", "images"),
        "datasets",
        *("model_selection", "diagnostics", "report", "plots", "metrics", "ratios"),
        *("persistence", "dask", "exceptions", "testing", "base", "domains", "events", "limits"),
    )
)
# Modules whose estimators have a page each; all other names stand on the page of their module.
PAGED = (
    *("transferable.classifiers", "transferable.transformers", "transferable.experimental"),
    "transferable.regressors",
    "transferable.deep",
    *("transferable.tables", "transferable.images", "transferable.model_selection"),
)


def public(module):
    """Return the public objects of one module by name."""
    there = import_module(module)
    return {name: getattr(there, name) for name in there.__all__}


def has_page(module, value):
    """Whether an object has a page of its own."""
    return module in PAGED and inspect.isclass(value) and hasattr(value, "fit")
