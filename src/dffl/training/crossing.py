"""Rows that some other client has on another side: the check that a division of samples keeps copies together.

A rule of holding out (by row, by key, by costs, by time, by a draw) may miss copies: keys that differ, times that are shifted,
prices with a fee. So the final parts are counted. A row crosses if another client has its equal on another side: it is held out
here and trains there. Rows are equal, for this count, in one of four ways:

- *rows*: equal features and costs, also in another currency, sign or precision (`Client.content_keys`);
- *costs*: equal costs, whatever the features, where costs tell rows apart (`dffl.training.telling`). Where a client has
  several rows of a moment, its own rows count too;
- *features*: features that are equal bit by bit in single precision, where costs are related. Columns that are constant at
  every client, and a brought forecast, are left out. Features alone prove nothing: a calendar is the same at all sites. So this
  counts for two clients only if at least 90 % of the different rows of both have their own features, ten rows match, and the
  costs of the matched rows have a correlation of at least .9 in size, in one of three views: each column standardised;
  the same without the mean of each row, as with a fee that changes; the same with each row sorted, as with permuted columns;
- *fees*: costs that are equal up to an amount for all columns of a row, whatever the features. This counts for two clients only
  if they tell at least 90 % of the different costs of both apart, and at least half of those of one match: costs of a few
  digits match by chance, but not so often.

It takes digests and sorting, and compares no pairs of rows. Only a process that holds all tables can count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from dffl.federation import Client, Federation
from dffl.named import listed
from dffl.splitting import COST, DRAW, TIME, Splitting
from dffl.training.telling import FEWEST_MATCHED, different_costs, has_moments, telling_costs, telling_features, telling_fees

LIMIT = 0.05
"""The share of a client's rows that may cross. Above it, results for the client are not trusted."""
SAME_COSTS = 0.01
"""Costs identify rows if more than this share of a client's rows has costs that others have too; fewer may be chance."""
RELATED = 0.9
"""The correlation from which costs of rows with equal features count as related."""
PERMUTED = 0.99
"""The correlation for rows with sorted costs, which are similar whenever costs grow with the same features."""
MOST_MATCHED = 2000
"""The most rows for which the correlation is computed: evenly spaced ones of all that match."""
HALF = 0.5
"""The share of a client's rows that must equal those of another client up to a fee."""
FOLDS = 5

WAYS = {
    "rows": "rows that are equal",
    "costs": "rows of equal costs",
    "features": "rows of equal features and related costs",
    "fees": "rows of costs that are equal up to a fee",
}


class Crossing(NamedTuple):
    """A client, the number of its rows that other clients have in another part, these clients, and the most frequent way."""

    client: str
    rows: int
    of: int
    others: tuple[str, ...]
    way: str

    @property
    def many(self) -> bool:
        """Whether there are too many to trust results for this client."""
        return self.rows > LIMIT * self.of


class SidedSamples:
    """Samples of a client and the part of each of them."""

    def __init__(self, client: Client, side: np.ndarray, varying: np.ndarray, costs: np.ndarray | None = None):
        self.client, self.side, self.costs, self._varying = client, side, costs, varying

    @property
    def name(self) -> str:
        return self.client.name

    @cached_property
    def features(self) -> np.ndarray | None:
        return telling_features(self.client, self._varying)

    @cached_property
    def fees(self) -> np.ndarray | None:
        return telling_fees(self.client)

    @cached_property
    def has_moments(self) -> bool:
        return has_moments(self.client)


DIGESTS: dict[str, Callable[[SidedSamples], np.ndarray | None]] = {
    "rows": lambda part: part.client.content_keys,
    "costs": lambda part: part.costs,
    "features": lambda part: part.features,
    "fees": lambda part: part.fees,
}


