"""Optimal values of integer sets from a solver that sees only matrices: HiGHS, through scipy.optimize.milp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


class Rows(NamedTuple):
    """The 0/1 vectors w with low <= matrix w <= high and w <= upper."""

    matrix: np.ndarray
    low: np.ndarray
    high: np.ndarray
    upper: np.ndarray | float = 1.0


def optimum(rows: Rows, c: np.ndarray) -> float:
    """The least c . w, exact up to rounding: costs are scaled to 1, as the solver's tolerances are absolute."""
    c = np.asarray(c, np.float64)
    scale = float(np.abs(c).max()) or 1.0
    found = milp(
        c / scale,
        constraints=LinearConstraint(rows.matrix, rows.low, rows.high),
        bounds=Bounds(0, rows.upper),
        integrality=np.ones(c.size),
        options={"mip_rel_gap": 0.0},
    )
    assert found.status == 0, found.message
    return float(c @ np.round(found.x))


def check(rows: Rows, c: np.ndarray, w: np.ndarray, tol: float) -> None:
    """Every row of w is a 0/1 vector that satisfies the rows exactly and costs no more than the optimum."""
    for one, answer in zip(np.asarray(c, np.float64), np.asarray(w, np.float64), strict=True):
        assert set(answer.tolist()) <= {0.0, 1.0}, answer
        used = rows.matrix @ answer
        assert (used <= rows.high + 1e-9).all(), answer
        assert (used >= rows.low - 1e-9).all(), answer
        assert (answer <= rows.upper).all(), answer
        assert one @ answer <= optimum(rows, one) + tol * max(np.abs(one).sum(), 1e-300), (one, answer)


def longest(points: Sequence[np.ndarray]) -> float:
    """The largest distance between two points."""
    table = np.asarray(points)
    return float(max(np.linalg.norm(table - p, axis=-1).max() for p in table))
