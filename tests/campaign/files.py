"""The command line over hostile files and arguments."""

from __future__ import annotations

import json
import os
import warnings

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from campaign import Violation
from transferable.cli import app

NAMES = ["ant", "[/red]", "[bold]x", "=1+1", "é\u0301", "🦀", "a,b", 'quo"te', "new\nline", "", " "]
NAMES += ["x" * 3000, "nan", "None", "<b>", "-1", "1e5", "日本", "\u202eltr", "{0}", "%s", "\t"]
KINDS = ["csv"] * 8 + ["tsv", "parquet", "feather", "npz", "npy", "txt"]
METHODS = ["tfdf", "tfdfv", "meda", "jda", "coral", "capls", "1nn", "no such method", "TFDF"]
ENDINGS = {0, 1, 2, 130}


def trial(seed, folder):
    """One or two files and one command."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(KINDS))
    source, target = folder / f"source.{kind}", folder / f"target.{kind}"
    n, d = int(rng.integers(4, 16)), int(rng.integers(1, 5))
    write(rng, source, table(rng, n, d, labelled=True))
    write(rng, target, table(rng, int(rng.integers(1, 12)), d, labelled=rng.random() < 0.3))
    if rng.random() < 0.3:
        damage(rng, source if rng.random() < 0.5 else target)
    arguments = drawn_command(rng, source, target, folder)
    before = {path.name for path in folder.iterdir()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(app, [str(a) for a in arguments])
    check(result, arguments, folder, before)
    return f"{' '.join(str(a) for a in arguments)[:200]}: ended with {result.exit_code}"


def drawn_command(rng, source, target, folder):
    """A command with its arguments."""
    command = str(rng.choice(["adapt", "adapt", "adapt", "diagnose", "compare", "inspect"]))
    if command == "inspect":
        return [command, source]
    label = str(rng.choice(["label", "label", "label", "c0", "nothing", ""]))
    arguments = [command, source, target, "--label", label]
    if command == "compare":
        arguments += ["--methods", "jda,coral"]
    if command == "adapt":
        arguments += ["--method", str(rng.choice(METHODS))]
        if rng.random() < 0.5:
            arguments += ["--out", folder / str(rng.choice(["out.csv", "out.tsv", "no/out.csv"]))]
        if rng.random() < 0.3:
            arguments += ["--model", folder / "model.tfm"]
        if rng.random() < 0.3:
            value = str(rng.choice(["alignment=10", "ridge=-1", "x=1", "ridge", "kernel=linear"]))
            arguments += ["--set", value]
    if rng.random() < 0.2:
        arguments += ["--scale", str(rng.choice(["joint", "unit", "none", "huge"]))]
    if rng.random() < 0.2:
        arguments += ["--drop", str(rng.choice(["c0", "nothing", "label"]))]
    if rng.random() < 0.3:
        arguments += ["--json"]
    return arguments


def table(rng, n, d, *, labelled):
    """Columns of every kind."""
    frame = pd.DataFrame({f"c{i}": column(rng, n) for i in range(d)})
    if labelled:
        names = rng.choice(NAMES, size=int(rng.integers(1, 4)), replace=False)
        kinds = [
            np.array([names[i % len(names)] for i in range(n)], dtype=object),
            np.arange(n) % 2,
            np.arange(n) % 3 + 0.5,
            np.arange(n) % 2 == 0,
            pd.to_datetime(np.arange(n) % 2, unit="D"),
            pd.to_timedelta(np.arange(n) % 2, unit="h"),
        ]
        frame["label"] = kinds[rng.choice(len(kinds), p=[0.6, 0.16, 0.06, 0.06, 0.06, 0.06])]
    if rng.random() < 0.15:
        frame.columns = [str(rng.choice(NAMES)) if c != "label" else c for c in frame.columns]
    return frame


def column(rng, n):
    """n values of one kind."""
    values = rng.normal(size=n)
    with np.errstate(all="ignore"):
        kinds = [
            values,
            values,
            values * 10.0 ** rng.uniform(-310, 300),
            np.where(rng.random(n) < 0.3, np.nan, values),
            np.where(rng.random(n) < 0.1, np.inf, values),
            rng.integers(-5, 5, size=n),
            rng.choice(NAMES, size=n),
            np.full(n, np.nan),
            np.zeros(n),
            rng.random(n) < 0.5,
            [f"{v:.3f} kg" for v in values],
            pd.to_datetime(rng.integers(10**9, size=n), unit="s"),
        ]
    return kinds[rng.integers(len(kinds))]


def write(rng, path, frame):
    """A table as a file of the kind that its name says."""
    kind = path.suffix[1:]
    unique = frame.loc[:, ~frame.columns.duplicated()]
    if kind in ("parquet", "feather"):
        getattr(unique, f"to_{kind}")(path)
    elif kind in ("npz", "npy"):
        numbers = frame.select_dtypes("number").to_numpy(dtype=float)
        labels = frame["label"].astype(str).to_numpy() if "label" in frame else np.zeros(0)
        if kind == "npy":
            np.save(path, numbers)
        else:
            np.savez(path, X=numbers, y=labels)
    else:
        separator = {"tsv": "\t", "txt": ";"}.get(kind, rng.choice([",", ",", ";"]))
        encoding = str(rng.choice(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1", "utf-8-sig"]))
        text = frame.to_csv(index=False, sep=str(separator))
        path.write_bytes(text.encode(encoding, errors="replace"))


def damage(rng, path):
    """Bytes that are wrong, missing, or none at all."""
    content = bytearray(path.read_bytes())
    kind = rng.integers(6)
    if kind == 0:
        content = content[: rng.integers(len(content) + 1)]
    elif kind == 1 and content:
        content[rng.integers(len(content))] = 0
    elif kind == 2:
        content += b'"unterminated,1,2\n'
    elif kind == 3:
        content += b"1,2,3,4,5,6,7,8,9\n" * 3
    elif kind == 4:
        content = bytearray(rng.bytes(200))
    else:
        os.unlink(path)
        return
    path.write_bytes(content)


def check(result, arguments, folder, before):
    """No traceback, an exit code we know, and whole files or none."""
    told = " ".join(str(a) for a in arguments).replace(str(folder), ".")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        error = result.exception
        raise Violation(f"{told}: {type(error).__name__}: {error}") from error
    if result.exit_code not in ENDINGS or "Traceback" in result.output:
        raise Violation(f"{told}: ended with {result.exit_code}: {result.output[-300:]}")
    if result.exit_code and not result.stderr.strip():
        raise Violation(f"{told}: ended with {result.exit_code} and said nothing")
    if any(path.name.endswith(".part") for path in folder.iterdir()):
        raise Violation(f"{told}: left a file half-written")
    new = {path.name for path in folder.iterdir()} - before
    if result.exit_code == 2 and new:
        raise Violation(f"{told}: refused its input and wrote {sorted(new)}")
    if result.exit_code == 0 and "--json" in arguments and result.stdout:
        try:
            json.loads(result.stdout.splitlines()[-1])
        except ValueError as error:
            raise Violation(f"{told}: --json gave no JSON") from error
