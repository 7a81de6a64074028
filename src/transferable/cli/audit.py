"""``transferable audit``: how good predictions are, by a few rows that a person labels."""

from __future__ import annotations

import codecs
import json
import shlex
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from transferable._files import replacing
from transferable.cli import _console as console
from transferable.cli import _options as opt
from transferable.cli._console import Messages
from transferable.cli._inputs import numbers_in, same_number
from transferable.cli.predict import load_classifier
from transferable.images.reading import Pictures, read_folder, thumbnail
from transferable.labelling import SIDE, write_page
from transferable.persistence import save as save_model
from transferable.regressors._measured import MeasuredError, rows_to_measure
from transferable.report import Facts, write_report
from transferable.tables import TableError, read_table
from transferable.tables.reading import MARKS, listed, require_columns, who
from transferable.trust import (
    Audit,
    compared,
    rows_to_label,
    strata_of,
    stratum_weights,
)
from transferable.wrapping import FileClassifier, unwrap

_ROUNDED = 1e-5  # relative change that spreadsheets, which save what they show, make of fractions
_OTHERS = 0.01  # share of labels beyond which predictions are of another model
_ALIKE = 0.8  # ratio of common letters beyond which a label is a misspelt class
_ARRAYS = ("labels", "model")  # of an audit, which files have
_EXTRA = ("runner_up", "unfamiliar")  # columns of predictions that may be missing


def run(
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="The rows, or pictures, that 'adapt' has labelled."),
    ],
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="What 'adapt --out' wrote for them.")
    ],
    *,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help=f"Rows to label; by default {opt.ROWS_TO_LABEL}, of numbers "
            f"{opt.ROWS_TO_MEASURE}, or all of fewer.",
        ),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The rows with their labels filled in; if a spreadsheet changes separators or "
            "decimal marks, save it as .xlsx.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The model that 'adapt --model' has saved, to correct all labels with --labelled.",
        ),
    ] = None,
    embedder: opt.Embedder = None,
    label: Annotated[str, typer.Option(metavar="COLUMN", help="The column to fill in.")] = "label",
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An HTML page to label the rows on by clicking, in place of a file to fill in.",
        ),
    ] = None,
    new_class: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A label that is a class of its own, although it resembles a known one. "
            "Repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the rows to label, or with --model for the corrected labels; by default "
            "to-label.csv or audited.csv, beside the predictions.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the corrected model; by default audited.tfm, beside the predictions.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The report again, an HTML file, of the corrected labels and with the measured "
            "accuracy; it compares the target with --source.",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(metavar="SOURCE", help="The labelled rows or pictures, for --report."),
    ] = None,
    form: opt.Format,
    as_json: opt.Json = False,
    escape_formulas: opt.EscapeFormulas = False,
    quiet: opt.Quiet = False,
) -> None:
    """Measure how good PREDICTIONS are by a few rows of TARGET that a person labels.

    Writes rows to label, without their predictions, half of them where adapting changed the label.
    Once they are filled in, --labelled gives the accuracy with its interval, whether adapted or
    source-only labels are better, and names classes that the source lacks. With --model the
    labels of all rows are corrected, and so are those of new rows by the model that is saved.
    Ends with status 0, with 1 if something failed, and with 2 if the input cannot be used.
    """
    messages = Messages(quiet=quiet)
    with console.reporting():
        for useless, reason in (
            (rows and labelled, "--rows chooses rows to label, which --labelled has; give one"),
            (page and labelled, "--page is to label rows, which --labelled has; give one"),
            (page and out, "the labels are downloaded from --page; leave out --out"),
            (new_class and not labelled, "--new-class is about labels; give these: --labelled"),
            (model and not labelled, "--model corrects by rows filled in; give these: --labelled"),
            (report and not model, "--report shows the corrected labels; give the model: --model"),
            (
                bool(report) != bool(source),
                "--report and --source, the labelled rows it compares with, go together; give both",
            ),
            (out == Path("-"), "standard output has the summary; name a file for --out"),
            (save and not model, "--save needs the model to correct; add --model"),
            (labelled and out and not model, "--out needs a model that corrects; add --model"),
        ):
            if useless:
                raise ValueError(f"{reason}.")
        loaded = load_classifier(model, target, embedder) if model else None
        pair = _read_pair(target, predictions, label, form, loaded)
        for option, given in (("--page", page), ("--new-class", new_class)):
            if given and pair.numbers:
                raise ValueError(f"{option} is for classes, and {predictions} holds numbers.")
        if labelled is None:
            console.checked_output((target, predictions), out, page)
            path = page or out or predictions.with_name("to-label.csv")
            record = _choose_rows(
                pair, rows, path, form, escape_formulas, messages, clicked=page is not None
            )
            filled = path.with_suffix(".csv") if page else path
            options = [
                *(("--label", label, "label"), ("--sep", form.sep, None)),
                *(("--decimal", form.decimal, "."), ("--encoding", form.encoding, "utf-8")),
                *(("--sheet", form.sheet, None),),
                *(("--missing", text, None) for text in form.missing or ()),
            ]
            said = [word for name, text, usual in options if text != usual for word in (name, text)]
            words = [target, predictions, "--labelled", filled, *said, "--model", "model.tfm"]
            task = (
                f"open it in a browser, label every row, download {filled.name} and put it here"
                if page
                else f"fill in the column {label!r} of every row"
            )
            lines = [
                f"{len(record['rows']):,} of {len(pair.target):,} rows saved to {path}; {task}, "
                "then, with the model that 'adapt' saved:",
                shlex.join(["transferable", "audit", *map(str, words)]),
            ]
        else:
            corrects = loaded is not None and hasattr(loaded, "audit")
            files = {
                "predictions": (out or predictions.with_name("audited.csv")) if corrects else None,
                "model": (save or predictions.with_name("audited.tfm")) if corrects else None,
                "report": report if corrects else None,
            }
            read = [path for path in (target, predictions, labelled, model, source) if path]
            console.checked_output(read, *files.values())
            at, labels = _read_labels(labelled, pair, form)
            if pair.numbers:
                labels = [text.replace(form.decimal, ".") for text in labels]
            else:
                known = pair.classes if loaded is None else loaded.classes_.tolist()
                _refuse_near_misses(labels, [*map(str, known)], new_class or (), labelled)
            found = _compare(pair, at, labels, loaded, model, messages)
            if corrects:
                if report and source:
                    _write_report(report, found.model, source, target, pair.given, form)
                _write_corrected(pair, at, found, files, escape_formulas)
            record = _record(found) | {"files": {kind: p and str(p) for kind, p in files.items()}}
            lines = found.lines
            lines += [f"Corrected {kind} saved to {path}" for kind, path in files.items() if path]
        if as_json:
            typer.echo(json.dumps(record | {"notes": messages.notes}))
        else:
            console.print_lines(*lines)


