"""Tables of several sources as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transferable.tables._errors import TableError, listed, who

__all__ = ["joined"]


def joined(tables: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, NDArray[np.intp], list[str]]:
    """The rows of all tables with the columns that all have, their marks 1, 2, ..., and notes."""
    shared = [c for c in tables[0].columns if all(c in table.columns for table in tables)]
    names = [who(table, f"source {k}") for k, table in enumerate(tables, 1)]
    if not shared:
        raise TableError(f"{' and '.join(names)} have no column in common.")
    notes = []
    for name, table in zip(names, tables, strict=True):
        own = [column for column in table.columns if column not in shared]
        if own:
            notes.append(f"{name}: column {listed(own)} is not in every source and is left out.")
    table = pd.concat([table[shared] for table in tables], ignore_index=True)
    table.attrs = {"file": " and ".join(names)} if "file" in tables[0].attrs else {}
    sizes: Any = [len(table) for table in tables]
    return table, np.repeat(np.arange(1, len(tables) + 1), sizes), notes
