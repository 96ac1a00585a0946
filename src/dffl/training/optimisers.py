"""How a client's gradients become steps."""

from __future__ import annotations

import math
from abc import abstractmethod

import optax

from dffl.named import Named


class Optimiser(Named):
    """A rule from gradients to steps, as Optax has them."""

    what = "optimiser"

    @abstractmethod
    def transformation(self, learning_rate: float) -> optax.GradientTransformation:
        """The rule at this learning rate."""

    def longest_step(self, size: int, clip: float) -> float:
        """About how far a step may go on ``size`` numbers with gradients no longer than ``clip``, at a learning rate of 1."""
        return math.sqrt(size)


class Adam(Optimiser):
    """Adam with its usual constants. On one flat vector XLA fuses it into a few passes."""

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
