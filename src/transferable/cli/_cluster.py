"""``transferable adapt`` over many Parquet files, on a cluster or on processes of this machine."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

import typer

from transferable.cli._console import Messages, stdout
from transferable.cli._inputs import Roles, named_columns
from transferable.cli._methods import configured, parameters_of

__all__ = ["Part", "adapt_parts"]

_BATCH = 65_536  # rows that are labelled at once
# Of workers. Dask's own has them give memory back at once, and fresh pages cost a tenth of a fit.
_ENVIRONMENT = {f"{library}_NUM_THREADS": 1 for library in ("OMP", "MKL", "OPENBLAS")}
_METHODS = ("TFDF", "TFDFV", "MEDA", "ARTL")


@dataclass(frozen=True)
class Part:
    """What was predicted for one file."""

    rows: int
    counts: dict[str, int]


@contextmanager
def _client(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the scheduler, or of as many processes as asked for, which end with it."""
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


def adapt_parts(
    source: str,
    target: str,
    out: Path | None,
    *,
    scheduler: str | None,
    workers: int | None,
    method: str | None,
    settings: Sequence[str],
    n_landmarks: str | None,
    roles: Roles,
    every_class: bool,
    model: Path | None,
    seed: int,
    as_json: bool,
    messages: Messages,
) -> None:
    """Fit to the rows of all files, and write one file of predictions for each of the target's."""
    import dask.dataframe as dd

    from transferable import dask as over_dask
    from transferable import save

    if scheduler is not None and workers is not None:
        raise ValueError("--scheduler and --workers exclude each other; give one of them.")
    files = {"source": _files(source), "target": _files(target)}
    folder = _folder(out, files["target"])
    estimator = configured(method or "tfdf", settings, seed=seed, n_landmarks=n_landmarks)
    name = type(estimator).__name__
    if name not in _METHODS:
        raise ValueError(f"--method {method} is not for clusters; take {', '.join(_METHODS)}.")
    unfitted = getattr(over_dask, name)(**estimator.get_params(deep=False))
    columns, ids = _columns(files["source"][0], roles)
    start = perf_counter()
    with messages.hearing(), messages.bar("Adapting"), _client(scheduler, workers) as client:
        rows = dd.read_parquet(files["source"], columns=[*columns, roles.label])
        others = dd.read_parquet(files["target"], columns=columns)
        unfitted.client = client
        fitted = unfitted.adapt(rows, roles.label, others).to_local()
        parts = _label(fitted, files["target"], folder, ids, every_class, client)
    if model is not None:
        save(fitted, model)
    counts = {str(name): 0 for name in fitted.classes_.tolist()}
    for part in parts:
        for name_of_class, rows_of_class in part.counts.items():
            counts[name_of_class] += rows_of_class
    record = {
        "method": name,
        "parameters": parameters_of(fitted),
        "features": columns,
        "source_files": len(files["source"]),
        "target_files": len(files["target"]),
        "n_target": sum(part.rows for part in parts),
        "predicted": counts,
        "seconds": round(perf_counter() - start, 3),
        "folder": str(folder),
        "model": model and str(model),
    }
    _tell(record, as_json=as_json)


def _tell(record: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(record))
        return
    console = stdout()
    lines = [
        f"{record['method']} learnt from {record['source_files']:,} source and "
        f"{record['target_files']:,} target files, {len(record['features'])} features, and "
        f"labelled {record['n_target']:,} rows in {record['seconds']:.1f} s",
        *(f"{name}: {rows:,} rows" for name, rows in record["predicted"].items()),
        f"Predictions saved to {record['folder']}, one file for each of the target's",
    ]
    if record["model"]:
        lines.append(f"Model saved to {record['model']}")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _files(pattern: str) -> list[str]:
    """The files of a pattern or of a folder, sorted."""
    folder = Path(pattern).is_dir()
    found = sorted(glob.glob(f"{glob.escape(pattern)}/*.parquet" if folder else pattern))
    if not found:
        raise ValueError(f"no file matches {pattern}; on a cluster, rows are read from Parquet.")
    return [str(Path(file).resolve()) for file in found]


def _folder(out: Path | None, targets: Sequence[str]) -> Path:
    """Where predictions go."""
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


def _columns(file: str, roles: Roles) -> tuple[list[str], list[str]]:
    """The columns of features, those asked for or all but those with another use; and of ids."""
    import pyarrow.parquet as pq

    names = [name for name in pq.read_schema(file).names if not name.startswith("__index_level_")]
    if roles.label not in names:
        raise ValueError(f"{file} has no column {roles.label!r} of labels.")
    ids, drop, features = (
        named_columns(given, names) for given in (roles.ids, roles.drop, roles.features)
    )
    taken = {roles.label, *ids, *drop}
    return features or [name for name in names if name not in taken], ids


def _label(
    model: Any, files: Sequence[str], folder: Path, ids: Sequence[str], every: bool, client: Any
) -> list[Part]:
    """Have the workers label each file and write its predictions."""
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


def label_file(file: str, out: str, model: Any, ids: list[str], every_class: bool) -> Part:
    """Predictions for the rows of a file, written whole or not at all."""
    import numpy as np
    import pyarrow.parquet as pq

    from transferable.cli._predictions import lines_of, writing

    columns, classes = model.feature_names_in_.tolist(), model.classes_
    counts, rows = dict.fromkeys(map(str, classes.tolist()), 0), 0
    with pq.ParquetFile(file) as table, writing(Path(out)) as writer:
        names = [*ids, *columns]
        batches = (batch.to_pandas() for batch in table.iter_batches(_BATCH, columns=names))
        empty = table.schema_arrow.empty_table().select(names).to_pandas()
        for some in chain([empty], batches):
            labels, probabilities = classes[:0], np.empty((0, len(classes)))
            if len(some):
                labels, probabilities = (
                    method(some[columns]) for method in (model.predict, model.predict_proba)
                )
            writer.write(lines_of(some, ids, labels, probabilities, classes, every_class))
            for name, size in zip(*np.unique(labels.astype(str), return_counts=True), strict=True):
                counts[str(name)] += int(size)
            rows += len(some)
    return Part(rows, counts)
