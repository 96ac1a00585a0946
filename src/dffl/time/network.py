"""A network that is shared over the items of a decision, such as the 24 hours of a day.

Each cost has the same features (its own past) and the same network, which also knows which cost it is. That is far fewer
numbers to learn than one network of the whole vector, so that it can be trained on a few months.
"""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

HIDDEN = 48


class ItemNetwork(eqx.Module):
    """From features of each item (d, q) and of the row (r,), in one vector, to d corrections: a linear part and tanh units.

    The output is 0 before training, so that a prediction starts at its base.
    """

    item: Array
    row: Array
    identity: Array
    last: Array
    linear: Array
    offset: Array
    items: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    def __init__(self, key: Array, items: int, width: int, rows: int, hidden: int = HIDDEN):
        keys = jax.random.split(key, 3)
        glorot = jax.nn.initializers.glorot_uniform()
        whole = glorot(keys[0], (width + rows + items, hidden))
        self.item, self.row, self.identity = whole[:width], whole[width : width + rows], whole[width + rows :]
        self.last, self.linear, self.offset = jnp.zeros(hidden), jnp.zeros(width), jnp.zeros(items)
        self.items, self.width = items, width

    def __call__(self, x: Array) -> Array:
        table = x[: self.items * self.width].reshape(self.items, self.width)
        inner = jnp.tanh(table @ self.item + x[self.items * self.width :] @ self.row + self.identity)
        return inner @ self.last + table @ self.linear + self.offset


@dataclass(frozen=True)
class ItemFactory:
    """Builds such a network; equal ones share compiled programs."""

    width: int
    hidden: int = HIDDEN

    def __call__(self, key: Array, features: int, costs: int) -> eqx.Module:
        return ItemNetwork(key, costs, self.width, features - costs * self.width, self.hidden)


FACTORIES = {one.__name__: one for one in (ItemFactory,)}
"""What a saved model of a time series may name as the factory of its networks."""
