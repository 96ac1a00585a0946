"""An appliance or a machine that runs for some hours on end, once or several times."""

from __future__ import annotations

import math
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from dffl.checks import require_whole
from dffl.sets._numerics import addable, in_blocks
from dffl.sets.base import Bracket, NumberSet, Parameter, broadcast_batch, dimension, frozen, parameter, require
from dffl.sets.parameters import WHOLE


class ConsecutiveHours(NumberSet):
    """Hours in which something runs: ``runs`` times, each for ``run`` hours on end, within the hours first, ..., last - 1.

    One 0/1 decision for each of ``dim`` hours. The runs do not overlap, but one may begin when another ends. Without ``last``
    the window ends with the last hour. Of schedules that cost the same, the one whose first run begins earliest is chosen, and
    of those the one whose second run does, and so on. A stack of sets may differ in ``first`` and ``last``.
    """

    convex: ClassVar[bool] = False
    toml_name = "consecutive-hours"
    toml_parameters = {"run": WHOLE, "runs": WHOLE, "first": WHOLE, "last": WHOLE}

    first: Parameter
    last: Parameter
    run: int = eqx.field(static=True)
    runs: int = eqx.field(static=True)

    def __init__(self, dim: int, run: int, runs: int = 1, first: ArrayLike = 0, last: ArrayLike | None = None):
        name = "ConsecutiveHours"
        self._dim = dimension(name, dim)
        require_whole(f"{name}: run", run, least=1)
        require_whole(f"{name}: runs", runs, least=1)
        self.run, self.runs = int(run), int(runs)
        begin, end = parameter(name, "first", first, 0), parameter(name, "last", self._dim if last is None else last, 0)
        for field, array in (("first", begin), ("last", end)):
            inside = (array >= 0) & (array <= self._dim) & (array == np.round(array))
            require(name, field, array, inside, f"a whole number from 0 to {self._dim}")
        begin, end = broadcast_batch(name, first=(begin, 0), last=(end, 0))
        hours = self.runs * self.run
        require(name, "last - first", end - begin, end - begin >= hours, f">= {hours}, the hours of {runs} runs of {run}")
        self.first, self.last = frozen(begin.astype(np.int32)), frozen(end.astype(np.int32))

    def in_words(self) -> str:
        window = (
            "" if (int(self.first), int(self.last)) == (0, self.dim) else f", from hour {int(self.first)} to {int(self.last)}"
        )
        times = "" if self.runs == 1 else f", {self.runs} times"
        return f"run {self.run} of {self.dim} hours on end{times}{window}"

    def _minimise(self, c: Array) -> Array:
        return in_blocks(self._schedule, addable(c, self.runs * self.run), 4 * self.runs * self.dim)

    def _schedule(self, c: Array) -> Array:
        """The best schedule for each column of costs (dim, instances)."""
        count = self.dim - self.run + 1
        starts, hours = np.arange(count, dtype=np.int32)[:, None], np.arange(self.dim, dtype=np.int32)[:, None]
        # Sums of their own for each start: differences of running sums would lose digits to costs of other hours.
        run_costs = lax.fori_loop(
            1, self.run, lambda k, total: total + lax.dynamic_slice_in_dim(c, k, count), lax.slice_in_dim(c, 0, count)
        )
        run_costs = jnp.where((starts >= self.first) & (starts <= self.last - self.run), run_costs, jnp.inf)
        late = jnp.full((self.run, c.shape[1]), jnp.inf, c.dtype)

        def lower(least: Array, cost: Array) -> tuple[Array, Array]:
            least = jnp.minimum(least, cost)
            return least, least

        def add(onward: Array, _: None) -> tuple[Array, Array]:
            """From the least costs of the later runs, for each hour from which on they are, those with one run more."""
            costs = run_costs + onward[self.run :]
            # A plain loop: with lax.cummin two runs take twice as long, and the program longer to compile.
            least = lax.scan(lower, late[0], costs, reverse=True)[1]
            return jnp.concatenate([least, late]), costs

        def trace(state: tuple[Array, Array], costs: Array) -> tuple[tuple[Array, Array], None]:
            """From the hour at which the machine is free again to that after its next run."""
            free, on = state
            start = jnp.argmin(jnp.where(starts >= free, costs, jnp.inf), axis=0).astype(np.int32)  # the earliest, if several
            return (start + self.run, on | ((hours >= start) & (hours < start + self.run))), None

        _, costs = lax.scan(add, jnp.zeros((self.dim + 1, c.shape[1]), c.dtype), None, length=self.runs)
        begin = jnp.zeros(c.shape[1:], np.int32), jnp.zeros(c.shape, bool)
        (_, on), _ = lax.scan(trace, begin, costs, reverse=True)
        return on

    def _excess(self, w: Array) -> Array:
        def follow(left: Array, x: Array) -> tuple[Array, tuple[Array, Array]]:
            """What must be on given what is: once it is on, it stays on for a whole run."""
            starts = (left == 0) & (x > 0.5)
            left = jnp.where(starts, self.run, left)
            return jnp.maximum(left - 1, 0), (left > 0, starts)

        rows = jnp.moveaxis(w, -1, 0)
        left, (on, starts) = lax.scan(follow, jnp.zeros(rows.shape[1:], np.int32), rows)
        hours = np.arange(self.dim, dtype=np.int32).reshape(-1, *[1] * (w.ndim - 1))
        outside = jnp.any(on & ((hours < self.first) | (hours >= self.last)), axis=0)
        count = jnp.abs(jnp.sum(starts, axis=0, dtype=np.int32) - self.runs)
        wrong = jnp.maximum(jnp.maximum(count, left), outside).astype(w.dtype)
        return jnp.maximum(wrong, jnp.max(jnp.abs(rows - on), axis=0))

    def _largest_norm(self) -> float:
        return math.sqrt(self.runs * self.run)  # of every schedule

    def _diameter(self) -> Bracket:
        # All runs as early as possible, and all as late as possible: no two schedules in the window have less in common.
        on, window = self.runs * self.run, int(self.last) - int(self.first)
        return Bracket.at(math.sqrt(2 * min(on, window - on)))
