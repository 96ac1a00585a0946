"""Many clients at once, in float64: their predictions, their decisions, and the losses of these.

Every function takes one object and one table for each client, of any sizes, and returns a table for each. The result of a
client does not depend on the other clients, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from dffl.losses import regret
from dffl.predictor import Predictor
from dffl.sets import FeasibleSet
from dffl.sets._errors import host_errors
from dffl.tiles import is_array, over_tiles


def predict_each(predictors: Sequence[Predictor], features: Sequence[np.ndarray], dim: int) -> list[np.ndarray]:
    """The raw costs (n, dim) that each predictor gives for its own raw features (n, p)."""
    with jax.enable_x64(True):
        return over_tiles(_predict, predictors, [(x,) for x in features], dim)


def solve_each(sets: Sequence[FeasibleSet], costs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The best decisions (n, d) of each single set at its own costs (n, d)."""
    with jax.enable_x64(True), host_errors():
        return over_tiles(_solve, sets, [(c,) for c in costs], [s.dim for s in sets])


def regret_each(
    sets: Sequence[FeasibleSet], guesses: Sequence[np.ndarray], costs: Sequence[np.ndarray], optima: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The regret of each sample (n,) when minimisers decide by their guesses, given their best decisions w*(c)."""
    with jax.enable_x64(True), host_errors():
        return over_tiles(_regret, sets, list(zip(guesses, costs, optima, strict=True)), [s.dim for s in sets])


def _predict(predictors: Predictor, x: np.ndarray) -> Array:
    return _mapped(*eqx.partition(predictors, is_array), x)


@eqx.filter_jit
def _mapped(arrays: Any, rest: Any, x: Any) -> Array:
    return jax.vmap(lambda arrays_of_one, rows: eqx.combine(arrays_of_one, rest)(rows))(arrays, x)


@jax.jit
def _solve(sets: FeasibleSet, c: Array) -> Array:
    return sets.solve(c)


@jax.jit
def _regret(sets: FeasibleSet, guesses: Array, c: Array, w_star: Array) -> Array:
    return regret(guesses, c, sets, w_star=w_star)


MOST = 1 << 23
"""The most numbers that are computed at once, to bound the memory."""


def in_parts(sizes: Sequence[int]) -> Iterator[slice]:
    """Groups of consecutive clients with at most `MOST` numbers, or with a single client."""
    start, load = 0, 0
    for place, size in enumerate(sizes):
        if place > start and load + size > MOST:
            yield slice(start, place)
            start, load = place, 0
        load += size
    if sizes:
        yield slice(start, len(sizes))
