"""Server optimisers: the change of a round is a step with a memory (Reddi et al., 2021)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable

import numpy as np

from dffl.training.aggregators.base import Aggregator, Around, Mean, Memory, Moment, Update
from dffl.training.optimisers import Constant, Schedule


class _Server(Around):
    """The common part of both: a rate and its schedule over the rounds."""

    def __init__(self, rate: float, inner: Aggregator | str, schedule: Schedule | str):
        if not 0 < rate < math.inf:
            raise ValueError(f"{self.name}: rate must be > 0 and finite, found {rate!r}")
        super().__init__(inner)
        self.rate = float(rate)
        self.schedule: Schedule = Schedule.of(schedule)

    def combine(
        self, shared: np.ndarray, updates: Iterable[Update], memory: Memory, moment: Moment
    ) -> tuple[np.ndarray, Memory]:
        start = np.asarray(shared, np.float64)
        inside = {name.removeprefix("inner/"): value for name, value in memory.items() if name.startswith("inner/")}
        target, inside = self.inner.combine(shared, updates, inside, moment)
        step, own_memory = self._step(target - start, memory, moment.round)
        rate = self.rate * self.schedule.factor(*moment)
        return start + rate * step, own_memory | {f"inner/{name}": value for name, value in inside.items()}

    @abstractmethod
    def _step(self, change: np.ndarray, memory: Memory, round: int) -> tuple[np.ndarray, Memory]:
        """The step for this change, and the next memory."""


class Momentum(_Server):
    """v <- momentum v + change; shared <- shared + rate v."""

    name = "momentum"

    def __init__(
        self, rate: float = 1.0, momentum: float = 0.9, inner: Aggregator | str = Mean(), schedule: Schedule | str = Constant()
    ):
        super().__init__(rate, inner, schedule)
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum: momentum must be in [0, 1), found {momentum!r}")
        self.momentum = float(momentum)

    def _step(self, change: np.ndarray, memory: Memory, round: int) -> tuple[np.ndarray, Memory]:
        velocity = self.momentum * memory.get("velocity", np.zeros_like(change)) + change
        return velocity, {"velocity": velocity}


class ServerAdam(_Server):
    """FedAdam: the change is the gradient, with Adam's two averages without bias correction, as its authors define it."""

    name = "server-adam"

    def __init__(
        self,
        rate: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.99,
        epsilon: float = 1e-3,
        inner: Aggregator | str = Mean(),
        schedule: Schedule | str = Constant(),
    ):
        super().__init__(rate, inner, schedule)
        for name, value in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= value < 1:
                raise ValueError(f"server-adam: {name} must be in [0, 1), found {value!r}")
        if not 0 < epsilon < math.inf:
            raise ValueError(f"server-adam: epsilon must be > 0 and finite, found {epsilon!r}")
        self.beta1, self.beta2, self.epsilon = float(beta1), float(beta2), float(epsilon)

    def _step(self, change: np.ndarray, memory: Memory, round: int) -> tuple[np.ndarray, Memory]:
        mean = self.beta1 * memory.get("mean", np.zeros_like(change)) + (1 - self.beta1) * change
        square = self.beta2 * memory.get("square", np.zeros_like(change)) + (1 - self.beta2) * change**2
        return mean / (np.sqrt(square) + self.epsilon), {"mean": mean, "square": square}
