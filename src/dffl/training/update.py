"""The one client update: Algorithm 2, as a pure function.

Every engine and every deployed client runs exactly this. A model is a flat vector of numbers; data are rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from dffl.losses import mse, spo_plus_gap
from dffl.predictor import Template, clip_norm
from dffl.sets import FeasibleSet


class Diagnostics(NamedTuple):
    """What a client saw while it trained: means over its samples and steps."""

    loss: Array | np.ndarray
    clipped: Array | np.ndarray
    norm: Array | np.ndarray


class Rows(NamedTuple):
    """A table's columns: standardised features, scaled costs with a minimiser's sign, their best decisions."""

    x: Array
    c: Array
    w_star: Array

    @classmethod
    def cut(cls, table: Array, dim: int) -> Rows:
        """The columns of rows that hold x, c and w* side by side."""
        p = table.shape[-1] - 2 * dim
        return cls(table[..., :p], table[..., p : p + dim], table[..., p + dim :])


@dataclass(frozen=True)
class Recipe:
    """What is the same for every client: the network's form, the clip and the optimiser."""

    template: Template
    tau: float
    learning_rate: float
    gradient_clip: float

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam on clipped gradients. On one flat vector XLA fuses it into a few passes."""
        return optax.chain(optax.clip_by_global_norm(self.gradient_clip), optax.adam(self.learning_rate))

    def forward(self, network: Any, x: Array) -> tuple[Array, Array]:
        """Scaled predictions for rows of standardised features, and their norms before the clip."""
        return clip_norm(jax.vmap(network)(x), self.tau)


def client_update(
    recipe: Recipe, vector: Array, state: Any, s: FeasibleSet, sign: Array, table: Array, batches: Array, epochs: Array
) -> tuple[Array, Any, Diagnostics]:
    """Train one client's model for some epochs and return it with the optimiser's state.

    ``batches`` (epochs at most, steps, rows) holds row numbers of ``table``; -1 is an empty place. ``sign`` is -1 for a
    client that maximises: its predictions, like its costs in the table, are negated before they meet the oracle.
    """
    optimiser, template = recipe.optimiser, recipe.template

    def batch_loss(arrays: list[Array], rows: Rows, present: Array) -> tuple[Array, Diagnostics]:
        predicted, norm = recipe.forward(template.assemble(arrays), rows.x)
        losses = spo_plus_gap(sign * predicted, rows.c, rows.w_star, s)
        share = present / jnp.maximum(jnp.sum(present), 1)
        loss = jnp.sum(losses * share)
        return loss, Diagnostics(loss, jnp.sum((norm > recipe.tau) * share), jnp.sum(norm * share))

    def step(carry: tuple[Array, Any], batch: tuple[Rows, Array]) -> tuple[tuple[Array, Any], Diagnostics]:
        vector, state = carry
        gradient, seen = jax.grad(batch_loss, has_aux=True)(template.cut(vector), *batch)
        updates, state = optimiser.update(template.join(gradient), state, vector)
        return (optax.apply_updates(vector, updates), state), seen

    def epoch(i: Array, carry: tuple[Array, Any, Diagnostics]) -> tuple[Array, Any, Diagnostics]:
        vector, state, total = carry
        index = batches[i]
        # Gathering an epoch's rows at once is several times cheaper than one gather a step.
        rows = Rows.cut(table[jnp.maximum(index, 0)], s.dim)
        (vector, state), seen = lax.scan(step, (vector, state), (rows, (index >= 0).astype(vector.dtype)))
        return vector, state, jax.tree.map(lambda t, new: t + jnp.mean(new), total, seen)

    zero = jnp.zeros((), vector.dtype)
    vector, state, total = lax.fori_loop(0, epochs, epoch, (vector, state, Diagnostics(zero, zero, zero)))
    seen = jax.tree.map(lambda t: t / jnp.maximum(epochs, 1), total)
    # A model that left the numbers in the last step would show in no loss: let its own loss tell.
    loss = jnp.where(jnp.all(jnp.isfinite(vector)), seen.loss, jnp.nan)
    return vector, state, seen._replace(loss=loss)


def candidate_losses(
    recipe: Recipe, vectors: Array, mixing: Array, s: FeasibleSet, sign: Array, table: Array, index: Array
) -> tuple[Array, Array]:
    """The mean SPO+ loss and squared error, on one client's rows, of mixtures of some models' outputs.

    ``vectors`` (models, size), ``mixing`` (candidates, models), ``index`` (rows,) with -1 for an empty place.
    """
    rows = Rows.cut(table[jnp.maximum(index, 0)], s.dim)
    share = (index >= 0).astype(vectors.dtype)
    share = share / jnp.maximum(jnp.sum(share), 1)
    outputs = jnp.stack([recipe.forward(recipe.template.network(v), rows.x)[0] for v in vectors])

    def losses(weights: Array) -> tuple[Array, Array]:
        predicted = sign * jnp.tensordot(weights, outputs, axes=1)
        spo = spo_plus_gap(predicted, rows.c, rows.w_star, s)
        return jnp.sum(spo * share), jnp.sum(mse(predicted, rows.c) * share)

    return lax.map(losses, mixing)  # one candidate at a time: memory does not grow with the grid


# Compiled once for each recipe and shape in a process, and shared by all fits.


@lru_cache(maxsize=64)
def compiled_start(recipe: Recipe, size: int) -> Callable[[Array], tuple[Array, Any]]:
    """From one vector, or one for each of the first clients, to ``size`` start vectors and fresh optimiser states."""

    def start(vectors: Array) -> tuple[Array, Any]:
        own = jnp.atleast_2d(vectors)
        starts = jnp.concatenate([own, jnp.broadcast_to(own[-1], (size - len(own), own.shape[1]))])
        return starts, jax.vmap(recipe.optimiser.init)(starts)

    return jax.jit(start)


@lru_cache(maxsize=64)
def compiled_update(recipe: Recipe, together: bool) -> Callable[..., Any]:
    """`client_update` for a chunk of clients together, or for one client."""

    def update(*args: Any) -> Any:
        return client_update(recipe, *args)

    return jax.jit(jax.vmap(update, in_axes=(0, 0, 0, 0, None, 0, None)) if together else update)


@lru_cache(maxsize=64)
def compiled_losses(recipe: Recipe, together: bool) -> Callable[..., Any]:
    """`candidate_losses` for a chunk of clients together, or for one client."""

    def losses(*args: Any) -> Any:
        return candidate_losses(recipe, *args)

    return jax.jit(jax.vmap(losses, in_axes=(0, None, 0, 0, None, 0)) if together else losses)
