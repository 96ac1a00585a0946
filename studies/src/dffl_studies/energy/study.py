"""The paper's energy study: every method on one panel, one job per seed, and naive rules of past prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from dffl.comparing import refuse_early
from dffl.federation import Client, optima
from dffl.jsonable import jsonable
from dffl.sets import TopK
from dffl.terminal import printable
from dffl.time.bases import NAIVE
from dffl_studies.energy.backtests import naive_losses
from dffl_studies.energy.data import Panel, digest
from dffl_studies.energy.fetch.market import with_places
from dffl_studies.energy.papers_tables import all_tables
from dffl_studies.energy.published import Comparison
from dffl_studies.energy.setup import SEEDS, Setup, halves
from dffl_studies.energy.summary import as_json
from dffl_studies.running.render import to_rich, write_tables
from dffl_studies.running.result import RunOptions, StudyRows, finished_rows
from dffl_studies.running.study import Study, grid
from dffl_studies.running.tables import Table


def study(panel: Path, setup: Setup, seeds: Sequence[int] = SEEDS) -> Study:
    """The study of a panel. Its protocol knows the panel by its content, so that the file may move between two runs."""
    protocol = {"data": digest(panel), "protocol": setup.as_json(), "methods": [*setup.methods, *NAIVE]}
    places = {"panel": str(panel.resolve())}
    return Study("energy", judge, grid(seed=list(seeds)), protocol, places=places, inner_axis=("methods", "method"))


def judge(*, data: str, protocol: dict[str, Any], methods: list[str], seed: int, panel: str) -> pd.DataFrame:
    """One row per zone and method or rule: the mean regret of a test day in US$ for each MW, and what the method chose.

    Next to it is what each week adds to that mean.
    """
    from dffl.comparing import fit_all
    from dffl_studies.energy.weeks import week_columns, week_names, weeks_of

    if digest(panel) != data:
        raise ValueError(f"{panel}: the panel is not the one that the study began with; start again in another folder")
    setup = Setup.of(protocol)
    market = setup.open(panel)
    train, test, _, first_test = halves(market, setup)
    weeks, tables = weeks_of(market, first_test), []
    trained, rules = ([name for name in methods if (name in NAIVE) == rule] for rule in (False, True))
    settings = {name: value for name, value in setup.training(seed).items() if name.partition(".")[0] in (*trained, name)}
    fits = fit_all(train, trained, progress=False, **settings) if trained else {}
    for method in trained:
        fit = fits[method]
        lost = fit.regrets_of(test.clients)
        chosen = pd.DataFrame([fit.row(client, regrets_here) for client, regrets_here in zip(test, lost, strict=True)])
        choices = chosen[[name for name in ("regret", "lambda", "epochs") if name in chosen]]
        tables.append(week_columns(lost, weeks).join(choices).assign(zone=test.names, method=method))
    regrets = naive_regrets(market, setup.cost, first_test) if rules else {}
    for rule in rules:
        lost = regrets[rule]
        known = {"zone": test.names, "method": rule, "regret": [regrets_here.mean() for regrets_here in lost]}
        tables.append(week_columns(lost, weeks).assign(**known))
    best = [float((client.c * client.w_star).sum(axis=-1).mean()) for client in test]
    zones = {"zone": test.names, "demand": market.demands, "n": train.counts, "n_test": test.counts, "best": best}
    judged = pd.concat(tables)
    facts = ["zone", "method", "regret", "lambda", "epochs"]
    rows = pd.DataFrame(zones).merge(judged.reindex(columns=[*facts, *week_names(judged)]), on="zone")
    return rows.astype({"n": "int32", "n_test": "int32"})


def naive_regrets(panel: Panel, cost: str, first_test: str) -> dict[str, list[np.ndarray]]:
    """What the naive rules of `dffl.backtest` lose on each test day, zone by zone; the steady average's weight is of before."""
    costs, end = panel.costs(cost), np.datetime64(first_test, "D")
    clients = [
        Client(zone, costs[rows, :1], costs[rows], TopK(panel.periods, float(demand)))  # rules use no features
        for (zone, rows), demand in zip(panel.zones.items(), panel.demands, strict=True)
    ]
    optima(clients)
    dates = [panel.dates[rows] for rows in panel.zones.values()]
    known = [int((values < end).sum()) for values in dates]
    lost = naive_losses(clients, dates, known)
    return {rule: [values[first:] for values, first in zip(lost[rule], known, strict=True)] for rule in NAIVE}


