"""The report of ``transferable adapt``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transferable.cli._adaptation import Adaptation
    from transferable.cli._console import Messages

__all__ = ["report_on"]


def report_on(
    result: Adaptation, path: Path, files: tuple[Path, Path], seed: int, messages: Messages
) -> None:
    """Write everything that is known of an adaptation of one file to another as a page."""
    from transferable.report import Facts, write_report

    found, inputs = result.evaluation, result.inputs
    whole = found is not None and bool(found.known.all())
    if found is not None and not whole:
        messages.note("the report has no confusion matrix: some true target labels are missing.")
    names = ["standard input" if str(file) == "-" else file.name for file in files]
    command = shlex.join(["transferable", *sys.argv[1:]])
    facts = Facts(names[0], names[1], command, seed, messages.notes, result.seconds)
    with messages.bar("Writing the report") as bar:
        write_report(
            path,
            result.model,
            inputs.source,
            inputs.label,
            inputs.target,
            yt=found.true if found is not None and whole else None,
            trust=result.trust or False,
            facts=facts,
            track=lambda sections: bar.through(sections, name=lambda write: write.__name__),
        )
