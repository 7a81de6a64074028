"""One page about one adaptation: a self-contained HTML file for people who were not there."""

from transferable.report.data import ReportData
from transferable.report.page import render_report, write_report

__all__ = ["ReportData", "render_report", "write_report"]
