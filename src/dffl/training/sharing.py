"""Rows that several clients have: how many, of whom, and how samples are held out because of them.

Only a process that has all tables can see them. A deployed site sees only its own, so the plan says how rows are divided.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from dffl.federation import Client, Federation
from dffl.named import listed
from dffl.parquet_federation import ParquetFederation
from dffl.splitting import COST, DRAW, ROW, TIME
from dffl.training.crossing import (
    FOLDS,
    SAME_COSTS,
    SHOWN,
    Crossing,
    and_others,
    crossing,
    crossing_of,
    divisible,
    varying_features,
    warning,
    worst,
)
from dffl.training.settings import Settings
from dffl.training.telling import different_rows, has_moments, telling_costs

FEWEST_DIFFERENT = 10
"""The fewest different rows of a client that is divided by row by default."""


class RowsInCommon(NamedTuple):
    """A client, the number of its rows that other clients have too, and these clients."""

    client: str
    rows: int
    of: int
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.client!r} has {self.rows} of its {self.of} rows in common with {listed(map(repr, self.others), SHOWN)}"


class Sharing(NamedTuple):
    """The clients that share rows, and those that share the costs of rows although features may differ."""

    rows: list[RowsInCommon]
    costs: list[RowsInCommon]

    @property
    def by_costs(self) -> bool:
        """Whether clients have the costs of more rows in common than whole rows, as sites of one price zone have."""
        return sum(client.rows for client in self.costs) > sum(client.rows for client in self.rows)

    @property
    def rule(self) -> str:
        """How samples have to be held out, so that no model is judged on rows that were training rows elsewhere."""
        return COST if self.by_costs else ROW if self.rows else DRAW

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows (or of costs) that each client shares; clients that share none are left out."""
        return {client.client: client.rows for client in (self.costs if self.by_costs else self.rows)}

    def words(self, clients: int) -> str:
        """One sentence on what is shared; empty if nothing is."""
        shared = self.costs if self.by_costs else self.rows
        if not shared:
            return ""
        most = max(shared, key=lambda client: (client.rows / client.of, client.rows))
        what = "the costs of rows" if self.by_costs else "rows"
        return f"{len(shared)} of {clients} clients share {what}: {most}" + (", the largest share" if len(shared) > 2 else "")


MEANS = "rows that others hold too teach little that is new, so expect less of federating"


def sharing(clients: Sequence[Client]) -> Sharing:
    """The rows and costs that the clients share."""
    rows = shared_by([client.content_keys for client in clients], clients)
    told = [
        (client, client_keys)
        for client, client_keys in zip(clients, telling_costs(clients, varying_features(clients)), strict=True)
    ]
    keys = {client: client_keys for client, client_keys in told if client_keys is not None}
    by_costs = shared_by(list(keys.values()), list(keys)) if keys else []
    return Sharing(rows, [shared for shared in by_costs if shared.rows >= SAME_COSTS * shared.of])


def shared_by(keys: Sequence[np.ndarray], clients: Sequence[Client]) -> list[RowsInCommon]:
    """The clients that have keys in common with other clients."""
    unique, place = np.unique(np.concatenate(keys), return_inverse=True)
    owner = np.repeat(np.arange(len(clients)), [len(client_keys) for client_keys in keys])
    pairs = np.unique(np.stack([place, owner]), axis=1)  # each client counts once for a key
    holders = np.bincount(pairs[0], minlength=len(unique))
    if (holders < 2).all():
        return []
    shared = []
    for number, client_keys in enumerate(np.split(place, np.cumsum([len(client_keys) for client_keys in keys])[:-1])):
        common = client_keys[holders[client_keys] > 1]
        if len(common):
            others = np.setdiff1d(pairs[1][np.isin(pairs[0], common)], [number])
            shared.append(
                RowsInCommon(clients[number].name, len(common), len(client_keys), tuple(clients[i].name for i in others))
            )
    return shared


_KNOWN: WeakKeyDictionary[Federation, Sharing] = WeakKeyDictionary()


def sharing_of(federation: Federation) -> Sharing:
    """The rows that the clients of a federation share, computed once."""
    if federation not in _KNOWN:
        _KNOWN[federation] = sharing(federation.clients)
    return _KNOWN[federation]


_SAID: WeakSet[Federation] = WeakSet()
"""Federations whose crossing rows were reported already: a comparison, or several runs, need not repeat it."""


def settled(federation: Federation | ParquetFederation, settings: Settings) -> Settings:
    """The settings with a rule for holding out: the given one, or the one that the rows require, with a warning.

    There is also a warning if the rule puts equal rows of several clients into different parts.
    """
    if isinstance(federation, ParquetFederation):  # nothing is held out of these
        return replace(settings, split=settings.split or DRAW)
    chosen, note = _ruled(federation, settings)
    known = federation in _SAID
    crossings = [] if known else [crossed for crossed in crossing_of(federation, chosen.splitting) if crossed.many]
    if crossings:
        _SAID.add(federation)
        warnings.warn(warning(crossings, str(chosen.split)), stacklevel=3)
    elif note:
        warnings.warn(note, stacklevel=3)
    return chosen


