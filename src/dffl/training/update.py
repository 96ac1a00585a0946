"""The client update: Algorithm 2, as a pure function.

Every engine and every deployed client runs exactly this code. A model is a flat vector of numbers; data are rows of a table.
FedProx, Ditto, SCAFFOLD and personal layers use it with a pull towards an anchor, a correction of the gradient, or numbers
that are not trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from jax.extend.core import jaxpr_as_fun

from dffl.losses import Loss, Rows
from dffl.losses.spo_plus import SPOPlus
from dffl.networks import outputs
from dffl.predictor import Layers, Template, clip_norm
from dffl.sets import FeasibleSet
from dffl.shapes import round_up
from dffl.training.optimisers import Adam, Optimiser
from dffl.training.privacy.levels import SamplePrivacy, hidden_mean

if TYPE_CHECKING:
    from dffl.arrays import Key, Minibatches, Model, Scalar, StepCount, StepKeyWords, StepNoise, Table


class Diagnostics(NamedTuple):
    """Means over a client's samples and steps of training."""

    loss: Array | np.ndarray
    clipped: Array | np.ndarray
    norm: Array | np.ndarray


@dataclass(frozen=True)
class NetworkForm:
    """The form of the network, and the norm at which its output is clipped."""

    template: Template
    tau: float
    random: bool = False
    """Whether the network needs random keys in training, as one with dropout does."""

    def forward(self, network: Any, x: Array, key: Array | None = None) -> tuple[Array, Array]:
        """Scaled predictions for rows of standardised features, and their norms before the clip.

        With a ``key``, random layers of the network draw, as in training; without it, they do not.
        """
        return clip_norm(outputs(network, x, key), self.tau)


@dataclass(frozen=True)
class Recipe:
    """The static arguments: programs are compiled for them, and they are the same for all clients of a call."""

    form: NetworkForm
    features: int
    """The number of features: the first columns of the table."""
    loss: Loss = field(default_factory=SPOPlus)
    optimiser: Optimiser = field(default_factory=Adam)
    learning_rate: float = 1e-3
    gradient_clip: float = 1.0
    pull: float = 0.0
    """The strength of a proximal term: pull / 2 times the squared distance to the anchor is added to the loss."""
    trains: Layers | None = None
    """Which numbers are trained; None: all."""
    protects: SamplePrivacy | None = None
    """Protects each sample in every step, if the trained vector leaves the client; None: it stays there, or there is no
    privacy.
    """
    measure: bool = False
    """Also return the mean over steps of the gradient of the loss, before pull, correction and clip."""

    @property
    def transformation(self) -> optax.GradientTransformation:
        """The optimiser, on clipped gradients."""
        return optax.chain(optax.clip_by_global_norm(self.gradient_clip), self.optimiser.transformation(self.learning_rate))


class ClientSide(NamedTuple):
    """The arguments of one client; engines map over them."""

    set: FeasibleSet
    """The client's `oracle`, or a stack of them."""
    sign: Scalar
    """-1 for a client that maximises: its predictions, like its costs in the table, are negated before the oracle."""
    batches: Minibatches
    """Row numbers of the table, one minibatch for each step; -1 is an empty place."""
    key: Key | None = None
    """Two words that seed the draws of a random loss."""
    anchor: Model | None = None
    """The vector to which the proximal term pulls."""
    correction: Model | None = None
    """A vector that is added to every gradient, as in SCAFFOLD."""
    rate: Scalar | None = None
    """A factor on the learning rate; unused for judging."""
    smoothing: Scalar | None = None
    """The strength of smoothing, for losses that smooth."""
    noise: StepNoise | None = None
    """Standard normal numbers, if the recipe protects samples."""
    draws: StepKeyWords | None = None
    """Words that seed the draws of a network with dropout."""


class Shared(NamedTuple):
    """Arguments that are the same for all clients of a call, but not static."""

    table: Table
    steps: StepCount
    """The number of minibatches to use."""


class StepKeys(NamedTuple):
    """The random keys of one step: for a random loss, and for a network with dropout."""

    loss: Array | None
    network: Array | None


class Updated(NamedTuple):
    """A trained model, the state of the optimiser, the means of training, and the mean gradient if the recipe measures it."""

    vector: Array
    state: Any
    seen: Diagnostics
    gradient: Array | None