class _Pair(NamedTuple):
    """The target with the labels of each row, as codes into `classes`."""

    target: pd.DataFrame
    given: Any  # what a model takes of it: the table, or the pictures
    ids: list[str]
    number: str  # name for a column of row numbers
    label: str  # name for the column to fill in
    classes: list[str]  # that predictions name
    adapted: NDArray[Any]
    alone: NDArray[Any]
    strata: NDArray[Any]
    confidence: NDArray[Any]
    numbers: bool = False  # whether `adapted` and `alone` are numbers instead


def _read_pair(
    path: Path, predictions: Path, label: str, dialect: Any, model: FileClassifier | None
) -> _Pair:
    """Read the target and its predictions; refuse those of another file."""
    labels = ["prediction", "source_only"]
    lines = console.without_escapes(read_table(predictions, as_written=[*labels, "runner_up"]))
    called = who(lines, "the predictions")
    numbers = "spread" in lines.columns and "confidence" not in lines.columns
    needed = ["prediction", "spread" if numbers else "confidence"]
    require_columns(list(lines.columns), needed, called)
    if "source_only" not in lines.columns:
        raise TableError(
            f"{called} has no column 'source_only', by which rows to label are chosen; run "
            "'transferable adapt --out' without --no-estimate."
        )
    ids = lines.columns[: lines.columns.get_loc("prediction")].tolist()
    if label in ids:
        raise TableError(f"column {label!r} names rows; name another to fill in: --label.")
    if path.is_dir():
        require_columns(list(lines.columns), ["file"], called)
        given = _pictures_among(path, lines["file"])
        target = pd.DataFrame({"file": given.names})
        target.attrs["file"] = str(path)
    else:
        encoder = getattr(model, "encoder_", None)
        text = [] if encoder is None else [*encoder.categories_, *encoder.words_]
        given = target = read_table(path, as_written=[*ids, label], text=text, dialect=dialect)
    where = who(target, "the target")
    require_columns(list(target.columns), ids, where)
    remedy = f"give what 'adapt' wrote for {where}"
    if len(lines) != len(target):
        raise TableError(f"{called} has {len(lines):,} rows, {where} {len(target):,}; {remedy}.")
    _refuse_changes(lines, target, ids, called, remedy)
    number = _free("row", [*target.columns, label])
    confidence = pd.to_numeric(lines[needed[1]], errors="coerce").to_numpy(float)
    if numbers:
        found = [numbers_in(lines[name], called) for name in labels]
        strata = np.zeros(len(lines), dtype=np.intp)
        return _Pair(
            *(target, given, ids, number, label, [], found[0], found[1], strata, confidence),
            numbers=True,
        )
    if lines[labels].isna().any(axis=None) or np.isnan(confidence).any():
        raise TableError(f"{called} lacks labels or confidences of some rows; {remedy}.")
    both = np.concatenate([lines[name].astype(str) for name in labels])
    classes, codes = np.unique(both, return_inverse=True)
    adapted, alone = np.split(codes, 2)
    second, unfamiliar = (lines.get(c, pd.Series(index=lines.index, dtype=object)) for c in _EXTRA)
    known = dict.fromkeys([*classes.tolist(), *second.dropna().astype(str)])
    strata = strata_of(adapted, alone, (unfamiliar.astype(str).str.lower() == "true").to_numpy())
    parts = target, given, ids, number, label, list(known)
    return _Pair(*parts, adapted, alone, strata, confidence)


