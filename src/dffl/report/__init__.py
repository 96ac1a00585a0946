"""The page that people look at: one HTML file with charts, tables and a verdict, that needs no network.

`ReportData` holds what the page says, as plain values; `from_comparison` and `from_starts` build it, `write` renders it. Jinja2
and Plotly are imported when a page is written, and not before.
"""

from typing import TYPE_CHECKING

from dffl.discovery import submodules
from dffl.report.comparison import from_comparison, from_starts
from dffl.report.data import ReportData
from dffl.report.page import render, write
from dffl.report.target import require_page

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

__all__ = ["ReportData", "from_comparison", "from_starts", "render", "require_page", "write"]
