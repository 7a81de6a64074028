"""What the fit of a spectral method takes besides its rows, for the plan of the fit."""

from __future__ import annotations

from dataclasses import dataclass

from transferable.limits import LIMITS

__all__ = ["SpectralSizes"]


@dataclass(frozen=True)
class SpectralSizes:
    """Sizes that decide what a fit takes."""

    n_rows: int
    n_classes: int
    n_components: int
    itemsize: int  # of a number of the rows
    factored: bool  # whether the kernel matrix is decomposed
    tables: int = 0  # of all rows' features that a method forms for itself

    @property
    def growth(self) -> str:
        """How the time of the exact solve grows with the rows."""
        return "cube" if self.factored else "square"

    @property
    def shared_bytes(self) -> int:
        """A few tables of embedded rows, and of columns for each class."""
        return 8 * self.n_rows * (6 * self.n_components + 4 * (self.n_classes + 1))

    @property
    def exact_bytes(self) -> int:
        """The kernel matrix while it is formed; with its eigenvectors, as measured."""
        matrices = (14 if self.factored else 3) + self.tables
        return 8 * matrices * self.n_rows**2 + self.shared_bytes

    def landmark_bytes(self, m: int, *, held: bool, chunk: int) -> int:
        """Features of m landmarks, blocks, and m x m matrices by class; columns are not split."""
        matrices = 10 + (2 * self.n_classes if self.factored else 0)
        features = m * self.n_rows * ((self.itemsize if held else 0) + 8 * self.tables)
        return 8 * matrices * m * m + features + 4 * 8 * LIMITS.block_values + self.shared_bytes
