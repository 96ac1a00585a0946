"""The client update once more, in plain NumPy: an independent rewrite that tests of the methods compare with.

Nothing of `dffl.training` is used but the order in which a client's rows come. The network is p -> hidden -> d with ReLU, its
numbers in the order W1, W2, b1, b2; the loss is SPO+ over top-k with a whole k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

import dffl
from dffl.randomness import Purpose
from dffl.training.batches import Batches


def cheapest(costs: np.ndarray, k: int) -> np.ndarray:
    """The oracle of top-k: 1 for the k smallest costs of each row, ties to the lowest index."""
    order = np.argsort(costs, axis=1, kind="stable")
    chosen = np.zeros_like(costs)
    np.put_along_axis(chosen, order[:, :k], 1.0, axis=1)
    return chosen


Decide = Callable[[np.ndarray, int], np.ndarray]
"""From costs (n, d) and k to decisions."""


def cut(theta: np.ndarray, p: int, hidden: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """W1, W2, b1, b2."""
    w1, w2, b1, b2 = np.split(theta, np.cumsum([p * hidden, hidden * d, hidden]))
    return w1.reshape(p, hidden), w2.reshape(hidden, d), b1, b2


def layer(number: int, p: int, hidden: int, d: int) -> np.ndarray:
    """True for the numbers of one layer, 0 or 1."""
    w1, w2, b1, b2 = (np.full(size, place % 2) for place, size in enumerate((p * hidden, hidden * d, hidden, d)))
    return np.concatenate([w1, w2, b1, b2]) == number


def output(theta: np.ndarray, x: np.ndarray, hidden: int, d: int, tau: float) -> np.ndarray:
    """The network's answers, clipped at norm tau."""
    w1, w2, b1, b2 = cut(theta, x.shape[1], hidden, d)
    y = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    return y * shrunk(np.linalg.norm(y, axis=1, keepdims=True), tau)


def shrunk(norm: np.ndarray, tau: float) -> np.ndarray:
    """What the clip multiplies with: 1 up to the norm tau, also at 0, which a row reaches whose hidden units are all off."""
    return np.where(norm > tau, tau / np.maximum(norm, tau), 1.0)


def spo_plus_gradient(
    theta: np.ndarray,
    x: np.ndarray,
    c: np.ndarray,
    sense: int,
    k: int,
    hidden: int,
    tau: float,
    decide: Decide = cheapest,
) -> np.ndarray:
    """The gradient of the mean SPO+ loss of some rows; ``c`` has a minimiser's sign already."""
    w1, w2, b1, b2 = cut(theta, x.shape[1], hidden, c.shape[1])
    before = x @ w1 + b1
    middle = np.maximum(before, 0)
    y = middle @ w2 + b2
    norm = np.linalg.norm(y, axis=1, keepdims=True)
    shrink = shrunk(norm, tau)
    reply = decide(2 * sense * shrink * y - c, k)
    outer = sense * 2 * (decide(c, k) - reply) / len(x)
    # Backwards through y tau / |y| where it is clipped: only what is tangent to the sphere is left.
    radial = np.where(norm > tau, y * np.sum(outer * y, axis=1, keepdims=True) / np.maximum(norm, tau) ** 2, 0)
    inner = shrink * (outer - radial)
    back = (inner @ w2.T) * (before > 0)
    return np.concatenate([(x.T @ back).ravel(), (middle.T @ inner).ravel(), back.sum(axis=0), inner.sum(axis=0)])


class Adam:
    """Kingma and Ba's Algorithm 1."""

    def __init__(self, rate: float):
        self.rate, self.steps, self.mean, self.square = rate, 0, 0.0, 0.0

    def step(self, gradient: np.ndarray) -> np.ndarray:
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean, square = self.mean / (1 - 0.9**self.steps), self.square / (1 - 0.999**self.steps)
        return -self.rate * mean / (np.sqrt(square) + 1e-8)


class SGD:
    """Gradient steps; with momentum m the step is along m times the last direction plus the gradient."""

    def __init__(self, rate: float, momentum: float = 0.0):
        self.rate, self.momentum, self.direction = rate, momentum, 0.0

    def step(self, gradient: np.ndarray) -> np.ndarray:
        self.direction = self.momentum * self.direction + gradient
        return -self.rate * self.direction


OPTIMISERS = {"adam": Adam, "sgd": SGD}


@dataclass
class Site:
    """One client with its rows in scaled units, and the settings it trains with."""

    client: dffl.Client
    settings: dffl.Settings
    norms: list[float] = field(default_factory=list)
    """The norms of the gradients before the clip: to see that the clip was at work."""

    def __post_init__(self) -> None:
        one = self.client
        self.x = (one.x - one.x.mean(axis=0)) / one.x.std(axis=0)
        self.c = one.sense * one.c / np.abs(one.c).mean()
        self.k = int(one.set.k)  # type: ignore[attr-defined]

    @property
    def count(self) -> int:
        return len(self.x)

    def minibatches(self, epoch: int, purpose: Purpose) -> list[np.ndarray]:
        """The row numbers of each minibatch of an epoch."""
        batches = Batches(self.client.name, self.count, self.settings.batch_size, self.settings.seed)
        grid = np.full((batches.steps, batches.rows), -1)
        batches.write(epoch, purpose, grid)
        return [batch[batch >= 0] for batch in grid]

    def train(
        self,
        start: np.ndarray,
        epochs: Iterable[int],
        *,
        purpose: Purpose = Purpose.SHUFFLE,
        pull: float = 0.0,
        anchor: np.ndarray | float = 0.0,
        correction: np.ndarray | float = 0.0,
        trains: np.ndarray | None = None,
        factor: float = 1.0,
        momentum: float | None = None,
        optimiser: Adam | SGD | None = None,
        decide: Decide = cheapest,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The trained vector, and the mean over the steps of the loss's own gradient. The optimiser starts afresh or goes on.

        ``trains`` marks the numbers that train; ``factor`` multiplies every step.
        """
        own = self.settings
        kind = OPTIMISERS[own.optimiser.name]  # type: ignore[union-attr]
        if optimiser is None:
            optimiser = kind(own.learning_rate) if momentum is None else SGD(own.learning_rate, momentum)
        theta, raw = start.copy(), []
        for epoch in epochs:
            for rows in self.minibatches(epoch, purpose):
                gradient = spo_plus_gradient(
                    theta, self.x[rows], self.c[rows], self.client.sense, self.k, own.hidden, own.tau, decide
                )
                raw.append(gradient)
                gradient = gradient + pull * (theta - anchor) + correction
                if trains is not None:
                    gradient = np.where(trains, gradient, 0)
                norm = float(np.linalg.norm(gradient))
                self.norms.append(norm)
                if norm > own.gradient_clip:
                    gradient = gradient * (own.gradient_clip / norm)
                theta = theta + factor * optimiser.step(gradient)
        return theta, np.mean(raw, axis=0)


def weighted_mean(vectors: list[np.ndarray], counts: list[int]) -> np.ndarray:
    """The mean of vectors, weighted by numbers of samples."""
    return np.average(vectors, axis=0, weights=counts)
