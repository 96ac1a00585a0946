"""Federations in which the rows of others help little: copies of one table, pure noise, and sites of one price zone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dffl.federation import Client, Federation
from dffl.randomness import Purpose, stream
from dffl.sets import FeasibleSet, FractionalKnapsack, TopK
from dffl.synthetic import Split
from dffl_studies.running.study import Job, grid

COPIES, NOISE, ZONE = KINDS = ("copies", "noise", "zone")
FEATURES, DIM, TEST_ROWS = 5, 8, 3000
ROWS = (60, 120)
CLIENTS = 4


class Recipe(NamedTuple):
    """The random properties of a federation of a kind, drawn from its seed."""

    n: int
    knapsack: bool
    own_constraints: bool
    degree: int
    noise: float
    own_weather: bool
    """In a zone: whether each site measures its own features; else they are the same at all sites."""
    overlap: float
    """In a zone: the share of the zone's days that a site has rows of."""
    own_costs: bool
    """In pure noise: whether each client has its own mean costs; else they are the same at all clients."""


def configurations(seeds: Sequence[int]) -> list[Job]:
    """A federation of each kind for each seed; a part of the study has all kinds."""
    return grid(seed=list(seeds), kind=list(KINDS))


def recipe(kind: str, seed: int) -> Recipe:
    """The properties of the federation of this kind and seed."""
    rng = _rng(kind, seed, "recipe")
    return Recipe(
        n=int(rng.choice(ROWS)),
        knapsack=bool(rng.integers(2)),
        own_constraints=kind == ZONE or bool(rng.integers(2)),
        degree=int(rng.integers(1, 3)),
        noise=float(rng.choice([0.25, 0.5])),
        own_weather=bool(rng.integers(2)),
        overlap=float(rng.choice([0.6, 1.0])),
        own_costs=bool(rng.integers(2)),
    )


def federation(kind: str, seed: int, split: Split) -> Federation:
    """The clients' training rows; or 3,000 test rows of each, which no client has seen."""
    how = recipe(kind, seed)
    tables = TABLES[kind](how, kind, seed, split)
    clients = []
    for number, (x, c) in enumerate(tables):
        rng = _rng(kind, seed, f"set of {number}" if how.own_constraints else "set")
        clients.append(Client(f"site-{number + 1}", x, c, _set(how, rng), maximize=how.knapsack))
    return Federation(clients)


def _copies(how: Recipe, kind: str, seed: int, split: Split) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same table at every client."""
    rng = _rng(kind, seed, split)
    x = rng.normal(size=(_rows(how, split), FEATURES))
    c = _costs(how, kind, seed, x, rng)
    return [(x, c)] * CLIENTS


def _noise(how: Recipe, kind: str, seed: int, split: Split) -> list[tuple[np.ndarray, np.ndarray]]:
    """Costs that do not depend on the features; every client has rows of its own."""
    level, tables = _rng(kind, seed, "level").uniform(0.8, 1.2, DIM), []
    for number in range(CLIENTS):
        level_of_zone = _rng(kind, seed, f"level of {number}").uniform(0.8, 1.2, DIM) if how.own_costs else level
        rng, n = _rng(kind, seed, f"{split} of {number}"), _rows(how, split)
        tables.append((rng.normal(size=(n, FEATURES)), level_of_zone * rng.uniform(1 - how.noise, 1 + how.noise, (n, DIM))))
    return tables


def _zone(how: Recipe, kind: str, seed: int, split: Split) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same prices on the same days. Sites have all days or some of them, the same features or weather of their own."""
    rng = _rng(kind, seed, split)
    n = _rows(how, split)
    days = n if split == "test" else round(n / how.overlap)
    weather = rng.normal(size=(days, FEATURES))
    prices = _costs(how, kind, seed, weather, rng)
    tables = []
    for _ in range(CLIENTS):
        kept_days = np.sort(rng.permutation(days)[:n])
        zone_weather = weather + 0.5 * rng.normal(size=weather.shape) if how.own_weather else weather
        tables.append((zone_weather[kept_days], prices[kept_days]))
    return tables


def _costs(how: Recipe, kind: str, seed: int, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The costs of `dffl.synthetic`, with real coefficients."""
    effect = _rng(kind, seed, "effect").normal(size=(DIM, FEATURES)) / np.sqrt(FEATURES)
    mean = 1 + np.abs(1 + x @ effect.T) ** how.degree
    return mean * rng.uniform(1 - how.noise, 1 + how.noise, mean.shape)


def _set(how: Recipe, rng: np.random.Generator) -> FeasibleSet:
    if how.knapsack:
        return FractionalKnapsack(rng.uniform(0.5, 1.5, DIM), DIM * rng.uniform(0.2, 0.6))
    return TopK(DIM, float(rng.integers(2, 6)))


def _rows(how: Recipe, split: Split) -> int:
    return TEST_ROWS if split == "test" else how.n


def _rng(kind: str, seed: int, what: str) -> np.random.Generator:
    return stream(seed, Purpose.SYNTHETIC_PROBLEM, f"{kind}: {what}")


TABLES = {COPIES: _copies, NOISE: _noise, ZONE: _zone}
