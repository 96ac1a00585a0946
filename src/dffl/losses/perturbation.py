"""Decisions at predictions with Gaussian noise: what the perturbed losses share (Berthet et al., 2020)."""

from __future__ import annotations

from typing import NamedTuple

import jax
from jax import Array

from dffl.checks import require_number, require_whole
from dffl.losses.base import Loss
from dffl.sets import FeasibleSet

SCALE = 0.3
"""The default size of the noise, in scaled units.

Costs have a mean absolute value of 1 there. So this is a typical error of a prediction: large enough that near-ties change
sides, and small enough that the order of clearly different costs stays.
"""
MOST_SAMPLES = 10**4


class Perturbed(NamedTuple):
    """Some draws of the noise, and for each the moved costs and the best decisions there: (samples, rows, d) each."""

    noise: Array
    costs: Array
    decisions: Array


class PerturbedLoss(Loss):
    """A loss that looks at ``samples`` decisions, each at the prediction plus ``scale`` times standard normal noise."""

    random = True
    LEAST = 1
    """The least number of samples that the loss can do with."""

    def __init__(self, samples: int = 10, scale: float = SCALE):
        require_whole(f"{self.name}: samples", samples, least=self.LEAST, most=MOST_SAMPLES)
        require_number(f"{self.name}: scale", scale, 0.0, float("inf"), "> 0 and finite")
        self.samples, self.scale = int(samples), float(scale)

    def perturbed(self, c_hat: Array, s: FeasibleSet, key: Array | None) -> Perturbed:
        """The draws of one step, independent from row to row."""
        assert key is not None, "a random loss is given a key"
        noise = jax.random.normal(key, (self.samples, *c_hat.shape), c_hat.dtype)
        if s.predicted < s.dim:  # known costs have no noise
            noise = noise.at[..., s.predicted :].set(0)
        costs = c_hat + self.scale * noise
        return Perturbed(noise, costs, s.solve(costs))
