"""Any bounded polytope, solved by HiGHS on the host."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Self

import numpy as np
from jax.typing import ArrayLike

from dffl.sets import _highs
from dffl.sets._host import HostSet
from dffl.sets.base import Bracket, float_array, frozen, parameter
from dffl.sets.geometry import hulls


class Polytope(HostSet):
    """{w : A_ub w <= b_ub, A_eq w = b_eq, lower <= w <= upper}. Without bounds a variable is free.

    Each answer is the vertex that HiGHS reaches from one fixed starting basis, so it depends on the costs alone.
    It is computed by a callback to the host, also inside compiled programs. An empty or unbounded polytope is
    refused when it is built.
    """

    def __init__(
        self,
        A_ub: ArrayLike | None = None,
        b_ub: ArrayLike | None = None,
        A_eq: ArrayLike | None = None,
        b_eq: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ):
        given = {"A_ub": A_ub, "A_eq": A_eq, "lower": lower, "upper": upper}
        shapes = {k: float_array("Polytope", k, v).shape for k, v in given.items() if v is not None}
        for k, shape in shapes.items():
            if k[0] == "A" and len(shape) != 2:
                raise ValueError(f"Polytope: {k} must be a matrix with one row per constraint, found shape {shape}")
            if k[0] != "A" and len(shape) > 1:
                raise ValueError(f"Polytope: {k} must be a number or a vector, found shape {shape}")
        widths = {k: shape[-1] for k, shape in shapes.items() if shape}
        if not widths:
            raise ValueError("Polytope: give A_ub, A_eq, or lower or upper as a vector, so that its dimension is known")
        if len(set(widths.values())) > 1 or 0 in widths.values():
            raise ValueError(f"Polytope: A_ub, A_eq, lower and upper must be equally wide and not empty, found {widths}")
        d = next(iter(widths.values()))
        a_ub, ub = _rows("ub", A_ub, b_ub, d)
        a_eq, eq = _rows("eq", A_eq, b_eq, d)
        low, high = _bounds("lower", lower, d, -np.inf), _bounds("upper", upper, d, np.inf)
        for j in np.flatnonzero(low > high):
            raise ValueError(f"Polytope: lower must be <= upper, found {low[j]:g} and {high[j]:g} at coordinate {j}")
        lp = _highs.LP(a_ub, ub, a_eq, eq, low, high)
        spec = {k: v for k, v in lp._asdict().items() if k in ("lower", "upper") or v.size}
        super().__init__(d, spec, lambda: _highs.Model(lp), content=lp)

    @property
    def constraints(self) -> _highs.LP:
        """The constraints of this single polytope, in full precision."""
        return self._loaded("constraints").model.lp

    def _hausdorff(self, other: Self) -> Bracket | None:
        mine, theirs = _hull(self.constraints), _hull(other.constraints)
        return None if mine is None or theirs is None else hulls.hausdorff(mine, theirs)

    def _shape_distance(self, other: Self) -> Bracket | None:
        mine, theirs = _hull(self.constraints), _hull(other.constraints)
        return None if mine is None or theirs is None else hulls.shape_distance(mine, theirs)


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


def _rows(kind: str, a: ArrayLike | None, b: ArrayLike | None, d: int) -> tuple[np.ndarray, np.ndarray]:
    if (a is None) != (b is None):
        raise ValueError(f"Polytope: A_{kind} and b_{kind} go together; one of them is missing")
    if a is None or b is None:
        return np.zeros((0, d)), np.zeros(0)
    matrix, vector = parameter("Polytope", f"A_{kind}", a, 2), parameter("Polytope", f"b_{kind}", np.atleast_1d(b), 1)
    if vector.shape != matrix.shape[:1]:
        raise ValueError(f"Polytope: b_{kind} must have one entry per row of A_{kind}, found {vector.shape} for {matrix.shape}")
    return matrix, vector


def _bounds(field: str, value: ArrayLike | None, d: int, default: float) -> np.ndarray:
    array = frozen(np.array(np.broadcast_to(default if value is None else float_array("Polytope", field, value), (d,))))
    wrong = np.isnan(array) | (array == -default)
    if wrong.any():
        raise ValueError(f"Polytope: {field} must be numbers or {default}, found {array[wrong][0]}")
    return array
