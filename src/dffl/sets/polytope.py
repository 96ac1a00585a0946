"""Any bounded polytope, solved by HiGHS on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Self

import numpy as np
from jax.typing import ArrayLike

from dffl.sets import _highs
from dffl.sets._constraints import checked_constraints, checked_helpers, checked_known, described, program_of
from dffl.sets._highs import LP, Projects
from dffl.sets._host import HostModel
from dffl.sets._program import WIDE_ROW, Program
from dffl.sets._proof import Proof
from dffl.sets._solving import ProgramModel
from dffl.sets._wide_rows import RowCheck
from dffl.sets.base import Bracket
from dffl.sets.geometry import hulls
from dffl.sets.parameters import ROWS
from dffl.sets.program_set import NODES, SECONDS, ProgramSet


class Polytope(ProgramSet):
    """{w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}. Without bounds a variable is free.

    Each answer is the vertex that HiGHS reaches from one fixed starting basis, so it depends on the costs alone.
    It is computed by a callback to the host, also inside compiled programs. An empty or unbounded polytope is
    refused when it is built.

    ``helpers`` says which columns have no predicted cost: a number of last columns, or a list of columns; they are no
    decisions, and may be unbounded. ``known_cost`` holds the known costs of the helpers, or of all columns, in the client's
    own sense; they are added to the predicted ones.
    """

    toml_name = "polytope"
    toml_parameters = ROWS

    def __init__(
        self,
        A_ub: ArrayLike | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: ArrayLike | None = None,
        b_eq: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        known_cost: ArrayLike | None = None,
        helpers: int | Sequence[int] | np.ndarray = 0,
    ):
        lp = checked_constraints("Polytope", A_ub, b_ub, A_eq, b_eq, lower, upper)
        columns, spec = lp.lower.size, described(lp)
        numbers = checked_helpers("Polytope", helpers, columns)
        known = checked_known("Polytope", known_cost, numbers, columns)
        program = partial(program_of, "Polytope", lp, np.zeros(columns, bool), numbers, known)
        if not numbers.size and not known.any():
            wide = _has_wide_rows(lp)

            def build() -> HostModel:
                if wide:
                    return WidePolytope(lp, program(), NODES, SECONDS)
                return _highs.Model(lp, lambda extent: Proof(program(), extent))

            super().__init__(columns, spec, build, content=lp)
            return
        spec |= {"known_cost": known, "helpers": numbers}
        super().__init__(
            columns - numbers.size,
            spec,
            lambda: ProgramModel(program(), NODES, SECONDS),
            content=[*lp, known, numbers],
            known=bool(known.any()),
        )

    def in_words(self) -> str:
        return f"linear program, {self.dim} decisions"

    @property
    def constraints(self) -> _highs.LP:
        """The constraints of this single polytope, in full precision; with helpers, those of all columns."""
        return checked_constraints("Polytope", **{k: self.spec().get(k) for k in _highs.LP._fields})

    def _hausdorff(self, other: Self) -> Bracket | None:
        mine, theirs = self._corners(), other._corners()
        return None if mine is None or theirs is None else hulls.hausdorff(mine, theirs)

    def _shape_distance(self, other: Self) -> Bracket | None:
        mine, theirs = self._corners(), other._corners()
        return None if mine is None or theirs is None else hulls.shape_distance(mine, theirs)

    def _corners(self) -> hulls.Hull | None:
        # The vertices of a polytope with helpers are not those of its shadow on the decisions.
        return _hull(self.constraints) if self.constraints.lower.size == self.dim else None


def _hull(lp: _highs.LP, most: int = 3000) -> hulls.Hull | None:
    """All vertices, if there are few enough bases to try every one; None otherwise."""
    d = lp.lower.size
    a = np.concatenate([lp.A_ub, np.eye(d), -np.eye(d)])
    b = np.concatenate([lp.b_ub, lp.upper, -lp.lower])
    size = np.linalg.norm(a, axis=1)
    keep = (b < np.inf) & (size > 0)
    a, b = a[keep] / size[keep, None], b[keep] / size[keep]
    # Rows that repeat or depend on others add no vertex: keep an orthonormal basis of the equations.
    u, s, vt = np.linalg.svd(lp.A_eq, full_matrices=False)
    rank = int(np.sum(s > 1e-10 * s.max(initial=0.0)))
    eq, right = vt[:rank], (u.T @ lp.b_eq)[:rank] / s[:rank]
    free = d - rank
    if len(a) < free or math.comb(len(a), free) > most:
        return None
    bases = np.array(list(combinations(range(len(a)), free)), dtype=int).reshape(-1, free)
    matrix = np.concatenate([np.broadcast_to(eq, (len(bases), rank, d)), a[bases]], axis=1)
    vector = np.concatenate([np.broadcast_to(right, (len(bases), rank)), b[bases]], axis=1)
    regular = np.linalg.svd(matrix, compute_uv=False)[:, -1] > 1e-10
    points = np.linalg.solve(matrix[regular], vector[regular][..., None])[..., 0]
    slack = 1e-9 * max(1e-300, float(np.abs(points).max(initial=0.0)))
    points = points[(points @ a.T <= b + slack).all(axis=1)]
    # Bases of one vertex give it several times, up to rounding.
    points = points[np.unique(np.round(points / (slack or 1.0)), axis=0, return_index=True)[1]]
    return hulls.Hull(points, points) if len(points) else None


def _has_wide_rows(lp: LP) -> bool:
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
        self._rows = RowCheck(program, self._extent)

    def project(self, points: np.ndarray) -> np.ndarray:
        nearest = super().project(points)
        for v in nearest:
            if self._rows.broken(v):
                self.calls.note_unproven(1.0)
        return nearest
