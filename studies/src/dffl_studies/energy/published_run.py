"""What `dffl energy run --as-published` does: run the missing seeds of the paper's study, then write tables and figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dffl.comparing import refuse_early
from dffl_studies.energy.compared import Comparison
from dffl_studies.energy.data import Panel
from dffl_studies.energy.fetch.market import with_places
from dffl_studies.energy.papers_tables import papers_tables
from dffl_studies.energy.result import PublishedResult
from dffl_studies.energy.setup import Setup, halves
from dffl_studies.energy.study import study
from dffl_studies.energy.tables import all_tables
from dffl_studies.running.render import write_tables
from dffl_studies.running.result import RunOptions, finished_rows

PERCENTILE = 95


def run(
    path: Path, setup: Setup, options: RunOptions, seeds: list[int], figures: bool = True, market: str | None = None
) -> PublishedResult:
    """Run the study on a panel, or only show it, and write everything into its folder.

    ``market`` is the market of the prices, as the user names it: the paper's numbers are shown next to those of PJM only.
    """
    panel = setup.open(str(path))
    made = halves(panel, setup)
    refuse_early(made.train, setup.methods, **setup.training(seeds[0]))  # before any training
    name = path.resolve().name.split(".")[0]
    found = finished_rows(study(path, setup, seeds), options, Path(f"dffl-energy-{name}-as-published"))
    comparison = Comparison.of(panel, setup, market)
    tables = [*papers_tables(found.rows, comparison), *all_tables(found.rows)]
    write_tables(tables, found.folder / "tables", found.remark)
    if figures:
        from dffl_studies.energy.figures import draw_all  # Matplotlib is slow to import

        draw_all(found.rows, zone_table(panel), None, found.folder / "figures")
    return PublishedResult(
        **vars(found), panel=panel, setup=setup, first_test=made.first_test, tables=tables, comparison=comparison
    )


def zone_table(panel: Panel) -> pd.DataFrame:
    """One row per zone: its demand, its place and how far its own price part reaches."""
    own = panel.own
    reach = [float(np.percentile(own[rows], PERCENTILE)) for rows in panel.zones.values()]
    lat, lon = with_places(panel).places.T
    return pd.DataFrame({"zone": panel.names, "demand": panel.demands, "own_p95": reach, "lat": lat, "lon": lon})
