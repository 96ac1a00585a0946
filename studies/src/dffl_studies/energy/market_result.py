"""The result of `dffl energy run` on a market, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from dffl.files import write_text
from dffl.jsonable import jsonable
from dffl.report import require_page, write
from dffl.report.data import KEPT
from dffl.terminal import command_name, printable
from dffl_studies.energy.answers import DAYS, Answer, named
from dffl_studies.energy.backtests import CHOSEN, METHOD, NAIVE, study
from dffl_studies.energy.data.folder import panel_files
from dffl_studies.energy.preset import Market, Preset
from dffl_studies.running.render import write_tables
from dffl_studies.running.result import RunOptions, StudyRows, finished_rows
from dffl_studies.running.tables import Cell, Table, Value

MODEL = "model.dffl"


@dataclass(frozen=True)
class MarketResult(StudyRows):
    """The rows of a market's backtests, one for each seed, zone and rule."""

    market: Market
    cost: str = "total"
    report: Path | None = None

    @cached_property
    def answer(self) -> Answer:
        return Answer(self.rows)

    @property
    def unit(self) -> str:
        """The unit of regrets."""
        panel = self.market.panel
        each = "" if self.market.sets else f" for 1 {panel.unit} in each period bought"
        return f"{panel.money} a day{each}"

    def show(self, console: Console) -> None:
        """Print the verdict first, then the rules, the zones and where everything is."""
        panel, answer = self.market.panel, self.answer
        for note in panel.notes:
            console.print(f"note: {printable(note)}", style="yellow")  # names in a note may come from a server
        console.print(Text.assemble(("Read: ", "bold"), answer.in_words(panel.money)))
        low, high = answer.expected
        if np.isfinite(low):
            mean = answer.regrets[CHOSEN].mean()
            console.print(f"Regret of the chosen rules: {mean:.2f} {self.unit}; expected beforehand: {low:.2f} to {high:.2f}.")
        shares = answer.held[np.isfinite(answer.held)]
        if len(shares):
            console.print(
                f"Ranges of 80 % held {shares.mean():.0%} of the costs (zones: {shares.min():.0%} to {shares.max():.0%})."
            )
        console.print(self._heading())
        for table in self.tables():
            console.print(_to_rich(table))
        console.print("Rules chosen, from when on: " + "; ".join(f"{day} {rule}" for day, rule in answer.choices))
        if self.cost != "total":
            console.print("The own part counts twice (--cost): amounts of money are not what a zone pays.", style="yellow")
        for job, why in self.failed:
            console.print(f"failed: {job}: {why}", style="red")
        if self.remark:
            console.print(self.remark, style="yellow")
        page = "" if self.report is None else f" Page: {self.report}."
        console.print(f"Tables and rows: {self.folder}.{page}")
        if (self.folder / MODEL).is_file():
            how = f"{command_name()} energy decide {self.folder / MODEL} --zone {panel.names[0]!r} --features FILE"
            console.print(f"A model of all the days, for tomorrow: {how}")

    def _heading(self) -> str:
        panel, first = self.market.panel, self.market.first_test
        count, seeds = len(panel.names), self.rows["seed"].nunique()
        zones = f"{count} zone{'s' * (count > 1)}, {panel.periods} periods a day"
        return (
            f"{zones}; {panel.days[0]} to {np.datetime64(first, 'D') - 1} train first, {first} to {panel.days[-1]} test; "
            f"{seeds} seed{'s' * (seeds > 1)}. Demands: {panel.demand_from}."
        )

    def tables(self) -> list[Table]:
        """What each rule loses, and each zone's regret under the main rules."""
        answer, money = self.answer, self.market.panel.money
        naive, cells, zones = answer.naive_rule, [], []
        for rule in answer.rules:
            change = answer.change(rule, naive)
            row = (rule + (" (chosen by the days before)" if rule == naive else ""),)
            cells.append(Cell(row, f"{money} a day", Value(float(answer.regrets[rule].mean())), None))
            cells.append(Cell(row, f"{money} a year", Value(DAYS * float(answer.regrets[rule].mean())), None))
            if change is not None and rule != naive:
                cells += [Cell(row, f"change % ({name})", Value(value), None) for name, value in change._asdict().items()
                          if name in ("mean", "low", "high", "worst")]  # fmt: skip
        shown = list(dict.fromkeys([naive, *answer.of_kind(METHOD), CHOSEN]))
        regrets = {rule: {str(zone): float(lost) for zone, lost in answer.regrets[rule].items()} for rule in shown}
        demands = dict(zip(self.market.panel.names, self.market.panel.demands, strict=True))
        for zone in map(str, answer.regrets.index):
            other = self.market.sets.get(zone)
            decides = (zone, f"{demands[zone]:g} periods" if other is None else other.in_words())
            zones += [Cell(decides, rule, Value(regrets[rule][zone]), None) for rule in shown]
            saved = DAYS * (regrets[naive][zone] - regrets[CHOSEN][zone])
            zones.append(Cell(decides, f"saved, {money} a year", Value(saved), None))
        over = "weeks and seeds" if self.rows["seed"].nunique() > 2 else "weeks"
        note = (
            f"Regret on a test day, in {self.unit}, mean over zones and seeds. Change: mean over zones of the change in "
            f"percent against {named(naive)}, with its 95 % interval over {over}, and the worst zone; negative is a gain."
        )
        rules_table = Table("rules", "What each rule loses", ("rule",), cells, note)
        return [rules_table, Table("zones", "Each zone", ("zone", "decides"), zones, f"Regret on a test day, in {self.unit}.")]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        answer, panel = self.answer, self.market.panel
        by_zone = {rule: column.to_dict() for rule, column in answer.regrets.items()}
        change, shared = answer.against, answer.sharing()
        chosen = {
            "rule": answer.choices[0][1], "by_zone": by_zone[CHOSEN], "expected": list(answer.expected),
            "rules": [list(choice) for choice in answer.choices],
        }  # fmt: skip
        demands = {
            zone: {"periods": float(demand), "from": panel.demand_from}
            for zone, demand in zip(panel.names, panel.demands, strict=True) if zone not in self.market.sets
        }  # fmt: skip
        return dict(
            jsonable(
                {
                    "currency": panel.currency or None, "unit": self.unit, "periods": panel.periods,
                    "naive": {rule: by_zone[rule] for rule in answer.of_kind(NAIVE)},
                    "methods": {rule: by_zone[rule] for rule in answer.of_kind(METHOD)},
                    "chosen": chosen,
                    "naive_rule": answer.naive_rule,
                    "change": None if change is None else change._asdict(),
                    "sharing": None if shared is None else shared._asdict(),
                    "saved_a_year": answer.saved,
                    "verdict": answer.in_words(panel.money),
                    "ranges": answer.held.to_dict(),
                    "demands": demands,
                    "decides": {zone: s.in_words() for zone, s in self.market.sets.items()},
                    "first_test": self.market.first_test,
                    "seeds": sorted(int(seed) for seed in self.rows["seed"].unique()),
                    "failed": self.failures(), "folder": str(self.folder), "versions": self.versions,
                    "notes": list(panel.notes),
                }
            )
        )  # fmt: skip


