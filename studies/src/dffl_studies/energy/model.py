"""A model for tomorrow: a rule of the backtest, trained on all days, as the library's `Chosen` with what decisions print."""

from __future__ import annotations

from typing import Any

import numpy as np

import dffl
from dffl.batched import solve_each
from dffl.federation import Client
from dffl.time.backtest import WINDOW
from dffl.time.bases import FORECAST, MEANS, STEADY, SteadyAverage, plain_mean, steady
from dffl.time.choice import FLEET
from dffl.time.choosing import final_rules
from dffl.time.chosen import KEPT, Chosen, parts_of
from dffl.time.past import Past
from dffl.time.ranges import SHARE, AdaptiveRange
from dffl.time.refits import Candidate, Prepared
from dffl.time.timeline import DAY
from dffl.time.units import recent
from dffl_studies.energy.backtests import refit_of
from dffl_studies.energy.data.columns import CALENDAR
from dffl_studies.energy.preset import Market, Preset, choice_of

KIND = "energy"


def train(market: Market, preset: Preset, rule: str | None = None, seed: int = 0, progress: bool | None = None) -> Chosen:
    """Train a rule on all days; by default the one that a backtest speaks for."""
    federation, past = market.federation, Past(season=False)
    if rule is None:
        asked: dict[str, Any] = {"refit": refit_of(market, preset), "start": market.first_test, "seed": seed}
        outcome = dffl.backtest(federation, preset.candidates, progress=progress, **asked, **preset.settings)
        rule = final_rules(outcome, WINDOW, FLEET)[0][0]
    base = FORECAST if federation.has_forecast else STEADY
    candidates = _candidates(rule, base, preset)
    days = [day_numbers(client) for client in federation]
    weight = SteadyAverage(federation.clients, days).weight(federation.counts)
    bases = [table(base, client, weight) for client in federation]
    prepared = Prepared(federation.clients, days, bases, past)
    needed = parts_of(rule, list(candidates), base)
    settings = preset.settings | {"seed": seed}
    return Chosen(
        rules=dict.fromkeys(federation.names, rule),
        base=base,
        weight=weight,
        past=past,
        dates=True,
        share=SHARE,
        trained=tuple(candidates),
        parts={
            label: prepared.trained(candidate, federation.counts, settings)
            for label, candidate in candidates.items()
            if label in needed
        },
        kept={client.name: _last(client) for client in federation},
        ranges={client.name: _learned(client, expected) for client, expected in zip(federation, bases, strict=True)},
        evidence={},
        about={KIND: _about(market, preset, rule)},
    )


def _candidates(rule: str, base: str, preset: Preset) -> dict[str, Candidate]:
    """The methods of a backtest by their labels, and others that the rule names."""
    known = {candidate.label: candidate for candidate in map(Candidate.of, preset.candidates)}
    for part in rule.split("+"):
        if part not in (*known, *MEANS, STEADY, FORECAST, base, "mix"):
            known[part] = Candidate.of(choice_of(part))
    return known


def table(base: str, client: Client, weight: float) -> np.ndarray:
    """What a base expects of each day of a zone."""
    if base == FORECAST:
        return np.asarray(client.forecast)
    return plain_mean(base, client.c) if base in MEANS else steady(client.c, weight, day_numbers(client))


def day_numbers(client: Client) -> np.ndarray:
    """Days since 1970 of a zone's rows."""
    return seconds(client) / DAY


def seconds(client: Client) -> np.ndarray:
    """The times of a zone's rows, which a client has in nanoseconds."""
    assert client.times is not None, "a market has an order"
    return np.asarray(client.times) / 1e9


def _last(client: Client) -> Client:
    """The last days of a zone, on which averages look back."""
    some = slice(max(client.n - KEPT, 0), client.n)
    forecast = None if client.forecast is None else client.forecast[some]
    features = client.x if client.forecast is None else client.x[:, : -client.c.shape[1]]
    return Client(client.name, features[some], client.c[some], client.set, times=seconds(client)[some], forecast=forecast)


def _learned(client: Client, expected: np.ndarray) -> AdaptiveRange:
    """The range of a zone after all days: how far the base was off, with its own decisions."""
    [decisions] = solve_each([client.oracle], [client.completed(expected)])
    level, cost = (np.sum(client.completed(costs) * decisions, axis=1) for costs in (expected, client.c))
    scale, state = recent(client.c).spread[:, 0], AdaptiveRange()
    for row in range(Past().longest, client.n):
        state.observe(cost[row], level[row], scale[row], state.ends(level[row], scale[row]))
    return state


def _about(market: Market, preset: Preset, rule: str) -> dict[str, Any]:
    """What decisions print, and how days become features, as plain values for JSON."""
    panel, zones = market.panel, {}
    names = [name for name in panel.covariate_names if name not in CALENDAR]
    for client, demand in zip(market.federation, panel.demands, strict=True):
        features = client.x[:, : len(names)]
        zones[client.name] = {
            "demand": None if client.name in market.sets else float(demand),
            "seen": [features.min(axis=0).tolist(), features.max(axis=0).tolist()],
        }
    return {
        "rule": rule, "cost": preset.cost, "weather_lag": preset.weather_lag, "covariates": names, "periods": panel.periods,
        "currency": panel.money, "unit": panel.unit, "demand_from": panel.demand_from, "zones": zones,
    }  # fmt: skip