def crossing(
    clients: Sequence[Client], sides: Sequence[np.ndarray], counted: Sequence[bool] | None = None, same: bool = False
) -> list[Crossing]:
    """The clients with rows that other clients have in another part; ``sides`` are numbers, one for each row.

    A client may occur twice, with rows of several parts. ``counted`` says for which entries rows are counted, by default for
    all. With ``same``, rows in another part at the client itself count too.
    """
    varying = varying_features(clients)
    costs = telling_costs(clients, varying)
    parts = [
        SidedSamples(client, np.asarray(side), varying, own_costs)
        for client, side, own_costs in zip(clients, sides, costs, strict=True)
    ]
    wanted = [place for place in range(len(parts)) if counted is None or counted[place]]
    masks: dict[str, list[np.ndarray]] = {
        way: _crossed(parts, [DIGESTS[way](part) for part in parts], same) for way in ("rows", "costs")
    }
    for part, mask in zip(parts, masks["costs"], strict=True):
        if part.costs is not None and part.has_moments:
            mask |= _elsewhere(part.costs, part.side, part.costs, part.side)
    masks["costs"] = [mask if mask.sum() >= SAME_COSTS * len(mask) else np.zeros_like(mask) for mask in masks["costs"]]
    pairs: dict[str, set[tuple[str, str]]] = {}
    for way, related in (("features", _related), ("fees", _half)):
        masks[way], pairs[way] = _crossed_by_pairs(parts, DIGESTS[way], related)
    crossings = []
    for place in wanted:
        any_way = np.any([masks[way][place] for way in WAYS], axis=0)
        if any_way.any():
            way = max(WAYS, key=lambda way: int(masks[way][place].sum()))
            itself = same or (way == "costs" and parts[place].has_moments)
            others = _holders(parts, place, way, masks[way][place], itself)
            if way in pairs:
                others = tuple(name for name in others if (parts[place].name, name) in pairs[way])
            crossings.append(Crossing(parts[place].name, int(any_way.sum()), len(any_way), others, way))
    return crossings


def varying_features(clients: Sequence[Client]) -> np.ndarray:
    """Which features are not constant at every client, without a client's forecast."""
    varying = np.zeros(clients[0].x.shape[1], bool)
    for client in clients:
        if client.n:
            varying |= (client.x != client.x[0]).any(axis=0)
    if clients[0].forecast is not None:
        varying[-clients[0].c.shape[1] :] = False
    return varying


def _crossed(parts: Sequence[SidedSamples], keys: Sequence[np.ndarray | None], same: bool) -> list[np.ndarray]:
    """For each part, which rows have their key in another part, at another client."""
    masks = [np.zeros(len(part.side), bool) for part in parts]
    used = [place for place, row_keys in enumerate(keys) if row_keys is not None and len(row_keys)]
    if not used:
        return masks
    owners = np.unique([part.name for part in parts], return_inverse=True)[1]
    key = np.unique(
        np.concatenate([row_keys for row_keys in keys if row_keys is not None and len(row_keys)]), return_inverse=True
    )[1]
    owner = np.concatenate([np.full(len(parts[place].side), owners[place]) for place in used])
    side = np.unique(np.concatenate([parts[place].side for place in used]), return_inverse=True)[1]
    # Of the different (client, side) of a key: all, minus those of this client, minus those of this side, plus this one itself.
    each = np.unique(np.stack([key, owner, side]), axis=1)
    own_pairs, place_of_owner = np.unique(each[:2], axis=1, return_counts=True)
    side_pairs, place_of_side = np.unique(each[::2], axis=1, return_counts=True)
    number = np.bincount(each[0], minlength=int(key.max()) + 1)
    elsewhere = number[key] - place_of_side[_place(side_pairs, key, side)]
    if not same:
        elsewhere = elsewhere - place_of_owner[_place(own_pairs, key, owner)] + 1
    for place, mask in zip(used, np.split(elsewhere > 0, np.cumsum([len(parts[p].side) for p in used])[:-1]), strict=True):
        masks[place] = mask
    return masks


