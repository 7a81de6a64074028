"""Options that commands share, and the tables, columns and labels that they name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from transferable.cli._console import Messages, predicted

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from transferable.tables import TableClassifier, TableEncoder
    from transferable.tables._errors import Problems


def one_of(*choices: str) -> dict[str, Any]:
    """Return the check and the completion of an option with a fixed set of values."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is unknown; choose one of {', '.join(choices)}.")
        return value

    return {"callback": check, "autocompletion": _completing(*choices)}


def flag(*names: str, help: str) -> Any:
    """Return a flag, shown without a value in the help."""
    return typer.Option(*names, help=help, metavar="")


def complete_methods(incomplete: str) -> list[str]:
    """Return names of methods with this prefix; after a comma, the next one of a list."""
    from transferable.cli.methods import all_methods

    before, comma, last = incomplete.rpartition(",")
    names = (name.lower() for name in all_methods())
    return [before + comma + name for name in names if name.startswith(last.lower())]


def _completing(*choices: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def _check_mark(value: str) -> str:
    if len(value) == 1:
        return value
    raise typer.BadParameter(f"{value!r} is no single character; give one, such as ','.")


def _check_encoding(value: str) -> str:
    import codecs

    try:
        return codecs.lookup(value).name
    except LookupError:
        raise typer.BadParameter(
            f"there is no encoding {value!r}; try utf-8, utf-16 or cp1252."
        ) from None


def _check_landmarks(value: str | None) -> str | None:
    if value is None or value.lower() in ("auto", "none") or (value.isdecimal() and int(value)):
        return value
    raise typer.BadParameter(f"{value!r} is no number of landmarks; give one, or auto or none.")


_MANY_VALUES = 0.3  # of the rows; more different values are seldom classes
_FEW_ROWS = 10  # in which a few classes are many values
_SEVERAL = "; several with commas or by repeating the option."
SCALES = ("auto", "per-domain", "joint", "none", "unit")
ROWS_TO_LABEL = 30  # in an audit, unless another number is asked for

Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="Labelled rows: .csv, .tsv, .parquet, .feather, .xlsx, .npz or .npy, also .gz; "
        "- for CSV on standard input. 'adapt' takes a folder of pictures by class too.",
        allow_dash=True,
    ),
]
Target = Annotated[
    Path,
    typer.Argument(metavar="TARGET", help="Rows of the other domain; - for CSV on standard input."),
]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="The source's column of labels.")]
TargetLabel = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The target's true labels, for evaluation only."),
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="COLUMN", help="Column that names rows, no feature" + _SEVERAL),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out" + _SEVERAL)
]
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column to use, and no other" + _SEVERAL),
]
Scale = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Scaling of numeric columns: auto, per-domain, joint, none or unit; auto is none "
        "where all seem to be of one unit, as pixels are, and per-domain elsewhere.",
        **one_of(*SCALES),
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The method; 'transferable methods' lists them and names the default. "
        "With --set, --tune, --n-landmarks, --device, --use-target-labels or several sources it is "
        "TFDF.",
        autocompletion=complete_methods,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="MARK",
        help="What separates the cells of text files: ';', tab, '|' ...; by default a comma, in "
        ".tsv files a tab.",
    ),
]
Decimal = Annotated[
    str,
    typer.Option(metavar="MARK", help="Decimal mark of text files.", callback=_check_mark),
]
Encoding = Annotated[
    str, typer.Option(metavar="NAME", help="Encoding of text files.", callback=_check_encoding)
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="What stands in cells that have no value, besides nothing; may be repeated. "
        "By default NA, null and the like in columns of features, and nothing else in ids and "
        "labels.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of Excel files that hold several."),
]
Landmarks = Annotated[
    str | None,
    typer.Option(
        metavar="N|auto|none",
        help="Rows that stand for all others where there are many, for methods that can; none is "
        "exact, auto decides by the memory there is.",
        callback=_check_landmarks,
        autocompletion=_completing("auto", "none"),
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Where to compute, for methods that can and for the network of pictures: cpu, cuda or "
        "auto; the last two need torch.",
        **one_of("cpu", "cuda", "auto"),
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of whatever is random.")
]
Json = Annotated[bool, flag("--json", help="Print one JSON object.")]
EscapeFormulas = Annotated[
    bool,
    flag(
        "--escape-formulas",
        help="Put ' before text in CSV and TSV that spreadsheets would run, such as =1+1.",
    ),
]
Yes = Annotated[
    bool,
    flag(
        "--yes",
        "-y",
        help="The values of --label are classes, also where they are fractions or many, which is "
        "refused or asked about otherwise.",
    ),
]
Quiet = Annotated[bool, flag("--quiet", "-q", help="No notes, no progress.")]


class Roles(NamedTuple):
    """Columns by role, as given by the options."""

    label: str
    target_label: str | None
    ids: Sequence[str] | None
    drop: Sequence[str] | None
    features: Sequence[str] | None


class Inputs(NamedTuple):
    """Both tables, and the columns of each role."""

    source: pd.DataFrame
    target: pd.DataFrame
    label: str
    ids: list[str]
    drop: list[str]
    features: list[str] | None
    true: pd.Series | None
    parts: list[pd.DataFrame]  # the table of each source
    uses_labels: bool  # whether the fit uses known target labels
    unit: str = "rows"

    def encoder(self, scale: str) -> TableEncoder:
        """Return the encoder of these columns, unfitted."""
        from transferable.tables import TableEncoder

        aside = [*self.drop, self.label]
        return TableEncoder(scale=scale, ids=self.ids, drop=aside, features=self.features)  # type: ignore[arg-type]

    def classifier(self, estimator: Any, scale: str) -> TableClassifier:
        """Return a classifier of these columns, unfitted."""
        from transferable.tables import TableClassifier

        return TableClassifier(
            estimator,
            scale=scale,  # type: ignore[arg-type]
            ids=self.ids,
            drop=self.drop,
            features=self.features,
        )

    def rows(self, encoder: TableEncoder) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows of both domains as a fitted encoder gives them."""
        import numpy as np

        sizes = [len(part) for part in self.parts]
        sources = np.repeat(np.arange(1, len(sizes) + 1), sizes)
        return encoder.transform(self.source, sources), encoder.transform(self.target)

    def rows_of_source_alone(self, encoder: TableEncoder) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows of both domains, encoded without the target."""
        alone = encoder.of_source_alone(self.source)
        return alone.transform(self.source), alone.transform(self.target)

    @property
    def fitted_to(self) -> tuple[Any, str, pd.DataFrame]:
        """What a model is fitted to: the source or sources, the column of labels, the target."""
        return self.parts if len(self.parts) > 1 else self.source, self.label, self.target

    def judged(self, model: TableClassifier) -> tuple[Any, ...]:
        """Return a fitted model with its rows, as their verdict needs them."""
        return model, *self.fitted_to

    def lines(self, model: TableClassifier, every_class: bool) -> pd.DataFrame:
        """Return lines of predictions for the target's rows."""
        return predicted(model, self.target, self.ids, every_class=every_class)

    def about(self, model: TableClassifier) -> dict[str, Any]:
        """Return what the rows became, for JSON."""
        encoder = model.encoder_
        return {"scale": encoder.scale_, "features": encoder.get_feature_names_out().tolist()}

    def n_features(self, model: TableClassifier) -> int:
        """Return the number of columns of encoded rows."""
        return len(model.encoder_.get_feature_names_out())

    @property
    def labels(self) -> NDArray[Any]:
        """Labels of the source."""
        import numpy as np

        from transferable.tables.classifier import checked_labels

        return np.asarray(checked_labels(self.source[self.label], self.label))

    def true_labels(self, messages: Messages) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the target's true labels, and which rows have one."""
        classes = self.source[self.label].astype(str).unique().tolist()
        return true_labels(self.true, classes, messages)

    def evaluate(self, predicted: NDArray[Any], messages: Messages) -> dict[str, Any] | None:
        """Score predicted target labels, if true ones are known and were not used by the fit."""
        if self.true is None or self.uses_labels:
            return None
        true, known = self.true_labels(messages)
        right = predicted[known].astype(str) == true[known]
        return {"column": str(self.true.name), "rows": len(right), "accuracy": float(right.mean())}


def dialect_of(
    sep: str | None, decimal: str, encoding: str, missing: list[str] | None, sheet: str | None
) -> Any:
    """Return the format of the files, from the options."""
    from transferable.tables.reading import Dialect

    words = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
    found = None if sep is None else words.get(sep.lower(), sep)
    return Dialect(found, decimal, encoding, None if missing is None else tuple(missing), sheet)


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


def read_inputs(
    files: Sequence[Path],
    roles: Roles,
    dialect: Any,
    messages: Messages,
    *,
    sure: bool,
    uses_labels: bool = False,
) -> Inputs:
    """Read all files, the target last, and check columns; report all errors together.

    `sure` takes any values of the label for classes.
    """
    from transferable.tables import read_table
    from transferable.tables._errors import Problems, who
    from transferable.tables.columns import joined

    if list(files).count(Path("-")) > 1:
        raise ValueError("only one of SOURCE and TARGET can be standard input; name a file.")
    label, truth = roles.label, roles.target_label
    written = [label, *possible_names(roles.ids), *([truth] if truth else [])]
    problems = Problems()
    tables = []
    for path in files:
        with problems.catching(), messages.bar(f"Reading {path.name}") as bar:
            tables.append(read_table(path, as_written=written, dialect=dialect, progress=bar.tick))
    problems.tell()
    *sources, target = tables
    source = sources[0]
    if len(sources) > 1:
        source, _, notes = joined(sources)
        for text in notes:
            messages.note(text)
    columns = [*source.columns, *target.columns]
    true = target[truth] if truth in target.columns else None
    found = Inputs(
        source,
        target.drop(columns=label) if label in target.columns else target,
        label,
        named_columns(roles.ids, columns),
        [*named_columns(roles.drop, columns), *([truth] if truth not in (None, label) else [])],
        named_columns(roles.features, columns) or None,
        true,
        sources,
        uses_labels,
    )
    _check(found, truth, problems)
    if not sure:
        _check_classes(source[label], who(source, "the source"))
    if truth is None and label in target.columns:
        messages.note(
            f"the target's own column {label!r} is not looked at; to evaluate with it: "
            f"--target-label {label}."
        )
    if files[-1].resolve() in [file.resolve() for file in files[:-1]]:
        messages.note("target and source are the same file; there is nothing to adapt to.")
    return found


def _check(found: Inputs, truth: str | None, problems: Problems) -> None:
    """Refuse missing columns or columns with two roles, with any other errors."""
    from transferable.tables._errors import require_columns, who
    from transferable.tables.classifier import check_parts, checked_labels

    source, label = found.source, found.label
    with problems.catching():
        check_parts(label, ids=found.ids, drop=found.drop, features=found.features or ())
    with problems.catching():
        require_columns(list(source.columns), [label], who(source, "the source"))
        checked_labels(source[label], label, who(source, "the source"))
    for names in (
        [name for name in found.ids if name != label],
        [truth] if truth and found.true is None else [],
    ):
        with problems.catching():
            require_columns(list(found.target.columns), names, who(found.target, "the target"))
    if problems:  # report any other errors of these files as well
        with problems.catching(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notes are of no use beside errors
            aside = [label, *found.ids] if label in source.columns else found.ids
            present = [c for c in aside if c in {*source.columns, *found.target.columns}]
            encoder = found.encoder("none").set_params(drop=[*found.drop, *present], ids=())
            encoder.adapt(source, None, found.target)
    problems.tell()


def _check_classes(column: pd.Series, where: str) -> None:
    """Refuse fractions; of many different values, ask on a terminal, and refuse elsewhere."""
    import pandas as pd

    from transferable.tables import TableError

    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    broken = column[numbers % 1 != 0]
    if numbers.notna().all() and len(broken):
        raise TableError(
            f"{where}: {column.name!r} holds fractions, such as {broken.iloc[0]}, as targets of "
            "regression do; cut them into classes, or say --yes if they are names of classes."
        )
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
    from transferable.tables import TableError
    from transferable.tables._errors import listed

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
            f"({listed(lacking)}); whatever is predicted for them counts as wrong."
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
