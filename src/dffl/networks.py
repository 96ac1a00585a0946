"""How networks are called: in training with random keys, where they ask for them; in prediction without any randomness."""

from __future__ import annotations

import inspect
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


def takes_key(network: Any) -> bool:
    """Whether a network's call has a parameter ``key``, as those of Equinox have."""
    try:
        return "key" in inspect.signature(network).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return False


def call(network: Any, x: Array, key: Array | None) -> Array:
    """The network's answer to one row of features, with the key if there is one and the network takes it."""
    return network(x, key=key) if key is not None and takes_key(network) else network(x)


class _Untouchable:
    """In the place of a key: whatever looks at it fails."""


def draws(network: Any, x: Any) -> bool:
    """Whether a network looks at its key, as one with dropout does; ``x`` has the shape of its features."""
    if not takes_key(network):
        return False
    try:
        jax.eval_shape(lambda features: network(features, key=_Untouchable()), x)
    except Exception:
        return True
    return False


def quiet(network: Any) -> Any:
    """The network as it predicts: dropout, and every other layer with a flag ``inference``, does not draw."""
    leaves = jax.tree.leaves(network, is_leaf=lambda node: hasattr(node, "inference"))
    return eqx.nn.inference_mode(network) if any(hasattr(leaf, "inference") for leaf in leaves) else network


def outputs(network: Any, rows: Array, key: Array | None = None) -> Array:
    """The network's answers (n, d) at rows of features: with a random key of its own for each row, or as it predicts."""
    if key is None:
        return jax.vmap(quiet(network))(rows)
    return jax.vmap(lambda x, row_key: network(x, key=row_key))(rows, jax.random.split(key, len(rows)))


def precise_outputs(network: Any, rows: Array) -> Array:
    """The answers of a network to rows in float64, also of one that was trained in float32.

    A network whose layers refuse numbers of two precisions, as convolutions do, answers in its own.
    """
    called = jax.vmap(quiet(network))
    try:
        jax.eval_shape(called, rows)
    except TypeError:
        dtype = jnp.result_type(*jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))
        return called(rows.astype(dtype)).astype(rows.dtype)
    return called(rows)
