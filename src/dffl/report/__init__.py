"""The report page: one HTML file with charts, tables and a verdict; it needs no network.

`ReportData` has the content of the page as plain values; `from_comparison` and `from_starts` build it, `write` renders it.
Jinja2 and Plotly are imported only when a page is written.
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
