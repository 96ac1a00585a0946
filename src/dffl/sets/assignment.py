"""One job for each worker: permutation matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dffl.checks import require_whole
from dffl.sets._host import HostSet
from dffl.sets.base import Bracket


class Assignment(HostSet):
    """n jobs for n workers, one each: permutation matrices, row by row, so w[i n + j] = 1 if worker i gets job j.

    SciPy's ``linear_sum_assignment`` answers on the host, in float64. Of assignments that cost the same it chooses one by its
    own rule, which depends on the costs alone.
    """

    convex: ClassVar[bool] = False
    toml_name = "assignment"

    def __init__(self, n: int):
        require_whole("Assignment: n", n, least=1)
        super().__init__(int(n) ** 2, {"n": int(n)}, lambda: _Model(int(n)))

    @classmethod
    def asked(cls, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {"dim": spec["n"] ** 2} if isinstance(spec.get("n"), int) else {}

    @classmethod
    def toml_sized(cls, d: int) -> dict[str, Any]:
        if math.isqrt(d) ** 2 != d:
            raise ValueError(f"an assignment of n jobs to n workers needs n x n cost columns, found {d}")
        return {"n": math.isqrt(d)}

    def in_words(self) -> str:
        return f"assign {self.n} jobs to {self.n} workers"

    @property
    def n(self) -> int:
        """The number of workers, and of jobs."""
        return math.isqrt(self.dim)

    def _largest_norm(self) -> float:
        return math.sqrt(self.n)  # of every assignment

    def _diameter(self) -> Bracket:
        return Bracket.at(math.sqrt(2 * self.n) if self.n > 1 else 0.0)  # everyone gets another job


class _Model:
    """Answers for the assignments of n jobs."""

    def __init__(self, n: int):
        from scipy.optimize import linear_sum_assignment  # slow to import

        self._n, self._solve = n, linear_sum_assignment

    def solve(self, costs: np.ndarray) -> np.ndarray:
        """The cheapest assignment for each row of costs."""
        out = np.zeros((len(costs), self._n, self._n))
        for table, matching in zip(costs.reshape(out.shape), out, strict=True):
            matching[self._solve(table)] = 1.0
        return out.reshape(costs.shape)

    def excess(self, w: np.ndarray) -> np.ndarray:
        """How far each row is from whole numbers, and its sums by worker and by job are from 1."""
        tables = w.reshape(-1, self._n, self._n)
        distances = np.minimum(np.abs(w), np.abs(w - 1)).max(axis=1)
        sums = np.concatenate([tables.sum(axis=1), tables.sum(axis=2)], axis=1)
        return np.maximum(distances, np.abs(sums - 1).max(axis=1))
