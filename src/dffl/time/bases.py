"""Rules that need no training: means of the last rows, a steady average, and the client's forecast.

Each predicts the costs of every row from earlier rows only. A trained model starts at one of them, its base, and learns a
correction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dffl.federation import Client
from dffl.judging import regrets_at_each
from dffl.time.past import average_before, fading_sums, lagged, mean_before, shapes
from dffl.time.units import day_scaled, deviations, middles

MEANS = {"mean-7": 7, "mean-14": 14, "mean-28": 28}
"""Rules that predict the plain mean of the last known rows, and the number of these rows."""
STEADY, FORECAST = "steady", "forecast"
NAIVE = (*MEANS, STEADY)
WEIGHTS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""The weights of a new row among which a steady average chooses."""
USUAL_WEIGHT = 0.07
"""Its weight before there is a past to choose by."""
ALIKE = 3.0
"""The weight of days of the same kind (working day or weekend), relative to days of the other kind."""
SATURDAY = 5


def plain_mean(rule: str, costs: np.ndarray, known_after: int = 0) -> np.ndarray:
    """The prediction of ``mean-7``, ``mean-14`` or ``mean-28`` for each row."""
    if rule not in MEANS:
        raise ValueError(f"unknown rule {rule!r:.40} (allowed: {', '.join(MEANS)})")
    return mean_before(costs, MEANS[rule], known_after)


def steady(costs: np.ndarray, weight: float, days: np.ndarray | None = None, known_after: int = 0) -> np.ndarray:
    """A moving average in which an extreme row counts no more than an ordinary one.

    Each row is its median, its spread and its shape (in spreads from the median, with extreme costs cut). The forecast is the
    average shape of the known rows before, times their average spread, plus their average median. Where ``days`` are known
    (days since 1970), rows of the same kind, working day or weekend, count three times in the shape.
    """
    shape, kinds = shapes(costs), weekends(days, len(costs))
    total, count = np.zeros_like(costs, dtype=np.float64), np.zeros((len(costs), 1))
    for kind in (False, True):
        rows = (kinds == kind)[:, None]
        trust = np.where(rows, ALIKE, 1.0)
        total += trust * fading_sums(shape * rows, weight, known_after)
        count += trust * fading_sums(rows.astype(np.float64), weight, known_after)
    logs = np.log(deviations(costs))
    spread = np.exp(lagged(np.cumsum(logs, axis=0) / np.arange(1, len(costs) + 1)[:, None], 1, known_after))
    return average_before(middles(costs), weight, known_after) + total / np.where(count > 0, count, 1.0) * spread


def weekends(days: np.ndarray | None, count: int) -> np.ndarray:
    """Whether each row is on a Saturday or a Sunday; false if the days are unknown."""
    if days is None:
        return np.zeros(count, bool)
    return np.asarray((np.floor(days).astype(int) + 3) % 7 >= SATURDAY)


class SteadyAverage:
    """The steady averages of all clients with every weight, and the losses of each so far.

    One weight is used for all clients: the one with the smallest day-scaled regret on the rows before a moment.
    """

    def __init__(self, clients: Sequence[Client], days: Sequence[np.ndarray | None], known_after: int = 0):
        self._costs = [client.c for client in clients]
        self._days, self._wait = list(days), known_after
        self._lost = []
        for weight in WEIGHTS:
            expected = [steady(c, weight, when, known_after) for c, when in zip(self._costs, days, strict=True)]
            lost = regrets_at_each(clients, expected)
            self._lost.append([day_scaled(mine, c) for mine, c in zip(lost, self._costs, strict=True)])

    def weight(self, known: Sequence[int]) -> float:
        """The weight with the smallest loss on the first ``known`` rows of each client. The very first row has no past."""
        first = self._wait + 1
        counted = [place for place, end in enumerate(known) if end > first]
        if not counted:
            return USUAL_WEIGHT
        lost = [np.mean([client[place][first : known[place]].mean() for place in counted]) for client in self._lost]
        return WEIGHTS[int(np.argmin(lost))]

    def forecasts(self, weight: float) -> list[np.ndarray]:
        """The predictions of the steady average with this weight for each row of each client."""
        return [steady(c, weight, days, self._wait) for c, days in zip(self._costs, self._days, strict=True)]
