"""What `dffl energy run` does: run the missing seeds, then write tables, figures and a model for tomorrow."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from dffl.comparing import refuse_early
from dffl.files import write_text
from dffl.report import require_page, write
from dffl.report.data import KEPT
from dffl_studies.energy.compared import Comparison
from dffl_studies.energy.data import Panel
from dffl_studies.energy.data.folder import panel_files
from dffl_studies.energy.figure_data import calendar_days, zone_table
from dffl_studies.energy.model import Trained, train
from dffl_studies.energy.page import report_data
from dffl_studies.energy.papers_tables import papers_tables
from dffl_studies.energy.result import MODEL, EnergyResult
from dffl_studies.energy.setup import Setup, halves
from dffl_studies.energy.study import study
from dffl_studies.energy.summary import FAIR
from dffl_studies.energy.tables import all_tables
from dffl_studies.running.render import write_tables
from dffl_studies.running.result import RunOptions, finished_rows


def run(
    path: Path, setup: Setup, options: RunOptions, seeds: list[int], calendar_zone: str | None = None, model: bool = True,
    figures: bool = True, report: Path | None = None, market: str | None = None,
) -> EnergyResult:  # fmt: skip
    """Run the study on a panel, or only show it, and write everything into its folder; and the page that is asked for.

    ``market`` is the market of the prices, as the user names it: the paper's numbers are shown next to those of PJM only.
    """
    if report is not None:
        require_page(report, inputs=panel_files(path))
    panel = setup.open(str(path))
    made = halves(panel, setup)
    refuse_early(made.train, setup.methods, **setup.training(seeds[0]))  # before any training
    if calendar_zone is not None:
        panel.rows(calendar_zone)  # refuses an unknown zone
    found = finished_rows(study(path, setup, seeds), options, default_folder(path, setup))
    comparison = Comparison.of(panel, setup, market)
    tables = [*papers_tables(found.rows, comparison), *all_tables(found.rows)]
    write_tables(tables, found.folder / "tables", found.remark)
    trained = None
    if model and not options.show:
        trained = train(panel, setup, progress=options.progress)
        trained.model.save(found.folder / MODEL)
    if figures:
        _draw(found.rows, panel, calendar_zone, trained, found.folder)
    page = report_data(found.rows, panel, setup, made.first_test, trained and trained.first_half)
    write_text(found.folder / KEPT, json.dumps(page.as_json()))  # for `dffl report FOLDER`
    if report is not None:
        write(page, report)
    return EnergyResult(
        **vars(found), panel=panel, setup=setup, first_test=made.first_test, tables=tables, report=report, comparison=comparison
    )  # fmt: skip


def default_folder(panel: Path, setup: Setup) -> Path:
    """The default folder of a run: named by the panel, by whether past prices are used, and by the paper's protocol."""
    name = panel.resolve().name.split(".")[0]
    return Path(f"dffl-energy-{name}{'-lags' if setup.lags else ''}{'-as-published' if setup.published else ''}")


def _draw(rows: pd.DataFrame, panel: Panel, calendar_zone: str | None, trained: Trained | None, folder: Path) -> None:
    from dffl_studies.energy.figures import draw_all  # Matplotlib is slow to import

    own = rows[rows["method"] == FAIR].groupby("zone")["regret"].mean()
    zone = calendar_zone or str(own.idxmax())
    calendar = None if trained is None else (calendar_days(trained, zone, panel), zone, trained.model.method)
    draw_all(rows, zone_table(panel), calendar, folder / "figures")
