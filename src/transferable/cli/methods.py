"""``transferable methods``, and methods by the names and settings that users type."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from importlib import util
from typing import Annotated, Any

import typer
from sklearn.utils import get_tags

from transferable import all_estimators
from transferable.base import DomainRegressor, _entries
from transferable.classifiers import AdaptedClassifier
from transferable.cli._console import Messages, Terminal, print_table, reporting
from transferable.cli._options import complete_methods, flag
from transferable.exceptions import installing
from transferable.model_selection import LabelFreeSearch
from transferable.tables.classifier import default_method

# Values to try, by parameter; of the methods over TFDF's objective the search has its own grid.
_GRID: dict[str, list[Any]] = {
    "regularization": [0.01, 0.1, 1.0, 10.0],
    "ridge": [0.1, 1.0, 10.0],
    "n_components": [None, 5, 10, 20],
    "trusted": [0.25, 0.5, 0.75],
}
_HELD_BYTES = 1.6e9  # of the features of landmarks; a fit then stays below 3 GB
_LANDMARKS = 1000  # that "auto" takes where rows are many


def run(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Only this method, with its parameters.",
            autocompletion=complete_methods,
        ),
    ] = None,
    as_json: Annotated[
        bool, flag("--json", help="Print a JSON array, parameters included.")
    ] = False,
) -> None:
    """List the methods by family, or show the parameters of one, which --set takes.

    Classifiers label rows themselves; a transformer learns a feature space that both domains
    share, in which one nearest neighbour labels them.
    """
    with reporting():
        methods = all_methods().values() if name is None else [method_named(name)]
        records = sorted(map(_record, methods), key=lambda record: record["family"])
        if as_json:
            typer.echo(json.dumps(records))
        elif name is None:
            families = [record["family"] for record in records]
            rows = [
                [
                    "" if family == before else family,
                    record["method"] + ("\n(the default)" if record["default"] else ""),
                    record["kind"],
                    record["summary"],
                ]
                for record, family, before in zip(records, families, ["", *families], strict=False)
            ]
            headings = ("family", "method", "kind", "what it does")
            print_table(headings, (), rows, unwrapped=headings[:2])
        else:
            record = records[0]
            takes = [f"Takes {' and '.join(record['takes'])}."] if record["takes"] else []
            Terminal().print(record["summary"], *takes, sep="\n")
            explained = record["explained"]
            rows = [[p, str(v), explained.get(p, "")] for p, v in record["parameters"].items()]
            print_table(("parameter", "default", "what it does"), (), rows)


def _record(method: type[Any]) -> dict[str, Any]:
    name, estimator = method.__name__, method()
    sparse = ["sparse rows"] if get_tags(estimator).input_tags.sparse else []
    return {
        "family": method.family,
        "method": name.lower(),
        "default": isinstance(configured(None), method),
        "kind": get_tags(estimator).estimator_type or "transformer",
        "summary": re.split(r"\n\s*\n", inspect.getdoc(method) or "")[0].replace("\n", " "),
        "takes": sparse + (["landmarks"] if takes("n_landmarks", method) else []),
        "parameters": parameters_of(estimator),
        "explained": _explained(method),
    }


def _explained(method: type[Any]) -> dict[str, str]:
    """Return the documentation of each parameter, also by reference to another method."""
    classes = dict(all_estimators())
    found: dict[str, str] = {}
    for name, entry in _entries(inspect.getdoc(method) or "").items():
        # Words without the marks of reStructuredText.
        body = " ".join(entry.partition("\n")[2].split())
        words = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", body)
        words = words.replace("``", "").replace("`", "")
        other = re.search(r"\b[Aa]s (?:in|for) (\w+)\.?$", words)
        theirs = _explained(classes[other[1]]) if other and other[1] in classes else {}
        found[name] = theirs.get(name, words)
    return found


def all_methods() -> dict[str, type[Any]]:
    """Return every method by its class's name; a transformer is to be followed by a 1-NN."""
    return {name: cls for name, cls in all_estimators() if cls.family != "parts"}


