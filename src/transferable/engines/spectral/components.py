"""How many components a method keeps."""

from __future__ import annotations

import warnings

__all__ = ["warn_if_reduced"]


def warn_if_reduced(n_components: int | None, found: int) -> None:
    """Tell the user that fewer components than asked for exist."""
    if n_components is not None and found < n_components:
        warnings.warn(
            f"n_components={n_components} is more than the rows allow; reduced to {found}.",
            UserWarning,
            stacklevel=4,
        )
