"""What `dffl energy run` does: run the seeds that are missing, then write and show tables, figures and a model for tomorrow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from dffl.data.energy import Panel
from dffl.data.energy.clients import WARM_UP
from dffl.data.energy.market import with_places
from dffl.jsonable import jsonable
from dffl.studies.command import Options, finished_rows
from dffl.studies.energy.model import METHOD, Trained, train
from dffl.studies.energy.naive import RULES
from dffl.studies.energy.protocol import METHODS, Protocol, halves
from dffl.studies.energy.study import study
from dffl.studies.energy.summary import as_json, by_seed
from dffl.studies.energy.tables import NAMES, all_tables, money_as_json
from dffl.studies.render import to_rich, write_tables
from dffl.studies.store import Store
from dffl.studies.study import Job
from dffl.studies.tables import Table

MODEL = "model.dffl"
SHOWN = ("changes", "zones", "money")
"""The tables that the terminal shows; all are written."""
PERCENTILE = 95


@dataclass(frozen=True)
class Outcome:
    """What there is to show of a panel."""

    folder: Path
    panel: Panel
    protocol: Protocol
    first_test: str
    rows: pd.DataFrame
    tables: list[Table]
    failed: list[tuple[Job, str]]

    def show(self, console: Console) -> None:
        """Print notes, tables and a verdict for people."""
        say(self.panel.notes, console)
        console.print(self._heading(), highlight=False, markup=False)
        for table in (table for table in self.tables if table.name in SHOWN):
            console.print()
            console.print(to_rich(table))
        console.print()
        verdict = Verdict.of(self.rows)
        console.print(f"[bold]Read:[/] {verdict.in_words()}", highlight=False)
        for job, why in self.failed:
            console.print(f"failed: {job}: {why}", style="red", highlight=False, markup=False)
        missing = "" if np.isfinite(with_places(self.panel).places).any() else " No map: the panel has no lat and lon."
        console.print(f"\nTables, figures and rows: {self.folder}.{missing}", highlight=False, markup=False)
        if (self.folder / MODEL).is_file():
            how = f"dffl energy decide {self.folder / MODEL} --zone {self.panel.names[0]!r} --features FILE"
            console.print(f"A model of all the days ({METHOD}), for tomorrow: {how}", highlight=False, markup=False)
            if not verdict.beaten:
                fix = "decide by the moving average (dffl energy train --lags --method forecast)"
                better = fix if self.protocol.lags else f"try --lags, or {fix}"
                console.print(f"It would have lost more than a moving average: {better}.", style="yellow", highlight=False)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        failed = [{**job.parameters, "why": why} for job, why in self.failed]
        about = {"seeds": sorted(self.rows["seed"].unique().tolist()), "failed": failed, "folder": str(self.folder)}
        return jsonable(as_json(self.rows) | {"money": money_as_json(self.rows)} | about | {"notes": list(self.panel.notes)})

    def _heading(self) -> str:
        panel, before = self.panel, np.datetime64(self.first_test, "D") - 1
        demands = "from the panel" if panel.demand_known else "drawn from 4 to 12 hours (the panel has none)"
        past = f", and past prices (the first {WARM_UP} days only feed the average)" if self.protocol.lags else ""
        bill = "" if self.protocol.cost == "total" else "\nThe own part counts twice (--cost): US$ here are no bill."
        return (
            f"{_counted(len(panel.names), 'zone')}; {panel.days[0]} to {before} train, {self.first_test} to {panel.days[-1]} "
            f"test; {_counted(self.rows['seed'].nunique(), 'seed')}.\n"
            f"From {', '.join(panel.covariate_names)}{past}. Demands: {demands}.{bill}"
        )


@dataclass(frozen=True)
class Verdict:
    """The best of the trained models beside the best of the naive rules."""

    means: pd.DataFrame
    zones: int
    best: str
    rule: str

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Verdict:
        """What the rows say."""
        means = by_seed(rows).groupby("method", sort=False)[["regret", "worst_harm", "harmed"]].mean()
        regret = means["regret"]
        rules = [name for name in RULES if name != "perfect-foresight"]
        return cls(means, rows["zone"].nunique(), str(regret[list(METHODS)].idxmin()), str(regret[rules].idxmin()))

    @property
    def beaten(self) -> bool:
        """Whether the model loses less than the rule."""
        return bool(self.means["regret"][self.best] < self.means["regret"][self.rule])

    def in_words(self) -> str:
        """For people."""
        regret, best, rule = self.means["regret"], self.best, self.rule
        if min(regret["local"], regret[rule]) <= 0:
            return "a rule without any regret leaves nothing to gain here."
        against = 100 * (regret[best] / regret[rule] - 1)
        return (
            f"of the trained models, {NAMES[best].lower()} loses least: {regret[best]:.2f} US$ a day for each MW, in total "
            f"{100 * (regret[best] / regret['local'] - 1):+.1f} % against local. The best naive rule, {NAMES[rule].lower()}, "
            f"loses {regret[rule]:.2f}: the model is {abs(against):.1f} % {'better' if self.beaten else 'worse'}. "
            f"{NAMES['fedavg']} harms {self._harm('fedavg')}, {NAMES[best].lower()} {self._harm(best)}."
        )

    def _harm(self, method: str) -> str:
        row = self.means.loc[method]
        return f"{row['harmed']:.1f} of {_counted(self.zones, 'zone')} in a seed (the worst: {row['worst_harm']:+.0f} %)"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def run(
    path: Path, protocol: Protocol, options: Options, seeds: list[int], calendar: str | None, model: bool, progress: bool | None
) -> Outcome:
    """Run the study on a panel, or look at it, and write everything into its folder."""
    panel = protocol.open(str(path))
    first_test = halves(panel, protocol).first_test  # everything that can be refused is refused now
    if calendar is not None:
        panel.zone(calendar)
    whole = study(path, protocol, seeds)
    store = Store(options.out or default_folder(path, protocol))
    rows, failed = finished_rows(whole, whole, store, options, progress)
    tables = all_tables(rows)
    write_tables(tables, store.folder / "tables")
    trained = None
    if model and not options.show:
        trained = train(panel, protocol, progress=progress)
        trained.model.save(store.folder / MODEL)
    if options.figures:
        _draw(rows, panel, calendar, trained, store.folder)
    return Outcome(store.folder, panel, protocol, first_test, rows, tables, failed)


def default_folder(panel: Path, protocol: Protocol) -> Path:
    """Where a run goes if nothing else is said: named by the panel, and by whether past prices are used."""
    name = panel.resolve().name.split(".")[0]
    return Path(f"dffl-energy-{name}{'-lags' if protocol.lags else ''}")


def say(notes: tuple[str, ...], console: Console) -> None:
    """Print what was noticed about a panel."""
    for note in notes:
        console.print(f"note: {note}", style="yellow", highlight=False, markup=False)


def _draw(rows: pd.DataFrame, panel: Panel, wanted: str | None, trained: Trained | None, folder: Path) -> None:
    from dffl.studies.energy.figures import draw_all  # Matplotlib, only where pictures are wanted

    local = rows[rows["method"] == "local"].groupby("zone")["regret"].mean()
    zone = wanted or str(local.idxmax())
    calendar = None if trained is None else (_calendar(trained, zone, panel), zone, trained.model.method)
    draw_all(rows, zone_facts(panel), calendar, folder / "figures")


def zone_facts(panel: Panel) -> pd.DataFrame:
    """A row a zone: its demand, its place and how far its own price part reaches."""
    own, ends = panel.own, zip(panel.starts[:-1], panel.starts[1:], strict=True)
    reach = [float(np.percentile(own[start:end], PERCENTILE)) for start, end in ends]
    lat, lon = with_places(panel).places.T
    return pd.DataFrame({"zone": panel.names, "demand": panel.demands, "own_p95": reach, "lat": lat, "lon": lon})


def _calendar(trained: Trained, zone: str, panel: Panel) -> pd.DataFrame:
    """A row a test day and hour of one zone: its price, whether the model of the first half chose it, and should have."""
    client = trained.test[zone]
    dates = panel.zone(zone).dates[-client.n :]
    chosen = trained.first_half.decide(zone, client.x)
    hours = client.c.shape[1]
    return pd.DataFrame(
        {
            "date": np.repeat(np.datetime_as_string(dates, unit="D"), hours),
            "hour": np.tile(np.arange(hours), client.n),
            "price": client.c.ravel(),
            "chosen": chosen.ravel(),
            "cheapest": client.w_star.ravel(),
        }
    )
