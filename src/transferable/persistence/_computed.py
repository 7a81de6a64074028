"""Estimators of scikit-learn by what they compute, made anew from parameters and arrays.

Each form has the few fitted arrays that prediction needs, with their shapes, so that what else a
release of scikit-learn keeps in its objects makes no difference. Search trees of nearest rows are
built again by a fit; the nodes of decision trees are checked, then copied into new ones field by
field, as compiled code follows them unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from transferable.persistence._archive import ModelFileError

if TYPE_CHECKING:
    from transferable.persistence._shapes import Sizes
    from transferable.persistence._values import Reader, Writer

_DEEPEST_TREE = 10_000
_STEPS = 8  # of a chain and a union, all together
_UNSAVED = {"n_jobs", "verbose", "memory", "warm_start", "copy", "copy_X", "cache_size"}
_PAIRWISE = "additive_chi2", "chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "rbf"
_CHOICES: dict[str, tuple[Any, ...]] = {
    "kernel": (*_PAIRWISE, "sigmoid"),
    "metric": (
        *("chebyshev", "cityblock", "cosine", "euclidean", "l1", "l2", "mahalanobis"),
        *("manhattan", "minkowski", "seuclidean"),
    ),
    "init": (None, "zero"),
    "estimator": (),
    "func": (None,),
    "inverse_func": (None,),
}
_OF_KERNELS = "kernel", "k1", "k2"
_NODES: dict[str, Any] = {"left_child": np.int32, "right_child": np.int32, "feature": np.int32}
_NODES |= {"threshold": np.float64, "impurity": np.float64, "n_node_samples": np.int64}
_NODES |= {"weighted_n_node_samples": np.float64, "missing_go_to_left": np.uint8}
_LEAF = -1
_PARTS = "steps", "transformer_list"
_ALWAYS = {"n_features_in_", "feature_names_in_", "_sklearn_output_config"}


def unsaved(where: str, what: Any) -> TypeError:
    """Return the error on a part that model files do not hold, with the way out."""
    called = what if isinstance(what, str) else getattr(what, "__name__", type(what).__name__)
    told = f"{where} is {called}, which cannot be saved: "
    if callable(what):
        told += f"set_params({where.rpartition('.')[2]}=None) leaves out a function that the fit "
        told += "does not hold, to be set again after loading; "
    return TypeError(
        f"{told}model files hold estimators of this library with their fitted arrays, and the "
        "types of scikit-learn in docs/saved-models.md. TableClassifier fills in and encodes; "
        "skops.io.dump and joblib.dump write any object, for files that you trust."
    )


@dataclass(frozen=True)
class Computed:
    """One class of scikit-learn by what it computes.

    Attributes
    ----------
    kind : str
        The name in a file.
    module, name : str
        The class, in sklearn.
    arrays : dict of str to str
        The fitted attributes that prediction needs, and their shapes; "number" is a scalar, and a
        question mark allows for None or no such attribute.
    pack, unpack : callable or None
        Return other attributes from a fitted estimator, and set them from those of a file.
    """

    kind: str
    module: str
    name: str
    arrays: dict[str, str]
    pack: Callable[[Any], dict[str, Any]] | None = None
    unpack: Callable[[Any, dict[str, Any], Sizes], None] | None = None

    @property
    def cls(self) -> type:
        """The class."""
        return getattr(import_module(f"sklearn.{self.module}"), self.name)

    def described(self, estimator: Any, writer: Writer, where: str) -> dict[str, Any]:
        """Return the description of an estimator."""
        usual, given = signature(self.cls).parameters, estimator.get_params(deep=False)
        given = {k: v for k, v in given.items() if k not in _UNSAVED and v is not usual[k].default}
        if not isinstance(given.get("random_state"), int):
            given.pop("random_state", None)
        for key in given.keys() & _CHOICES.keys():
            if given[key] not in _CHOICES[key] and not _is_kernel(key, given[key]):
                raise unsaved(f"{where}.{key}", given[key])
        outputs = getattr(estimator, "n_outputs_", np.ndim(getattr(estimator, "_y", 0)))
        binarizer = getattr(estimator, "_label_binarizer", None)
        if outputs > 1 or "multilabel" in getattr(binarizer, "y_type_", ""):
            raise unsaved(where, f"{self.name} of several outputs")
        if problem := _problem(estimator):
            raise unsaved(where, problem)
        fitted: dict[str, Any] = {}
        if hasattr(estimator, "n_features_in_"):
            try:
                state = self.pack(estimator) if self.pack else {}
                for key, shape in self.arrays.items():
                    if (value := getattr(estimator, key, None)) is not None or shape[0] != "?":
                        state.setdefault(key, value)
            except AttributeError as error:
                raise unsaved(where, f"{self.name} without {error.name}") from error
            fitted = {key: state[key] for key in state if state[key] is not None}
            fitted |= {key: value for key, value in vars(estimator).items() if key in _ALWAYS}
        return {
            "type": self.kind,
            "parameters": writer.each(given, where),
            "fitted": writer.each(fitted, where),
        }

    def made(self, given: dict[str, Any], reader: Reader, outer: Sizes) -> Any:
        """Return the estimator of a description."""
        if given.keys() != {"type", "parameters", "fitted"}:
            _refuse(f"{self.name} is described as something else")
        cls = self.cls
        parameters = reader.parameters(cls, given["parameters"], outer)
        for key, value in parameters.items():
            fits = value in _CHOICES[key] if key in _CHOICES else key in _PARTS or _is_plain(value)
            if not (fits or _is_kernel(key, value)) or key in _UNSAVED:
                _refuse(f"the {key!r} parameter of {self.name} is of another kind")
        estimator = cls(**parameters)
        try:
            if hasattr(cls, "_parameter_constraints"):
                estimator._validate_params()
        except ValueError:  # whose message shows the value
            _refuse(f"a parameter of {self.name} is out of its range")
        _check_parts(estimator)
        sizes = reader.sized(given["fitted"], outer)
        if not given["fitted"]:
            return estimator
        sizes.k = None
        fitted = reader.attributes(self.name, given["fitted"], sizes, own=False)
        if self.arrays:
            _require("n_features_in_" in fitted, f"{self.name} has no number of columns")
        extra = fitted.keys() - self.arrays.keys() - _ALWAYS
        _require(not extra, f"{self.name} has other attributes")
        for key, shape in self.arrays.items():
            value, may_lack = fitted.get(key), shape[0] == "?"
            if not (value is None and may_lack):
                fits = any(sizes.has(value, one) for one in shape.removeprefix("?").split("/"))
                _require(fits, f"{key} of {self.name} is of another kind or shape")
        if self.unpack is not None:
            self.unpack(estimator, fitted, sizes)
        else:
            vars(estimator).update(fitted)
        vars(estimator).update({key: fitted[key] for key in fitted.keys() & _ALWAYS})
        return estimator


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple | dict):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    kinds = (str, int, float, np.number, np.bool_, type(None))
    return isinstance(value, kinds) or (isinstance(value, np.ndarray) and value.ndim <= 2)


def _is_kernel(key: str, value: Any) -> bool:
    """Return whether a parameter is a kernel of a Gaussian process, which may be made of others."""
    return key in _OF_KERNELS and hasattr(value, "theta")


def _packed_trees(model: Any) -> dict[str, Any]:
    """Return the nodes of all trees of a model, one after another."""
    trees = [part.tree_ for part in np.ravel(getattr(model, "estimators_", [model]))]
    states = [tree.__getstate__() for tree in trees]
    found: dict[str, Any] = {
        name: np.concatenate([state["nodes"][name] for state in states]).astype(kind)
        for name, kind in _NODES.items()
    }
    found["values"] = np.concatenate([state["values"][:, 0] for state in states])
    found["counts"] = np.array([state["node_count"] for state in states], dtype=np.int64)
    first = getattr(model, "init_", None)
    if first is not None and not isinstance(first, str):
        constant: Any = getattr(first, "class_prior_", getattr(first, "constant_", None))
        found["first"] = np.ravel(constant)
    return found


def _unpacked_trees(model: Any, fitted: dict[str, Any], sizes: Sizes) -> None:
    """Give a model its trees, whose nodes are checked here, and copied field by field."""
    from sklearn.tree import DecisionTreeRegressor
    from sklearn.tree._tree import NODE_DTYPE, Tree

    counts, values, boosted = fitted["counts"], fitted["values"], hasattr(model, "init")
    n_nodes = len(values)  # which no count exceeds: a sum may wrap around
    n_classes = len(fitted.get("classes_", [0]))
    width = 1 if boosted else n_classes
    whole = len(counts) and 1 <= counts.min() <= counts.max() <= n_nodes == counts.sum()
    _require(bool(whole) and values.shape[1] == width, "trees have other nodes")
    depths = _depths(fitted, sizes)
    nodes = np.zeros(n_nodes, dtype=NODE_DTYPE)
    for name in _NODES:
        nodes[name] = fitted[name]
    if "classes_" in fitted:
        model.classes_, model.n_classes_ = fitted["classes_"], n_classes
    model.n_outputs_ = 1
    if boosted:
        _start_boosting(model, fitted, n_classes, sizes)
        each = n_classes if n_classes > 2 and model.loss == "log_loss" else 1
        _require(len(counts) % each == 0, "a stage of boosting has other trees")
        model.n_trees_per_iteration_, model.n_estimators_ = each, len(counts) // each
        parts: list[Any] = [DecisionTreeRegressor() for _ in counts]
        model.estimators_ = np.array(parts, dtype=object).reshape(-1, each)
    elif hasattr(model, "n_estimators"):
        parts = [type(model.estimator)(criterion=model.criterion) for _ in counts]
        model.estimators_ = parts
    else:
        _require(len(counts) == 1, "a tree is several")
        parts = [model]
    for part, stop, count, depth in zip(parts, np.cumsum(counts), counts, depths, strict=True):
        rows = slice(stop - count, stop)
        held = {"nodes": nodes[rows], "values": np.ascontiguousarray(values[rows, None])}
        part.tree_ = Tree(sizes.p, np.array([width], dtype=np.intp), 1)
        part.tree_.__setstate__(held | {"max_depth": int(depth), "node_count": int(count)})
        part.n_features_in_, part.n_outputs_ = sizes.p, 1
        if part is not model and hasattr(part, "predict_proba"):
            part.classes_, part.n_classes_ = np.arange(width), width


def _depths(nodes: dict[str, Any], sizes: Sizes) -> NDArray[np.intp]:
    """Return the depth of each tree, whose children come after their parents."""
    counts = nodes["counts"]
    stops = np.cumsum(counts)
    starts, owner = stops - counts, np.repeat(np.arange(len(counts)), counts)
    left, right = (nodes[name].astype(np.int64) for name in ("left_child", "right_child"))
    leaf = left == _LEAF
    _require(bool((leaf == (right == _LEAF)).all()), "a node of a tree has one child")
    inner = np.flatnonzero(~leaf)
    own = inner - starts[owner[inner]]
    for child in (left, right):
        ahead = (child[inner] > own) & (child[inner] < counts[owner[inner]])
        _require(bool(ahead.all()), "a tree has children that are not further on")
        child[inner] += starts[owner[inner]]
    children = np.concatenate([left[inner], right[inner]])
    _require(len(np.unique(children)) == len(children), "a node of a tree has two parents")
    feature = nodes["feature"][inner]
    known = not len(feature) or (feature.min() >= 0 and feature.max() < (sizes.p or 0))
    _require(bool(known), "a tree uses unknown features")
    _require(not np.isnan(nodes["threshold"][inner]).any(), "a tree's thresholds are missing")
    depths, level, depth = np.zeros(len(counts), dtype=np.intp), starts, 0
    while (parents := level[~leaf[level]]).size:
        level, depth = np.concatenate([left[parents], right[parents]]), depth + 1
        depths[owner[level]] = depth
        _require(depth < _DEEPEST_TREE, f"a tree is deeper than {_DEEPEST_TREE:,} nodes")
    return depths


def _start_boosting(model: Any, fitted: dict[str, Any], n_classes: int, sizes: Sizes) -> None:
    """Give gradient boosting its loss and its first prediction, which is the same for all rows."""
    if fitted.get("classes_") is not None:
        model.n_classes_ = n_classes
    model._loss = model._get_loss(sample_weight=None)
    if model.init == "zero":
        model.init_ = "zero"
        return
    first: Any = fitted.get("first")
    length = n_classes if hasattr(model, "n_classes_") else 1
    _require(first is not None and len(first) == length, "boosting has no first prediction")
    name = "DummyClassifier" if hasattr(model, "n_classes_") else "DummyRegressor"
    model.init_ = getattr(import_module("sklearn.dummy"), name)()
    numbers = np.arange(max(length, 2)) % length
    model.init_.fit(np.zeros((len(numbers), 1)), numbers)
    model.init_.n_features_in_ = sizes.p
    if hasattr(model, "n_classes_"):
        model.init_.class_prior_ = first
    else:
        model.init_.constant_ = first.reshape(1, 1)


def _packed_neighbours(model: Any) -> dict[str, Any]:
    return {"rows": model._fit_X, "answers": model._y}


def _unpacked_neighbours(model: Any, fitted: dict[str, Any], sizes: Sizes) -> None:
    """Fit the rows of a file again, which makes their search tree."""
    answers, classes = fitted["answers"], fitted.get("classes_")
    if classes is not None:
        codes = bool(answers.size) and answers.dtype.kind == "i" and answers.min() >= 0
        _require(codes and answers.max() < len(classes), "nearest rows have other labels")
        answers = classes[answers]
    given = model.metric_params
    for value in given.values() if isinstance(given, dict) else ():
        square = np.shape(value) in ((), (sizes.p,), (sizes.p, sizes.p))
        _require(square, "a metric is of other columns")
    model.fit(fitted["rows"], answers)
    same = classes is None or np.array_equal(model.classes_, classes)
    _require(same, "nearest rows have other classes")


def _unpacked_ridge(model: Any, fitted: dict[str, Any], sizes: Sizes) -> None:
    from sklearn.preprocessing import LabelBinarizer

    classes = fitted.pop("classes_")
    model._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(classes)
    same = np.array_equal(model._label_binarizer.classes_, classes)
    _require(same, "ridge classes are not in order")
    if not isinstance(getattr(type(model), "classes_", None), property):
        model.classes_ = classes
    vars(model).update(fitted)


def _packed_machine(model: Any) -> dict[str, Any]:
    """Return the parts of a machine; what scikit-learn keeps beside them follows from these."""
    return {"shape_fit_": np.array(model.shape_fit_), "_sparse": bool(model._sparse)}


def _unpacked_machine(model: Any, fitted: dict[str, Any], sizes: Sizes) -> None:
    """Give a machine its parts, as many as the counts of its classes state."""
    rows, counts = fitted["support_vectors_"], fitted["_n_support"]
    coefficients, sparse = fitted["_dual_coef_"], fitted.pop("_sparse", None)
    holds = int(counts.sum()) == rows.shape[0] and int(counts.min()) >= 0
    holds = holds and sparse is sp.issparse(rows) is sp.issparse(coefficients)
    if sparse and holds:
        holds = coefficients.nnz == coefficients.shape[0] * coefficients.shape[1]
    likely = len(fitted["_probA"]), len(fitted["_probB"])
    pairs = sizes.k * (sizes.k - 1) // 2 if sizes.k else 0
    probable = model.probability is True
    holds = holds and likely == ((pairs, pairs) if probable else (0, 0))
    holds = holds and model.kernel in ("linear", "poly", "rbf", "sigmoid")
    _require(bool(holds), "the parts of a support vector machine do not fit together")
    fitted["shape_fit_"] = tuple(fitted["shape_fit_"].tolist())
    vars(model).update(fitted, fit_status_=0, _effective_probability=probable, _sparse=sparse)
    sign = -1 if sizes.k == 2 else 1
    model.intercept_, model.dual_coef_ = sign * fitted["_intercept_"], sign * coefficients


def _packed_process(model: Any) -> dict[str, Any]:
    kernel = model.kernel_
    found = [np.ravel(kernel.get_params()[part.name]) for part in kernel.hyperparameters]
    return {"found": np.concatenate([np.empty(0), *found])}


def _unpacked_process(model: Any, fitted: dict[str, Any], sizes: Sizes) -> None:
    """Give a process its kernel, with the values that the fit has found, and its rows."""
    kernels, found = import_module("sklearn.gaussian_process.kernels"), fitted.pop("found")
    usual = kernels.ConstantKernel(1.0, "fixed") * kernels.RBF(1.0, "fixed")
    kernel = usual if model.kernel is None else clone(model.kernel)
    lengths = [part.n_elements for part in kernel.hyperparameters]
    _require(sum(lengths) == len(found), "the kernel of a process has other values")
    stops = np.cumsum(lengths, dtype=int)
    for part, stop, length in zip(kernel.hyperparameters, stops, lengths, strict=True):
        values = found[stop - length : stop]
        kernel.set_params(**{part.name: values if length > 1 else values[0]})
    vars(model).update(fitted, kernel_=kernel)


def _problem(model: Any) -> str:
    """Describe what is more than a chain whose steps are plain or a union of plain chains."""
    leaves, unions, deepest = _composition(model)
    if leaves <= _STEPS and unions <= 1 and deepest <= 3:
        return ""
    found = f"a chain of {leaves} steps, {unions} unions and {deepest} levels"
    return f"{found} (model files hold at most {_STEPS}, 1 and 3)"


def _composition(model: Any) -> tuple[int, int, int]:
    """Return the numbers of single steps, of unions, and of levels."""
    union, parts = hasattr(model, "transformer_list"), _parts(model)
    if parts is None:
        return 1, 0, 0
    counts = [_composition(part) for _, part in parts]
    unions = sum(n for _, n, _ in counts) + union
    return sum(n for n, _, _ in counts), unions, 1 + max((n for _, _, n in counts), default=0)


def _parts(model: Any) -> Any:
    """Return the steps of a chain or union, None if a model is neither."""
    return next((getattr(model, key) for key in _PARTS if hasattr(model, key)), None)


def _check_parts(model: Any) -> None:
    """Refuse steps of a file that are not named estimators, and weights that are not numbers."""
    if (parts := _parts(model)) is None:
        return
    _require(isinstance(parts, list) and len(parts) > 0, "a chain has no steps")
    for name, part in parts:
        known = isinstance(part, BaseEstimator) or part in (None, "drop", "passthrough")
        _require(known and isinstance(name, str), "a step of a chain is not an estimator")
    model._validate_names([name for name, _ in parts])
    weights = getattr(model, "transformer_weights", None) or {}
    known = all(isinstance(weight, int | float) for weight in weights.values())
    _require(known, "a weight of a union is not a number")
    _require(not (problem := _problem(model)), problem)


_SCORES = "coef_ float[h,p]/float[p] intercept_ float[h]/number classes_ labels[k]"
_MACHINE = (
    "classes_ labels[k] support_ int[n] support_vectors_ float[n,p] _n_support int[k] "
    "_dual_coef_ float[others,n] _intercept_ float[pairs] _probA float[*] _probB float[*] "
    "class_weight_ float[k] shape_fit_ int[2] _gamma number _sparse number"
)
_SUPPORT = "X_train_ float[n,p] alpha_ float[n] L_ float[n,n] found float[*] "
_SUPPORT += "_y_train_mean float[1]/number _y_train_std float[1]/number"
_TREES = "values float[n,*] counts int[*] first ?float[*]"
_TREES += "".join(f" {k} {'any' if v is np.float64 else 'int'}[n]" for k, v in _NODES.items())
_NEAREST = "rows any[n,p] answers any[n]"
_MOMENTS = "mean_ ?float[p] scale_ ?float[p] var_ ?float[p]"
_LABELS = "classes_ labels[k]"
_FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "trees": (_packed_trees, _unpacked_trees),
    "nearest rows": (_packed_neighbours, _unpacked_neighbours),
    "support machine": (_packed_machine, _unpacked_machine),
    "linear classes": (None, _unpacked_ridge),
    "support process": (_packed_process, _unpacked_process),
}
COMPUTED = {
    kind: Computed(
        *(kind, module, name, dict(re.findall(r"(\S+) (\S+)", arrays))),
        *_FUNCTIONS.get(kind.partition(",")[0], ()),
    )
    for kind, module, name, arrays in re.findall(
        r"(.+): ([\w.]+)\.(\w+) ?(.*)",
        f"""