@dataclass(frozen=True)
class PublishedResult(StudyRows):
    """The result of the paper's protocol on a panel: one row per seed, zone and method or rule."""

    panel: Panel
    setup: Setup
    first_test: str
    tables: list[Table]
    comparison: Comparison

    def show(self, console: Console) -> None:
        """Print notes and tables for people."""
        print_notes(self.panel.notes, console)
        console.print(self._heading())
        for table in self.tables:
            console.print()
            console.print(to_rich(table))
        console.print()
        for line in self.comparison.lines():
            console.print(f"Paper: {line}")
        for job, why in self.failed:
            console.print(f"failed: {job}: {why}", style="red")
        if self.remark:
            console.print(self.remark, style="yellow")
        missing = "" if np.isfinite(with_places(self.panel).places).any() else " No map: the panel has no lat and lon."
        console.print(f"\nTables, figures and rows: {self.folder}.{missing}")

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        about = {
            "seeds": sorted(self.rows["seed"].unique().tolist()),
            "failed": self.failures(),
            "folder": str(self.folder),
            "versions": self.versions,
            "notes": list(self.panel.notes),
            "paper": self.comparison.as_json(),
        }
        return jsonable(as_json(self.rows) | about)

    def _heading(self) -> str:
        panel, before = self.panel, np.datetime64(self.first_test, "D") - 1
        note = "\nThe own part counts twice (--cost): amounts of money are not what a zone pays."
        return (
            f"{len(panel.names)} zones; {panel.days[0]} to {before} train, {self.first_test} to {panel.days[-1]} test; "
            f"{self.rows['seed'].nunique()} seeds.\nFrom {', '.join(panel.covariate_names)}. Demands: {panel.demand_from}.\n"
            f"As published: {_in_words(self.setup.settings)}, random days held out.{note if self.setup.cost != 'total' else ''}"
        )


def _in_words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def print_notes(notes: tuple[str, ...], console: Console) -> None:
    """Print the notes on a panel."""
    for note in notes:
        console.print(f"note: {printable(note)}", style="yellow")  # names in a note may come from a server


PERCENTILE = 95


def run(
    path: Path, setup: Setup, options: RunOptions, seeds: list[int], figures: bool = True, market: str | None = None
) -> PublishedResult:
    """Run the study on a panel, or only show it, and write everything into its folder.

    ``market`` is the market of the prices, as the user names it: the paper's numbers are shown next to those of PJM only.
    """
    panel = setup.open(str(path))
    parts = halves(panel, setup)
    refuse_early(parts.train, setup.methods, **setup.training(seeds[0]))  # before any training
    name = path.resolve().name.split(".")[0]
    finished = finished_rows(study(path, setup, seeds), options, Path(f"dffl-energy-{name}-as-published"))
    comparison = Comparison.of(panel, setup, market)
    tables = all_tables(finished.rows, comparison)
    write_tables(tables, finished.folder / "tables", finished.remark)
    if figures:
        from dffl_studies.energy.figures import draw_all  # Matplotlib is slow to import

        draw_all(finished.rows, zone_table(panel), None, finished.folder / "figures")
    return PublishedResult(
        **vars(finished), panel=panel, setup=setup, first_test=parts.first_test, tables=tables, comparison=comparison
    )


def zone_table(panel: Panel) -> pd.DataFrame:
    """One row per zone: its demand, its place and how far its own price part reaches."""
    contributions = panel.own
    reach = [float(np.percentile(contributions[rows], PERCENTILE)) for rows in panel.zones.values()]
    lat, lon = with_places(panel).places.T
    return pd.DataFrame({"zone": panel.names, "demand": panel.demands, "own_p95": reach, "lat": lat, "lon": lon})
