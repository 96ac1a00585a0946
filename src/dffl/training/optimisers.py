"""Optimisers of clients, and schedules of the learning rate over the rounds of a federated training."""

from __future__ import annotations

import math
from abc import abstractmethod

import optax

from dffl.named import Named


class Schedule(Named):
    """A factor on the learning rate for each round."""

    what = "schedule"

    @abstractmethod
    def factor(self, round: int, rounds: int) -> float:
        """The factor in this round, counted from 0, of ``rounds``."""


class Constant(Schedule):
    """The same rate in every round."""

    name = "constant"

    def factor(self, round: int, rounds: int) -> float:
        return 1.0


class _Falling(Schedule):
    def __init__(self, last: float = 0.0):
        if not 0 <= last < math.inf:
            raise ValueError(f"{self.name}: last, the factor that the rate ends at, must be >= 0 and finite, found {last!r}")
        self.last = float(last)

    def factor(self, round: int, rounds: int) -> float:
        return self.last + (1 - self.last) * self._left(round / rounds)

    @abstractmethod
    def _left(self, done: float) -> float:
        """The remaining part of the decrease, from 1 to 0, after this share of the rounds."""


class Cosine(_Falling):
    """Half a cosine from 1 down to ``last``, which the round after the last one would reach."""

    name = "cosine"

    def _left(self, done: float) -> float:
        return (1 + math.cos(math.pi * done)) / 2


class Linear(_Falling):
    """A straight line from 1 down to ``last``, which the round after the last one would reach."""

    name = "linear"

    def _left(self, done: float) -> float:
        return 1 - done


class Optimiser(Named):
    """An optimiser: a rule from gradients to steps, as in Optax."""

    what = "optimiser"

    @abstractmethod
    def transformation(self, learning_rate: float) -> optax.GradientTransformation:
        """The rule at this learning rate."""

    def longest_step(self, size: int, clip: float) -> float:
        """About the longest step on ``size`` numbers with gradients no longer than ``clip``, at a learning rate of 1."""
        return math.sqrt(size)


class Adam(Optimiser):
    """Adam with its usual constants. XLA fuses it on one flat vector into a few passes."""

    name = "adam"

    def transformation(self, learning_rate: float) -> optax.GradientTransformation:
        return optax.adam(learning_rate)


class SGD(Optimiser):
    """Plain gradient steps, with momentum on request."""

    name = "sgd"

    def __init__(self, momentum: float = 0.0):
        if not 0 <= momentum < 1:
            raise ValueError(f"sgd: momentum must be in [0, 1), found {momentum!r}")
        self.momentum = float(momentum)

    def transformation(self, learning_rate: float) -> optax.GradientTransformation:
        return optax.sgd(learning_rate, self.momentum or None)

    def longest_step(self, size: int, clip: float) -> float:
        return clip / (1 - self.momentum)