def told_of(federation: Federation) -> None:
    """Do not warn of crossing rows in a federation: its user was warned, or its rows are placeholders."""
    _SAID.add(federation)


def _ruled(federation: Federation, settings: Settings) -> tuple[Settings, str]:
    """The settings with a rule, and the message about it."""
    if settings.split == TIME and settings.period is None:
        return replace(settings, period=whole_period(federation)), ""
    if settings.split is not None:
        return settings, ""
    if all(client.keys is not None for client in federation):
        return replace(settings, split=ROW), ""
    shared, note = sharing_of(federation) if len(federation) > 1 else Sharing([], []), ""
    by_costs = replace(settings, split=COST)
    if not all(divisible(client, by_costs.splitting, FOLDS) for client in federation):
        shared = shared._replace(costs=[])  # some client could not be judged; there is a warning about crossing rows
    elif shared.rule != COST and not settings.validation_blocks and (several := _with_moments(federation)):
        what = f"client {several!r} has several rows of a moment, with equal costs"
        return by_costs, f"{what}; rows of equal costs are held out together (split='cost')"
    if shared.rule == DRAW and not settings.validation_blocks and (twice := repeated(federation)):
        return replace(settings, split=ROW), f"{twice}; equal rows are held out together (split='row')"
    if shared.rule != DRAW:
        what = "rows of equal costs" if shared.rule == COST else "equal rows"
        note = f"{shared.words(len(federation))}; {what} are held out together (split={shared.rule!r}), and {MEANS}"
    return replace(settings, split=shared.rule), note


def _with_moments(federation: Federation) -> str | None:
    """The first client that has several rows of the same moment."""
    return next((client.name for client in federation if has_moments(client)), None)


def alike_rows(clients: Sequence[Client]) -> list[np.ndarray]:
    """A number for each row of each client, the same for rows of any clients that are no independent evidence.

    They are equal, or of one key or moment.
    """
    keys = [[client.row_keys for client in clients], [client.content_keys for client in clients]]
    if any(map(has_moments, clients)) or (len(clients) > 1 and sharing(clients).by_costs):
        keys.append([client.cost_keys for client in clients])
    return min(keys, key=lambda own: len(np.unique(np.concatenate(own))))


def repeated(federation: Federation) -> str:
    """The client that repeats most of its rows, in words; empty if rows are hardly repeated, or nearly all are equal."""
    most, note = SAME_COSTS, ""
    for client in federation:
        different = different_rows(client)
        if different < FEWEST_DIFFERENT:
            return ""  # too few to be divided
        if 1 - different / client.n > most:
            most, note = (
                1 - different / client.n,
                f"{different} of the {client.n} rows of client {client.name!r} are different ones",
            )
    return note


def whole_period(federation: Federation) -> tuple[float, float]:
    """The period from the first time of any client until just after the last one."""
    for client in federation:
        if client.times is None:
            raise ValueError(f"client {client.name!r}: times must be given with split='time', found none")
    first = min(float(client.times[0]) for client in federation if client.times is not None)
    last = max(float(client.times[-1]) for client in federation if client.times is not None)
    return first, float(np.nextafter(last, np.inf)) if last > first else first + 1.0


def seen_in_training(test: Federation, train: Federation) -> list[Crossing]:
    """The test clients that have test rows among training rows, in one of the ways of `dffl.training.crossing`."""
    clients = [*test, *train]
    is_test = [True] * len(test) + [False] * len(train)
    sides = [np.full(client.n, int(out)) for client, out in zip(clients, is_test, strict=True)]
    return crossing(clients, sides, counted=is_test, same=True)


def seen_words(crossings: Sequence[Crossing]) -> str:
    """Which test rows are training rows, for the client with the largest share of them."""
    most = worst(crossings)
    what = f"{most.rows} of the {most.of} test rows of client {most.client!r} {SEEN[most.way]}"
    return f"{what} {listed(map(repr, most.others), SHOWN)}{and_others(crossings)}"


SEEN = {
    "rows": "are equal to rows that train",
    "costs": "have costs of rows that train",
    "features": "have features, and related costs, of rows that train",
    "fees": "have costs, up to a fee, of rows that train",
}


def warn_of_seen(test: Federation, train: Federation) -> None:
    """Warn if test rows are training rows: results on them are too good."""
    if crossings := seen_in_training(test, train):
        warnings.warn(
            f"{seen_words(crossings)}: regrets on them are too low, also in comparisons; leave these rows out", stacklevel=3
        )
