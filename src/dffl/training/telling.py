"""Which keys identify the rows of clients: costs, features, or costs up to a fee. Each is a key of every row, or None.

Rows that a client has several times count once: copies of whole rows say nothing about what identifies different rows.

Equal costs mean one moment, such as a day with several orders, unless they are equal for another reason:

- by chance, as combinations of a few values are. For each pair of clients, the costs in common are compared with the
  number that chance explains. Costs that are too coarse for that identify rows together with a feature;
- as tariffs, if a client has at most `MOST_TARIFFS` different rows of costs, for more than twice that number of rows;
- as a tariff beside market prices, if many more rows have these costs than have others. Each row of such a tariff gets a key of
  its own, so that it neither accuses anybody nor hides what the other rows have in common.

More than a few tariffs cannot be distinguished from moments. They are taken for moments: tariffs that come again are then held
out together, which is hard on a model, and no verdict is too good.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse

from dffl.federation import Client
from dffl.splitting import FEWEST_COSTS, chained, row_digests, text_digests

MOST_TARIFFS = 24
TARIFF = 10
"""How many times as many rows a tariff has as the costs in the middle."""
SEVERAL = 0.5
"""The share of different costs among a client's rows below which a few costs are tariffs."""
DISTINCT = 0.9
"""The share of different rows that features, or costs up to a fee, need to say that two rows are one."""
MOMENTS = 0.01
"""The share of a client's rows that share their costs with another one, above which it has several rows of a moment."""
OFTEN = 0.2
"""The share of a client's rows that have their costs several times, above which this is not taken for chance."""
FEWEST_EQUAL, TIMES = 3, 5.0
"""Costs in common say something from this number on, if they are more than this many times what chance explains."""
CERTAIN = 0.005
"""Equal costs that independent columns explain, for each row, up to which equal costs are not taken for chance."""
MOSTLY = 0.5
"""The share of rows that must have equal costs and an equal feature, where costs alone are too coarse."""
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


def telling_costs(clients: Sequence[Client], varying: np.ndarray) -> list[np.ndarray | None]:
    """The costs' keys of the clients whose rows they identify, at several clients or at one; see `_keys_of_costs`.

    ``varying`` are the features that are not constant at every client.
    """
    keys = [_keys_of_costs(client) for client in clients]
    used = [place for place, client_keys in enumerate(keys) if client_keys is not None]
    told = {place for place in used if has_moments(clients[place])}
    if len(used) > 1:
        several = _Several([clients[place] for place in used], [client_keys for client_keys in keys if client_keys is not None])
        pairs = several.told_by_costs()
        pairs |= several.told_by_features(~pairs, varying)
        told |= {used[place] for place in np.flatnonzero(pairs.any(axis=1))}
    return [client_keys if place in told else None for place, client_keys in enumerate(keys)]


class _Several:
    """Clients with the keys of their costs, in pairs: tables of one row and one column for each client."""

    def __init__(self, clients: Sequence[Client], keys: Sequence[np.ndarray]):
        self.clients, self.keys = clients, keys
        self.rows = [_different(client) for client in clients]
        self.costs = [
            rows[np.unique(client.cost_keys[rows], return_index=True)[1]]
            for client, rows in zip(clients, self.rows, strict=True)
        ]

    def told_by_costs(self) -> np.ndarray:
        """Pairs that have more costs in common than chance explains.

        Chance explains as many as independent columns would have. Where these are not very few, columns may depend on each
        other; then chance also explains as many as the clients have in common with themselves, if that is no moments.
        """
        common = _common([client_keys[rows] for client_keys, rows in zip(self.keys, self.costs, strict=True)])
        np.fill_diagonal(common, 0)
        number = np.array([len(rows) for rows in self.costs], float)
        possible, asked = np.outer(number, number), common >= FEWEST_EQUAL
        few, expected = CERTAIN * np.maximum.outer(number, number), possible.copy()
        columns = range(self.clients[0].c.shape[1])
        for column in columns if len(columns) > 1 else ():  # a single column cannot be independent of the others
            if (expected[asked] <= few[asked]).all():
                break
            expected *= _equal([client.c[rows, column] for client, rows in zip(self.clients, self.costs, strict=True)])
        certain = expected <= few
        if not certain[asked].all():
            by_themselves = possible * self._equal_at_a_client()
            expected = np.where(certain, expected, by_themselves if len(columns) == 1 else np.maximum(expected, by_themselves))
        return np.asarray(asked & (common > TIMES * expected))

    def _equal_at_a_client(self) -> np.ndarray:
        """The share of a pair's own rows that have equal costs, with one more than there are; no number where they are many."""
        equal, every = [], []
        for client_keys, rows in zip(self.keys, self.rows, strict=True):
            pairs, often = _repeated(client_keys[rows])
            equal.append(pairs if often < OFTEN else np.inf)
            every.append(len(rows) * (len(rows) - 1) / 2)
        return (np.add.outer(equal, equal) + 1) / np.maximum(np.add.outer(every, every), 1)

    def told_by_features(self, asked: np.ndarray, varying: np.ndarray) -> np.ndarray:
        """Pairs that mostly have the same costs with the same feature, more often than if one said nothing about the other."""
        costs = [client_keys[rows] for client_keys, rows in zip(self.keys, self.rows, strict=True)]
        asked = asked & (_common(costs) >= FEWEST_MATCHED) & ~np.eye(len(costs), dtype=bool)
        told = np.zeros_like(asked)
        if not asked.any():
            return told
        equal_costs = _equal(costs)
        for column in np.flatnonzero(varying):
            feature = [_bits(client.x[rows, column]) for client, rows in zip(self.clients, self.rows, strict=True)]
            both = [chained(np.column_stack(pair)) for pair in zip(costs, feature, strict=True)]
            number = [len(np.unique(client_keys)) for client_keys in both]
            mostly = _common(both) >= np.maximum(MOSTLY * np.minimum.outer(number, number), FEWEST_MATCHED)
            told |= asked & mostly & (_equal(both) > TIMES * equal_costs * _equal(feature))
        return told


