"""Which samples a fold holds out: random ones, or blocks of consecutive ones for time series."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dffl.federation import Client, Federation, fold_rows

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
    parts = [_parts(client, count, seed, blocks) for client in federation]
    return [Fold(*federation.fold(number, count, seed, blocks), [part[number] for part in parts]) for number in range(count)]


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
