"""``transferable predict`` and ``inspect``: labels by a saved model, and its description."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transferable.cli import _console as console
from transferable.cli import _options as opt
from transferable.cli import pictures
from transferable.cli._console import Messages
from transferable.cli.methods import fitted_method, parameters_of

if TYPE_CHECKING:
    import pandas as pd

    from transferable.diagnostics import Drift
    from transferable.tables import TableClassifier

_SHOWN = 12  # of a list, to people; --json has all


def run(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that 'adapt --model' has saved.")
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Rows to label, of the target domain; - for CSV on standard input; a folder of "
            "pictures for a model of pictures.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the predictions, .csv, .tsv or .parquet; by default, or with -, they go "
            "to standard output.",
            callback=console.check_output,
        ),
    ] = None,
    probabilities: Annotated[
        bool, opt.flag("--probabilities", help="Write the probability of every class as well.")
    ] = False,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column that names rows; by default those of 'adapt', if they are there.",
        ),
    ] = None,
    target_label: opt.TargetLabel = None,
    sep: opt.Separator = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = "utf-8",
    missing: opt.Missing = None,
    sheet: opt.Sheet = None,
    as_json: Annotated[
        bool, opt.flag("--json", help="Print one JSON object for each row, or with --out one.")
    ] = False,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Label the rows of FILE, which is read piece by piece, with a saved model.

    Writes what 'adapt' writes, but for the labels of a model of the source alone. The model
    includes the treatment of the columns: the file needs no preparation. Loading a model runs no
    code of its file. Warns if the rows differ from the target that the model was fitted to; for one
    file of twenty that is a false alarm. Ends with status 0, with 1 if something failed, and
    with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with console.reporting():
        from transferable.tables import iter_table

        console.check_distinct((model, file), (out,))
        loaded = load_classifier(model, file)
        if isinstance(loaded, pictures.Model):
            pictures.refuse(context, ("ids", "target_label", *pictures.FORMATS))
            pieces = loaded.pieces(file, messages)
        else:
            truth = [target_label] if target_label else None
            pieces = iter_table(
                file,
                as_written=opt.possible_names(ids, loaded.ids, truth),
                text=list(loaded.encoder_.categories_),
                dialect=opt.dialect_of(sep, decimal, encoding, missing, sheet),
            )
        tally = _Tally(loaded, ids, target_label, messages)
        beside = out is None and sys.stdout.isatty()
        with (
            messages.bar("Predicting", hidden=beside) as bar,
            console.writing(out, escape_formulas=escape_formulas) as write,
        ):
            for piece, done in pieces:
                lines = tally.label(piece, every_class=probabilities)
                if as_json and not out:
                    typer.echo(lines.to_json(orient="records", lines=True), nl=False)
                else:
                    write(lines)
                bar.tick(done)
        _sum_up(tally, out, messages, as_json=as_json)


class _Tally:
    """Labels of pieces, their counts, and a sample of rows to test for drift."""

    def __init__(
        self,
        model: TableClassifier | pictures.Model,
        ids: list[str] | None,
        target_label: str | None,
        messages: Messages,
    ) -> None:
        import numpy as np

        self.counts: Counter[str] = Counter()
        self.unit = "pictures" if isinstance(model, pictures.Model) else "rows"
        self._known = self._right = 0
        self._model, self._ids, self._truth, self._messages = model, ids, target_label, messages
        self._rows: pd.DataFrame | None = None
        self._draws = np.random.default_rng(0)

    def label(self, piece: pd.DataFrame, *, every_class: bool) -> pd.DataFrame:
        """Return lines of predictions for the next rows."""
        from transferable.tables._errors import require_columns, who

        columns = list(piece.columns)
        ids = opt.named_columns(self._ids, columns) or [c for c in self._model.ids if c in columns]
        if self._truth is not None:
            require_columns(columns, [self._truth], who(piece, "the file"))
        lines = console.predicted(self._model, piece, ids, every_class=every_class)
        self._keep_some(piece)
        self.counts.update(lines["prediction"].astype(str).tolist())
        if self._truth is not None and piece[self._truth].notna().any():
            classes = [str(name) for name in self._model.classes_.tolist()]
            true, known = opt.true_labels(piece[self._truth], classes, self._messages)
            hits = lines["prediction"].to_numpy()[known].astype(str) == true[known]
            self._known, self._right = self._known + len(hits), self._right + int(hits.sum())
        return lines

    def _keep_some(self, piece: pd.DataFrame) -> None:
        """Keep rows drawn at random from all so far: those of the lowest draws."""
        import pandas as pd

        from transferable.diagnostics.drift import MOST_ROWS

        draws = pd.Index(self._draws.random(len(piece)))
        before = self._rows
        highest = 1 if before is None or len(before) < MOST_ROWS else before.index[-1]
        low = draws < highest
        drawn = piece[low].set_axis(draws[low])
        kept = drawn if before is None else pd.concat([before, drawn])
        self._rows = kept.sort_index().head(MOST_ROWS)

    def drift(self) -> Drift | None:
        """Compare the rows with the fitted target; return None, with a note, if impossible."""
        from transferable.diagnostics import drift, remembers_target

        if self._rows is None or not remembers_target(self._model):
            self._messages.note(
                "the model keeps no sample of its target, so it is unknown whether these rows "
                "look like it; fit it again with this version."
            )
            return None
        return drift(self._model, self._rows.reset_index(drop=True))

    def evaluation(self) -> dict[str, Any] | None:
        """Return the accuracy where true labels are known; None if not requested."""
        if self._truth is None:
            return None
        if not self._known:
            raise ValueError(f"column {self._truth!r} holds no true label to evaluate with.")
        return {"column": self._truth, "rows": self._known, "accuracy": self._right / self._known}


def _sum_up(tally: _Tally, out: Path | None, messages: Messages, *, as_json: bool) -> None:
    """Print a summary on standard output, or on standard error if predictions go to the former."""
    found, total, drifted = tally.evaluation(), tally.counts.total(), tally.drift()
    if drifted is not None and drifted.likely:
        messages.note(drifted.reason, "Warning")
    if out is not None and as_json:
        record = {"n_rows": total, "predicted": tally.counts, "evaluation": found}
        record["drift"] = drifted and {"p_value": drifted.p_value, "likely": drifted.likely}
        typer.echo(json.dumps(record | {"predictions": str(out), "notes": messages.notes}))
        return
    if out is not None:
        console.print_lines(f"{total:,} {tally.unit} labelled; predictions saved to {out}")
    if found is not None:
        (messages.say if out is None else console.print_lines)(console.accuracy_line(found, "rows"))


def load_classifier(path: Path, given: Path) -> TableClassifier | pictures.Model:
    """Return a saved model that takes what is given, a table or a folder of pictures."""
    from transferable.images import ImageClassifier
    from transferable.tables import TableClassifier, TableError

    loaded = _load(path)
    if isinstance(loaded, ImageClassifier | TableClassifier) and not hasattr(loaded, "classes_"):
        raise TableError(
            f"{path} holds a {type(loaded).__name__} that is not fitted; save one that is, by "
            "'transferable adapt --model' or transferable.save."
        )
    of_pictures = isinstance(loaded, ImageClassifier)
    if of_pictures != given.is_dir() and (of_pictures or isinstance(loaded, TableClassifier)):
        kinds = ("a folder of pictures", "a file of rows")
        takes, got = kinds if of_pictures else kinds[::-1]
        raise TableError(f"{path} labels {takes}, and {given} is no such; {got} needs its own.")
    if of_pictures:
        return pictures.Model(loaded)
    if not isinstance(loaded, TableClassifier):
        raise TableError(
            f"{path} holds a {type(loaded).__name__}, which takes arrays; use transferable.load in "
            "Python, or save a model with 'transferable adapt --model'."
        )
    return loaded


def _load(path: Path) -> Any:
    from transferable.persistence import load
    from transferable.tables import TableError

    if not path.is_file():
        raise TableError(f"there is no file {path}.")
    return load(path)


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")],
    as_json: opt.Json = False,
) -> None:
    """Show what a saved model was made with, what it takes and what it predicts."""
    with console.reporting():
        record = _described(model)
        if as_json:
            typer.echo(json.dumps(record))
        else:
            console.print_table((), (), ((name, _shown(value)) for name, value in record.items()))


def _described(path: Path) -> dict[str, Any]:
    """Return the header of the file, and the description of its model."""
    from transferable.images import ImageClassifier
    from transferable.persistence import about
    from transferable.tables import TableClassifier

    model = _load(path)
    record = about(path)
    if not isinstance(model, ImageClassifier | TableClassifier) or not hasattr(model, "classes_"):
        return record | {"parameters": parameters_of(model)}
    if isinstance(model, ImageClassifier):
        return record | pictures.described(model)
    encoder, method = model.encoder_, fitted_method(model)
    return record | {
        "method": type(method).__name__,
        "parameters": parameters_of(method),
        "classes": model.classes_.tolist(),
        "label": model.label_,
        "id columns": list(model.ids),
        "numeric columns": encoder.numeric_,
        "categorical columns": list(encoder.categories_),
        "features": len(encoder.get_feature_names_out()),
        "scale": encoder.scale_,
        "notes": model.notes_,
    }


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{name} {part}" for name, part in value.items())
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return (", ".join(map(str, value[:_SHOWN])) or "none") + more
    return str(value)