def _bits(values: np.ndarray) -> np.ndarray:
    """Numbers in single precision, as keys; 0.0 and -0.0 are equal."""
    with np.errstate(over="ignore"):  # numbers beyond single precision are infinite, and equal
        single = values.astype(np.float32) + np.float32(0)
    return single.view(np.uint32).astype(np.uint64)


def _common(keys: Sequence[np.ndarray]) -> np.ndarray:
    """How many different keys each pair of clients has in common."""
    table = _counted([np.unique(client_keys) for client_keys in keys])
    return np.asarray((table @ table.T).todense())


def _equal(values: Sequence[np.ndarray]) -> np.ndarray:
    """The share of equal ones among the pairs of a value of one client and one of another, for each pair of clients."""
    table = _counted(values)
    number = np.array([max(len(client_values), 1) for client_values in values], float)
    return np.asarray((table @ table.T).todense()) / np.outer(number, number)


def _counted(values: Sequence[np.ndarray]) -> scipy.sparse.csr_array:
    """How often each client (a row) has each value (a column)."""
    known, place = np.unique(np.concatenate(values), return_inverse=True)
    owner = np.repeat(np.arange(len(values)), [len(client_values) for client_values in values])
    return scipy.sparse.coo_array((np.ones(len(place)), (owner, place)), shape=(len(values), len(known))).tocsr()


def _repeated(keys: np.ndarray) -> tuple[float, float]:
    """How many pairs of these keys are equal, and the share of keys that are there several times."""
    count = np.unique(keys, return_counts=True)[1]
    return float((count * (count - 1)).sum()) / 2, float(count[count > 1].sum()) / max(len(keys), 1)


def _keys_of_costs(client: Client) -> np.ndarray | None:
    """The costs' keys, with one of its own for each row of a tariff beside others; None where all are tariffs."""
    rows = _different(client)
    return _without_tariffs(client, client.cost_keys, rows) if len(rows) else None


def _without_tariffs(client: Client, keys: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Keys of costs, with one of its own for each row of a tariff; None where all are tariffs. ``rows`` are different ones."""
    known, count = np.unique(keys[rows], return_counts=True)
    if len(known) <= MOST_TARIFFS and len(known) < SEVERAL * len(rows):
        return None
    tariffs = known[count > TARIFF * np.median(count)]
    name = np.repeat(text_digests(np.array([client.name])), client.n)
    return np.where(np.isin(keys, tariffs), chained(np.column_stack([name, client.content_keys])), keys)


def has_moments(client: Client) -> bool:
    """Whether a client has several rows of a moment: different rows with equal costs, neither tariffs nor chance."""
    keys = _keys_of_costs(client)
    if keys is None or client.c.shape[1] == 1:  # one column: nothing says how often it is equal by chance
        return False
    rows = _different(client)
    if _repeated(keys[rows])[1] * len(rows) < max(FEWEST_MATCHED, MOMENTS * len(rows)):
        return False
    costs = client.c[rows[np.unique(client.cost_keys[rows], return_index=True)[1]]]
    return _equal_by_chance(costs) * len(rows) <= CERTAIN


def _equal_by_chance(costs: np.ndarray) -> float:
    """How often two rows of independent columns are equal, by the shares of equal pairs in each column of different rows."""
    equal = [_repeated(column)[0] / max(len(costs) * (len(costs) - 1) / 2, 1) for column in costs.T]
    return float(np.prod(equal))


def telling_features(client: Client, varying: np.ndarray) -> np.ndarray | None:
    """A key of each row's varying features, equal where they are equal bit by bit in single precision."""
    x = np.ascontiguousarray(client.x[:, varying])
    keys = chained(_bits(x)) if x.size else np.zeros(0, np.uint64)
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
