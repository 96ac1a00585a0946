"""What `dffl energy run` does with a market: run the missing seeds, then write tables, a page and a model for tomorrow."""

from __future__ import annotations

import json
from pathlib import Path

from dffl.files import write_text
from dffl.report import require_page, write
from dffl.report.data import KEPT
from dffl_studies.energy.backtests import study
from dffl_studies.energy.data.folder import panel_files
from dffl_studies.energy.market_result import MODEL, MarketResult
from dffl_studies.energy.page import report_data
from dffl_studies.energy.preset import Preset
from dffl_studies.running.render import write_tables
from dffl_studies.running.result import RunOptions, finished_rows


def run(
    path: Path, preset: Preset, options: RunOptions, seeds: list[int], model: bool = True, report: Path | None = None
) -> MarketResult:
    """Run the backtests of a market, or only show them, and write everything into their folder."""
    if report is not None:
        require_page(report, inputs=panel_files(path))
    market = preset.market(path)  # refuses what is wrong before any training
    found = finished_rows(study(path, preset, seeds), options, default_folder(path))
    result = MarketResult(**vars(found), market=market, cost=preset.cost, report=report)
    write_tables(result.tables(), found.folder / "tables", found.remark)
    if model and not options.show:
        from dffl_studies.energy.model import train

        train(market, preset, result.answer.choices[-1][1], seeds[0], progress=options.progress).save(found.folder / MODEL)
    page = report_data(result)
    write_text(found.folder / KEPT, json.dumps(page.as_json()))  # for `dffl report FOLDER`
    if report is not None:
        write(page, report)
    return result


def default_folder(panel: Path) -> Path:
    """The default folder of a run, named by the panel."""
    return Path(f"dffl-energy-{panel.resolve().name.split('.')[0]}")
