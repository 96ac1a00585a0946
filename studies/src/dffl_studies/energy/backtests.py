"""A backtest of a market for each seed, as a study: what each rule loses in each zone, week by week."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dffl_studies.energy.data import digest
from dffl_studies.energy.expected import expected_mean
from dffl_studies.energy.preset import Market, Preset
from dffl_studies.energy.weeks import WEEK, week_columns
from dffl_studies.running.study import Study, grid

CHOSEN = "chosen"
NAIVE, METHOD = "naive", "method"
"""The kinds of rules: those without training, and those with; the chosen one is a kind of its own."""


def study(panel: Path, preset: Preset, seeds: Sequence[int]) -> Study:
    """The study of a market. Its protocol knows the panel by its content, so that the file may move between two runs."""
    files = {name: digest(Path(path)) for name in ("decisions", "rates") if (path := getattr(preset, name)) is not None}
    protocol = {"data": digest(panel), "files": files, "protocol": preset.as_json()}
    return Study("energy-market", judge, grid(seed=list(seeds)), protocol, places={"panel": str(panel.resolve())})


def judge(*, data: str, files: dict[str, str], protocol: dict[str, Any], seed: int, panel: str) -> pd.DataFrame:
    """One row for each zone and rule: its mean regret on a test day, what each week adds to it, and its kind.

    ``past`` is the mean regret of the days before the first test day on which rules were judged: they choose a naive rule.
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


def rows_of(found: Any, market: Market) -> pd.DataFrame:
    """The rows of a backtest (`dffl.time.outcome.Backtest`)."""
    trained, first = set(found.trained), np.datetime64(market.first_test, "D")
    tables = []
    dates = [market.panel.dates[rows][market.panel.dates[rows] >= first] for rows in market.panel.zones.values()]
    weeks = [(days - first).astype(int) // WEEK for days in dates]
    past_of_chosen = []
    for rule in (*found.lost, CHOSEN):
        lost = [found.regrets(rule, place) for place in range(len(found.clients))]
        parts = [(own[: len(own) - len(days)], own[len(own) - len(days) :]) for own, days in zip(lost, dates, strict=True)]
        kind = CHOSEN if rule == CHOSEN else METHOD if _is_trained(rule, trained) else NAIVE
        facts = {
            "zone": [client.name for client in found.clients], "rule": rule, "kind": kind,
            "regret": [after.mean() for _, after in parts], "past": [_mean(before) for before, _ in parts],
        }  # fmt: skip
        tables.append(pd.DataFrame(facts).join(week_columns([after for _, after in parts], weeks)))
        if rule == CHOSEN:
            past_of_chosen = [before for before, _ in parts]
    best = [float(client.best_objective[-len(days) :].mean()) for client, days in zip(found.clients, dates, strict=True)]
    low, high = expected_mean(past_of_chosen, int(np.median([len(days) for days in dates])))
    choices = [choice for choice in found.choices if choice.origin >= found.timeline.start]
    told = [f"{found.timeline.shown(choice.origin)} {_fleet(choice.rules)}" for choice in choices]
    zones = pd.DataFrame({"zone": list(market.panel.zones), "best": best, "held": list(found.ranges.values())})
    zones = zones.assign(n_test=[len(days) for days in dates], expected_low=low, expected_high=high, choices="; ".join(told))
    return zones.merge(pd.concat(tables), on="zone").astype({"n_test": "int32"})


def _is_trained(rule: str, trained: set[str]) -> bool:
    """Whether a rule is a trained method or an average that has one in it."""
    return rule == "mix" or bool(trained & set(rule.split("+")))


def _fleet(rules: Sequence[str]) -> str:
    """The rule that most zones use."""
    return max(dict.fromkeys(rules), key=list(rules).count)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
