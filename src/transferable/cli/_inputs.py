"""Two files as tables, with the parts that their columns play, checked before any work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transferable.cli._console import Messages

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from transferable.tables import TableEncoder
    from transferable.tables._errors import Problems

__all__ = [
    "Evaluation",
    "Inputs",
    "Roles",
    "named_columns",
    "possible_names",
    "read_inputs",
    "true_labels",
]


@dataclass(frozen=True)
class Roles:
    """Which columns play which part, as the options say it."""

    label: str
    target_label: str | None = None
    ids: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    features: Sequence[str] | None = None


@dataclass(frozen=True)
class Evaluation:
    """Predictions against true target labels, which nothing was learnt from."""

    column: str
    true: NDArray[Any]
    known: NDArray[Any]
    accuracy: float


@dataclass(frozen=True)
class Inputs:
    """Both tables, and the columns of each part."""

    source: pd.DataFrame
    target: pd.DataFrame
    label: str
    ids: list[str]
    drop: list[str]
    features: list[str] | None
    true: pd.Series | None
    parts: list[pd.DataFrame] | None = None  # of each source, where there are several
    uses_labels: bool = False  # whether known target labels are learnt from

    def encoder(self, scale: str) -> TableEncoder:
        """The encoder of these columns, not fitted."""
        from transferable.tables import TableEncoder

        aside = [*self.drop, self.label]
        return TableEncoder(scale=scale, ids=self.ids, drop=aside, features=self.features)  # type: ignore[arg-type]

    @property
    def marks(self) -> NDArray[Any]:
        """The number of each source row's source."""
        import numpy as np

        sizes = [len(part) for part in self.parts or [self.source]]
        return np.repeat(np.arange(1, len(sizes) + 1), sizes)

    def known(self, messages: Messages) -> NDArray[Any] | None:
        """Labels of target rows to learn from, None where there is none; None if not asked for."""
        if self.true is None or not self.uses_labels:
            return None
        classes = self.source[self.label].astype(str).unique().tolist()
        true, known = true_labels(self.true, classes, messages)
        true = true.astype(object)
        true[~known] = None
        return true

    @property
    def n_rows(self) -> int:
        """Rows of both tables."""
        return len(self.source) + len(self.target)

    @property
    def labels(self) -> NDArray[Any]:
        """The source's labels."""
        import numpy as np

        from transferable.tables.classifier import checked_labels

        return np.asarray(checked_labels(self.source[self.label], self.label))

    def evaluate(
        self, predicted: NDArray[Any], messages: Messages | None = None
    ) -> Evaluation | None:
        """Score predicted target labels, if true ones are known and were not learnt from."""
        if self.true is None or self.uses_labels:
            return None
        classes = self.source[self.label].astype(str).unique().tolist()
        true, known = true_labels(self.true, classes, messages)
        right = predicted[known].astype(str) == true[known]
        return Evaluation(str(self.true.name), true, known, float(right.mean()))


def possible_names(*given: Sequence[str] | None) -> list[str]:
    """Everything that options may mean by names of columns, before the columns are known."""
    texts = [text for some in given for text in some or ()]
    return list(dict.fromkeys([*texts, *(p.strip() for text in texts for p in text.split(","))]))


def named_columns(given: Sequence[str] | None, columns: Sequence[str]) -> list[str]:
    """Names from options that may be repeated and may hold several with commas between them.

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
    uses_labels: bool = False,
) -> Inputs:
    """Read all files, the target last, and check columns; whatever is wrong is told together."""
    from transferable.tables._errors import Problems
    from transferable.tables.columns import joined

    if list(files).count(Path("-")) > 1:
        raise ValueError("only one of SOURCE and TARGET can be standard input; name a file.")
    label, truth = roles.label, roles.target_label
    written = [label, *possible_names(roles.ids), *([truth] if truth else [])]
    problems = Problems()
    tables = []
    for path in files:
        with problems.catching():
            tables.append(read(path, written, dialect, messages))
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
        target.drop(columns=label) if true is not None and truth == label else target,
        label,
        named_columns(roles.ids, columns),
        [*named_columns(roles.drop, columns), *([truth] if truth not in (None, label) else [])],
        named_columns(roles.features, columns) or None,
        true,
        sources if len(sources) > 1 else None,
        uses_labels,
    )
    _check(found, truth, problems)
    if files[-1].resolve() in [file.resolve() for file in files[:-1]]:
        messages.note("target and source are the same file; there is nothing to adapt to.")
    return found


def _check(found: Inputs, truth: str | None, problems: Problems) -> None:
    """Refuse columns that are not there or play two parts, with whatever else is wrong."""
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
    if problems:  # whatever else is wrong with these files is told now as well
        with problems.catching():
            aside = [label, *found.ids] if label in source.columns else found.ids
            present = [c for c in aside if c in {*source.columns, *found.target.columns}]
            encoder = found.encoder("none").set_params(drop=[*found.drop, *present], ids=())
            encoder.adapt(source, None, found.target)
    problems.tell()


def read(path: Path, as_written: Sequence[str], dialect: Any, messages: Messages) -> pd.DataFrame:
    """Read a table with a progress bar."""
    from transferable.tables import read_table

    with messages.bar(f"Reading {path.name}") as bar:
        return read_table(path, as_written=as_written, dialect=dialect, progress=bar.tick)


def true_labels(
    column: pd.Series, classes: Sequence[str], messages: Messages | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """True labels as the source writes them, and which rows have one; notes on the others."""
    from transferable.tables import TableError
    from transferable.tables._errors import listed

    known = column.notna().to_numpy()
    if not known.any():
        raise TableError(f"column {column.name!r} holds no true label to evaluate with.")
    values = column.astype(object).map(str)
    unknown = sorted(set(values[known]) - set(classes))
    alike = _same_number(unknown, classes)
    lacking = [text for text in unknown if text not in alike]
    if alike and messages is not None:
        pairs = ", ".join(f"{one!r} is taken for {other!r}" for one, other in alike.items())
        messages.note(f"true labels in {column.name!r} are compared as numbers: {pairs}.")
    if lacking and messages is not None:
        rows = int(values[known].isin(lacking).sum())
        messages.note(
            f"{rows} target rows have a label in {column.name!r} that no source row has "
            f"({listed(lacking)}); whatever is predicted for them counts as wrong."
        )
    return values.replace(alike).to_numpy(dtype=str), known


def _same_number(texts: Sequence[str], classes: Sequence[str]) -> dict[str, str]:
    """Texts that are the number of exactly one class, written in another way."""
    numbers: dict[float, list[str]] = {}
    try:
        for name in classes:
            numbers.setdefault(float(name), []).append(name)
    except ValueError:
        return {}
    found = {}
    for text in texts:
        try:
            same = numbers.get(float(text), [])
        except ValueError:
            continue
        if len(same) == 1:
            found[text] = same[0]
    return found
