"""A model for tomorrow: a rule of the backtest, trained on all days and saved with the days that its features look back on."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dffl
from dffl.federation import Client
from dffl.fitting import Fit
from dffl.items import ItemFactory
from dffl.predictor import ForecastPredictor, MeanPredictor
from dffl.time.backtest import CANDIDATES
from dffl.time.bases import FORECAST, MEANS, NAIVE, STEADY, SteadyAverage, plain_mean, steady
from dffl.time.mixtures import MIX
from dffl.time.past import Past
from dffl.time.refits import Candidate, Prepared
from dffl_studies.energy.backtests import refit_of
from dffl_studies.energy.preset import Market, Preset, choice_of

KIND, FORMAT = "energy", 2
KEPT_DAYS = 400
"""The last days of each zone that a model keeps: what its averages look back on."""


class Rule(NamedTuple):
    """A rule of a backtest: the forecast that it starts at, the methods that are trained, and whether the base counts too."""

    base: str
    methods: tuple[Candidate, ...]
    averaged: bool

    @classmethod
    def of(cls, name: str, base: str, candidates: Sequence[Any] | None) -> Rule:
        """From its name in a backtest: ``steady``, ``fedavg``, ``fedavg-mse+steady`` or ``mix``."""
        if name in (*NAIVE, FORECAST):
            return cls(name, (), True)
        known = {one.label: one for one in map(Candidate.of, candidates or CANDIDATES)}
        parts = [*known, base] if name == MIX else name.split("+")
        methods = (known.get(part) or Candidate.of(choice_of(part)) for part in parts if part != base)
        return cls(base, tuple(methods), base in parts)


def train(market: Market, preset: Preset, rule: str | None = None, seed: int = 0, progress: bool | None = None) -> Fit:
    """Train a rule on all days; by default the one that a backtest chooses last."""
    if rule is None:
        asked: dict[str, Any] = {
            "refit": refit_of(market, preset),
            "start": market.first_test,
            "seed": seed,
            "progress": progress,
        }
        found = dffl.backtest(market.federation, preset.candidates, **asked, **preset.settings)
        rule = str(found.used(0)[-1])
    base = FORECAST if market.federation.has_forecast else STEADY
    made = Rule.of(rule, base, preset.candidates)
    clients = market.federation.clients
    days = [day_numbers(client) for client in clients]
    average = SteadyAverage(clients, days)
    weight = average.weight([client.n for client in clients])
    prepared = Prepared(clients, days, [table(made.base, client, weight) for client in clients], Past(season=False))
    known = [client.n for client in clients]
    settings = preset.settings | {"seed": seed}
    fits = [prepared.trained(one, known, settings) for one in made.methods]
    if not fits:
        fits = [dffl.fit(prepared.federation(known), "forecast", progress=False, seed=seed)]
    return replace(_averaged(fits, made), about={**fits[0].about, KIND: _about(market, preset, rule, made.base, weight)})


def load(path: Path) -> Fit:
    """A model that `train` has made and `Fit.save` has written."""
    days = np.arange(2.0)[:, None] * np.ones(2)
    client = Client("width", days, days, dffl.TopK(2, 1))
    width = Prepared([client], [None], [days], Past(season=False)).width
    model = dffl.load(path, network=ItemFactory(width))
    if not isinstance(model, Fit):
        raise ValueError(f"{path}: is not a model of `dffl energy train`")
    return model


def _averaged(fits: Sequence[Fit], rule: Rule) -> Fit:
    """One fit that predicts the mean of several, and of the base where the rule says so."""
    first = fits[0]
    if len(fits) == 1 and (not rule.averaged or not rule.methods):
        return first
    start = (ForecastPredictor(first.dim),) if rule.averaged else ()
    members = {
        name: replace(member, predictor=MeanPredictor((*(fit.members[name].predictor for fit in fits), *start)))
        for name, member in first.members.items()
    }
    return replace(first, members=members, shared=None)


def table(base: str, client: Client, weight: float) -> np.ndarray:
    """What a base expects of each day of a zone."""
    if base == FORECAST:
        return np.asarray(client.forecast)
    return plain_mean(base, client.c) if base in MEANS else steady(client.c, weight, day_numbers(client))


def day_numbers(client: Client) -> np.ndarray:
    """Days since 1970 of a zone's rows."""
    assert client.times is not None, "a market has an order"
    return np.asarray(client.times) / 86400e9


def _about(market: Market, preset: Preset, rule: str, base: str, weight: float) -> dict[str, Any]:
    """Everything that decisions need in addition to the network, as plain values for JSON."""
    panel, zones = market.panel, {}
    for (zone, rows), client, demand in zip(panel.zones.items(), market.federation, panel.demands, strict=True):
        own = client.x if client.forecast is None else client.x[:, : -panel.periods]
        zones[zone] = {
            "demand": None if zone in market.sets else float(demand),
            "dates": panel.dates[rows][-client.n :][-KEPT_DAYS:].astype(str).tolist(),
            "costs": packed(client.c[-KEPT_DAYS:]),
            "x": packed(own[-KEPT_DAYS:]),
            "forecast": None if client.forecast is None else packed(client.forecast[-KEPT_DAYS:]),
            "seen": [own.min(axis=0).tolist(), own.max(axis=0).tolist()],
        }
    names = [name for name in panel.covariate_names if name in plain_names(panel.covariate_names)]
    return {
        "format": FORMAT, "rule": rule, "base": base, "weight": weight, "cost": preset.cost, "weather_lag": preset.weather_lag,
        "covariates": names, "periods": panel.periods, "currency": panel.money, "unit": panel.unit,
        "demand_from": panel.demand_from, "zones": zones,
    }  # fmt: skip


def plain_names(names: Sequence[str]) -> list[str]:
    """The covariates that are no weekday: that follows from the date."""
    from dffl_studies.energy.data.columns import CALENDAR

    return [name for name in names if name not in CALENDAR]


def packed(values: np.ndarray) -> dict[str, Any]:
    """A table as plain values that keep every bit."""
    table = np.ascontiguousarray(values, "<f8")
    return {"shape": list(table.shape), "bytes": base64.b64encode(table.tobytes()).decode()}


def unpacked(plain: dict[str, Any]) -> np.ndarray:
    """The table that `packed` has written."""
    return np.frombuffer(base64.b64decode(plain["bytes"], validate=True), "<f8").reshape(plain["shape"])
