"""Report of one adaptation: a self-contained HTML file.

The verdict and the next step come first, then what it rests on and rows to look at, then details;
nothing is loaded from elsewhere.
"""

from transferable.report.data import Facts
from transferable.report.sections import write_report

__all__ = ["Facts", "write_report"]
