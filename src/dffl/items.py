"""Items: costs that have features of their own. Their place in x, and the network that all items share.

Inside dffl the features of items are columns of x, item after item, after the other features and before a forecast. Features
that never change are repeated in every row, so that one matrix is stored, sent to a site and used for decisions. Only this
module knows the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

HIDDEN = 48
LARGEST = 1e100


def combined(owner: str, items: Any, known: Any, rows: tuple[int, ...], dim: int) -> np.ndarray:
    """Features of items (..., d, q), followed by the known ones (d, r) of each item, in every row."""
    parts = []
    if items is not None:
        array = _checked(f"{owner}items", items)
        if array.ndim != len(rows) + 2 or 0 in array.shape[-2:]:
            what = "must have the axes row, item and feature, such as (n, d, q)"
            raise ValueError(f"{owner}items: {what}, found shape {array.shape}")
        if array.shape[:-2] != rows:
            raise ValueError(f"{owner}items: must have a table for each row of x {rows}, found {array.shape[:-2]}")
        parts.append(array)
    if known is not None:
        table = _checked(f"{owner}known", known)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(f"{owner}known: must have the axes item and feature, such as (d, r), found shape {table.shape}")
        parts.append(np.broadcast_to(table, (*rows, *table.shape)))
    for name, part in zip([*["items"] * (items is not None), "known"], parts, strict=False):
        if part.shape[-2] != dim:
            raise ValueError(f"{owner}{name}: must have one item for each of the {dim} costs, found {part.shape[-2]}")
    return np.concatenate(parts, axis=-1)


def _checked(owner: str, value: Any) -> np.ndarray:
    if getattr(getattr(value, "dtype", None), "kind", "f") in "cMm":  # NumPy would convert them to other numbers
        raise ValueError(f"{owner}: must be numbers, found {value.dtype}")
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner}: must be numbers ({error})") from None
    wrong = ~(np.abs(array) <= LARGEST)
    if wrong.any():
        place = tuple(int(number) for number in np.argwhere(wrong)[0])
        raise ValueError(f"{owner}: must be finite and at most {LARGEST:g} in size, found {array[place]} at {list(place)}")
    return array


def block(features: int, dim: int, width: int, forecast: bool) -> slice:
    """Which columns of x have the features of items."""
    stop = features - dim * forecast
    return slice(stop - dim * width, stop)


def of_items(x: np.ndarray, dim: int, width: int, forecast: bool) -> np.ndarray:
    """The features of items (..., d, q) in the columns of x (..., p)."""
    return np.asarray(x[..., block(x.shape[-1], dim, width, forecast)]).reshape(*x.shape[:-1], dim, width)


def inserted(
    x: np.ndarray, names: tuple[str, ...] | None, items: np.ndarray, forecast: bool, cost_names: Sequence[str] | None
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """x with the features of items in their place, and the names of its columns. Nothing changes if they are there already."""
    count, dim, width = items.shape
    place = block(x.shape[-1], dim, width, forecast)
    if place.start >= 0 and np.array_equal(x[:, place], items.reshape(count, -1)):
        return x, names
    table = np.hstack([x[:, : place.stop], items.reshape(count, -1), x[:, place.stop :]])
    if names is None:
        return table, None
    costs = cost_names or [str(number) for number in range(dim)]
    item_names = [f"item feature {number} of {cost}" for cost in costs for number in range(width)]
    return table, (*names[: place.stop], *item_names, *names[place.stop :])


def over_items(function: Any, x: np.ndarray, dim: int, width: int, forecast: bool) -> np.ndarray:
    """A statistic of each feature over rows and items, such as its mean, repeated for each column of the block."""
    table = of_items(x, dim, width, forecast).reshape(-1, width)
    return np.tile(function(table, axis=0), dim)


class ItemNetwork(eqx.Module):
    """A network from features of each item (d, q) and of the row (r,), in one vector, to d costs: linear plus tanh units.

    All costs share the network, which also knows which cost it computes, so it has few parameters. Its output is 0 before
    training, so that predictions start at their base. Without units (``hidden`` is 0) it is linear, also in the features of
    the row, which otherwise only the units see.
    """

    item: Array
    row: Array
    identity: Array
    last: Array
    linear: Array
    offset: Array
    level: Array | None
    items: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    behind: bool = eqx.field(static=True)
    """Whether the features of items follow those of the row."""

    def __init__(self, key: Array, items: int, width: int, rows: int, hidden: int = HIDDEN, behind: bool = False):
        keys = jax.random.split(key, 3)
        glorot = jax.nn.initializers.glorot_uniform()
        size = width + rows + items, hidden
        weights = glorot(keys[0], size) if hidden else jnp.zeros(size)
        self.item, self.row, self.identity = weights[:width], weights[width : width + rows], weights[width + rows :]
        self.last, self.linear, self.offset = jnp.zeros(hidden), jnp.zeros(width), jnp.zeros(items)
        self.level = None if hidden else jnp.zeros(rows)
        self.items, self.width, self.behind = items, width, behind

    def __call__(self, x: Array) -> Array:
        size = self.items * self.width
        item_values, row = (x[x.size - size :], x[: x.size - size]) if self.behind else (x[:size], x[size:])
        table = item_values.reshape(self.items, self.width)
        if self.level is not None:
            return table @ self.linear + self.offset + row @ self.level
        inner = jnp.tanh(table @ self.item + row @ self.row + self.identity)
        return inner @ self.last + table @ self.linear + self.offset


@dataclass(frozen=True)
class ItemFactory:
    """Builds such a network. Equal factories share compiled programs."""

    width: int
    hidden: int = HIDDEN
    behind: bool = False

    def __call__(self, key: Array, features: int, costs: int) -> eqx.Module:
        return ItemNetwork(key, costs, self.width, features - costs * self.width, self.hidden, self.behind)
