"""The tables of `dffl energy study`: every half-year of every market, sharing, other settings, expectations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.time.bases import NAIVE as PLAIN
from dffl.time.bases import STEADY
from dffl.time.mixtures import MIX
from dffl.time.outcome import CHOSEN
from dffl_studies.energy.answers import Change, change_of, naive_choice
from dffl_studies.energy.backtests import EVER, NAIVE
from dffl_studies.energy.expected import ENDS, RECORD, USUAL, changes_of, drift
from dffl_studies.energy.half_years import ALONE, BEST, DAYS, INSIDE, RANGED, SETTINGS, SHARED, TUNED, study
from dffl_studies.energy.weeks import WEEK, week_names
from dffl_studies.running.result import RunOptions, StudyResult, finished_rows
from dffl_studies.running.tables import Cell, Count, Table, Value, plain_cells

HALF, STEP, LEAST = 26, 4, 4
"""Weeks of a half-year, between the beginnings of two of them, and before the first."""
FACTS = (BEST, DAYS, INSIDE, RANGED)
PAIRS = (
    ("fedavg", SHARED, "local", ALONE), ("fedavg-vector", SHARED, "local-vector", ALONE),
    (CHOSEN, SHARED, CHOSEN, ALONE), ("fedavg", SHARED, "local-tuned", TUNED),
)  # fmt: skip
"""What sharing is judged by: a rule, and the same one where each zone is alone."""


@dataclass(frozen=True)
class Judged:
    """One market: sums over weeks of what each rule loses, (seeds, zones, weeks), by the job that has trained it."""

    name: str
    rows: pd.DataFrame

    @cached_property
    def names(self) -> list[str]:
        return [name for name in week_names(self.rows) if self.rows[name].notna().all()]

    @cached_property
    def tables(self) -> dict[tuple[str, str], np.ndarray]:
        return {
            (str(trained), str(rule)): np.stack(
                [seed_rows[self.names].to_numpy(float) for _, seed_rows in part.groupby("seed")]
            )
            for (trained, rule), part in self.rows.groupby(["trained", "rule"], sort=False)
        }

    def of(self, trained: str, rule: str) -> np.ndarray:
        """What a rule loses."""
        return self.tables[trained, rule]

    def has(self, trained: str, rule: str) -> bool:
        return (trained, rule) in self.tables

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each rule of shared models."""
        some = self.rows[self.rows["trained"] == SHARED].drop_duplicates("rule")
        return {rule: kind for rule, kind in zip(some["rule"], some["kind"], strict=True) if rule not in FACTS}

    @cached_property
    def first(self) -> np.datetime64:
        """The first day that is decided."""
        return np.datetime64(self.rows["first"].iloc[0])

    def last_of(self, some: slice) -> np.datetime64:
        """The last day of these weeks; the last week of a market may be short."""
        days = int(self.of(SHARED, DAYS)[0, :, some.stop - 1].max())
        return np.datetime64(self.first + WEEK * (some.stop - 1) + days - 1)

    def halves(self) -> list[slice]:
        """All half-years, a month apart, the last one to the end."""
        count = len(self.names)
        return [slice(start, start + HALF) for start in range((count - HALF - LEAST) % STEP + LEAST, count - HALF + 1, STEP)]

    def naive_rule(self, before: int) -> str:
        """The naive rule that lost least in the weeks before."""
        naive = [rule for rule, kind in self.kinds.items() if kind == NAIVE]
        past = pd.DataFrame({rule: self.of(SHARED, rule)[0, :, :before].sum(axis=1) for rule in naive})
        return naive_choice(past)

    def regret(self, rule: str, some: slice, trained: str = SHARED) -> float:
        """The mean over zones and seeds of a day's regret."""
        days = self.of(SHARED, DAYS)[0, :, some].sum(axis=1)
        return float((self.of(trained, rule)[:, :, some].sum(axis=2) / days).mean())

    def change(self, rule: str, other: str, some: slice, trained: str = SHARED, by: str = SHARED) -> Change | None:
        """By how much a rule changes another's regret."""
        mine, theirs = self.of(trained, rule)[:, :, some], self.of(by, other)[:, :, some]
        seeds = min(len(mine), len(theirs))
        return change_of(mine[:seeds], theirs[:seeds], list(self.rows["zone"].unique()))

    def parts(self) -> dict[str, Parts]:
        """By market: what the chosen and a naive rule lose in a week, mean over all its zones and of each alone, first seed.

        Markets that lie apart, such as two countries, are markets of their own.
        """
        days = np.maximum(self.of(SHARED, DAYS)[0], 1)
        tables = [self.of(SHARED, rule)[0] / days for rule in (CHOSEN, EVER)]
        zones = list(self.rows["zone"].unique())
        if len(zones) < 3:
            return {zone: [(tables[0][place], tables[1][place])] for place, zone in enumerate(zones)}
        return {self.name: [(lost.mean(axis=0), naive.mean(axis=0))
                            for lost, naive in ([table[some] for table in tables] for some in _parts(len(zones)))]}  # fmt: skip


