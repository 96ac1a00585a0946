"""Studies: many fits over a grid, as tidy rows that are safe when a run stops."""

from dffl.studies.runner import Report, run
from dffl.studies.store import Store
from dffl.studies.study import Job, Study, grid

__all__ = ["Job", "Report", "Store", "Study", "grid", "run"]
