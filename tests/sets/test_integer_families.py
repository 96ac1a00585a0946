"""What all families of whole decisions have in common: they train side by side, and are saved with a fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dffl
from dffl.sets import Assignment, ConsecutiveHours, FeasibleSet, ShortestPath, ZeroOneKnapsack

D = 4
SETS: list[FeasibleSet] = [
    ConsecutiveHours(D, 2), ConsecutiveHours(D, 1, first=1, last=3), ConsecutiveHours(D, 1, 2),
    ZeroOneKnapsack([1, 2, 3, 4], 5), ZeroOneKnapsack([0.5, 0.2, 0.3, 0.4], 0.9),
    ShortestPath(2, 2), ShortestPath(2, 2, np.arange(D) == 0), Assignment(2), Assignment(2),
]  # fmt: skip


def test_they_are_saved_with_a_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    clients = []
    for k, s in enumerate(SETS):
        x = rng.normal(size=(20, 3))
        costs = 5 + x @ rng.normal(size=(3, D))
        clients.append(dffl.Client(f"c{k}", x, costs, s, maximize=isinstance(s, ZeroOneKnapsack)))
    fed = dffl.Federation(clients)
    fit = dffl.fit(fed, "fedavg", rounds=2)
    fit.save(tmp_path / "fit.dffl")
    again = dffl.load(tmp_path / "fit.dffl")
    for s, before, after in zip(SETS, fit.members.values(), again.members.values(), strict=True):
        assert after.set == before.set == s
    assert again.evaluate(fed).equals(fit.evaluate(fed))
