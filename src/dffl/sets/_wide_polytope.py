"""Polytopes with wide rows whose every variable has a predicted cost: solved in other units, and checked."""

from __future__ import annotations

import numpy as np

from dffl.sets._highs import LP, Projects
from dffl.sets._program import WIDE_ROW, Program
from dffl.sets._solving import ProgramModel
from dffl.sets._wide_rows import Rows


def has_wide_rows(lp: LP) -> bool:
    """Whether the coefficients of a row range over `WIDE_ROW` or more."""
    size = np.abs(np.concatenate([lp.A_ub, lp.A_eq]))
    smallest = np.where(size > 0, size, np.inf).min(axis=1, initial=np.inf)
    return bool((size.max(axis=1, initial=0.0) >= WIDE_ROW * smallest).any())


class WidePolytope(Projects):
    """The host model of such a polytope."""

    def __init__(self, lp: LP, program: Program, nodes: int, seconds: float):
        self._model = ProgramModel(program, nodes, seconds)
        self.calls, self.solve, self.excess = self._model.calls, self._model.solve, self._model.excess
        super().__init__(lp, *self._model.ends)
        self._rows = Rows(program, self._extent)

    def project(self, points: np.ndarray) -> np.ndarray:
        found = super().project(points)
        for v in found:
            if self._rows.broken(v):
                self.calls.note_unproven(1.0)
        return found