def client_update(recipe: Recipe, vector: Array, state: Any, mine: ClientSide, shared: Shared) -> Updated:
    """Train one client's model for some steps."""
    transformation, template, rate = recipe.transformation, recipe.form.template, mine.rate
    assert rate is not None, "training needs a rate"

    def batch_loss(arrays: list[Array], index: Array, keys: StepKeys) -> tuple[Array, Diagnostics]:
        present = (index >= 0).astype(vector.dtype)
        rows = Rows.cut(shared.table[_filled(index)], recipe.features, mine.set.dim, mine.smoothing, present)
        predicted, norm = recipe.form.forward(template.assemble(arrays), rows.x, keys.network)
        share = present / jnp.maximum(jnp.sum(present), 1)
        losses = each_row(recipe.loss, rows.completed(mine.sign * predicted), rows, mine.set, keys.loss)
        loss = jnp.sum(losses * share)
        return loss, Diagnostics(loss, jnp.sum((norm > recipe.form.tau) * share), jnp.sum(norm * share))

    def plain(vector: Array, i: Array, keys: StepKeys) -> tuple[Array, Diagnostics]:
        arrays, seen = jax.grad(batch_loss, has_aux=True)(template.cut(vector), mine.batches[i], keys)
        return template.join(arrays), seen

    def hidden(vector: Array, i: Array, keys: StepKeys) -> tuple[Array, Diagnostics]:
        assert recipe.protects is not None
        assert mine.noise is not None, "protection needs noise"
        index, arrays = mine.batches[i], template.cut(vector)
        each = jax.tree.map(lambda key: jax.random.split(key, len(index)), keys)

        def of_one(row: Array, keys: StepKeys) -> tuple[Array, Diagnostics]:
            row_gradients, seen = jax.grad(batch_loss, has_aux=True)(arrays, row[None], keys)
            return template.join(row_gradients), seen

        gradients, seen = jax.vmap(of_one)(_filled(index), each)
        present = (index >= 0).astype(vector.dtype)
        share = present / jnp.maximum(jnp.sum(present), 1)
        gradient = hidden_mean(recipe.protects, gradients, present, mine.noise[i])
        return gradient, jax.tree.map(lambda values: jnp.sum(values * share), seen)

    def step(i: Array, carry: Any) -> Any:
        vector, state, total, gradients = carry
        keys = StepKeys(
            None if mine.key is None else jax.random.fold_in(jax.random.wrap_key_data(mine.key), i),
            None if mine.draws is None else jax.random.wrap_key_data(mine.draws[i]),
        )
        gradient, seen = hidden(vector, i, keys) if recipe.protects is not None else plain(vector, i, keys)
        gradients = None if gradients is None else gradients + gradient
        updates, state = transformation.update(_directed(recipe, mine, vector, gradient), state, vector)
        # An optimiser may change numbers without a gradient, as weight decay does.
        vector = optax.apply_updates(vector, jax.tree.map(lambda u: rate * _trained(recipe, u), updates))
        return vector, state, jax.tree.map(jnp.add, total, seen), gradients

    zero = jnp.zeros((), vector.dtype)
    none_yet = (Diagnostics(zero, zero, zero), jnp.zeros_like(vector) if recipe.measure else None)
    vector, state, total, gradients = lax.fori_loop(0, shared.steps, step, (vector, state, *none_yet))
    seen, gradient = jax.tree.map(lambda t: t / jnp.maximum(shared.steps, 1).astype(vector.dtype), (total, gradients))
    # A model that becomes infinite in the last step does not show in any loss, so it is reported as the loss.
    loss = jnp.where(jnp.all(jnp.isfinite(vector)), seen.loss, jnp.nan)
    return Updated(vector, state, seen._replace(loss=loss), gradient)


def each_row(loss: Loss, c_hat: Array, rows: Rows, s: FeasibleSet, key: Array | None) -> Array:
    """The values of the loss, one for each row. Other shapes are refused when the program is traced."""
    values = loss(c_hat, rows, s, key)
    if getattr(values, "shape", None) != c_hat.shape[:1] or not jnp.issubdtype(values.dtype, jnp.floating):
        shown = f"{values.dtype} {values.shape}" if hasattr(values, "dtype") else type(values).__name__
        raise ValueError(f"loss {loss.name!r} must give one value for each of {len(c_hat)} rows, found {shown}")
    return values


def _directed(recipe: Recipe, mine: ClientSide, vector: Array, gradient: Array) -> Array:
    """The gradient for the optimiser: with the pull and the correction, and 0 for numbers that are not trained."""
    if recipe.pull:
        assert mine.anchor is not None, "a pull needs an anchor"
        gradient = gradient + recipe.pull * (vector - mine.anchor)
    if mine.correction is not None:
        gradient = gradient + mine.correction
    return _trained(recipe, gradient)


def _trained(recipe: Recipe, numbers: Array) -> Array:
    """The numbers that are trained; 0 in place of the others."""
    return numbers if recipe.trains is None else jnp.where(recipe.trains.mask, numbers, 0)


