"""Options that commands have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Decimal",
    "Device",
    "Drop",
    "Encoding",
    "EscapeFormulas",
    "Features",
    "Ids",
    "Json",
    "Label",
    "Landmarks",
    "Method",
    "Missing",
    "Quiet",
    "Scale",
    "Seed",
    "Separator",
    "Sheet",
    "Source",
    "Target",
    "TargetLabel",
    "complete_methods",
    "dialect_of",
    "epilog",
    "flag",
    "one_of",
]

_DOCUMENTATION = "docs/command-line.md in the repository, or its page in the documentation"


def one_of(*choices: str) -> dict[str, Any]:
    """What an option needs that takes one of a few words: a check and completion."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is unknown; choose one of {', '.join(choices)}.")
        return value

    return {"callback": check, "autocompletion": _completing(*choices)}


def flag(*names: str, help: str) -> Any:
    """An option that is there or not, shown without a value in the help."""
    return typer.Option(*names, help=help, metavar="")


def epilog(*examples: str) -> str:
    """What stands below the help of a command: examples, and where to read on."""
    shown = "\n\n".join(f"`{example}`" for example in examples)
    return f"**Examples**\n\n{shown}\n\nMore: {_DOCUMENTATION}."


def dialect_of(
    sep: str | None, decimal: str, encoding: str, missing: list[str] | None, sheet: str | None
) -> Any:
    """How the files are written, from the options that say so."""
    from transferable.tables.reading import Dialect

    words = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
    found = None if sep is None else words.get(sep.lower(), sep)
    return Dialect(found, decimal, encoding, None if missing is None else tuple(missing), sheet)


def complete_methods(incomplete: str) -> list[str]:
    """Names of methods that begin so; after a comma, the next one of a list."""
    from transferable.cli._methods import all_methods

    before, comma, last = incomplete.rpartition(",")
    names = (name.lower() for name in all_methods())
    return [before + comma + name for name in names if name.startswith(last.lower())]


def _completing(*choices: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def _check_mark(value: str) -> str:
    if len(value) == 1:
        return value
    raise typer.BadParameter(f"{value!r} is no single character; give one, such as ','.")


def _check_encoding(value: str) -> str:
    import codecs

    try:
        return codecs.lookup(value).name
    except LookupError:
        raise typer.BadParameter(
            f"there is no encoding {value!r}; try utf-8, utf-16 or cp1252."
        ) from None


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
        help="Labelled rows: .csv, .tsv, .parquet, .feather, .xlsx, .npz, .npy or .mat, also .gz; "
        "- for CSV on standard input.",
        allow_dash=True,
    ),
]
Target = Annotated[
    Path,
    typer.Argument(metavar="TARGET", help="Rows of the other domain; - for CSV on standard input."),
]
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
        metavar="NAME",
        help="Scaling of numeric columns: auto, per-domain, joint, none or unit; auto is none "
        "where all seem to be of one unit, as pixels are, and per-domain elsewhere.",
        **one_of(*_SCALES),
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The method; 'transferable methods' lists them, and says which one is the default. "
        "With --set, --tune, --n-landmarks, --device, --use-target-labels or several sources it is "
        "TFDF.",
        autocompletion=complete_methods,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="MARK",
        help="What separates the cells of text files: ';', tab, '|' ...; by default a comma, in "
        ".tsv files a tab.",
    ),
]
Decimal = Annotated[
    str,
    typer.Option(metavar="MARK", help="Decimal mark of text files.", callback=_check_mark),
]
Encoding = Annotated[
    str, typer.Option(metavar="NAME", help="Encoding of text files.", callback=_check_encoding)
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="What stands in cells that have no value, besides nothing; may be repeated. "
        "By default NA, null and the like in columns of features, and nothing else in ids and "
        "labels.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of Excel files that hold several."),
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
        metavar="NAME",
        help="Where to compute, for methods that can: cpu, cuda or auto; the last two need torch.",
        **one_of("cpu", "cuda", "auto"),
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of whatever is random.")
]
Json = Annotated[bool, flag("--json", help="Print one JSON object.")]
EscapeFormulas = Annotated[
    bool,
    flag(
        "--escape-formulas",
        help="Put ' before text in CSV and TSV that spreadsheets would run, such as =1+1.",
    ),
]
Quiet = Annotated[bool, flag("--quiet", "-q", help="No notes, no progress.")]