def _pictures_among(folder: Path, names: pd.Series) -> Pictures:
    """Return the pictures of a folder that have predictions."""
    found = read_folder(folder, classes=False)
    known = {str(name).strip() for name in names}
    kept = [k for k, name in enumerate(found.names) if name.strip() in known]
    return Pictures([found.files[k] for k in kept], [found.names[k] for k in kept])


def _free(name: str, taken: Sequence[str]) -> str:
    """Return the name, with underscores behind it if another column has it."""
    while name in taken:
        name += "_"
    return name


def _refuse_changes(
    given: pd.DataFrame, target: pd.DataFrame, names: Sequence[str], called: str, remedy: str
) -> None:
    """Refuse cells of some columns that are not the target's; numbers are compared as numbers.

    The rows of both tables are the same, and indexed by their numbers from 0.
    """
    for name in names:
        columns = [table[name].astype(object) for table in (given, target)]
        texts = [c.where(c.notna(), "").map(str).str.strip().to_numpy() for c in columns]
        one, other = (pd.to_numeric(pd.Series(t), errors="coerce").to_numpy(float) for t in texts)
        fraction = (one % 1 != 0) | (other % 1 != 0)
        same = (one == other) | (fraction & np.isclose(one, other, rtol=_ROUNDED, atol=0))
        for k in np.flatnonzero(~same & (texts[0] != texts[1]))[:1]:
            raise TableError(
                f"{called}, row {given.index[k] + 1}: {name!r} is {texts[0][k]!r}, and in "
                f"{who(target, 'the target')} {texts[1][k]!r}; {remedy}."
            )


def _choose_rows(
    pair: _Pair,
    rows: int | None,
    path: Path,
    dialect: Any,
    escape: bool,
    messages: Messages,
    *,
    clicked: bool,
) -> dict[str, Any]:
    """Write rows to label, in the dialect of the target or as a page; return a record of them."""
    target, label, suffix = pair.target, pair.label, path.suffix.lower()
    n, where = len(target), who(target, "the target")
    if rows is not None and rows > n:
        raise ValueError(f"--rows {rows}: {where} has {n:,}; ask for fewer.")
    if not clicked and suffix not in (".csv", ".tsv"):
        raise ValueError(f"{path}: rows to fill in go to a .csv or .tsv file; name one.")
    if path.exists() and not clicked:
        raise ValueError(f"{path} exists, perhaps filled in; name another file: --out.")
    if label in target.columns:
        messages.note(
            f"the column {label!r} of {where} is left out as its labels; if it is something "
            "else, name another column to fill in: --label."
        )
    usual = opt.ROWS_TO_MEASURE if pair.numbers else opt.ROWS_TO_LABEL
    size = min(usual, n) if rows is None else rows
    if pair.numbers:
        chosen = rows_to_measure(pair.adapted, size)
    else:
        chosen = rows_to_label(pair.strata, pair.confidence, size, np.random.default_rng(0))
    shown = [*pair.ids, *(c for c in target.columns if c not in (*pair.ids, label))]
    lines = target.iloc[chosen.rows][shown]
    lines.insert(0, pair.number, chosen.rows + 1)
    sep = MARKS.get(str(dialect.sep).lower(), dialect.sep)
    marks: dict[str, Any] = {
        "sep": sep or ("\t" if suffix == ".tsv" else ","),
        "decimal": dialect.decimal,
    }
    if clicked:
        pictures = None
        if isinstance(pair.given, Pictures):
            pictures = [thumbnail(pair.given.files[row], SIDE) for row in chosen.rows]
        write_page(path, lines, pair.classes, pictures=pictures, label=label, **marks)
    else:
        lines = lines.assign(**{label: ""})
        text = (console.inert(lines) if escape else lines).to_csv(
            index=False, lineterminator="\n", **marks
        )
        # The mark of UTF-8 lets spreadsheets read letters beyond ASCII.
        encoding = codecs.lookup(dialect.encoding).name
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        with replacing(path, "wb") as stream:
            stream.write(text.encode(encoding))
    numbers = {"rows": (chosen.rows + 1).tolist(), "weights": chosen.weights.tolist()}
    return {"n_target": n, **numbers, "file": str(path)}


