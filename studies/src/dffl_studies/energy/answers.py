"""The answer of a backtest of a market: what to use, what it saves in a year, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from dffl.harm import ENOUGH_STARTS, interval
from dffl_studies.energy.backtests import CHOSEN, METHOD, NAIVE
from dffl_studies.energy.weeks import week_names

NO_REGRET = 1e-9
"""A regret below this counts as 0, and no percentage of it is computed."""
DAYS = 365
SAME = 0.5
"""A mean change that is smaller, in percent, is none."""
STEADY, FORECAST = "steady", "forecast"


class Change(NamedTuple):
    """The mean over zones of the change of their regret in percent, and its 95 % interval over weeks and seeds."""

    mean: float
    low: float
    high: float
    worst: float
    """The largest change of a zone."""
    where: str
    """That zone."""

    @property
    def significant(self) -> bool:
        return not self.low <= 0 <= self.high

    def in_words(self) -> str:
        return f"{self.mean:+.1f} % (95 % interval over weeks: {self.low:+.1f} to {self.high:+.1f} %)"


@dataclass(frozen=True)
class Answer:
    """What the rows of a backtest say; regrets are means over seeds, in the currency, for a day."""

    rows: pd.DataFrame

    @cached_property
    def regrets(self) -> pd.DataFrame:
        """Each zone's regret on a test day: one row per zone, one column per rule."""
        return self.rows.pivot_table(index="zone", columns="rule", values="regret", sort=False)[self.rules]

    @cached_property
    def rules(self) -> list[str]:
        return list(dict.fromkeys(self.rows["rule"]))

    def of_kind(self, kind: str) -> list[str]:
        """The rules of a kind, in the order of the backtest."""
        return list(dict.fromkeys(self.rows.loc[self.rows["kind"] == kind, "rule"]))

    @cached_property
    def naive_rule(self) -> str:
        """The naive rule that the days before the test choose: the one that a buyer without a model would use."""
        naive = self.rows[self.rows["kind"] == NAIVE]
        return naive_choice(
            naive.pivot_table(index="zone", columns="rule", values="past", sort=False, dropna=False)[self.of_kind(NAIVE)]
        )

    @cached_property
    def choices(self) -> list[tuple[str, str]]:
        """The days of the choice and the rule that most zones took then, in the first seed."""
        text = str(self.rows.sort_values("seed", kind="stable")["choices"].iloc[0])
        return [(part.rpartition(" ")[0], part.rpartition(" ")[2]) for part in text.split("; ")]

    def change(self, rule: str, against: str) -> Change | None:
        """By how much a rule changes the zones' regrets; None where there is nothing to lose."""
        mine, other = (self._by_week(name) for name in (rule, against))
        return change_of(mine, other, [str(zone) for zone in self.regrets.index])

    def _by_week(self, rule: str) -> np.ndarray:
        """What each week adds to a zone's mean regret, (seeds, zones, weeks)."""
        some = self.rows[self.rows["rule"] == rule].set_index("zone")
        zones, weeks = self.regrets.index, week_names(self.rows)
        return np.stack([part.loc[zones, weeks].to_numpy(float) for _, part in some.groupby("seed")])

    @property
    def against(self) -> Change | None:
        """The chosen rules against the naive rule."""
        return self.change(CHOSEN, self.naive_rule)

    @property
    def saved(self) -> float:
        """What the chosen rules save in a year against the naive rule, mean over zones."""
        return DAYS * float((self.regrets[self.naive_rule] - self.regrets[CHOSEN]).mean())

    @property
    def saved_ends(self) -> tuple[float, float]:
        """The ends of the 95 % interval of that, over weeks (and seeds)."""
        rates = self._rates(slice(None))
        return interval(rates)[1:]

    @property
    def saved_by_zone(self) -> pd.DataFrame:
        """What each zone saves in a year (``saved``), and the ends of its interval."""
        zones = self.regrets.index
        rates = [interval(self._rates(slice(place, place + 1))) for place in range(len(zones))]
        return pd.DataFrame(rates, columns=["saved", "low", "high"], index=zones)

    def _rates(self, some: slice) -> np.ndarray:
        """Money that some zones save in a year, if each week of the test were one: (seeds, weeks)."""
        parts = (self._by_week(self.naive_rule) - self._by_week(CHOSEN))[:, some].mean(axis=1)
        table = DAYS * parts.shape[1] * parts
        return table if len(table) >= ENOUGH_STARTS else np.tile(table.mean(axis=0), (ENOUGH_STARTS, 1))

    @property
    def expected(self) -> tuple[float, float]:
        """The range that the days before the test gave for the mean regret of the chosen rules."""
        return float(self.rows["expected_low"].mean()), float(self.rows["expected_high"].mean())

    @property
    def held(self) -> pd.Series:
        """For each zone the share of costs that were in their range of 80 %."""
        return self.rows.groupby("zone", sort=False)["held"].mean()

    def sharing(self) -> Change | None:
        """What sharing changes against the same models of each zone alone, where both were trained."""
        methods = self.of_kind(METHOD)
        return self.change("fedavg", "local") if {"fedavg", "local"} <= set(methods) and len(self.regrets) > 1 else None

    @property
    def keeps(self) -> bool:
        """Whether the verdict is to keep the naive rule: the chosen ones gain nothing, or nothing that is sure."""
        change = self.against
        return change is None or change.mean > -SAME or not change.significant

    def in_words(self, money: str) -> str:
        """The verdict: the first sentence says what to do, and what it saves in a year."""
        rule, change, naive = self.choices[-1][1], self.against, self.naive_rule
        if change is None:
            return f"Keep to {named(naive)}: it loses nothing, so there is nothing to gain."
        if self.keeps:
            what = "they lose more" if change.mean > 0 and change.significant else "no clear gain"
            first = f"Keep to {named(naive)}: the chosen rules change its regret by {change.in_words()}, {what}"
        else:
            first = (
                f"Use the chosen rules (now {named(rule)}): they save {self.saved:,.0f} {money} a year in the mean of zones "
                f"against {named(naive)}, which changes its regret by {change.in_words()}"
            )
        worse = "no zone loses more" if change.worst <= 0 else f"the worst zone is {change.where} ({change.worst:+.1f} %)"
        shared = self.sharing()
        text = "" if shared is None else f" Sharing changes the regret of models of each zone alone by {shared.in_words()}."
        return f"{first}; {worse}.{text}"

    def headline(self, money: str) -> str:
        """The verdict as a title."""
        if self.keeps:
            return f"Electricity: keep to {named(self.naive_rule)}"
        zones = f" in the mean of {len(self.regrets)} zones" if len(self.regrets) > 1 else ""
        return f"Electricity: the chosen rules save {self.saved:,.0f} {money} a year{zones}"