def _filled(index: Array) -> Array:
    """Row numbers with the first one in empty places: a row of another client could break the loss."""
    return jnp.where(index >= 0, index, index[0])


def candidate_losses(
    recipe: Recipe, losses: tuple[Loss, ...], vectors: Array, mine: ClientSide, mixing: Array, table: Array
) -> list[Array]:
    """The mean of each loss on one client's rows, for mixtures of the outputs of several models.

    ``vectors`` (models, size), ``mixing`` (candidates, models). ``mine.batches`` is one batch of the rows for judging.
    """
    index = mine.batches[0]
    present = (index >= 0).astype(vectors.dtype)
    rows = Rows.cut(table[_filled(index)], recipe.features, mine.set.dim, mine.smoothing, present)
    share = present / jnp.maximum(jnp.sum(present), 1)
    outputs = jnp.stack([recipe.form.forward(recipe.form.template.network(v), rows.x)[0] for v in vectors])

    def judged(weights: Array) -> list[Array]:
        predicted = rows.completed(mine.sign * jnp.tensordot(weights, outputs, axes=1))
        # A random loss uses the same draws for all candidates, so that only the candidates differ.
        key = None if mine.key is None else jax.random.wrap_key_data(mine.key)
        return [jnp.sum(each_row(loss, predicted, rows, mine.set, key if loss.random else None) * share) for loss in losses]

    return lax.map(judged, mixing)  # one candidate at a time: memory does not grow with their number


# Compiled once for each recipe and shape in a process, and shared by all fits.

BLOCK = 4
"""Clients are computed in blocks of four, in every engine.

The kernel for matrix products, and with it the last bits, depends on how many clients are computed together. With blocks of
one size, a client's numbers do not depend on the other clients. A block of four fits into the processor's cache.
"""


def places_for(clients: int) -> int:
    """The number of places in the program for this number of clients: 16, 32, 64, ..., so that there are few programs."""
    return round_up(max(clients, 4 * BLOCK), bits=0)


def in_blocks(function: Callable[..., Any], shared: int) -> Callable[..., Any]:
    """A function of one client, mapped over the first ``count`` blocks of places; the others remain zero.

    The mapped function takes ``count`` first. Its last ``shared`` arguments are the same for all clients.
    """

    def mapped(count: StepCount, *args: Any) -> Any:
        per_client, common = args[: len(args) - shared], args[len(args) - shared :]
        blocks = jax.tree.map(lambda a: jnp.reshape(a, (-1, BLOCK, *jnp.shape(a)[1:])), per_client)
        # Traced once: the shapes of the answers and the loop share it.
        together = jax.make_jaxpr(jax.vmap(lambda mine: function(*mine, *common)), return_shape=True)
        traced, shapes = together(jax.tree.map(lambda a: a[0], blocks))

        def block(i: Array, out: Any) -> Any:
            one = jax.tree.leaves(jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, i, keepdims=False), blocks))
            done = jax.tree.unflatten(jax.tree.structure(shapes), jaxpr_as_fun(traced)(*one))
            return jax.tree.map(lambda a, new: lax.dynamic_update_index_in_dim(a, new, i, 0), out, done)

        number = len(jax.tree.leaves(blocks)[0])
        out = jax.tree.map(lambda a: jnp.zeros((number, *a.shape), a.dtype), shapes)
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), lax.fori_loop(0, count, block, out))

    return mapped


@lru_cache(maxsize=64)
def compiled_start(recipe: Recipe, places: int) -> Callable[[Model], tuple[Array, Any]]:
    """From one vector, or one for each of the first clients, to ``places`` start vectors and new optimiser states."""

    def start(vectors: Array) -> tuple[Array, Any]:
        vectors_2d = jnp.atleast_2d(vectors)
        starts = jnp.concatenate(
            [vectors_2d, jnp.broadcast_to(vectors_2d[-1], (places - len(vectors_2d), vectors_2d.shape[1]))]
        )
        return starts, jax.vmap(recipe.transformation.init)(starts)

    return jax.jit(start)


@lru_cache(maxsize=64)
def compiled_update(recipe: Recipe) -> Callable[..., Any]:
    """`client_update` of (number of blocks, vectors, states, client sides, shared) for some clients."""
    return jax.jit(in_blocks(partial(client_update, recipe), shared=1))


@lru_cache(maxsize=64)
def compiled_losses(recipe: Recipe, losses: tuple[Loss, ...]) -> Callable[..., Any]:
    """`candidate_losses` of (number of blocks, vectors, client sides, mixing, table) for some clients."""
    return jax.jit(in_blocks(partial(candidate_losses, recipe, losses), shared=2))
