"""Which samples a fold holds out: random ones, or blocks of consecutive ones for time series."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dffl.federation import Client, Federation
from dffl.splitting import Splitting
from dffl.training.parts import Divided, FoldSamples
from dffl.training.settings import Settings

WEEK = 7
"""Consecutive samples of a time series that stay together, because neighbouring days are similar."""


@dataclass(frozen=True, eq=False)
class Fold:
    """The training samples and the held-out samples of every client; ``index`` has the numbers of the latter, by client."""

    part: FoldSamples
    """The same division, for a run."""
    train: Federation
    held: Federation
    index: list[np.ndarray]


@dataclass(frozen=True)
class EverySecondWeek(FoldSamples):
    """A fold of a time series whose training samples are those of every second week."""

    def divide(self, federation: Federation, settings: Settings, validation: Federation | None) -> Divided:
        divided = super().divide(federation, settings, validation)
        return divided._replace(train=_second_weeks(divided.train))

    def __str__(self) -> str:
        return f"every second week of {super().__str__()}"


def folds(federation: Federation, count: int, how: Splitting) -> list[Fold]:
    """``count`` folds; each sample is held out once."""
    rows = [_parts(client, count, how) for client in federation]
    return [
        Fold(FoldSamples(number, count), *federation.fold(number, count, how=how), [places[number] for places in rows])
        for number in range(count)
    ]


def half_folds(federation: Federation, full_folds: list[Fold], how: Splitting) -> list[Fold]:
    """Folds in which about half of the data are training samples."""
    # The two halves of a time series have different seasons, not only different training samples.
    return halved(full_folds) if how.blocks else folds(federation, 2, how)


def halved(full_folds: list[Fold]) -> list[Fold]:
    """The same folds with every second week of the training samples: half the data, the same seasons, the same held-out
    samples.
    """
    return [
        replace(fold, part=EverySecondWeek(fold.part.number, fold.part.count), train=_second_weeks(fold.train))
        for fold in full_folds
    ]


def _second_weeks(federation: Federation) -> Federation:
    return Federation([client.rows(np.flatnonzero(np.arange(client.n) // WEEK % 2 == 0)) for client in federation])


def _parts(client: Client, count: int, how: Splitting) -> list[np.ndarray]:
    """The client's sample numbers in ``count`` parts."""
    if client.n < 2 * count:
        fix = "ask for fewer folds" if client.n >= 6 else "leave it out"  # three folds are the fewest
        raise ValueError(
            f"client {client.name!r}: x must have at least {2 * count} samples to be judged in {count} folds, "
            f"found {client.n}; {fix}"
        )
    return how.folds(client, count)
