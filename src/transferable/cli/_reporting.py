"""The report of ``transferable adapt``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from transferable.cli._adaptation import Adaptation
    from transferable.cli._console import Messages

__all__ = ["report_on"]

_LENGTHS = {"pictures": 20.0}  # in the time of any other section: t-SNE, twice


def report_on(
    result: Adaptation, path: Path, files: tuple[Path, Path], seed: int, messages: Messages
) -> None:
    """Write everything that is known of an adaptation of one file to another as a page."""
    from transferable.persistence import versions
    from transferable.report import ReportData, write_report

    model, found = result.model, result.evaluation
    if found is not None and not found.known.all():
        messages.note("the report has no confusion matrix: some true target labels are missing.")
    import numpy as np

    inputs = result.inputs
    ys = inputs.labels
    Xs = model.encoder_.transform(inputs.source, np.ones(len(ys)))
    Xt = model.encoder_.transform(inputs.target)
    ids = list(model.ids)
    data = ReportData(
        command=shlex.join(["transferable", *sys.argv[1:]]),
        method=result.method,
        source_name=files[0].name,
        target_name=files[1].name,
        label=inputs.label,
        Xs=Xs,
        Xt=Xt,
        feature_names=model.encoder_.get_feature_names_out().tolist(),
        ys=ys,
        classes=model.classes_,
        predicted=result.lines["prediction"].to_numpy(),
        estimator=model.estimator_,
        probabilities=result.probabilities,
        yt=found.true if found is not None and found.known.all() else None,
        ids=result.lines[ids] if ids else None,
        parameters=result.parameters,
        preprocessing=_preprocessing(result),
        versions=versions(),
        seed=seed,
        notes=messages.notes,
        seconds=result.seconds,
        as_given=_as_given(result),
    )
    with messages.bar("Writing the report") as bar:
        write_report(
            path,
            data,
            track=lambda sections: bar.through(
                sections,
                name=lambda section: section.__name__,
                length=lambda section: _LENGTHS.get(section.__name__, 1.0),
            ),
        )


def _as_given(result: Adaptation) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Both tables on a common scale, where the model has scaled each domain by itself."""
    if result.model.encoder_.scale_ != "per-domain":
        return None
    return None


def _preprocessing(result: Adaptation) -> dict[str, str]:
    return {"scale": result.model.encoder_.scale_}
