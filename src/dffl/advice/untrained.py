"""What a client has without any training: the forecast that it brings and, where rows have an order, means of the last rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dffl.federation import Client, Federation
from dffl.judging import regrets_at_each, share
from dffl.time.bases import FORECAST, MEANS, plain_mean

START = max(MEANS.values())
"""Rows before this one have too little past to judge a mean of the last rows by."""


class Untrained(NamedTuple):
    """Relative regrets of a client; NaN where it has no such rule."""

    forecast: float
    naive: float
    """Of the best of the means of the last rows."""
    naive_rule: str


def untrained(federation: Federation) -> list[Untrained]:
    """What each client loses without any training."""
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
    found = []
    for value, own in zip(forecast, means, strict=True):
        best = min(own, key=lambda rule: own[rule], default="")
        found.append(Untrained(value, own.get(best, math.nan), best))
    return found


def _in_order(client: Client) -> bool:
    """Whether a client's rows follow each other, with enough of them to judge."""
    return client.times is not None and client.n >= 2 * START and bool((np.diff(client.times) > 0).all())


def _relative(lost: np.ndarray, client: Client, first: int) -> float:
    return float(share(np.maximum(lost, 0)[first:].sum(), client.z_star_size[first:].sum()))


RULES = (FORECAST, *MEANS)
"""The names of such rules."""
