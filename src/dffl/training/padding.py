"""A loss must not see the rows that only fill up a batch.

Batches have few shapes, so that few programs are compiled: 57 samples come with 7 rows that repeat the first of them, and
`Rows.present` says which rows are samples. A loss that computes every row by itself need not look. One that compares rows, or
divides by a mean over the batch, has to leave out the others.
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
    """Refuse a loss whose values change with rows that are no samples; it is tried on a few samples of a client.

    A random loss is not tried: its draws change with the number of rows.
    """
    if loss.random:
        return
    with jax.enable_x64(True):
        try:
            alone, filled = (np.asarray(_values(loss, client, rows)) for rows in (0, FILLED))
            same = np.allclose(alone, filled[: len(alone)], rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        except Exception:  # a loss that fails, or answers in another form, is refused where it trains, with its own message
            return
    if not same:
        fix = "compute each row by itself, or leave out the rows where rows.present is 0"
        raise ValueError(f"loss {loss.name!r}: its value of a sample changes with rows that only fill up a batch; {fix}")


def refuse_other_samples(loss: Loss, client: Client) -> None:
    """Refuse a loss whose values change with the other samples of a batch, where each sample's gradient is computed alone."""
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
    """The loss of a client's first samples, with ``filled`` rows behind them that repeat the first."""
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
