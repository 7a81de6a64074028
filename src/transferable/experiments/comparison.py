"""A table that puts published values beside ours."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Comparison", "Values"]

Values = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Comparison:
    """One table.

    Attributes
    ----------
    name, title : str
        For files and for readers.
    rows, columns : tuple of str
        Methods and tasks, or datasets.
    published, ours : dict
        Values by (row, column), where there are any.
    notes : tuple of str
        What a reader must know, and what the table shows.
    digits : int
        Digits after the point.
    lower_is_better : bool
        For times.
    ranked : bool
        Whether rows compete with each other, so that a column has a winner.
    """

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    published: Values
    ours: Values
    notes: tuple[str, ...] = ()
    digits: int = 1
    lower_is_better: bool = False
    ranked: bool = True

    def difference(self, row: str, column: str) -> float | None:
        """Ours minus published, None where one is missing."""
        ours, printed = self.ours.get((row, column)), self.published.get((row, column))
        return None if ours is None or printed is None else ours - printed

    def beats(self, row: str, column: str) -> bool:
        """Whether ours is better than the published value, as far as the digits shown tell."""
        difference = self.difference(row, column)
        if difference is None:
            return False
        gain = -difference if self.lower_is_better else difference
        return gain >= 0.5 * 10.0**-self.digits

    def winners(self, values: Values, column: str) -> set[str]:
        """Rows whose value, as shown, is the best of a column."""
        if not self.ranked:
            return set()
        shown = {
            r: round(values[r, column], self.digits) for r in self.rows if (r, column) in values
        }
        best = (min if self.lower_is_better else max)(shown.values(), default=None)
        return {row for row, value in shown.items() if value == best}