def _read_labels(path: Path, pair: _Pair, dialect: Any) -> tuple[NDArray[Any], list[str]]:
    """Return the rows that were labelled, numbered from 0, and their labels."""
    target, label, number = pair.target, pair.label, pair.number
    filled = read_table(path, as_written=[label, number, *pair.ids], dialect=dialect)
    called, where = who(filled, "the labelled rows"), who(target, "the target")
    filled = console.without_escapes(filled.dropna(how="all"))
    require_columns(list(filled.columns), [number, label], called)
    numbers = pd.to_numeric(filled[number], errors="coerce").to_numpy(float)
    at = np.where((numbers % 1 == 0) & (numbers <= len(target)), numbers, 0).astype(np.intp) - 1
    if (at < 0).any():
        raise TableError(
            f"{called}: {filled[number].iloc[at.argmin()]!r} in {number!r} is not a row "
            f"of {where}, which has {len(target):,}; restore it."
        )
    rows, counts = np.unique(at, return_counts=True)
    for k in np.flatnonzero(counts > 1)[:1]:
        raise TableError(f"{called} has row {rows[k] + 1} {counts[k]} times; keep one of them.")
    kept = [c for c in filled.columns if c in target.columns and c != label]
    remedy = "restore it, or delete the column if a spreadsheet has rewritten it"
    _refuse_changes(filled.set_axis(at), target.iloc[at], kept, called, remedy)
    column = filled[label].astype(object)
    labels = column.where(column.notna(), "").map(str).str.strip().tolist()
    empty = [k for k, text in enumerate(labels) if not text]
    if len(empty) == len(labels):
        raise TableError(f"{called} has no value in {label!r}; fill it in.")
    if empty:
        named = pair.ids[:1] or [number]
        ids = target[named[0]].iloc[at[empty]] if pair.ids else at[empty] + 1
        raise TableError(
            f"{called}: {len(empty)} of {len(labels)} rows have no value in {label!r}, {named[0]} "
            f"{listed(ids, 3)}; fill in every row, or delete the rows that cannot be labelled."
        )
    return at, labels


def _refuse_near_misses(
    labels: list[str], known: list[str], new: Sequence[str], path: Path
) -> None:
    """Refuse labels that are probably known classes, misspelt, unless they are stated to be new."""
    plain = {name.casefold().strip(): name for name in known}
    others = dict.fromkeys(labels)
    for text in [text for text in others if text not in known and text not in new]:
        if same_number([text], known):
            continue
        meant = [plain[text.casefold()]] if text.casefold() in plain else []
        if not meant and text.isalpha():
            meant = get_close_matches(text, known, n=1, cutoff=_ALIKE)
        if meant:
            raise TableError(
                f"{path}: there is no class {text!r}; did you mean {meant[0]!r}? If it is a class "
                f"of its own: --new-class {shlex.quote(text)}."
            )


def _compare(
    pair: _Pair,
    at: NDArray[Any],
    labels: list[str],
    model: Any,
    path: Path | None,
    messages: Messages,
) -> Audit | MeasuredError:
    """Compare labels with those that were predicted and, by a model that can, correct these."""
    if model is not None and hasattr(model, "audit"):
        _check_model(model, path, pair, messages)
        if pair.numbers:
            return model.audit(at, _numbers(labels, pair))
        values = {str(value): value for value in model.classes_.tolist()}
        alike = same_number([text for text in labels if text not in values], list(values))
        given = [alike.get(text, text) for text in labels]
        return model.audit(at, np.array([values.get(text, text) for text in given], dtype=object))
    if model is None:
        messages.note("--model corrects the other labels too, by the model that 'adapt' saved.")
    else:
        method = type(unwrap(model)).__name__
        able = "AutoRegressor" if pair.numbers else "AutoAdapter"
        messages.note(f"{path} holds a {method}; only models of {able} can be corrected.")
    if pair.numbers:
        return MeasuredError.of(_numbers(labels, pair), pair.adapted[at], pair.alone[at])
    codes = {name: code for code, name in enumerate(pair.classes)}
    alike = same_number([text for text in labels if text not in codes], pair.classes)
    codes |= {text: codes[name] for text, name in alike.items()}
    truth = np.array([codes.get(text, -1) for text in labels])
    unknown = {text: at[np.array(labels) == text] for text in labels if text not in codes}
    weights = stratum_weights(pair.strata, at)
    return compared(pair.adapted, pair.alone, at, truth, weights, unknown)


