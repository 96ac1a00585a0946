"""The choice among rules: which one each client uses until the next refit, by what they lost recently.

Regrets are divided by the spread of their own row: else one stormy day would decide. The choice is made for all clients
together (``fleet``), or for each client with its own record shrunk towards that of all (``shrunk``).
"""

from __future__ import annotations

import numpy as np

from dffl.time.units import deviations

FLEET, SHRUNK = WAYS = ("fleet", "shrunk")
STRENGTH = 60.0
"""How many rows of a client's own weigh as much as the record of all clients."""


def day_scaled(regrets: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Regret of each row over the spread of that row's costs (n, d)."""
    return np.asarray(regrets / deviations(costs)[:, 0])


def choose(scaled: np.ndarray, how: str = SHRUNK, strength: float = STRENGTH) -> np.ndarray:
    """The number of the best rule of each client.

    - ``scaled`` (rules, clients, rows): day-scaled regrets of the window; NaN where a client has no such row. A rule that
      was not judged on some row of a client is not chosen by anybody.
    - ``how``: ``fleet`` or ``shrunk``.
    - ``strength``: with ``shrunk``, the number of rows as which the record of all clients counts.

    Equal rules: the first one. A client without any row follows the others; without any row at all, everybody takes rule 0.
    """
    if how not in WAYS:
        raise ValueError(f"choose must be one of {', '.join(WAYS)}, found {how!r:.40}")
    present = ~np.isnan(scaled).all(axis=0)
    counts = present.sum(axis=1)
    judged = ~(np.isnan(scaled) & present).any(axis=(1, 2))
    if not judged.any() or not counts.any():
        return np.zeros(scaled.shape[1], int)
    sums = np.where(present, scaled, 0.0).sum(axis=2)
    score = sums / np.maximum(counts, 1)
    mean = score[judged].mean(axis=0)
    score = np.where(mean > 0, score / np.where(mean > 0, mean, 1.0), 1.0)  # each client counts alike
    fleet = score[:, counts > 0].mean(axis=1)
    fleet[~judged] = np.inf
    if how == FLEET:
        return np.full(scaled.shape[1], int(fleet.argmin()))
    mixed = (counts * score + strength * fleet[:, None]) / (counts + strength)
    return np.asarray(np.where(judged[:, None], mixed, np.inf).argmin(axis=0))
