"""What tells the rows of a client apart: costs, features, or costs up to a fee. Each is a key of every row, or None.

Rows that a client holds several times count once: copies of whole rows say nothing about what tells different rows apart.

Equal costs mean one moment, such as a day of which there are several orders, unless they are equal for another reason:

- by chance, as combinations of a few values are: the shares of equal pairs in each column say how often;
- as tariffs, if a client has at most `MOST_TARIFFS` different rows of costs, for more than twice that number of rows;
- as a tariff beside market prices, if many more rows have these costs than have others. Each row of such a tariff gets a key of
  its own, so that it neither accuses anybody nor hides what the rows beside it have in common.

More than a few tariffs cannot be told from moments. They are taken for moments: tariffs that come again are then held out
together, which is hard on a model, and no verdict is too good.
"""

from __future__ import annotations

import numpy as np

from dffl.federation import Client
from dffl.splitting import FEWEST_COSTS, chained, row_digests, text_digests

MOST_TARIFFS = 24
TARIFF = 10
"""How many times as many rows a tariff has as the costs in the middle."""
SEVERAL = 0.5
"""The share of different costs among a client's rows below which a few costs are tariffs."""
CHANCE_MATCHES = 0.005
"""The rows equal to a given one that may be expected by chance."""
DISTINCT = 0.9
"""The share of different rows that features, or costs up to a fee, need to say that two rows are one."""
MOMENTS = 0.01
"""The share of a client's rows that share their costs with another one, above which it has several rows of a moment."""
FEWEST_MATCHED = 10
"""Rows from which on their likeness says something."""


def different_rows(client: Client) -> int:
    """How many different rows a client has."""
    return len(_different(client))


def _different(client: Client) -> np.ndarray:
    """The numbers of a client's different rows."""
    return np.unique(client.content_keys, return_index=True)[1]


def different_costs(client: Client) -> int:
    """How many different rows of costs a client has."""
    return len(np.unique(client.cost_keys))


def telling_costs(client: Client) -> np.ndarray | None:
    """The costs' keys, with one of its own for each row of a tariff beside others."""
    rows = _different(client)
    if not len(rows) or _match_by_chance(client.c, rows, rows[np.unique(client.cost_keys[rows], return_index=True)[1]]):
        return None
    return _without_tariffs(client, client.cost_keys, rows)


def _without_tariffs(client: Client, keys: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Keys of costs, with one of its own for each row of a tariff; None where all are tariffs. ``rows`` are different ones."""
    known, count = np.unique(keys[rows], return_counts=True)
    if len(known) <= MOST_TARIFFS and len(known) < SEVERAL * len(rows):
        return None
    tariffs = known[count > TARIFF * np.median(count)]
    name = np.repeat(text_digests(np.array([client.name])), client.n)
    return np.where(np.isin(keys, tariffs), chained(np.column_stack([name, client.content_keys])), keys)


def has_moments(client: Client) -> bool:
    """Whether a client has several rows of a moment: different rows with equal costs, which are no tariffs."""
    keys = telling_costs(client)
    if keys is None:
        return False
    rows = _different(client)
    count = np.unique(keys[rows], return_counts=True)[1]
    return bool(count[count > 1].sum() >= max(FEWEST_MATCHED, MOMENTS * len(rows)))


def _match_by_chance(costs: np.ndarray, rows: np.ndarray, moments: np.ndarray) -> bool:
    """Whether rows match by chance, as combinations of a few values do: by the shares of equal pairs in each column.

    Rows of one moment are equal for a reason, so these shares are of the different costs; of one column nothing else is left.
    """
    used, equal = costs[moments if costs.shape[1] > 1 else rows], []
    for column in used.T:
        count = np.unique(column, return_counts=True)[1]
        equal.append(float((count * (count - 1)).sum()) / max(len(used) * (len(used) - 1), 1))
    return float(np.prod(equal)) * len(rows) > CHANCE_MATCHES


def telling_features(client: Client, varying: np.ndarray) -> np.ndarray | None:
    """A key of each row's varying features, equal where they are equal bit by bit in single precision."""
    x = np.ascontiguousarray(client.x[:, varying].astype(np.float32) + np.float32(0))  # 0.0 and -0.0 are equal
    keys = chained(x.view(np.uint32).astype(np.uint64)) if x.size else np.zeros(0, np.uint64)
    return keys if len(keys) and len(np.unique(keys)) >= DISTINCT * different_rows(client) else None


def telling_fees(client: Client) -> np.ndarray | None:
    """A key of each row's costs up to an amount for all columns."""
    c = client.c
    if c.shape[1] < FEWEST_COSTS or not len(c):
        return None
    rest = c - c.mean(axis=1, keepdims=True)
    size = np.abs(rest).mean(axis=1, keepdims=True)
    keys = row_digests(np.round(rest / np.where(size > 0, size, 1.0), 4))
    if len(np.unique(keys)) < DISTINCT * different_costs(client):
        return None
    return _without_tariffs(client, keys, _different(client))