def _to_rich(table: Table) -> RichTable:
    from dffl_studies.running.render import to_rich

    return to_rich(table)


def run(
    path: Path, preset: Preset, options: RunOptions, seeds: list[int], model: bool = True, report: Path | None = None
) -> MarketResult:
    """Run the backtests of a market, or only show them, and write everything into their folder."""
    from dffl_studies.energy.page import report_data  # it draws, and Matplotlib is slow to import

    if report is not None:
        require_page(report, inputs=panel_files(path))
    market = preset.market(path)  # refuses what is wrong before any training
    finished = finished_rows(study(path, preset, seeds), options, default_folder(path))
    result = MarketResult(**vars(finished), market=market, cost=preset.cost, report=report)
    write_tables(result.tables(), finished.folder / "tables", finished.remark)
    if model and not options.show:
        from dffl_studies.energy.model import train

        train(market, preset, result.answer.choices[-1][1], seeds[0], progress=options.progress).save(finished.folder / MODEL)
    page = report_data(result)
    write_text(finished.folder / KEPT, json.dumps(page.as_json()))  # for `dffl report FOLDER`
    if report is not None:
        write(page, report)
    return result


def default_folder(panel: Path) -> Path:
    """The default folder of a run, named by the panel."""
    return Path(f"dffl-energy-{panel.resolve().name.split('.')[0]}")
