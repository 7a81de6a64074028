"""Closed lists of what a model file may name, most of them in `permitted.toml`."""

import tomllib
from importlib.resources import files

_LISTS = tomllib.loads(files(__package__).joinpath("permitted.toml").read_text(encoding="utf-8"))
NODES = {kind: tuple(names) for kind, names in _LISTS["nodes"].items()}
SCIKIT_LEARN = {
    f"sklearn.{module}.{name}"
    for module, names in _LISTS["scikit_learn"].items()
    for name in names.split()
}
SHAPES = {
    name: {attribute: tuple(shape) for attribute, shape in shapes.items()}
    for name, shapes in _LISTS["shapes"].items()
}

OWN = tuple(
    f"transferable.{package}"
    for package in ("classifiers", "transformers", "tables", "model_selection", "images")
)
EXTRA = "transferable.deep"  # imported only for models that hold parts of it
# Other parts of fitted estimators.
OTHERS = [
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    *(f"scipy.sparse._{f}.{f}_{kind}" for f in ("csr", "csc") for kind in ("array", "matrix")),
]
DECISION_TREE = "sklearn.tree._tree.Tree"
SEARCH_TREES = {
    f"sklearn.neighbors.{module}.{tree}{bits}"
    for module, tree in (("_kd_tree", "KDTree"), ("_ball_tree", "BallTree"))
    for bits in ("", "64", "32")
}

KERNELS = ("linear", "poly", "rbf", "sigmoid")  # of support vector machines
SET_ASIDE = {"n_jobs", "memory", "_n_threads"}  # attributes that the machine decides, not a file
