"""Many instances in blocks of bounded size, for oracles that keep a table for each instance."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

MOST = 128
"""Instances in a block: their tables stay in a processor's cache, and a row of them fills its vector units."""
CELLS = 2**24
"""Cells of the tables of one block."""


def in_blocks(function: Callable[[Array], Array], c: Array, cells: int) -> Array:
    """``function`` of costs (d, block) with one instance a column, for costs (..., d); an instance's table has ``cells`` cells.

    Instances are the last axis inside, so that each operation is a loop over numbers that lie side by side.
    """
    rows = c.reshape(-1, c.shape[-1])
    block = max(1, min(MOST, len(rows), CELLS // cells))
    spare = -len(rows) % block
    blocks = jnp.pad(rows, ((0, spare), (0, 0))).reshape(-1, block, c.shape[-1])
    answers = lax.map(lambda one: function(one.T).T, blocks)
    return answers.reshape(-1, c.shape[-1])[: len(rows)].reshape(c.shape).astype(c.dtype)