def _parts(zones: int) -> list[list[int]]:
    return [list(range(zones)), *([place] for place in range(zones))]


def judged(options: RunOptions, folders: dict[str, Path | None], seeds: list[int]) -> StudyResult:
    """Run what is missing, and write the tables."""
    from dffl_studies.running.render import write_tables

    there = {name: folder for name, folder in folders.items() if folder is not None and folder.is_dir()}
    finished = finished_rows(study(there, seeds), options)
    tables = all_tables(finished.rows)
    write_tables(tables, finished.folder / "tables", finished.remark)
    skipped = [name for name in folders if name not in there]
    remark = f"Skipped, as their data were not given: {', '.join(skipped)}." if skipped else ""
    return StudyResult(finished, tables, ("markets", "sharing", "expected"), remark=remark)


def all_tables(rows: pd.DataFrame) -> list[Table]:
    """Every table that the finished jobs allow."""
    markets = [Judged(str(name), part) for name, part in rows.groupby("market", sort=False)]
    markets = [market for market in markets if market.has(SHARED, CHOSEN)]
    tables = [
        summary(markets),
        half_years(markets),
        every_rule(markets),
        sharing(markets),
        settings(markets),
        expected(markets),
    ]
    return [table for table in tables if table.cells]


def summary(markets: Sequence[Judged]) -> Table:
    """One line for each market: the mean of its half-years, and the worst."""
    cells: list[Cell] = []
    for market in markets:
        changes = [change.mean for _, _, change in _halves(market)]
        all_days = slice(market.halves()[0].start, len(market.names))
        hindsight = min(
            (rule for rule, kind in market.kinds.items() if kind == NAIVE), key=lambda rule: market.regret(rule, all_days)
        )
        against = market.change(CHOSEN, hindsight, all_days)
        counts = {"half-years": len(changes), "of them apart": (all_days.stop - all_days.start) // HALF}
        cells += [Cell((market.name,), column, Count(count)) for column, count in counts.items()]
        numbers = {
            "mean change %": float(np.mean(changes)), "best %": min(changes), "worst %": max(changes),
            "against the best naive rule in hindsight %": np.nan if against is None else against.mean,
        }  # fmt: skip
        cells += plain_cells((market.name,), numbers)
    note = (
        "Change of the regret by the chosen rules against the naive rule that the days before each half-year choose: mean over "
        "zones, then over half-years that begin four weeks apart and so overlap. Apart: those that do not. Negative is a gain."
    )
    return Table("markets", "The chosen rules on every half-year", ("market",), cells, note)


def _halves(market: Judged) -> Iterator[tuple[slice, str, Change]]:
    for some in market.halves():
        naive = market.naive_rule(some.start)
        change = market.change(CHOSEN, naive, some)
        if change is not None:
            yield some, naive, change


def half_years(markets: Sequence[Judged]) -> Table:
    """Each half-year of each market."""
    cells: list[Cell] = []
    for market in markets:
        for some, naive, change in _halves(market):
            first, last = market.first + WEEK * some.start, market.last_of(some)
            inside = market.of(SHARED, INSIDE)[:, :, some].sum() / max(market.of(SHARED, RANGED)[:, :, some].sum(), 1)
            numbers = {
                "naive": market.regret(naive, some), "chosen": market.regret(CHOSEN, some),
                "change %": change.mean, "low %": change.low, "high %": change.high, "worst zone %": change.worst,
                "ranges held %": 100 * float(inside),
            }  # fmt: skip
            if market.has(ALONE, CHOSEN):
                alone = market.change(CHOSEN, naive, some, ALONE)
                numbers["alone %"] = np.nan if alone is None else alone.mean
            cells += plain_cells((market.name, f"{first} to {last}", naive), numbers)
    note = (
        "Naive: the rule that the days before choose. Regrets are means of a day, over zones and seeds. Change: mean of zones, "
        "with its 95 % interval over weeks (and seeds, where there are three). Alone: the chosen rules where every model is of "
        "one zone alone."
    )
    return Table("half-years", "Every half-year", ("market", "days", "naive rule"), cells, note)


def every_rule(markets: Sequence[Judged]) -> Table:
    """Every rule on all test weeks."""
    cells: list[Cell] = []
    for market in markets:
        all_days = slice(market.halves()[0].start, len(market.names))
        for trained, rule in market.tables:
            if rule in FACTS or trained == SETTINGS or (trained != SHARED and (rule in PLAIN or rule == "forecast")):
                continue
            row = (f"{rule} ({trained})" if trained != SHARED and rule in (CHOSEN, MIX) else rule,)
            cells.append(Cell(row, market.name, Value(market.regret(rule, all_days, trained))))
    return Table(
        "rules", "Regret of every rule", ("rule",), cells, "Mean of a day over zones and seeds, all weeks that are tested."
    )


def sharing(markets: Sequence[Judged]) -> Table:
    """What sharing changes, with the range over half-years."""
    cells: list[Cell] = []
    for market in markets:
        all_days = slice(market.halves()[0].start, len(market.names))
        for rule, trained, other, by in PAIRS:
            if not (market.has(trained, rule) and market.has(by, other)):
                continue
            difference = market.change(rule, other, all_days, trained, by)
            parts = [market.change(rule, other, some, trained, by) for some in market.halves()]
            values = [change.mean for change in parts if change is not None]
            name = f"{rule} against {other if other != CHOSEN else 'chosen among models alone'}"
            cells += plain_cells(
                (market.name, name), _ends(difference) | {"best half-year %": min(values), "worst %": max(values)}
            )
    note = "Change of regret, mean over zones; 95 % interval over weeks (and three seeds or more); negative: sharing gains."
    return Table("sharing", "Sharing against each zone alone", ("market", "what"), cells, note)


def settings(markets: Sequence[Judged]) -> Table:
    """What sharing changes with other numbers of rounds, local epochs and clients."""
    cells: list[Cell] = []
    for market in (one for one in markets if one.has(ALONE, "local")):
        some = slice(market.halves()[0].start, len(market.names))
        names = [rule for trained, rule in market.tables if trained == SETTINGS and "=" in rule and "+" not in rule]
        for rule in names:
            row = (market.name, rule)
            cells += plain_cells(row, {f"{name} (against local)": value for name, value in
                                       _ends(market.change(rule, "local", some, SETTINGS, ALONE)).items()})  # fmt: skip
            against = market.change(rule, STEADY, some, SETTINGS)
            cells += plain_cells(row, {"% (against steady)": np.nan if against is None else against.mean})
    note = (
        "One seed. Names say what differs from a usual refit: 20 rounds (T) of 2 local epochs (E) with all zones (C = 1), at "
        "local models 40 epochs."
    )
    return Table("settings", "Other T, E and C", ("market", "model"), cells, note)


def _ends(change: Change | None) -> dict[str, float]:
    names = ("change %", "low %", "high %")
    return dict.fromkeys(names, np.nan) if change is None else dict(zip(names, change[:3], strict=True))


def expected(markets: Sequence[Judged]) -> Table:
    """How often the expected mean regret holds: with the ends in use, and with ends that the other markets give."""
    groups = {name: parts for market in markets if "with" not in market.name for name, parts in market.parts().items()}
    if not groups:
        return Table("expected", "", ("market",), [], "")
    parts = list(groups.values())
    limits = measured(parts)
    columns = {"held %": [_inside(_cases(group, USUAL), ENDS) for group in parts], UNSEEN: limits.unseen}
    cells: list[Cell] = []
    for place, (name, group) in enumerate(groups.items()):
        counts = {"zones and parts": float(len(group)), "cases": float(len(_cases(group, USUAL)))}
        cells += plain_cells((name,), counts | {column: 100 * shares[place] for column, shares in columns.items() if shares})
    ends = dict(zip(("low end", "high end"), limits.ends, strict=True))
    means = {column: 100 * float(np.mean(shares)) for column, shares in columns.items() if shares}
    cells += plain_cells(("all",), means | {"usual change": limits.usual, "wider by": limits.factor} | ends)
    note = (
        "Cases: the chosen rules in the 13, 26 and 52 weeks after each week, in the mean of all zones and of each zone alone. "
        "Ends: the 10 % and 90 % quantiles of log(regret / mean of the last "
        f"{RECORD} weeks) over the market's own monthly changes, markets counting alike; wider by the factor with which those "
        f"of the other markets hold 80 %. In use: {USUAL:g} and {ENDS[0]:g} to {ENDS[1]:g}."
    )
    return Table("expected", "Does the expected mean regret hold?", ("market",), cells, note)


UNSEEN = "held %, ends of the other markets"
HORIZONS = (13, 26, 52)
HELD = 0.8
Parts = list[tuple[np.ndarray, np.ndarray]]
"""What the chosen and a naive rule lose in each week, for all zones together and for each alone."""


class Measured(NamedTuple):
    """What the range of 80 % is made of."""

    usual: float
    """The usual monthly change."""
    factor: float
    """By what the ends are wider than the quantiles, so that they hold 80 % on markets that they were not made of."""
    ends: tuple[float, float]
    unseen: list[float]
    """How often the range holds in each market with the ends of the others."""


def measured(groups: Sequence[Parts]) -> Measured:
    """The numbers that `dffl_studies.energy.expected` needs."""
    usual, apart = usual_change(groups), []
    for place, group in enumerate(groups):
        others = [parts for number, parts in enumerate(groups) if number != place]
        if others:
            change = usual_change(others)
            apart.append((_cases(group, change), _quantiles([_cases(parts, change) for parts in others])))
    shares_by = {
        float(factor): [_inside(cases, (factor * low, factor * high)) for cases, (low, high) in apart]
        for factor in np.arange(1, 5, 0.01)
    }
    factor = next((limit for limit, shares in shares_by.items() if not shares or np.mean(shares) >= HELD), max(shares_by))
    low, high = _quantiles([_cases(parts, usual) for parts in groups])
    return Measured(usual, factor, (factor * low, factor * high), shares_by[factor])


def usual_change(groups: Sequence[Parts]) -> float:
    """The root of the mean square of monthly changes, each market counting alike."""
    squares = [np.concatenate([changes_of(naive) for _, naive in parts]) ** 2 for parts in groups]
    return float(np.sqrt(np.mean([values.mean() for values in squares])))


def _cases(parts: Parts, usual: float) -> np.ndarray:
    """How far each mean is from what was expected, in monthly changes."""
    cases = []
    for lost, naive in parts:
        for start in range(RECORD, len(lost)):
            known = lost[start - RECORD : start].mean()
            later = [lost[start : start + weeks].mean() for weeks in HORIZONS if start + weeks <= len(lost)]
            cases += [np.log(mean / known) / drift(naive[:start], usual) for mean in later if min(mean, known) > 0]
    return np.array(cases)


def _quantiles(tables: Sequence[np.ndarray]) -> tuple[float, float]:
    """The ends that hold 80 % of all cases, each market counting alike."""
    values = np.concatenate(tables)
    weights = np.concatenate([np.full(len(table), 1 / len(table)) for table in tables])
    order = np.argsort(values)
    shares = np.cumsum(weights[order]) / weights.sum()
    low, high = (float(values[order][min(int(np.searchsorted(shares, share)), len(values) - 1)]) for share in (0.1, 0.9))
    return low, high


def _inside(values: np.ndarray, ends: tuple[float, float]) -> float:
    return float(((values >= ends[0]) & (values <= ends[1])).mean())
