"""A minibatch's gradient that hides its samples (DP-SGD, Abadi et al., 2016)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dffl.training.privacy.levels import SamplePrivacy


def hidden_mean(privacy: SamplePrivacy, gradients: Array, present: Array, noise: Array) -> Array:
    """The mean of the present samples' gradients (samples, numbers), each clipped, with noise on their sum.

    ``noise`` are standard normal numbers. The sum is divided by the number of samples of the minibatch, which follows from the
    client's number of samples alone.
    """
    norms = jnp.sqrt(jnp.sum(gradients**2, axis=1))
    tiny = jnp.finfo(gradients.dtype).tiny
    shrink = jnp.minimum(1, privacy.clip / jnp.maximum(norms, tiny)) * present
    total = shrink @ gradients + privacy.noise * privacy.clip * noise
    return total / jnp.maximum(jnp.sum(present), 1)
