"""One page about one adaptation: a self-contained HTML file for people who were not there."""

from transferable.report.data import Facts, ReportData, describe
from transferable.report.page import render_report, write_report

__all__ = ["Facts", "ReportData", "describe", "render_report", "write_report"]
