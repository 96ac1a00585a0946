"""Which samples a fold holds out: random ones, or blocks of consecutive ones for time series."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dffl.federation import Client, Federation, fold_rows, optima

WEEK = 7
"""Consecutive samples of a time series that stay together, because neighbouring days resemble each other."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Every client's samples that train and that are held out; ``index`` holds the numbers of the latter, by client."""

    train: Federation
    held: Federation
    index: list[np.ndarray]


def folds(federation: Federation, count: int, seed: int = 0, blocks: bool = False) -> list[Fold]:
    """``count`` folds; each sample is held out once. In ``blocks``, a fold is a stretch of consecutive samples."""
    optima(federation.clients)  # solved for once, then shared by all folds
    parts = [_parts(client, count, seed, blocks) for client in federation]
    made = []
    for number in range(count):
        index = [part[number] for part in parts]
        held = [client.rows(rows) for client, rows in zip(federation, index, strict=True)]
        rest = [np.setdiff1d(np.arange(client.n), rows) for client, rows in zip(federation, index, strict=True)]
        train = [client.rows(rows) for client, rows in zip(federation, rest, strict=True)]
        made.append(Fold(Federation(train), Federation(held), index))
    return made


def halved(whole: list[Fold]) -> list[Fold]:
    """The same folds with every second week of what trains: half the data of the same seasons, judged on the same samples."""
    made = []
    for fold in whole:
        kept = [client.rows(np.flatnonzero(np.arange(client.n) // WEEK % 2 == 0)) for client in fold.train]
        made.append(replace(fold, train=Federation(kept)))
    return made


def _parts(client: Client, count: int, seed: int, blocks: bool) -> list[np.ndarray]:
    """The client's sample numbers in ``count`` parts whose sizes differ by one at most."""
    if client.n < 2 * count:
        fix = "ask for fewer folds" if client.n >= 6 else "leave it out"  # three folds are the fewest
        raise ValueError(
            f"client {client.name!r}: x must have at least {2 * count} samples to be judged in {count} folds, "
            f"found {client.n}; {fix}"
        )
    return fold_rows(client, count, seed, blocks)
