"""The two networks that correct a base: one shared over the items of a decision, such as the 24 hours of a day, and one of all.

In the first each cost has the same features (its own past) and the same network, which also knows which cost it is: few numbers
to learn. The second sees how the costs of a row go together. Their mean is better than either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from dffl.items import HIDDEN, ItemFactory


class VectorNetwork(eqx.Module):
    """From the same vector to d corrections at once: tanh units of the first features of all items and of the row.

    It sees how the costs of one row go together, which a network of single items does not. Its output is 0 before training too.
    """

    inner: Array
    bias: Array
    last: Array
    offset: Array
    items: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    used: int = eqx.field(static=True)

    def __init__(self, key: Array, items: int, width: int, rows: int, used: int, hidden: int = HIDDEN):
        self.inner = jax.nn.initializers.glorot_uniform()(key, (items * used + rows, hidden))
        self.bias, self.last, self.offset = jnp.zeros(hidden), jnp.zeros((hidden, items)), jnp.zeros(items)
        self.items, self.width, self.used = items, width, used

    def __call__(self, x: Array) -> Array:
        table = x[: self.items * self.width].reshape(self.items, self.width)[:, : self.used]
        seen = jnp.concatenate([table.reshape(-1), x[self.items * self.width :]])
        return jnp.tanh(seen @ self.inner + self.bias) @ self.last + self.offset


@dataclass(frozen=True)
class VectorFactory:
    """Builds a network of the whole row; ``used`` is the number of features of each item that it sees."""

    width: int
    used: int
    hidden: int = HIDDEN

    def __call__(self, key: Array, features: int, costs: int) -> eqx.Module:
        return VectorNetwork(key, costs, self.width, features - costs * self.width, self.used, self.hidden)


ITEM, VECTOR = "item", "vector"
NETWORKS: dict[str, Callable[[int, int], Any]] = {ITEM: lambda width, used: ItemFactory(width), VECTOR: VectorFactory}
"""For each network, a function that builds its factory from the number of features of an item, and of those of its own past."""
FACTORIES = {factory.__name__: factory for factory in (ItemFactory, VectorFactory)}
"""The network factories that a saved model of a time series may name."""