linear scores, logistic: linear_model.LogisticRegression {_SCORES}
linear scores, margin: svm.LinearSVC {_SCORES}
linear scores, numbers: linear_model.Ridge coef_ float[p]/float[t,p] intercept_ number/float[t]
linear classes: linear_model.RidgeClassifier {_SCORES}
support machine: svm.SVC {_MACHINE}
support rows: kernel_ridge.KernelRidge X_fit_ float[n,p] dual_coef_ float[n]/float[n,t]
support process: gaussian_process.GaussianProcessRegressor {_SUPPORT}
kernel, constant: gaussian_process.kernels.ConstantKernel
kernel, noise: gaussian_process.kernels.WhiteKernel
kernel, radial: gaussian_process.kernels.RBF
kernel, Matern: gaussian_process.kernels.Matern
kernel, rational quadratic: gaussian_process.kernels.RationalQuadratic
kernel, periodic: gaussian_process.kernels.ExpSineSquared
kernel, products: gaussian_process.kernels.DotProduct
kernel, sum: gaussian_process.kernels.Sum
kernel, product: gaussian_process.kernels.Product
kernel, power: gaussian_process.kernels.Exponentiation
trees, one, classes: tree.DecisionTreeClassifier {_TREES} {_LABELS}
trees, one, numbers: tree.DecisionTreeRegressor {_TREES}
trees, classes: ensemble.RandomForestClassifier {_TREES} {_LABELS}
trees, numbers: ensemble.RandomForestRegressor {_TREES}
trees, extra, classes: ensemble.ExtraTreesClassifier {_TREES} {_LABELS}
trees, extra, numbers: ensemble.ExtraTreesRegressor {_TREES}
trees, boosted, classes: ensemble.GradientBoostingClassifier {_TREES} {_LABELS}
trees, boosted, numbers: ensemble.GradientBoostingRegressor {_TREES}
nearest rows, classes: neighbors.KNeighborsClassifier {_NEAREST} {_LABELS}
nearest rows, numbers: neighbors.KNeighborsRegressor {_NEAREST}
column scaling, standard: preprocessing.StandardScaler {_MOMENTS}
column scaling, range: preprocessing.MinMaxScaler min_ float[p] scale_ float[p]
column scaling, largest: preprocessing.MaxAbsScaler scale_ float[p]
column scaling, robust: preprocessing.RobustScaler center_ ?float[p] scale_ ?float[p]
row scaling: preprocessing.Normalizer
identity: preprocessing.FunctionTransformer
projection: decomposition.PCA components_ float[c,p] mean_ float[p] explained_variance_ float[c]
chain: pipeline.Pipeline
union: pipeline.FeatureUnion
""",
    )
}
BY_NAME = {form.name: form for form in COMPUTED.values()}


def _require(holds: bool, problem: str) -> None:
    if not holds:
        _refuse(problem)


def _refuse(problem: str) -> NoReturn:
    raise ModelFileError(problem)