def method_named(name: str) -> type[Any]:
    """Return a method whatever the case, with or without hyphens: tfdf-v is TFDFV."""

    def plain(text: str) -> str:
        return re.sub(r"[-_ ]", "", text.lower())

    every = all_methods() | dict(all_estimators("regressor"))
    methods = {plain(known): cls for known, cls in every.items() if known != "AdaptedRegressor"}
    if plain(name) not in methods:
        close = get_close_matches(plain(name), methods, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise ValueError(f"there is no method {name!r}; {meant}'transferable methods' lists all.")
    return methods[plain(name)]


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
    a name it is the default method or, where that lacks an option or `one_model` is needed, TFDF.
    """
    settings = list(settings)
    estimator = default_method()() if name is None else method_named(name)()
    known = estimator.get_params(deep=False)
    own = all(setting.partition("=")[0].strip() in known for setting in settings)
    if name is None and (one_model or not own or (n_landmarks, device) != (None, None)):
        estimator = method_named("TFDF")()
        known = estimator.get_params(deep=False)
    if "random_state" in known:
        estimator.set_params(random_state=seed)
    for option, text in (("n_landmarks", n_landmarks), ("device", device)):
        if text is not None:
            require(option, [type(estimator)])
            estimator.set_params(**{option: _value(text.lower())})
    if device in ("cuda", "auto") and util.find_spec("torch") is None:
        raise ValueError(f"--device {device} needs torch: {installing('gpu')}.")
    for setting in settings:
        parameter, equals, value = setting.partition("=")
        if not equals or parameter.strip() not in known:
            raise ValueError(
                f"--set {setting} is not understood; write NAME=VALUE, where NAME is one of "
                f"{', '.join(sorted(known))}."
            )
        estimator.set_params(**{parameter.strip(): _value(value.strip())})
    estimator._validate_params()
    return estimator


def for_numbers(name: str | None, settings: Iterable[str], label: str | None, seed: int) -> Any:
    """Return the method for labels that are numbers; refuse those of classes."""
    estimator = configured(name or "AutoRegressor", settings, seed=seed)
    if isinstance(estimator, DomainRegressor) or (
        hasattr(estimator, "transform") and estimator.takes.no_labels
    ):
        return estimator
    able = [name for name, method in all_methods().items() if method().takes.no_labels]
    raise ValueError(
        f"{type(estimator).__name__} is for classes, and {label!r} is a number; take "
        f"autoregressor, importanceweightedregressor or {', '.join(able).lower()}, or pass --task "
        "classes if its values are names."
    )


def _value(text: str) -> Any:
    """Return a number, true, false or none, and otherwise the text itself."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def tuned(estimator: Any, *, seed: int = 0) -> Any:
    """Return the search over settings of a method that needs no target label."""
    known = estimator.get_params(deep=False)
    prefix = ""
    if not hasattr(estimator, "predict"):
        estimator, prefix = AdaptedClassifier(estimator), "transformer__"
    if {"ridge", "alignment", "manifold", "n_neighbors"} <= set(known):
        return LabelFreeSearch(estimator, random_state=seed)
    grid = {prefix + name: values for name, values in _GRID.items() if name in known}
    if not grid:
        able = _names_of(lambda method: any(takes(name, method) for name in _GRID))
        raise ValueError(
            f"--tune has no settings of {type(estimator).__name__} to try; methods with settings: "
            f"{able}."
        )
    return LabelFreeSearch(estimator, grid, random_state=seed)


def use_labels(estimator: Any, column: str | None, *, tune: bool) -> None:
    """Let a method use known target labels; refuse others, naming methods that can."""
    if column is None:
        raise ValueError("--use-target-labels needs --target-label, the column that has them.")
    if tune:
        raise ValueError(
            "--tune scores settings without target labels; leave it or --use-target-labels out."
        )

    def able(method: type[Any]) -> bool:
        return hasattr(method, "predict") and method.takes.target_labels

    if not able(type(estimator)):
        raise ValueError(
            f"{type(estimator).__name__} has no option --use-target-labels; methods that have it: "
            f"{_names_of(able)}."
        )
    estimator.set_params(target_labels="use")


def for_rows(
    estimator: Any, n_rows: int, settings: Iterable[str], messages: Messages, *, named: bool
) -> Any:
    """Return the method for `n_rows` rows: TFDF instead of a default pool, and fewer landmarks.

    Landmarks are fewer where rows would take more than 3 GB, unless memory or they were set.
    """
    pool, suited = default_method(), default_method(n_rows)
    given = {setting.partition("=")[0].strip() for setting in settings}
    known = estimator.get_params(deep=False)
    named |= not given <= {*suited().get_params(deep=False)}  # by a setting that only pools have
    if suited is not pool and isinstance(estimator, pool) and not named:
        messages.note(
            f"the method is {suited.__name__}: {pool.__name__} fits several models, which takes "
            f"long for {n_rows:,} rows; for it, pass --method {pool.__name__.lower()}."
        )
        estimator = suited(**{name: known[name] for name in (*given, "random_state")})
        known = estimator.get_params(deep=False)
    fits = int(_HELD_BYTES / (4 * n_rows))
    free = known.get("n_landmarks") == "auto" and known.get("device") == "cpu"
    if fits < _LANDMARKS and free and "max_memory" not in given:
        estimator.set_params(n_landmarks=max(fits, 50), max_memory="2.75GB")
        messages.note(
            f"{estimator.n_landmarks} landmarks stand for {n_rows:,} rows, so that the fit stays "
            f"below 3 GB; --n-landmarks {_LANDMARKS} takes more memory and time."
        )
    return estimator


def takes(option: str, method: type[Any]) -> bool:
    """Return whether a method has a parameter of that name."""
    return option in method().get_params(deep=False)


def require(option: str, methods: Sequence[type[Any]]) -> None:
    """Refuse an option that none of the methods supports, naming methods that do."""
    if not any(takes(option, method) for method in methods):
        verb = "has" if len(methods) == 1 else "have"
        raise ValueError(
            f"{', '.join(method.__name__ for method in methods)} {verb} no option "
            f"--{option.replace('_', '-')}; methods that have it: "
            f"{_names_of(lambda method: takes(option, method)) or 'none'}."
        )


def _names_of(able: Callable[[type[Any]], bool]) -> str:
    return ", ".join(name.lower() for name, method in all_methods().items() if able(method))


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Return an estimator's parameters, in values valid in JSON."""
    plain = (bool, int, float, str, type(None))
    given = estimator.get_params(deep=False)
    return {name: v if isinstance(v, plain) else repr(v) for name, v in given.items()}
