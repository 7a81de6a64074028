"""``transferable predict`` and ``inspect``: labels by a saved model, and its description."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from sklearn.base import is_regressor

from transferable.cli import _console as console
from transferable.cli import _options as opt
from transferable.cli._console import Messages
from transferable.cli._inputs import (
    FORMATS,
    errors_of,
    named_columns,
    numbers_in,
    possible_names,
    refuse_for_pictures,
    true_labels,
    with_probabilities,
)
from transferable.cli.methods import parameters_of
from transferable.diagnostics import Drift, drift, remembers_target
from transferable.diagnostics.drift import MOST_ROWS
from transferable.images import ImageClassifier
from transferable.persistence import about, load
from transferable.tables import TableClassifier, TableError
from transferable.tables.reading import iter_table, require_columns, who
from transferable.wrapping import FileClassifier, unwrap

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
    *,
    out: opt.Out = None,
    probabilities: opt.Probabilities = False,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column that names rows; by default those of 'adapt', if they are there.",
        ),
    ] = None,
    target_label: opt.TargetLabel = None,
    embedder: opt.Embedder = None,
    form: opt.Format,
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
        out = console.checked_output((model, file), out)
        loaded = load_classifier(model, file, embedder)
        if isinstance(loaded, ImageClassifier):
            refuse_for_pictures(context, ("ids", "target_label", *FORMATS))
        if probabilities and is_regressor(loaded):
            raise ValueError(f"{model} predicts numbers, which have no --probabilities.")
        tally = _Tally(loaded, ids, target_label, messages)
        beside = out is None and sys.stdout.isatty()
        with (
            messages.bar("Predicting", hidden=beside) as bar,
            console.writing(out, escape_formulas=escape_formulas) as write,
        ):
            for piece, done in _pieces(loaded, file, ids, target_label, form, messages):
                lines = tally.label(piece, every_class=probabilities)
                if as_json and not out:
                    typer.echo(lines.to_json(orient="records", lines=True), nl=False)
                else:
                    write(lines)
                bar.tick(done)
        _sum_up(tally, out, messages, as_json=as_json)


def _pieces(
    model: FileClassifier,
    file: Path,
    ids: list[str] | None,
    target_label: str | None,
    form: opt.Format,
    messages: Messages,
) -> Iterator[tuple[Any, float]]:
    """Yield the rows of a file piece by piece, or the embeddings of a folder of pictures."""
    if isinstance(model, TableClassifier):
        truth = [target_label] if target_label else None
        yield from iter_table(
            file,
            as_written=possible_names(ids, model.ids, truth),
            text=[*model.encoder_.categories_, *model.encoder_.words_],
            dialect=form,
        )
    else:
        with messages.hearing():
            yield model._rows(file), 1.0


class _Tally:
    """Labels of pieces, their counts, and a sample of rows to test for drift."""

    def __init__(
        self,
        model: FileClassifier,
        ids: list[str] | None,
        target_label: str | None,
        messages: Messages,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.rows = 0
        self._of_tables = isinstance(model, TableClassifier)
        self.unit = "rows" if self._of_tables else "pictures"
        self._numbers = is_regressor(model)
        self._predicted: list[NDArray[Any]] = []
        self._true: list[NDArray[Any]] = []
        self._model, self._ids, self._truth, self._messages = model, ids, target_label, messages
        self._rows: pd.DataFrame | None = None
        self._draws = np.random.default_rng(0)

    def label(self, piece: Any, *, every_class: bool) -> pd.DataFrame:
        """Return labels of the next rows."""
        if self._of_tables:
            columns = list(piece.columns)
            if self._ids:
                self._model.ids = named_columns(self._ids, columns)
                require_columns(columns, self._model.ids, who(piece, "the table"))
            if self._truth is not None:
                require_columns(columns, [self._truth], who(piece, "the file"))
            lines = self._model.label(piece)
        else:
            lines = self._model.label(piece)
            lines = lines[lines["problem"].isna()].drop(columns="problem").reset_index(drop=True)
        lines = lines.drop(columns=["source_only", "unfamiliar"], errors="ignore")
        if every_class:
            lines = with_probabilities(lines, self._model, piece)
        self._keep_some(piece if self._of_tables else pd.DataFrame(piece.rows))
        self.rows += len(lines)
        if not self._numbers:
            self.counts.update(lines["prediction"].astype(str).tolist())
        if self._truth is not None and piece[self._truth].notna().any():
            if self._numbers:
                true = numbers_in(piece[self._truth], who(piece, "the file"))
                known = ~np.isnan(true)
            else:
                classes = [str(name) for name in self._model.classes_.tolist()]
                true, known = true_labels(piece[self._truth], classes, self._messages)
            self._predicted.append(lines["prediction"].to_numpy()[known])
            self._true.append(true[known])
        return lines

    def _keep_some(self, piece: pd.DataFrame) -> None:
        """Keep a random sample of the rows read: those with the lowest draws."""
        draws = pd.Index(self._draws.random(len(piece)))
        before = self._rows
        highest = 1 if before is None or len(before) < MOST_ROWS else before.index[-1]
        low = draws < highest
        drawn = piece[low].set_axis(draws[low])
        kept = drawn if before is None else pd.concat([before, drawn])
        self._rows = kept.sort_index().head(MOST_ROWS)

    def drift(self) -> Drift | None:
        """Compare the rows with the fitted target; return None, with a note, if impossible."""
        model = self._model if self._of_tables else self._model.estimator_
        if self._rows is None or not remembers_target(model):
            self._messages.note(
                "the model keeps no sample of its target, so it is unknown whether these rows "
                "look like it; fit it again with this version."
            )
            return None
        return drift(model, self._rows.reset_index(drop=True))

    def evaluation(self) -> dict[str, Any] | None:
        """Return the accuracy, or errors, where true labels are known; None if not requested."""
        if self._truth is None:
            return None
        if not self._true:
            raise ValueError(f"column {self._truth!r} holds no true label to evaluate with.")
        predicted, true = np.concatenate(self._predicted), np.concatenate(self._true)
        found = {"accuracy": float((predicted.astype(str) == true).mean())}
        if self._numbers:
            found = errors_of(predicted, true)
        return {"column": self._truth, "rows": len(true), **found}


def _sum_up(tally: _Tally, out: Path | None, messages: Messages, *, as_json: bool) -> None:
    """Print a summary on standard output, or on standard error if predictions go to the former."""
    found, total, drifted = tally.evaluation(), tally.rows, tally.drift()
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


def load_classifier(path: Path, given: Path, embedder: str | None) -> FileClassifier:
    """Return a saved model that takes what is given, a table or a folder of pictures."""
    loaded = _load(path)
    if not isinstance(loaded, FileClassifier):
        raise TableError(
            f"{path} holds a {type(loaded).__name__}, which takes arrays; use transferable.load in "
            "Python, or save a model with 'transferable adapt --model'."
        )
    if not hasattr(loaded, "estimator_"):
        raise TableError(
            f"{path} holds a {type(loaded).__name__} that is not fitted; save one that is, by "
            "'transferable adapt --model' or transferable.save."
        )
    of_pictures = isinstance(loaded, ImageClassifier)
    if of_pictures != given.is_dir():
        kinds = ("pictures", "tables") if of_pictures else ("tables", "pictures")
        found = "a folder" if given.is_dir() else "a table"
        raise TableError(
            f"{path} is a model of {kinds[0]}, but {given} is {found}; use a model saved from "
            f"{kinds[1]}."
        )
    if embedder is not None and not of_pictures:
        raise ValueError("--embedder is for folders of pictures, not for files; leave it out.")
    if embedder is not None:
        loaded.set_params(model=embedder)
    return loaded


def _load(path: Path) -> Any:
    if not path.is_file():
        raise TableError(f"there is no file {path}.")
    return load(path)


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")],
    as_json: opt.Json = False,
) -> None:
    """Show what a saved model was made with, what it takes and what it predicts."""
    with console.reporting():
        try:
            record = _described(model)
            text = json.dumps(record)
        except (AttributeError, TypeError) as error:
            raise ValueError(
                f"{model} is not a complete model ({error}); save it again."
            ) from error
        if as_json:
            typer.echo(text)
        else:
            console.print_table((), (), ((name, _shown(value)) for name, value in record.items()))


def _described(path: Path) -> dict[str, Any]:
    """Return the header of the file, and the description of its model."""
    model = _load(path)
    record = about(path)
    if hasattr(model, "classes_") or hasattr(model, "n_features_in_"):
        record["holds"] = "rows of the data that the model was fitted to; keep the file as the data"
    if not isinstance(model, FileClassifier) or not hasattr(model, "estimator_"):
        return record | {"parameters": parameters_of(model)}
    method = unwrap(model)
    record |= {
        "method": type(method).__name__,
        "parameters": parameters_of(method),
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else "none: numbers",
    }
    if isinstance(model, TableClassifier):
        encoder = model.encoder_
        record |= {
            "label": model.label_,
            "id columns": list(model.ids),
            "numeric columns": encoder.numeric_,
            "categorical columns": list(encoder.categories_),
            "columns of words": list(encoder.words_),
            "features": len(encoder.get_feature_names_out()),
            "scale": encoder.scale_,
        }
    else:
        record |= {"embedder": model.embedder_, "features": model.n_features_in_}
    return record | {"notes": model.notes_}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{name} {part}" for name, part in value.items())
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return (", ".join(map(str, value[:_SHOWN])) or "none") + more
    return str(value)