def named(rule: str) -> str:
    """What a sentence calls a rule."""
    words = {STEADY: "the steady average of past prices", FORECAST: "your forecast", "mix": "the average of models and base"}
    return words.get(rule, f"the mean of the last {rule[5:]} days" if rule.startswith("mean-") else rule)


def change_of(mine: np.ndarray, other: np.ndarray, zones: Sequence[str]) -> Change | None:
    """By how much one rule changes the regret of another, from sums over weeks, (seeds, zones, weeks)."""
    lost, reference = mine.sum(axis=2).mean(axis=0), other.sum(axis=2).mean(axis=0)
    some = reference > NO_REGRET
    if not some.any():
        return None
    by_zone = 100 * (lost[some] / reference[some] - 1)
    excess = ((mine - other)[:, some] / reference[some][None, :, None]).mean(axis=1)  # (seeds, weeks)
    table = 100 * excess.shape[1] * excess  # the mean over weeks is the change
    if len(table) < ENOUGH_STARTS:  # the spread over seeds is unknown: weeks alone
        table = np.tile(table.mean(axis=0), (ENOUGH_STARTS, 1))
    worst = int(by_zone.argmax())
    return Change(float(by_zone.mean()), *interval(table)[1:], float(by_zone.max()), np.array(zones)[some][worst])


def naive_choice(past: pd.DataFrame) -> str:
    """The naive rule that lost least: one row per zone, one column per rule, NaN where a rule was not judged.

    Zones count alike: the regret of each rule is divided by that of all naive rules in the zone.
    """
    share = past.div(past.mean(axis=1).where(lambda mean: mean > NO_REGRET), axis=0).mean()
    order = [rule for rule in (FORECAST, STEADY, *past.columns) if rule in share and np.isfinite(share[rule])]
    return min(dict.fromkeys(order), key=lambda rule: share[rule]) if order else str(past.columns[0])
