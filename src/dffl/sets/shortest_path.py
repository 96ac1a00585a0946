"""Shortest paths through a grid, from its north-west to its south-east corner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from dffl.checks import require_whole
from dffl.sets._numerics import addable
from dffl.sets.base import Bracket, FeasibleSet, Parameter, frozen
from dffl.sets.parameters import WHICH, WHOLE


class ShortestPath(FeasibleSet):
    """Paths from the north-west to the south-east corner of a grid of nodes that go right and down, as 0/1 decisions on arcs.

    The arcs are numbered row by row: those that go right inside the row, from left to right, then those that go down from it,
    from left to right. PyEPO has the same order. ``closed`` (dim,) is true for arcs that may not be used. Costs may be
    negative. Where going right costs as much as going down, the path goes right.
    """

    convex: ClassVar[bool] = False
    toml_name = "shortest-path"
    toml_parameters = {"rows": WHOLE, "columns": WHOLE, "closed": WHICH}

    closed: Parameter
    rows: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)

    def __init__(self, rows: int, columns: int, closed: ArrayLike | None = None):
        require_whole("ShortestPath: rows", rows, least=1)
        require_whole("ShortestPath: columns", columns, least=1)
        if rows == columns == 1:
            raise ValueError("ShortestPath: rows and columns must make a grid of at least 2 nodes, found 1 and 1")
        self.rows, self.columns = int(rows), int(columns)
        d = _dim(self.rows, self.columns)
        self.closed = _flags(np.zeros(d, bool) if closed is None else closed, d)
        stuck = _blocked(_diagonals(self.rows, self.columns), self.closed)[1]
        if stuck.any():
            where = f" of set {np.argwhere(stuck)[0].tolist()}" if stuck.ndim else ""
            raise ValueError(f"ShortestPath: closed must leave a path from corner to corner, found none{where}")

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        rows, columns = spec.get("rows"), spec.get("columns")
        known = {"dim": _dim(rows, columns)} if isinstance(rows, int) and isinstance(columns, int) else {}
        return super().asked(spec) | known

    @classmethod
    def toml_dim(cls, given: Mapping[str, Any]) -> int:
        return _dim(int(given["rows"]), int(given["columns"]))

    def in_words(self) -> str:
        closed = int(self.closed.sum())
        return f"shortest path, {self.rows} x {self.columns} grid" + (f", {closed} arcs closed" if closed else "")

    @property
    def dim(self) -> int:
        return _dim(self.rows, self.columns)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(self.closed.shape[:-1])

    @property
    def arcs(self) -> list[tuple[int, int]]:
        """The two nodes of each arc, in the order of the decisions; node (i, j) has the number i columns + j."""
        return [(v, w) for v, w in _arcs(self.rows, self.columns).tolist()]

    def _minimise(self, c: Array) -> Array:
        ways = _diagonals(self.rows, self.columns)
        # Instances are the last axis: every operation below is then a loop over many numbers that lie side by side.
        costs = addable(c, self.rows + self.columns).reshape(-1, self.dim).T
        # The last entry stands for arcs that leave the grid. Sums of costs are finite, so those of paths that can be taken are
        # less than those over closed arcs.
        closed = jnp.append(self.closed, True)
        costs = jnp.concatenate([costs, jnp.zeros_like(costs[:1])])

        def back(after: Array, arcs: tuple[Array, Array]) -> tuple[Array, Array]:
            """From the costs of reaching the end from one diagonal, those from the diagonal before, and which way."""
            stay, step = (
                jnp.where(closed[arc][:, None], jnp.inf, costs[arc] + onward)
                for arc, onward in zip(arcs, (after, _next_lane(after)), strict=True)
            )
            stays = (stay <= step) if ways.right_stays else (stay < step)
            return jnp.minimum(stay, step), stays

        def walk(here: Array, stays: Array) -> tuple[Array, tuple[Array, Array]]:
            """From the node of the path on one diagonal, as flags, that on the next."""
            stay, step = here & stays, here & ~stays
            return stay | _lane_before(step), (stay, step)

        end = jnp.zeros((ways.stay.shape[1], costs.shape[1]), c.dtype)
        _, stays = lax.scan(back, end, (jnp.asarray(ways.stay), jnp.asarray(ways.step)), reverse=True)
        begin = jnp.broadcast_to((np.arange(len(end)) == 0)[:, None], end.shape)
        _, used = lax.scan(walk, begin, stays)
        return jnp.stack(used).reshape(2 * ways.stay.size, end.shape[1])[ways.place].T.reshape(c.shape).astype(c.dtype)

    def _excess(self, w: Array) -> Array:
        tails, heads = _arcs(self.rows, self.columns).T
        supply = np.zeros(self.rows * self.columns)
        supply[0], supply[-1] = -1, 1
        left_over = jnp.broadcast_to(jnp.asarray(supply, w.dtype), (*w.shape[:-1], supply.size))
        flow = jnp.max(jnp.abs(left_over.at[..., tails].add(w).at[..., heads].add(-w)), axis=-1)
        distances = jnp.max(jnp.minimum(jnp.abs(w), jnp.abs(w - 1)), axis=-1)
        shut = jnp.max(jnp.where(self.closed, jnp.abs(w), 0), axis=-1)
        return jnp.maximum(jnp.maximum(flow, distances), shut)

    def _largest_norm(self) -> float:
        return math.sqrt(self.rows + self.columns - 2)  # of every path

    def _diameter(self) -> Bracket:
        # Two paths share at least the arcs that all paths use. Between two of those there are two ways without a common arc
        # (Menger), so some pair shares no others. A path has one arc between two diagonals: it is common if it is the only one.
        ways = _diagonals(self.rows, self.columns)
        usable = np.append(~_blocked(ways, self.closed)[0], False)
        reached, alone = np.arange(ways.stay.shape[1]) == 0, 0
        for stay, step in zip(ways.stay, ways.step, strict=True):
            stays, steps = reached & usable[stay], reached & usable[step]
            alone += int(stays.sum() + steps.sum() == 1)
            reached = stays | np.append(False, steps[:-1])
        return Bracket.at(math.sqrt(2 * (self.rows + self.columns - 2 - alone)))


class _Diagonals(NamedTuple):
    """The grid by diagonals i + j: on each, one lane for each row, or for each column if there are fewer of them.

    From a node, one arc stays in its lane and one steps to the next. Tables are (diagonal, lane); dim stands for no arc.
    """

    stay: np.ndarray
    step: np.ndarray
    right_stays: bool
    place: np.ndarray
    """For each arc, its place in the two tables one after the other, as vectors."""


@lru_cache(maxsize=256)
def _diagonals(rows: int, columns: int) -> _Diagonals:
    d = _dim(rows, columns)
    right, down = np.full((rows, columns), d), np.full((rows, columns), d)
    for arc, (tail, head) in enumerate(_arcs(rows, columns).tolist()):
        (right if head == tail + 1 and columns > 1 else down)[divmod(tail, columns)] = arc
    right_stays = rows <= columns
    stay, step = (right, down) if right_stays else (down.T, right.T)
    stay, step = _skewed(stay, d), _skewed(step, d)
    place = np.empty(d + 1, np.int32)
    place[np.concatenate([stay.ravel(), step.ravel()])] = np.arange(2 * stay.size)
    return _Diagonals(stay, step, right_stays, place[:d])


def _skewed(table: np.ndarray, nothing: int) -> np.ndarray:
    """A table (lane, place) as one of (diagonal, lane), without the last diagonal, from which no arc goes on."""
    lanes, places = table.shape
    out = np.full((lanes + places - 2, lanes), nothing, np.int32)  # one type with and without 64-bit numbers
    for diagonal, lane in np.ndindex(out.shape):
        if 0 <= diagonal - lane < places:
            out[diagonal, lane] = table[lane, diagonal - lane]
    return out


def _dim(rows: int, columns: int) -> int:
    return rows * (columns - 1) + (rows - 1) * columns


def _arcs(rows: int, columns: int) -> np.ndarray:
    """The two nodes of each arc, (dim, 2)."""
    arcs = []
    for i in range(rows):
        node = i * columns + np.arange(columns)
        arcs.append(np.stack([node[:-1], node[1:]], axis=-1))
        if i < rows - 1:
            arcs.append(np.stack([node, node + columns], axis=-1))
    return np.concatenate(arcs).astype(np.int32)


def _blocked(ways: _Diagonals, closed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The arcs that are closed or from which no path leads on to the end; and whether none does from the beginning."""
    blocked = np.concatenate([closed, np.ones((*closed.shape[:-1], 1), bool)], axis=-1)
    stuck = np.zeros((*closed.shape[:-1], ways.stay.shape[1]), bool)
    stuck[..., :-1] = True  # the end is the last lane of the last diagonal
    for stay, step in zip(ways.stay[::-1], ways.step[::-1], strict=True):
        nowhere = np.ones_like(stuck[..., :1])
        blocked[..., stay] |= stuck
        blocked[..., step] |= np.concatenate([stuck[..., 1:], nowhere], axis=-1)
        stuck = blocked[..., stay] & blocked[..., step]
    return blocked[..., :-1], stuck[..., 0]


def _flags(closed: ArrayLike, d: int) -> np.ndarray:
    try:
        flags = np.asarray(closed)
    except ValueError:  # lists of different lengths
        flags = np.asarray(None)
    if flags.dtype != bool or flags.shape[-1:] != (d,):
        what = f"shape {flags.shape} of {flags.dtype}" if flags.dtype != object else f"{closed!r:.80}"
        raise ValueError(f"ShortestPath: closed must be {d} flags, true or false, found {what}")
    return frozen(flags.copy())


def _next_lane(x: Array) -> Array:
    """The value of the next lane, for each lane; the last has none, and its step leaves the grid."""
    return jnp.concatenate([x[1:], x[:1]])


def _lane_before(x: Array) -> Array:
    """The value of the lane before, for each lane."""
    return jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]])
