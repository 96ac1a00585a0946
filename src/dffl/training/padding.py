"""A loss must not depend on the rows that only fill up a batch.

Batches have few shapes, so that few programs are compiled: 57 samples get 7 more rows that repeat the first of them, and
`Rows.present` marks the samples. A loss that computes every row separately need not use it. A loss that compares rows, or
divides by a mean over the batch, has to leave out the other rows.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from dffl.federation import Client, optima
from dffl.losses import Loss, Rows

SAMPLES, FILLED = 5, 3
TOLERANCE = 1e-5


def refuse_seen_padding(loss: Loss, client: Client) -> None:
    """Refuse a loss whose values change with rows that are not samples. It is tested on a few samples of a client.

    A random loss is not tested: its draws change with the number of rows.
    """
    if loss.random:
        return
    with jax.enable_x64(True):
        try:
            alone, filled = (np.asarray(_values(loss, client, rows)) for rows in (0, FILLED))
            same = np.allclose(alone, filled[: len(alone)], rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        except Exception:  # a loss that fails, or returns another form, is refused in training, with its own message
            return
    if not same:
        fix = "compute each row by itself, or leave out the rows where rows.present is 0"
        raise ValueError(f"loss {loss.name!r}: its value of a sample changes with rows that only fill up a batch; {fix}")


def refuse_other_samples(loss: Loss, client: Client) -> None:
    """Refuse a loss whose values depend on other samples of a batch, if the gradient of each sample is computed separately."""
    if loss.random:
        return
    with jax.enable_x64(True):
        try:
            alone, together = (np.asarray(_values(loss, client, 0, samples))[:1] for samples in (1, SAMPLES))
            same = np.allclose(alone, together, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        except Exception:  # as above
            return
    if not same:
        why = "privacy at the level of samples computes the gradient of each sample alone"
        raise ValueError(f"loss {loss.name!r}: its value of a sample changes with the other samples of a batch; {why}")


def _values(loss: Loss, client: Client, filled: int, samples: int = SAMPLES) -> jax.Array:
    """The loss of a client's first samples, followed by ``filled`` rows that repeat the first."""
    n = min(samples, client.n)
    index = np.r_[np.arange(n), np.zeros(filled, int)]
    scale = float(np.abs(client.c).mean()) or 1.0
    c = client.sense * client.completed(client.c[index] / scale, scale)
    guess = c.copy()
    guess[:, : client.set.dim] = np.roll(c[:, : client.set.dim], 1, axis=1) + 0.1 * np.arange(client.set.dim)
    present = (np.arange(len(index)) < n).astype(float)
    smoothing = jnp.ones(()) if loss.smooths else None
    table = np.concatenate([client.x[index], c, optima([client])[0][index]], axis=1)
    rows = Rows.cut(jnp.asarray(table), client.x.shape[1], client.oracle.dim, smoothing, jnp.asarray(present))
    return loss(jnp.asarray(guess), rows, client.oracle, None)
