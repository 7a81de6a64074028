"""Which names are public: what `__all__` lists in the modules that people import from."""

import pkgutil
from importlib import import_module

import transferable

# What people use comes first and in the order in which they meet it; the rest is for extending.
USED = (
    *("transferable", "transferable.classifiers", "transferable.transformers", "transferable.deep"),
    *("transferable.tables", "transferable.images"),
    *("transferable.datasets", "transferable.model_selection"),
    *("transferable.diagnostics", "transferable.report", "transferable.plots"),
    *("transferable.metrics", "transferable.ratios", "transferable.persistence"),
    *("transferable.dask", "transferable.exceptions"),
)
COMMANDS = "transferable.cli"  # a page of its own tells of them


def _modules(package):
    """Modules of a package that have no underscore."""
    found = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    return [name for _, name, _ in found if not name.rpartition(".")[2].startswith("_")]


def public_modules():
    """Names of the modules whose `__all__` is documented: those used, then those extended."""
    listed = [name for name in _modules(transferable) if hasattr(import_module(name), "__all__")]
    return [*USED, *(name for name in listed if name not in (*USED, COMMANDS))]


def public_names(module):
    """Names of one module, apart from those that another module of the list is the home of."""
    names = import_module(module).__all__
    if module != "transferable":
        return list(names)
    elsewhere = {name for used in USED[1:] for name in import_module(used).__all__ if name in names}
    return [name for name in names if name not in elsewhere]
