"""Studies: many fits over a grid. Their results are rows of a table, and are kept when a run stops."""

from typing import TYPE_CHECKING

from dffl.discovery import submodules
from dffl_studies.running.runner import Report, run
from dffl_studies.running.store import Store
from dffl_studies.running.study import Job, Study, grid

if not TYPE_CHECKING:
    __getattr__ = submodules(__name__)

__all__ = ["Job", "Report", "Store", "Study", "grid", "run"]
