"""The knapsack of whole items, {w in {0, 1}^d, a . w <= B}."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from dffl.sets._calls import Calls
from dffl.sets._numerics import addable, in_blocks
from dffl.sets.base import Bracket, Parameter, VectorSet, broadcast_batch, frozen, parameter, require, stack
from dffl.sets.knapsack import FractionalKnapsack, packed_in_words
from dffl.sets.mixed_integer import MixedInteger
from dffl.sets.parameters import EACH, NUMBER
from dffl.shapes import round_up

SCALES = (1, 10, 100, 1000)
"""Weights must become whole numbers when they are multiplied by one of these."""
CLOSE = 1e-9
"""How far from whole, relative to its size, a number may be: 0.29 x 100 is not 29 in floating point."""
CELLS = 2**22
"""The largest table, items times units of capacity: with more, a solver for integer programs is as fast."""
LEAST = 64
"""The smallest capacity of a table: clients whose budgets differ a little have tables of one size, and are stacked."""


class ZeroOneKnapsack(VectorSet):
    """Items that are packed whole or not at all, within a budget: {w in {0, 1}^d, a . w <= B}.

    ``weights`` is a (d,), ``budget`` is B. Where the weights are whole numbers, or become whole when they are multiplied by 10,
    100 or 1000, the oracle is dynamic programming over the capacity, in compiled programs. Of packings that cost the same it
    chooses the one that takes the first item, and of those the one that takes the second, and so on. Other weights, and
    tables that would be too large, are left to HiGHS (`MixedInteger`), which is slower. Items whose cost is not negative are
    never taken.
    """

    convex: ClassVar[bool] = False
    toml_name = "zero-one-knapsack"
    toml_parameters = {"weights": EACH, "budget": NUMBER}

    weights: Parameter
    budget: Parameter
    _units: Parameter  # weights in whole units, where there is a table
    _capacity: Parameter  # the budget in whole units, likewise
    _size: int = eqx.field(static=True)  # rows of the table, for capacities from 0 to _size - 1
    _program: MixedInteger | None  # what is asked where there is no table

    def __init__(self, weights: ArrayLike, budget: ArrayLike):
        name = "ZeroOneKnapsack"
        a, b = parameter(name, "weights", weights, 1), parameter(name, "budget", budget, 0)
        require(name, "weights", a, a > 0, "> 0")
        require(name, "budget", b, b >= 0, ">= 0")
        self.weights, self.budget = broadcast_batch(name, weights=(a, 1), budget=(b, 0))
        table = _table(self.weights, self.budget)
        self._program = None if table.size else _programs(self.weights, self.budget)
        self._units, self._capacity, self._size = frozen(table.units), frozen(table.capacity), table.size

    def in_words(self) -> str:
        return packed_in_words("pack", self.weights, float(self.budget))

    @property
    def on_host(self) -> bool:  # type: ignore[override]
        return self._program is not None

    @property
    def calls(self) -> Calls | None:
        return None if self._program is None else self._program.calls

    @property
    def relaxed(self) -> FractionalKnapsack:
        return FractionalKnapsack(self.weights, self.budget)

    def solve(self, c: ArrayLike) -> Array:
        if self._program is None:
            return super().solve(c)
        costs = self._checked(c, "costs")
        return jnp.where(costs < 0, self._program.solve(costs), 0)

    def _minimise(self, c: Array) -> Array:
        return in_blocks(self._pack, addable(c, self.dim), self.dim * self._size)

    def _pack(self, c: Array) -> Array:
        """The best packing for each column of costs (d, instances)."""

        def add(best: Array, item: tuple[Array, Array]) -> tuple[Array, Array]:
            """From the least costs with the later items, for each capacity, those with this one too; and where it is in."""
            unit, cost = item
            # What is left of a capacity k is k - unit; where that is negative the item does not fit.
            rest = jnp.concatenate([jnp.full_like(best, jnp.inf), best])
            packed = cost + lax.dynamic_slice_in_dim(rest, self._size - unit, self._size)
            taken = (packed <= best) & (cost < 0)
            return jnp.where(taken, packed, best), taken

        def trace(left: Array, item: tuple[Array, Array]) -> tuple[Array, Array]:
            """From the capacity that the items before have left to what this one leaves; and whether it is in."""
            unit, taken = item
            mine = jnp.take_along_axis(taken, left[None], axis=0)[0]
            return left - jnp.where(mine, unit, 0), mine

        nothing = jnp.zeros((self._size, c.shape[1]), c.dtype)
        units = jnp.asarray(self._units)
        _, taken = lax.scan(add, nothing, (units, c), reverse=True)
        _, chosen = lax.scan(trace, jnp.broadcast_to(self._capacity, c.shape[1:]), (units, taken))
        return chosen

    def _excess(self, w: Array) -> Array:
        distances = jnp.max(jnp.minimum(jnp.abs(w), jnp.abs(w - 1)), axis=-1)
        over = jnp.sum(w * self.weights, axis=-1) - self.budget
        return jnp.maximum(distances, over / jnp.maximum(self.budget, jnp.min(self.weights)))

    def _largest_norm(self) -> float:
        return math.sqrt(np.sum(np.cumsum(np.sort(self._units)) <= self._capacity))  # of the lightest items

    def _diameter(self) -> Bracket:
        if self._program is not None:
            return self._program.diameter()
        # Two packings are farthest apart where they share no item, and hold as many as they can together. If any m items can be
        # split in two packings then the m lightest can: find the sums that some of those reach, as bits of one number.
        capacity, sums, total, most = int(self._capacity), 1, 0, 0
        for unit in sorted(self._units.tolist()):
            total += unit
            sums |= (sums << unit) & ((2 << capacity) - 1)
            if sums >> max(0, total - capacity) == 0:  # none leaves an amount that fits the other packing
                break
            most += 1
        return Bracket.at(math.sqrt(most))


class _Table(NamedTuple):
    """Weights and budgets in whole units, and the rows of a table that has room for every one of these budgets."""

    units: np.ndarray
    capacity: np.ndarray
    size: int


def _table(weights: np.ndarray, budget: np.ndarray) -> _Table:
    """The table for these sets; of size 0 where there is none, or it would be too large."""
    d = weights.shape[-1]
    units, capacity = np.empty(weights.shape, np.int64), np.empty(budget.shape, np.int64)
    for index in np.ndindex(budget.shape):
        in_units = _in_units(weights[index], float(budget[index]))
        if in_units is None:
            return _Table(weights, budget, 0)
        units[index], capacity[index] = in_units
    size = round_up(max(LEAST, int(capacity.max()) + 1), bits=2)
    if size * d > CELLS:
        return _Table(weights, budget, 0)
    return _Table(np.minimum(units, size).astype(np.int32), capacity.astype(np.int32), size)  # what is heavier never fits


def _in_units(weights: np.ndarray, budget: float) -> tuple[np.ndarray, int] | None:
    for scale in SCALES:
        units = np.round(weights * scale)
        if (np.abs(weights * scale - units) <= CLOSE * units).all() and units.max() < 2**53:
            unit = math.gcd(*units.astype(np.int64).tolist())
            units = units.astype(np.int64) // unit
            total = sum(units.tolist())
            return units, min(math.floor(min(budget * scale / unit * (1 + CLOSE), total)), total)
    return None


def _programs(weights: np.ndarray, budget: np.ndarray) -> MixedInteger:
    """An integer program for each set, stacked as they are."""
    if budget.ndim:
        return stack([_programs(a, b) for a, b in zip(weights, budget, strict=True)])
    ones = np.ones(weights.size)
    return MixedInteger(A_ub=weights[None], b_ub=budget[None], lower=0 * ones, upper=ones)
