"""Options that commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Device",
    "Drop",
    "Features",
    "Ids",
    "Json",
    "Label",
    "Landmarks",
    "Method",
    "Quiet",
    "Scale",
    "Seed",
    "Source",
    "Target",
    "TargetLabel",
    "complete_methods",
    "one_of",
]


def one_of(*choices: str) -> dict[str, Any]:
    """What an option needs that takes one of a few words: a check and completion."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is unknown; choose one of {', '.join(choices)}.")
        return value

    return {"callback": check, "autocompletion": _completing(*choices)}


def complete_methods(incomplete: str) -> list[str]:
    """Names of methods that begin so; after a comma, the next one of a list."""
    from transferable.cli._methods import all_methods

    before, comma, last = incomplete.rpartition(",")
    names = (name.lower() for name in all_methods())
    return [before + comma + name for name in names if name.startswith(last.lower())]


def _completing(*choices: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def _check_landmarks(value: str | None) -> str | None:
    if value is None or value.lower() in ("auto", "none") or (value.isdecimal() and int(value)):
        return value
    raise typer.BadParameter(f"{value!r} is no number of landmarks; give one, or auto or none.")


_SEVERAL = "; several with commas or by repeating the option."
_SCALES = ("auto", "per-domain", "joint", "none", "unit")

Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="Labelled rows: .csv, .tsv, .parquet, .feather, .npz, .npy or .mat, also .gz.",
    ),
]
Target = Annotated[Path, typer.Argument(metavar="TARGET", help="Rows of the other domain.")]
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
        help="Scaling of numeric columns: auto, per-domain, joint, none or unit; auto is none "
        "where all seem to be of one unit, as pixels are, and per-domain elsewhere.",
        **one_of(*_SCALES),
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="The method; 'transferable methods' lists them.", autocompletion=complete_methods
    ),
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
        help="Where to compute, for methods that can: cpu, cuda or auto; the last two need torch.",
        **one_of("cpu", "cuda", "auto"),
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of whatever is random.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No notes, no progress.")]