def _place(pairs: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The positions of pairs in a sorted array that contains them."""
    size = int(pairs[1].max()) + 1
    return np.searchsorted(pairs[0].astype(np.int64) * size + pairs[1], first.astype(np.int64) * size + second)


def _crossed_by_pairs(
    parts: Sequence[SidedSamples],
    digest: Callable[[SidedSamples], np.ndarray | None],
    related: Callable[[SidedSamples, SidedSamples, np.ndarray, np.ndarray], bool],
) -> tuple[list[np.ndarray], set[tuple[str, str]]]:
    """Like `_crossed`, for pairs of clients that are related; and the names of these pairs."""
    masks, pairs = [np.zeros(len(part.side), bool) for part in parts], set()
    for i, j in _candidates(parts, [digest(part) for part in parts]):
        left, right = digest(parts[i]), digest(parts[j])
        assert left is not None
        assert right is not None
        _, first, second = np.intersect1d(left, right, return_indices=True)
        if not len(first) or not related(parts[i], parts[j], first, second):
            continue
        for place, mine, there, theirs in ((i, left, j, right), (j, right, i, left)):
            masks[place] |= _elsewhere(mine, parts[place].side, theirs, parts[there].side)
            pairs.add((parts[place].name, parts[there].name))
    return masks, pairs


def _candidates(parts: Sequence[SidedSamples], keys: Sequence[np.ndarray | None]) -> Iterator[tuple[int, int]]:
    """The pairs of different clients with keys that several parts have."""
    used = {place: row_keys for place, row_keys in enumerate(keys) if row_keys is not None}
    if len(used) < 2:
        return
    known, count = np.unique(np.concatenate([np.unique(row_keys) for row_keys in used.values()]), return_counts=True)
    several = known[count > 1]
    sharing = [place for place, row_keys in used.items() if len(several) and np.isin(row_keys, several).any()]
    yield from ((i, j) for i, j in combinations(sharing, 2) if parts[i].name != parts[j].name)


def _elsewhere(mine: np.ndarray, side: np.ndarray, theirs: np.ndarray, their_side: np.ndarray) -> np.ndarray:
    """Which of my keys the other client has in another part."""
    order = np.lexsort((their_side, theirs))
    sorted_keys, sorted_sides = theirs[order], their_side[order]
    first, last = np.searchsorted(sorted_keys, mine, "left"), np.searchsorted(sorted_keys, mine, "right")
    is_shared = last > first
    low, high = sorted_sides[np.minimum(first, len(order) - 1)], sorted_sides[np.maximum(last - 1, 0)]
    return is_shared & ((low != side) | (high != side))


def _related(part: SidedSamples, other: SidedSamples, first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the costs of rows with equal features are related."""
    if len(first) < FEWEST_MATCHED:
        return False
    some = np.linspace(0, len(first) - 1, min(len(first), MOST_MATCHED)).astype(int)
    a, b = part.client.c[first[some]], other.client.c[second[some]]
    views: Sequence[Callable[[np.ndarray], np.ndarray]] = (
        lambda c: c,
        lambda c: c - c.mean(axis=1, keepdims=True),
        lambda c: np.sort(c, axis=1) - c.mean(axis=1, keepdims=True),
    )
    # Sorted costs that grow with the same features are always similar: only nearly equal ones count as related.
    limits = (RELATED, RELATED, PERMUTED)
    return any(abs(_correlation(view(a), view(b))) >= limit for view, limit in zip(views, limits, strict=True))


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Two tables with standardised columns, without columns that are constant in one of them."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    sizes = [np.sqrt((table**2).mean(axis=0)) for table in (a, b)]
    tiny = [1e-9 * (np.abs(table).max() + 1e-300) for table in (a, b)]
    moving = (sizes[0] > tiny[0]) & (sizes[1] > tiny[1])
    return float(np.mean((a * b).mean(axis=0)[moving] / (sizes[0] * sizes[1])[moving])) if moving.any() else 0.0


def _half(part: SidedSamples, other: SidedSamples, first: np.ndarray, second: np.ndarray) -> bool:
    """Whether half of the rows of one of two clients match."""
    return len(first) >= max(HALF * min(different_costs(part.client), different_costs(other.client)), FEWEST_MATCHED)


def _holders(parts: Sequence[SidedSamples], place: int, way: str, mask: np.ndarray, same: bool) -> tuple[str, ...]:
    """The other clients that have these rows in another part."""
    mine = DIGESTS[way](parts[place])
    assert mine is not None
    names: dict[str, None] = {}
    for part in parts:
        theirs = DIGESTS[way](part)
        if theirs is None or not len(theirs) or (part.name == parts[place].name and not same):
            continue
        if _elsewhere(mine[mask], parts[place].side[mask], theirs, part.side).any():
            names[part.name] = None
    return tuple(names)


def sides_of(clients: Sequence[Client], how: Splitting, count: int = FOLDS) -> list[np.ndarray]:
    """The fold of each row of each client."""
    sides = []
    for client in clients:
        side = np.zeros(client.n, int)
        for number, rows in enumerate(how.folds(client, count)):
            side[rows] = number
        sides.append(side)
    return sides


def divisible(client: Client, how: Splitting, count: int) -> bool:
    """Whether a client can be divided. If not, an error names it where its folds are needed."""
    try:
        how.folds(client, count)
    except ValueError:
        return False
    return True


_COUNTED: WeakKeyDictionary[Federation, dict[tuple[Splitting, int], list[Crossing]]] = WeakKeyDictionary()


def crossing_of(federation: Federation, how: Splitting, count: int = FOLDS) -> list[Crossing]:
    """The rows that cross between the folds of a federation, counted once."""
    if len(federation) < 2:
        return []
    known = _COUNTED.setdefault(federation, {})
    if (how, count) not in known:
        clients = [client for client in federation if divisible(client, how, count)]
        known[how, count] = crossing(clients, sides_of(clients, how, count)) if len(clients) > 1 else []
    return known[how, count]


SHOWN = 3
"""The most names in a message."""
TOO_GOOD = "so models are judged on rows that trained them elsewhere, and federating seems better than it is"
KEY = "give rows of one moment the same key, such as the date (`key` in a file, `keys` of clients in Python)"


def worst(crossings: Sequence[Crossing]) -> Crossing:
    """The client with the largest share of rows that cross."""
    return max(crossings, key=lambda crossed: (crossed.rows / crossed.of, crossed.rows))


def told(crossings: Sequence[Crossing]) -> str:
    """The client with the largest share, as part of a sentence."""
    most = worst(crossings)
    what = f"{most.rows} of the {most.of} rows of {most.client!r} are held out while {WAYS[most.way]} train"
    return f"{what} {listed(map(repr, most.others), SHOWN)}{and_others(crossings)}"


def and_others(crossings: Sequence[Crossing]) -> str:
    """The number of further clients, in words."""
    return f" (and likewise {len(crossings) - 1} more of the clients)" if len(crossings) > 1 else ""


def fix(way: str, rule: str) -> str:
    """What to do about rows that are equal in a ``way`` and cross under a rule."""
    if rule == TIME:
        return "give rows of one moment the same time at all clients, or leave the copies out"
    if way == "rows" and rule == DRAW:
        return 'write split = "row"'
    if way == "costs" and rule != COST:
        return f'write split = "cost", or {KEY}'
    return f"{KEY}, or leave the copies out"


def warning(crossings: Sequence[Crossing], rule: str) -> str:
    """What crosses, what it means and what to do, in one sentence."""
    return f"{told(crossings)}, {TOO_GOOD}; {fix(worst(crossings).way, rule)}"


def reason(crossed: Crossing, rule: str) -> str:
    """Why a client gets no verdict."""
    others = listed(map(repr, crossed.others), SHOWN)
    what = f"{crossed.rows} of your {crossed.of} rows are held out while {WAYS[crossed.way]} train {others}"
    return f"{what}, so what joining would gain cannot be measured; {fix(crossed.way, rule)}"
