"""Which samples train and which judge. Every client divides its own, so a deployed site does the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from dffl.federation import Federation
from dffl.training.settings import Settings


class Divided(NamedTuple):
    """The samples that train, and those that judge candidates, if there are any."""

    train: Federation
    judge: Federation | None


class Part(ABC):
    """A way to divide the samples; ``str(part)`` is its short name in histories."""

    @abstractmethod
    def divide(self, federation: Federation, settings: Settings, validation: Federation | None) -> Divided:
        """Each client's samples, divided. ``validation`` is the user's own validation federation."""


@dataclass(frozen=True)
class AllSamples(Part):
    """All samples train. Candidates can be judged if the user gave a validation federation."""

    def divide(self, federation: Federation, settings: Settings, validation: Federation | None) -> Divided:
        return Divided(federation, validation)

    def __str__(self) -> str:
        return "all"


@dataclass(frozen=True)
class SplitSamples(Part):
    """Each client holds out a share of its samples, `Settings.validation_fraction`, to judge candidates on."""

    def divide(self, federation: Federation, settings: Settings, validation: Federation | None) -> Divided:
        return Divided(*federation.split(settings.validation_fraction, settings.seed, settings.validation_blocks))

    def __str__(self) -> str:
        return "split"


ALL, SPLIT = AllSamples(), SplitSamples()