def _numbers(labels: list[str], pair: _Pair) -> NDArray[np.float64]:
    """Return what was measured as numbers."""
    return numbers_in(pd.Series(labels, name=pair.label, dtype=object), "the measured rows")


def _check_model(model: Any, path: Path | None, pair: _Pair, messages: Messages) -> None:
    """Refuse a model that was fitted to other rows, or that has not made the predictions."""
    where, remedy = who(pair.target, "the target"), "give the model that 'adapt' saved with these"
    with messages.hearing(), messages.bar("Reading the rows again"):
        rows = model._rows(pair.given)
    fitted = model.estimator_
    known = fitted.stack_ if pair.numbers else fitted.consensus_.target
    if not known.are(fitted._validate_rows(getattr(rows, "rows", rows))):
        raise TableError(f"{path} was fitted to other rows than those of {where}; {remedy}.")
    own = model.labels_["prediction"]
    if pair.numbers:
        others = ~np.isclose(own, pair.adapted, rtol=_ROUNDED, atol=1e-9)
    else:
        others = own.astype(str).to_numpy() != np.array(pair.classes)[pair.adapted]
    if others.mean() > _OTHERS:
        raise TableError(
            f"{path} gives {others.sum():,} of {len(others):,} rows of {where} other labels than "
            f"the predictions; {remedy}."
        )


def _write_corrected(
    pair: _Pair,
    at: NDArray[Any],
    found: Audit | MeasuredError,
    files: dict[str, Path | None],
    escape: bool,
) -> None:
    """Write the corrected labels of all rows, and the corrected model."""
    n = len(pair.target)
    audited = np.isin(np.arange(n), at)
    after = {}
    if isinstance(found, Audit):
        near = np.full(n, "", dtype=object)
        for label, rows in found.unknown.items():
            near[rows] = str(label)
        near[audited] = ""
        after = {"near_unknown": near}
    table = found.model.labels_
    lines = pair.target[pair.ids].copy()
    lines.insert(0, pair.number, np.arange(1, n + 1))
    beside = ("low", "high") if pair.numbers else ("confidence", "runner_up")
    columns = {"prediction": found.labels} | {name: table[name] for name in beside}
    columns["audited"] = np.where(audited, "true", "false")
    for name, values in (columns | after).items():
        lines[_free(name, pair.ids)] = values
    with console.writing(files["predictions"], escape_formulas=escape) as write:
        write(lines)
    save_model(found.model, str(files["model"]))


def _write_report(
    path: Path, model: Any, source: Path, target: Path, given: Any, dialect: Any
) -> None:
    """Write the report of the corrected model on the rows that it was fitted to."""
    rows: Any = source
    if not source.is_dir():
        encoder = model.encoder_
        text = [model.label_, *encoder.categories_, *encoder.words_]
        rows = read_table(source, as_written=text, dialect=dialect)
    facts = Facts(source.name, target.name, shlex.join(["transferable", *sys.argv[1:]]))
    label = None if source.is_dir() else model.label_
    write_report(path, model, rows, label, given, facts=facts)


def _record(found: Audit | MeasuredError) -> dict[str, Any]:
    if isinstance(found, MeasuredError):
        record = {name: value for name, value in vars(found).items() if name not in _ARRAYS}
        return {"audited": record.pop("rows")} | record

    def numbers(values: Sequence[float]) -> dict[str, float]:
        return dict(zip(("accuracy", "low", "high"), values, strict=True))

    adapted, alone = found.only_right
    return {
        "audited": found.rows,
        **numbers((found.accuracy, found.low, found.high)),
        "better": found.better,
        "right_only_by": {"adapted": adapted, "source-only": alone},
        "unknown": {str(label): (rows + 1).tolist() for label, rows in found.unknown.items()},
        "corrected": found.corrected and numbers(found.corrected),
    }
