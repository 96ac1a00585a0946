"""A backtest of a market for each seed, as a study: what each rule loses in each zone, week by week."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dffl.federation import Client
from dffl.judging import regrets_at_each
from dffl.time.bases import FORECAST, STEADY, SteadyAverage, plain_mean
from dffl.time.bases import NAIVE as PLAIN
from dffl_studies.energy.data import digest
from dffl_studies.energy.expected import expected_mean, weekly
from dffl_studies.energy.preset import Market, Preset
from dffl_studies.energy.weeks import WEEK, week_columns
from dffl_studies.running.study import Study, grid

CHOSEN = "chosen"
NAIVE, METHOD = "naive", "method"
"""The kinds of rules: those without training, and those with; the chosen one is a kind of its own."""
SETTLED = 28
"""The first days of a zone, on which means of the past are of too few days to be judged."""
EVER = "mean-14"
"""The rule by whose regret the drift of a market is measured: it needs no choice."""


def study(panel: Path, preset: Preset, seeds: Sequence[int]) -> Study:
    """The study of a market. Its protocol knows the panel by its content, so that the file may move between two runs."""
    files = {name: digest(Path(path)) for name in ("decisions", "rates") if (path := getattr(preset, name)) is not None}
    protocol = {"data": digest(panel), "files": files, "protocol": preset.as_json()}
    return Study("energy-market", judge, grid(seed=list(seeds)), protocol, places={"panel": str(panel.resolve())})


def judge(*, data: str, files: dict[str, str], protocol: dict[str, Any], seed: int, panel: str) -> pd.DataFrame:
    """One row for each zone and rule: its mean regret on a test day, what each week adds to it, and its kind.

    ``past`` is what a naive rule lost on average on the days before the test: they choose one.
    """
    import dffl

    if digest(panel) != data:
        raise ValueError(f"{panel}: the panel is not the one that the study began with; start again in another folder")
    preset = Preset.of(protocol)
    market = preset.market(panel)
    asked: dict[str, Any] = {"refit": refit_of(market, preset), "start": market.first_test, "seed": seed, "progress": False}
    return rows_of(dffl.backtest(market.federation, preset.candidates, **asked, **preset.settings), market)


def refit_of(market: Market, preset: Preset) -> int:
    """The days between two trainings; a short test part has one training."""
    return int(min(preset.refit, (market.panel.days >= np.datetime64(market.first_test, "D")).sum()))


def rows_of(outcome: Any, market: Market) -> pd.DataFrame:
    """The rows of a backtest (`dffl.time.outcome.Backtest`)."""
    first = np.datetime64(market.first_test, "D")
    zone_days = [market.panel.dates[rows] for rows in market.panel.zones.values()]
    zone_days = [
        days[len(days) - client.n :] for days, client in zip(zone_days, market.federation, strict=True)
    ]  # covariates may lag
    dates = [days[days >= first] for days in zone_days]
    known = [len(days) - len(tested) for days, tested in zip(zone_days, dates, strict=True)]
    weeks, before = (
        [(days - first).astype(int) // WEEK for days in dates],
        naive_losses(market.federation.clients, zone_days, known),
    )
    tables = []
    for rule in (*outcome.lost, CHOSEN):
        lost = [outcome.regrets(rule, place) for place in range(len(outcome.clients))]
        after = [values[len(values) - len(days) :] for values, days in zip(lost, dates, strict=True)]
        past = [values[SETTLED:end] for values, end in zip(before[rule], known, strict=True)] if rule in before else lost
        facts = {
            "zone": [client.name for client in outcome.clients], "rule": rule,
            "kind": kind_of(rule),
            "regret": [values.mean() for values in after],
            "past": [values.mean() if rule in before and len(values) else np.nan for values in past],
        }  # fmt: skip
        tables.append(pd.DataFrame(facts).join(week_columns(after, weeks)))
    lately = [outcome.regrets(CHOSEN, place) for place in range(len(outcome.clients))]
    lately = [values[: len(values) - len(days)] for values, days in zip(lately, dates, strict=True)]
    low, high = expected_mean(
        weekly(lately), weekly([values[SETTLED:end] for values, end in zip(before[EVER], known, strict=True)])
    )
    best = [float(client.best_objective[-len(days) :].mean()) for client, days in zip(outcome.clients, dates, strict=True)]
    choices = [choice for choice in outcome.choices if choice.origin >= outcome.timeline.start]
    told = [f"{outcome.timeline.shown(choice.origin)} {_fleet(choice.rules)}" for choice in choices]
    zones = pd.DataFrame({"zone": list(market.panel.zones), "best": best, "held": list(outcome.ranges.values())})
    zones = zones.assign(n_test=[len(days) for days in dates], expected_low=low, expected_high=high, choices="; ".join(told))
    bought = [encoded(spans.decisions[-len(days) :]) for spans, days in zip(outcome.spans, dates, strict=True)]
    chosen = pd.DataFrame({"zone": list(market.panel.zones), "rule": CHOSEN, "decisions": bought})
    rows = zones.merge(pd.concat(tables), on="zone").merge(chosen, on=["zone", "rule"], how="left")
    return rows.astype({"n_test": "int32"})


LEVELS = "0123456789"
"""How much of its largest amount a zone buys in a period, in ninths: one sign for each period."""


def encoded(decisions: np.ndarray) -> str:
    """Decisions, (days, periods), as a text of one sign for each period; empty where some are negative, as of a battery."""
    largest = float(np.max(decisions, initial=0.0))
    if largest <= 0 or decisions.min() < -1e-9 * largest:
        return ""
    return "".join(LEVELS[level] for level in np.rint(9 * decisions / largest).astype(int).clip(0, 9).ravel())


def decoded(text: str, periods: int) -> np.ndarray:
    """What `encoded` has written, as shares of the largest amount."""
    return np.array([int(sign) for sign in text], float).reshape(-1, periods) / 9


def naive_losses(clients: Sequence[Client], dates: Sequence[np.ndarray], known: Sequence[int]) -> dict[str, list[np.ndarray]]:
    """What naive rules, and a forecast that is brought, lose on every day; the steady average's weight is of ``known`` days."""
    average = SteadyAverage(list(clients), [days.astype(float) for days in dates])
    expected = {rule: [plain_mean(rule, client.c) for client in clients] for rule in PLAIN if rule != STEADY}
    expected[STEADY] = average.forecasts(average.weight(list(known)))
    if all(client.forecast is not None for client in clients):
        expected[FORECAST] = [np.asarray(client.forecast) for client in clients]
    return {rule: regrets_at_each(clients, tables) for rule, tables in expected.items()}


def kind_of(rule: str) -> str:
    """Whether a rule is trained, needs no training, or is the choice among both."""
    return CHOSEN if rule == CHOSEN else NAIVE if rule in (*PLAIN, FORECAST) else METHOD


def _fleet(rules: Sequence[str]) -> str:
    """The rule that most zones use."""
    return max(dict.fromkeys(rules), key=list(rules).count)
