"""Methods by the names people type, and their parameters by NAME=VALUE."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

__all__ = [
    "all_methods",
    "chosen_method",
    "configured",
    "family_of",
    "for_rows",
    "method_named",
    "parameters_of",
    "require",
    "takes",
    "tuned",
    "use_labels",
]


def all_methods() -> dict[str, type[Any]]:
    """Every method by its class's name; a transformer stands for itself with a 1-NN behind it."""
    from transferable import FAMILIES, all_estimators

    return {name: cls for name, cls in all_estimators() if name not in FAMILIES["parts"]}


def family_of(method: type[Any]) -> str:
    """What a method brings the domains together by."""
    from transferable import FAMILIES

    return next(family for family, names in FAMILIES.items() if method.__name__ in names)


def method_named(name: str) -> type[Any]:
    """Find a method whatever the case, with or without hyphens: tfdf-v is TFDFV."""
    methods = {_plain(known): cls for known, cls in all_methods().items()}
    if _plain(name) not in methods:
        close = get_close_matches(_plain(name), methods, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise ValueError(f"there is no method {name!r}; {meant}'transferable methods' lists all.")
    return methods[_plain(name)]


def chosen_method(name: str | None) -> type[Any]:
    """The method that was named, or the one that tables get by default."""
    from transferable.tables.classifier import default_method

    return default_method() if name is None else method_named(name)


def configured(
    name: str | None,
    settings: Iterable[str] = (),
    *,
    seed: int = 0,
    n_landmarks: str | None = None,
    device: str | None = None,
    one_model: bool = False,
) -> Any:
    """Return an unfitted method with parameters given as NAME=VALUE or by their own options.

    The seed is for methods that have one; for the others, options left at None are not set. Without
    a name, settings and options are those of TFDF, and so is whatever needs `one_model`.
    """
    settings = list(settings)
    if name is None and (settings or n_landmarks is not None or device is not None or one_model):
        name = "TFDF"
    estimator = chosen_method(name)()
    known = estimator.get_params(deep=False)
    if "random_state" in known:
        estimator.set_params(random_state=seed)
    for option, text in (("n_landmarks", n_landmarks), ("device", device)):
        if text is not None:
            require(option, [type(estimator)])
            estimator.set_params(**{option: _value(text.lower())})
    if device in ("cuda", "auto"):
        _require_torch(device)
    for setting in settings:
        parameter, equals, value = setting.partition("=")
        if not equals or parameter.strip() not in known:
            raise ValueError(
                f"--set {setting} is not understood; write NAME=VALUE, where NAME is one of "
                f"{', '.join(sorted(known))}."
            )
        estimator.set_params(**{parameter.strip(): _value(value.strip())})
    return estimator


# Values to try, by parameter; of the methods over TFDF's objective the search has its own grid.
_GRID: dict[str, list[Any]] = {
    "regularization": [0.01, 0.1, 1.0, 10.0],
    "ridge": [0.1, 1.0, 10.0],
    "n_components": [None, 5, 10, 20],
    "trusted": [0.25, 0.5, 0.75],
}


def tuned(estimator: Any, *, seed: int = 0) -> Any:
    """The search over settings of a method that needs no target label."""
    from transferable.classifiers import AdaptedClassifier
    from transferable.model_selection import LabelFreeSearch

    known = estimator.get_params(deep=False)
    prefix = ""
    if not hasattr(estimator, "predict"):
        estimator, prefix = AdaptedClassifier(estimator), "transformer__"
    if {"ridge", "alignment", "manifold", "n_neighbors"} <= set(known):
        return LabelFreeSearch(estimator, random_state=seed)
    grid = {prefix + name: values for name, values in _GRID.items() if name in known}
    if not grid:
        able = [
            name.lower()
            for name, cls in all_methods().items()
            if any(map(cls().get_params(deep=False).__contains__, _GRID))
        ]
        raise ValueError(
            f"--tune knows no setting of {type(estimator).__name__} to try; methods that it does: "
            f"{', '.join(able)}."
        )
    return LabelFreeSearch(estimator, grid, random_state=seed)


_HELD_BYTES = 1.6e9  # of the features of landmarks; a fit then stays below 3 GB
_LANDMARKS = 1000  # that "auto" takes where rows are many


def use_labels(estimator: Any, column: str | None, *, tune: bool) -> None:
    """Let a method learn from known target labels; refuse what cannot, naming methods that can."""
    if column is None:
        raise ValueError("--use-target-labels needs --target-label, the column that has them.")
    if tune:
        raise ValueError(
            "--tune scores settings without target labels; leave it or --use-target-labels out."
        )
    if not (type(estimator).takes.target_labels and hasattr(estimator, "predict")):
        methods = all_methods().items()
        able = [n.lower() for n, c in methods if c.takes.target_labels and hasattr(c, "predict")]
        raise ValueError(
            f"--use-target-labels means nothing to {type(estimator).__name__}; methods that take "
            f"it: {', '.join(able)}."
        )
    estimator.set_params(target_labels="use")


def for_rows(
    estimator: Any, n_rows: int, settings: Iterable[str], messages: Any, *, named: bool
) -> Any:
    """What suits so many rows: TFDF instead of a pool that nobody named, and fewer landmarks."""
    from transferable.tables.classifier import default_method

    pool, suited = default_method(), default_method(n_rows)
    if suited is not pool and isinstance(estimator, pool) and not named:
        messages.note(
            f"the method is {suited.__name__}: {pool.__name__} fits several models, which takes "
            f"long for {n_rows:,} rows; --method {pool.__name__.lower()} does so all the same."
        )
        estimator = suited(random_state=estimator.random_state)
    _within_memory(estimator, n_rows, settings, messages)
    return estimator


def _within_memory(estimator: Any, n_rows: int, settings: Iterable[str], messages: Any) -> None:
    """Take fewer landmarks where so many rows would take more than 3 GB, unless told otherwise."""
    fits = int(_HELD_BYTES / (4 * n_rows))
    if fits >= _LANDMARKS or not all(takes(o, type(estimator)) for o in ("n_landmarks", "device")):
        return
    given = any(setting.partition("=")[0].strip() == "max_memory" for setting in settings)
    if given or estimator.n_landmarks != "auto" or estimator.device != "cpu":
        return
    estimator.set_params(n_landmarks=max(fits, 50), max_memory="2.75GB")
    messages.note(
        f"{estimator.n_landmarks} landmarks stand for {n_rows:,} rows, so that the fit stays below "
        f"3 GB; --n-landmarks {_LANDMARKS} takes more memory and time."
    )


def _require_torch(device: str) -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise ValueError(f"--device {device} needs torch: pip install 'transferable[gpu]'.")


def takes(option: str, method: type[Any]) -> bool:
    """Whether a method has a parameter of that name."""
    return option in method().get_params(deep=False)


def require(option: str, methods: Sequence[type[Any]]) -> None:
    """Refuse an option that none of the methods knows, naming methods that do."""
    if not any(takes(option, method) for method in methods):
        able = [name.lower() for name, cls in all_methods().items() if takes(option, cls)]
        raise ValueError(
            f"--{option.replace('_', '-')} means nothing to "
            f"{', '.join(method.__name__ for method in methods)}; methods that take it: "
            f"{', '.join(able) or 'none'}."
        )


def parameters_of(estimator: Any) -> dict[str, Any]:
    """An estimator's parameters, in values that JSON knows."""
    plain = (bool, int, float, str, type(None))
    given = estimator.get_params(deep=False)
    return {name: v if isinstance(v, plain) else repr(v) for name, v in given.items()}


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _value(text: str) -> Any:
    """A number, true, false or none, and otherwise the text itself."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
