"""Calls of networks: with random keys in training, if they take one; without any randomness in prediction."""

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
    """The output of a network for one row of features. The key is passed if there is one and the network takes it."""
    return network(x, key=key) if key is not None and takes_key(network) else network(x)


class _Untouchable:
    """Replaces a key: any use of it raises an error."""


def draws(network: Any, x: Any) -> bool:
    """Whether a network uses its key, as one with dropout does; ``x`` has the shape of its features."""
    if not takes_key(network):
        return False
    try:
        jax.eval_shape(lambda features: network(features, key=_Untouchable()), x)
    except Exception:
        return True
    return False


def quiet(network: Any) -> Any:
    """The network for prediction: dropout, and every other layer with a flag ``inference``, is not random."""
    leaves = jax.tree.leaves(network, is_leaf=lambda node: hasattr(node, "inference"))
    return eqx.nn.inference_mode(network) if any(hasattr(leaf, "inference") for leaf in leaves) else network


def outputs(network: Any, rows: Array, key: Array | None = None) -> Array:
    """The outputs (n, d) of a network for rows of features: with a random key for each row, or as in prediction."""
    if key is None:
        return jax.vmap(quiet(network))(rows)
    return jax.vmap(lambda x, row_key: network(x, key=row_key))(rows, jax.random.split(key, len(rows)))


def precise_outputs(network: Any, rows: Array) -> Array:
    """The outputs of a network for rows in float64, also if it was trained in float32.

    A network whose layers refuse numbers of two precisions, as convolutions do, computes in its own precision.
    """
    called = jax.vmap(quiet(network))
    try:
        jax.eval_shape(called, rows)
    except TypeError:
        dtype = jnp.result_type(*jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))
        return called(rows.astype(dtype)).astype(rows.dtype)
    return called(rows)
