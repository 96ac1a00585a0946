"""Rows that several clients hold: how many, whose, and what follows for how samples are held out.

Only a process that holds all tables can see them. A deployed site sees its own alone, so the plan says how rows are divided.
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
"""Different rows that a client needs to be divided by row without being asked to."""


class RowsInCommon(NamedTuple):
    """A client, how many of its rows other clients hold too, and which clients these are."""

    client: str
    rows: int
    of: int
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.client!r} has {self.rows} of its {self.of} rows in common with {listed(map(repr, self.others), SHOWN)}"


class Sharing(NamedTuple):
    """The clients that share rows, and those that share the costs of rows whose features may differ."""

    rows: list[RowsInCommon]
    costs: list[RowsInCommon]

    @property
    def by_costs(self) -> bool:
        """Whether clients have the costs of more rows in common than whole rows, as sites of one price zone have."""
        return sum(one.rows for one in self.costs) > sum(one.rows for one in self.rows)

    @property
    def rule(self) -> str:
        """How samples have to be held out, so that no model is judged on what it has seen elsewhere."""
        return COST if self.by_costs else ROW if self.rows else DRAW

    @property
    def counts(self) -> dict[str, int]:
        """How many rows each client shares, or of how many the costs; clients that share none are not named."""
        return {one.client: one.rows for one in (self.costs if self.by_costs else self.rows)}

    def words(self, clients: int) -> str:
        """Who shares what, in one sentence; nothing where nobody does."""
        found = self.costs if self.by_costs else self.rows
        if not found:
            return ""
        most = max(found, key=lambda one: (one.rows / one.of, one.rows))
        what = "the costs of rows" if self.by_costs else "rows"
        return f"{len(found)} of {clients} clients share {what}: {most}" + (", the largest share" if len(found) > 2 else "")


MEANS = "rows that others hold too teach little that is new, so expect less of federating"


def sharing(clients: Sequence[Client]) -> Sharing:
    """What the clients share."""
    rows = shared_by([client.content_keys for client in clients], clients)
    told = [(client, own) for client, own in zip(clients, telling_costs(clients, varying_features(clients)), strict=True)]
    keys = {client: own for client, own in told if own is not None}
    found = shared_by(list(keys.values()), list(keys)) if keys else []
    return Sharing(rows, [one for one in found if one.rows >= SAME_COSTS * one.of])


def shared_by(keys: Sequence[np.ndarray], clients: Sequence[Client]) -> list[RowsInCommon]:
    """The clients some of whose keys other clients have too."""
    whole, place = np.unique(np.concatenate(keys), return_inverse=True)
    owner = np.repeat(np.arange(len(clients)), [len(own) for own in keys])
    pairs = np.unique(np.stack([place, owner]), axis=1)  # each client counts once for a key
    holders = np.bincount(pairs[0], minlength=len(whole))
    if (holders < 2).all():
        return []
    found = []
    for number, own in enumerate(np.split(place, np.cumsum([len(own) for own in keys])[:-1])):
        common = own[holders[own] > 1]
        if len(common):
            others = np.setdiff1d(pairs[1][np.isin(pairs[0], common)], [number])
            found.append(RowsInCommon(clients[number].name, len(common), len(own), tuple(clients[i].name for i in others)))
    return found


_KNOWN: WeakKeyDictionary[Federation, Sharing] = WeakKeyDictionary()


def sharing_of(federation: Federation) -> Sharing:
    """What the clients of a federation share, looked for once."""
    if federation not in _KNOWN:
        _KNOWN[federation] = sharing(federation.clients)
    return _KNOWN[federation]


_SAID: WeakSet[Federation] = WeakSet()
"""The federations of which a user knows what crosses: a compare, or several runs, need not repeat it."""


def settled(federation: Federation, settings: Settings) -> Settings:
    """The settings with a rule of holding out: the given one, or what the clients' rows ask for, with a warning.

    Rows that the rule, chosen or by default, puts on different sides at several clients are warned of too.
    """
    chosen, said = _ruled(federation, settings)
    known = federation in _SAID
    found = [] if known else [crossed for crossed in crossing_of(federation, chosen.splitting) if crossed.many]
    if found:
        _SAID.add(federation)
        warnings.warn(warning(found, str(chosen.split)), stacklevel=3)
    elif said:
        warnings.warn(said, stacklevel=3)
    return chosen


def told_of(federation: Federation) -> None:
    """Do not warn of what crosses in a federation: its user was told, or its rows are made up."""
    _SAID.add(federation)


def _ruled(federation: Federation, settings: Settings) -> tuple[Settings, str]:
    """The settings with a rule, and what to say of it."""
    if settings.split == TIME and settings.period is None:
        return replace(settings, period=whole_period(federation)), ""
    if settings.split is not None:
        return settings, ""
    if all(client.keys is not None for client in federation):
        return replace(settings, split=ROW), ""
    found, said = sharing_of(federation) if len(federation) > 1 else Sharing([], []), ""
    by_costs = replace(settings, split=COST)
    if not all(divisible(client, by_costs.splitting, FOLDS) for client in federation):
        found = found._replace(costs=[])  # some client could not be judged; what crosses is warned of
    elif found.rule != COST and not settings.validation_blocks and (several := _with_moments(federation)):
        what = f"client {several!r} has several rows of a moment, with equal costs"
        return by_costs, f"{what}; rows of equal costs are held out together (split='cost')"
    if found.rule == DRAW and not settings.validation_blocks and (twice := repeated(federation)):
        return replace(settings, split=ROW), f"{twice}; equal rows are held out together (split='row')"
    if found.rule != DRAW:
        what = "rows of equal costs" if found.rule == COST else "equal rows"
        said = f"{found.words(len(federation))}; {what} are held out together (split={found.rule!r}), and {MEANS}"
    return replace(settings, split=found.rule), said


def _with_moments(federation: Federation) -> str | None:
    """The first client that has several rows of a moment."""
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
    """The client that repeats most of its rows, in words; nothing where rows are hardly repeated, or nearly all are equal."""
    most, said = SAME_COSTS, ""
    for client in federation:
        different = different_rows(client)
        if different < FEWEST_DIFFERENT:
            return ""  # too few to divide by
        if 1 - different / client.n > most:
            most, said = (
                1 - different / client.n,
                f"{different} of the {client.n} rows of client {client.name!r} are different ones",
            )
    return said


def whole_period(federation: Federation) -> tuple[float, float]:
    """From the first time of any client until just behind the last one."""
    for client in federation:
        if client.times is None:
            raise ValueError(f"client {client.name!r}: times must be given with split='time', found none")
    first = min(float(client.times[0]) for client in federation if client.times is not None)
    last = max(float(client.times[-1]) for client in federation if client.times is not None)
    return first, float(np.nextafter(last, np.inf)) if last > first else first + 1.0


def seen_in_training(test: Federation, train: Federation) -> list[Crossing]:
    """The test clients some of whose rows train the same or another client, in one of the ways of `dffl.training.crossing`."""
    clients = [*test, *train]
    held = [True] * len(test) + [False] * len(train)
    sides = [np.full(client.n, int(out)) for client, out in zip(clients, held, strict=True)]
    return crossing(clients, sides, counted=held, same=True)


def seen_words(found: Sequence[Crossing]) -> str:
    """Which test rows train, of the client with the largest share of them."""
    most = worst(found)
    what = f"{most.rows} of the {most.of} test rows of client {most.client!r} {SEEN[most.way]}"
    return f"{what} {listed(map(repr, most.others), SHOWN)}{and_others(found)}"


SEEN = {
    "rows": "are equal to rows that train",
    "costs": "have costs of rows that train",
    "features": "have features, and related costs, of rows that train",
    "fees": "have costs, up to a fee, of rows that train",
}


def warn_of_seen(test: Federation, train: Federation) -> None:
    """Warn where test rows are training rows: what is measured on them is too good."""
    if found := seen_in_training(test, train):
        warnings.warn(
            f"{seen_words(found)}: regrets on them are too low, also in comparisons; leave these rows out", stacklevel=3
        )
