"""``transferable predict``: labels for new rows by a saved model."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli._console import Messages, reporting, stdout
from transferable.cli._inputs import named_columns, possible_names, true_labels
from transferable.cli._options import (
    Decimal,
    Encoding,
    EscapeFormulas,
    Missing,
    Quiet,
    Separator,
    Sheet,
    TargetLabel,
    dialect_of,
    flag,
)
from transferable.cli._predictions import check_distinct, check_output, predicted, writing

if TYPE_CHECKING:
    import pandas as pd

    from transferable.diagnostics import Drift
    from transferable.tables import TableClassifier


def run(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that 'adapt --model' has saved.")
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Rows to label, of the target domain; - for CSV on standard input.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the predictions, .csv, .tsv or .parquet; by default, or with -, they go "
            "to standard output.",
            callback=check_output,
        ),
    ] = None,
    probabilities: Annotated[
        bool, flag("--probabilities", help="Write the probability of every class as well.")
    ] = False,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column that names rows; by default those of 'adapt', if they are there.",
        ),
    ] = None,
    target_label: TargetLabel = None,
    sep: Separator = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    sheet: Sheet = None,
    as_json: Annotated[
        bool, flag("--json", help="Print one JSON object for each row, or with --out one.")
    ] = False,
    escape_formulas: EscapeFormulas = False,
    quiet: Quiet = False,
) -> None:
    """Label the rows of FILE, which is read piece by piece, with a saved model.

    Writes what 'adapt' writes, but for the labels of a model of the source alone. The model knows
    how to treat the columns: the file needs no preparation. Loading a model runs no code that its
    file brings. Warns if the rows no longer look like the target that the model was fitted to; for
    one file of twenty that is a false alarm. Ends with status 0, with 1 if something failed, and
    with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with reporting():
        from transferable.tables import iter_table

        check_distinct((model, file), (out,))
        loaded = load_table_model(model)
        pieces = iter_table(
            file,
            as_written=possible_names(ids, loaded.ids, [target_label] if target_label else None),
            text=list(loaded.encoder_.categories_),
            dialect=dialect_of(sep, decimal, encoding, missing, sheet),
        )
        tally = _Tally(loaded, ids, target_label, messages, every_class=probabilities)
        beside = out is None and sys.stdout.isatty()
        with (
            messages.bar("Predicting", hidden=beside) as bar,
            writing(out, escape_formulas=escape_formulas) as writer,
        ):
            for piece, done in pieces:
                lines = tally.label(piece)
                if as_json and not out:
                    typer.echo(lines.to_json(orient="records", lines=True), nl=False)
                else:
                    writer.write(lines)
                bar.tick(done)
        _tell(tally, out, messages, as_json=as_json)


class _Tally:
    """Labels pieces, counts what came out, and keeps some rows to see whether they drifted."""

    def __init__(
        self,
        model: TableClassifier,
        ids: list[str] | None,
        target_label: str | None,
        messages: Messages,
        *,
        every_class: bool,
    ) -> None:
        import numpy as np

        self.counts: Counter[str] = Counter()
        self.known = self.right = 0
        self._model, self._ids, self._truth = model, ids, target_label
        self._messages, self._every_class = messages, every_class
        self._rows: pd.DataFrame | None = None
        self._draws = np.random.default_rng(0)

    def label(self, piece: pd.DataFrame) -> pd.DataFrame:
        """Lines of predictions for the next rows."""
        from transferable.tables._errors import require_columns, who

        columns = list(piece.columns)
        wanted = named_columns(self._ids, columns) or [c for c in self._model.ids if c in columns]
        if self._truth is not None:
            require_columns(columns, [self._truth], who(piece, "the file"))
        lines, _ = predicted(self._model, piece, wanted, every_class=self._every_class)
        self._keep_some(piece)
        self.counts.update(lines["prediction"].astype(str).tolist())
        if self._truth is not None and piece[self._truth].notna().any():
            classes = [str(name) for name in self._model.classes_.tolist()]
            true, known = true_labels(piece[self._truth], classes, self._messages)
            hits = lines["prediction"].to_numpy()[known].astype(str) == true[known]
            self.known, self.right = self.known + len(hits), self.right + int(hits.sum())
        return lines

    def _keep_some(self, piece: pd.DataFrame) -> None:
        """Keep rows drawn at random from all that have come so far: those of the lowest draws."""
        import pandas as pd

        from transferable.diagnostics.gap import MOST_ROWS

        draws = pd.Index(self._draws.random(len(piece)))
        before = self._rows
        highest = 1 if before is None or len(before) < MOST_ROWS else before.index[-1]
        low = draws < highest
        drawn = piece[low].set_axis(draws[low])
        kept = drawn if before is None else pd.concat([before, drawn])
        self._rows = kept.sort_index().head(MOST_ROWS)

    def drift(self) -> Drift | None:
        """Whether the rows look like the fitted target; None, with a note, where nobody can say."""
        from transferable.diagnostics import drift, remembers_target

        if self._rows is None or not remembers_target(self._model):
            self._messages.note(
                "the model keeps no sample of its target, so it cannot be told whether these rows "
                "look like it; fit it again with this version."
            )
            return None
        return drift(self._model, self._rows.reset_index(drop=True))

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """The accuracy where true labels are known; None where none were asked for."""
        if self._truth is None:
            return None
        if not self.known:
            raise ValueError(f"column {self._truth!r} holds no true label to evaluate with.")
        return {"column": self._truth, "rows": self.known, "accuracy": self.right / self.known}


def _tell(tally: _Tally, out: Path | None, messages: Messages, *, as_json: bool) -> None:
    """Sum up: on standard output, or on standard error if the predictions went to the former."""
    found, total, drifted = tally.evaluation, tally.counts.total(), tally.drift()
    if drifted is not None and drifted.likely:
        messages.note(drifted.reason, "Warning")
    if out is not None and as_json:
        record = {"n_rows": total, "predicted": tally.counts, "evaluation": found}
        record["drift"] = drifted and {"p_value": drifted.p_value, "likely": drifted.likely}
        typer.echo(json.dumps(record | {"predictions": str(out), "notes": messages.notes}))
        return
    lines = [] if out is None else [f"{total:,} rows labelled; predictions saved to {out}"]
    if found is not None:
        lines.append(
            f"Accuracy on the {found['rows']:,} rows with a value in {found['column']!r}: "
            f"{found['accuracy']:.1%} (used for this evaluation only)"
        )
    for line in lines:
        if out is None:
            messages.say(line)
        else:
            stdout().print(line, markup=False, soft_wrap=True)


def load_table_model(path: Path) -> TableClassifier:
    """Load a saved model that takes tables."""
    from transferable.persistence import load
    from transferable.tables import TableClassifier, TableError

    if not path.is_file():
        raise TableError(f"there is no file {path}.")
    loaded = load(path)
    if not isinstance(loaded, TableClassifier):
        raise TableError(
            f"{path} holds a {type(loaded).__name__}, which takes arrays; use transferable.load in "
            "Python, or save a model with 'transferable adapt --model'."
        )
    return loaded
