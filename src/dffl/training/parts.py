"""Which samples are for training and which for judging. Every client divides its own, and a deployed site does the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

from dffl.federation import Federation
from dffl.predictor import Normaliser
from dffl.randomness import Purpose, stream
from dffl.training.settings import Settings
from dffl.training.units import client_units


class Divided(NamedTuple):
    """The samples for training, and those for judging candidates, if there are any."""

    train: Federation
    judge: Federation | None


class Part(ABC):
    """A way to divide the samples; ``str(part)`` is its short name in histories."""

    @abstractmethod
    def divide(self, federation: Federation, settings: Settings, validation: Federation | None) -> Divided:
        """Each client's samples, divided. ``validation`` is the user's own validation federation."""

    def seeded(self, settings: Settings) -> Settings:
        """The settings for training on this part, which may have its own start and order of samples."""
        return settings

    def units(self, train: Federation, settings: Settings) -> list[Normaliser]:
        """The units of each client, from its training samples."""
        return client_units(train, settings)


@dataclass(frozen=True)
class AllSamples(Part):
    """All samples are training samples. Candidates can be judged if the user gave a validation federation."""

    def divide(self, federation: Federation, settings: Settings, validation: Federation | None) -> Divided:
        return Divided(federation, validation)

    def __str__(self) -> str:
        return "all"


@dataclass(frozen=True)
class SplitSamples(Part):
    """Each client holds out a share of its samples, `Settings.validation_fraction`, for judging candidates."""

    def divide(self, federation: Federation, settings: Settings, validation: Federation | None) -> Divided:
        return Divided(*federation.split(settings.validation_fraction, how=settings.splitting))

    def __str__(self) -> str:
        return "split"


@dataclass(frozen=True)
class FoldSamples(Part):
    """Each client holds out one of ``count`` folds of its samples; over all folds, every sample is held out once.

    Folds are random, follow from the rows or are stretches of time, by `Settings.split` and `Settings.validation_blocks`.
    """

    number: int
    count: int

    def divide(self, federation: Federation, settings: Settings, validation: Federation | None) -> Divided:
        return Divided(*federation.fold(self.number, self.count, how=settings.splitting))

    def seeded(self, settings: Settings) -> Settings:
        seed = stream(settings.seed, Purpose.FOLD_START, counter=self.number).integers(2**62)
        return replace(settings, seed=int(seed))

    def __str__(self) -> str:
        return f"fold {self.number + 1} of {self.count}"


ALL, SPLIT = AllSamples(), SplitSamples()
