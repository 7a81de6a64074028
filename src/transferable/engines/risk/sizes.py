"""Sizes of the risk classifiers' fits, from which :mod:`transferable.linalg.memory` plans them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RiskSizes"]


@dataclass(frozen=True)
class RiskSizes:
    """Sizes that decide what a fit takes."""

    n_rows: int
    width: int  # of the feature rows
    n_classes: int
    n_neighbors: int
    itemsize: int  # of a number of the feature rows
    second_order: bool
    growth: str = "cube"  # of the time of the exact solve with the rows

    @property
    def shared_bytes(self) -> int:
        """Feature rows, the graph while it is built, and a dozen tables of scores."""
        graph = 100 * self.n_neighbors
        scores = 12 * 8 * (self.n_classes + 1)
        return self.n_rows * (2 * self.width * self.itemsize + graph + scores)

    @property
    def exact_bytes(self) -> int:
        """The kernel matrix, the system and two temporary ones; K K and its kin if need be."""
        matrices = 7 if self.second_order else 4
        return 8 * matrices * self.n_rows**2 + self.shared_bytes

    def landmark_bytes(self, m: int, *, held: bool, chunk: int) -> int:
        """Features of m landmarks, the columns worked on at once, blocks, and m x m systems."""
        systems = 8 + (2 * self.n_classes + 4 if self.second_order else 0)
        columns = 3 * chunk + (m if held else 0)
        blocks = 4 * 8 * min(2**23, self.n_rows * m)
        return (
            8 * systems * m * m + self.n_rows * columns * self.itemsize + blocks + self.shared_bytes
        )
