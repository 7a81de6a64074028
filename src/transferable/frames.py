"""Frames of any library, brought onto one path: columns are known by name, rows are pandas'.

What narwhals knows (polars, pyarrow, Modin, cuDF and others) and what hands itself over to Arrow
or speaks the dataframe interchange protocol becomes a pandas frame here, at the door; nothing
behind it knows of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_pandas", "is_frame", "matched", "stacked"]


def is_frame(X: Any) -> bool:
    """Whether this is a frame of pandas."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def as_pandas(X: Any) -> Any:
    """A frame of whatever library as one of pandas; anything that is no frame as it is."""
    if isinstance(X, np.ndarray | list) or is_frame(X):
        return X
    import narwhals as nw
    import pandas as pd

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"{type(X).__module__}.{type(X).__name__} has no rows yet; collect() it first."
        )
    if isinstance(frame, nw.DataFrame):
        columns = {name: frame[name].to_numpy() for name in frame.columns}
        return pd.DataFrame(columns, columns=frame.columns, copy=False)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__"):
        return as_pandas(_as_arrow(X))
    return X


def _as_arrow(X: Any) -> Any:
    """A frame of a library that nobody here knows, as a table of pyarrow."""
    try:
        import pyarrow
        from pyarrow.interchange import from_dataframe
    except ImportError as error:
        raise TypeError(
            f"{type(X).__module__}.{type(X).__name__} needs pyarrow to be read: "
            "pip install 'transferable[tables]'."
        ) from error
    return pyarrow.table(X) if hasattr(X, "__arrow_c_stream__") else from_dataframe(X)


def matched(frame: pd.DataFrame, names: Any, who: str) -> pd.DataFrame:
    """The columns of a frame in the order of the names, which have to be the same ones."""
    theirs, ours = list(frame.columns), list(names)
    if theirs == ours:
        return frame
    lacking = [name for name in ours if name not in theirs]
    further = [name for name in theirs if name not in ours]
    if lacking or further or len(theirs) != len(ours):
        lists = {"lacks": lacking, "has besides": further}
        told = " and ".join(f"{verb} {some}" for verb, some in lists.items() if some)
        raise ValueError(
            f"{who} must name the same columns, in any order: it {told or 'repeats names'}."
        )
    return frame[ours]


def stacked(above: pd.DataFrame, below: pd.DataFrame) -> pd.DataFrame:
    """The rows of two frames in one, columns by name in the order of the first."""
    import pandas as pd

    return pd.concat([above, matched(below, above.columns, "Xt")], ignore_index=True)
