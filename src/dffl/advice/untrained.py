"""Rules of a client without training: its forecast and, if rows have an order, means of the last rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dffl.federation import Client, Federation
from dffl.judging import regrets_at_each, share
from dffl.time.bases import FORECAST, MEANS, plain_mean

START = max(MEANS.values())
"""Rows before this one have too little past for a judgement of means of the last rows."""


class Untrained(NamedTuple):
    """Relative regrets of a client; NaN if it has no such rule."""

    forecast: float
    naive: float
    """The name of the best of the means of the last rows."""
    naive_rule: str


def untrained(federation: Federation) -> list[Untrained]:
    """The losses of each client without any training."""
    forecast = [math.nan] * len(federation)
    if federation.has_forecast:
        lost = regrets_at_each(federation.clients, [client.forecast for client in federation])
        forecast = [_relative(mine, client, 0) for mine, client in zip(lost, federation, strict=True)]
    means: list[dict[str, float]] = [{} for _ in federation]
    if all(_in_order(client) for client in federation):
        for rule in MEANS:
            lost = regrets_at_each(federation.clients, [plain_mean(rule, client.c) for client in federation])
            for place, client in enumerate(federation):
                means[place][rule] = _relative(lost[place], client, START)
    collected = []
    for value, mean in zip(forecast, means, strict=True):
        best = min(mean, key=lambda rule: mean[rule], default="")
        collected.append(Untrained(value, mean.get(best, math.nan), best))
    return collected


def _in_order(client: Client) -> bool:
    """Whether a client's rows are in an order, with enough of them for a judgement."""
    return client.times is not None and client.n >= 2 * START and bool((np.diff(client.times) > 0).all())


def _relative(lost: np.ndarray, client: Client, first: int) -> float:
    return float(share(np.maximum(lost, 0)[first:].sum(), client.z_star_size[first:].sum()))


RULES = (FORECAST, *MEANS)
"""The names of such rules."""
