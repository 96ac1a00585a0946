"""Clients for which all decisions are equally good, for example because all costs are the same: models cannot be compared."""

from __future__ import annotations

import numpy as np

from dffl.federation import Client
from dffl.judging import regrets_at
from dffl.randomness import Purpose, stream

TRIES = 4
"""How often every sample is decided by random costs."""
NOTHING = 1e-9
"""Regrets below this, relative to the size of the best objective, count as 0."""
REASON = "all decisions cost the same on your samples, so models cannot be compared"


def all_decisions_equal(client: Client, seed: int) -> bool:
    """Whether a client has no loss even if it decides by random costs of similar size."""
    rng = stream(seed, Purpose.COMPARE, client.name, 2)
    size = float(np.abs(client.c).mean()) or 1.0
    sign = -1.0 if client.c.mean() < 0 else 1.0  # a solver may need costs of the usual sign
    most = NOTHING * max(float(client.z_star_size.max()), size)
    return all(
        float(regrets_at(client, sign * size * rng.uniform(0.5, 1.5, client.c.shape)).max()) <= most for _ in range(TRIES)
    )
