"""The nearest point of a polytope: a strictly convex QP, solved exactly by the dual active-set method of Goldfarb and Idnani.

It starts at the point itself and adds violated constraints one by one, so it needs no feasible start, and each answer depends
on its point alone. HiGHS's own QP solver adds a regularisation of 1e-7, which is too much for points far from the polytope.
"""

from __future__ import annotations

import numpy as np

FEASIBLE = 1e-12
"""A constraint that is violated by less, relative to the polytope's size, is satisfied."""
FAR = 1e3
"""A point this many times the polytope's size away costs digits, so that its answer is computed with more care."""
DEPENDENT = 1e-10
"""A normal that is this close to a combination of the active ones adds no direction."""


class Nearest:
    """The constraints of a polytope, in units of its size and with normals of length 1."""

    def __init__(
        self,
        A_ub: np.ndarray,
        b_ub: np.ndarray,
        A_eq: np.ndarray,
        b_eq: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        extent: float,
    ):
        d = lower.size
        normals, right = np.concatenate([A_ub, np.eye(d), -np.eye(d)]), np.concatenate([b_ub, upper, -lower])
        size = np.linalg.norm(normals, axis=1)
        keep = (size > 0) & (right < np.inf)
        self.extent = extent
        self.normals, self.right = normals[keep] / size[keep, None], right[keep] / size[keep] / extent
        # Rows that repeat or depend on others add nothing: keep an orthonormal basis of the equations.
        u, s, vt = np.linalg.svd(A_eq, full_matrices=False)
        rank = int(np.sum(s > 1e-10 * s.max(initial=0.0)))
        self.equal, self.equal_right = vt[:rank], (u.T @ b_eq)[:rank] / s[:rank] / extent

    def __call__(self, point: np.ndarray) -> np.ndarray:
        """The nearest point of the polytope."""
        v = point / self.extent
        far = bool(np.abs(v).max() > FAR)
        x = v - self.equal.T @ (self.equal @ v - self.equal_right)
        active: list[int] = []
        pulls: list[float] = []  # the multipliers of the active constraints
        ignored = np.zeros(len(self.right), bool)
        for _ in range(20 * (len(self.right) + v.size)):
            over = np.where(ignored, -np.inf, self.normals @ x - self.right)
            over[active] = -np.inf
            worst = int(np.argmax(over)) if over.size else -1
            if worst < 0 or over[worst] <= FEASIBLE * max(1.0, float(np.abs(x).max())):
                answer = self._on(active, v)
                if not far:
                    return answer * self.extent
                others = np.setdiff1d(np.flatnonzero(~ignored), active)
                hidden = (self.normals[others] @ answer - self.right[others]).max(initial=-np.inf)
                if hidden <= FEASIBLE * max(1.0, float(np.abs(answer).max())):
                    return answer * self.extent
                # On the way from far, rounding has hidden that a constraint is violated.
                x = answer
                continue
            x = self._added(worst, x, active, pulls, ignored)
        raise ValueError("Polytope: the search for the nearest point has not ended; scale its constraints to similar sizes")

    def _added(self, new: int, x: np.ndarray, active: list[int], pulls: list[float], ignored: np.ndarray) -> np.ndarray:
        """Move onto one more constraint, and leave those that pull in the wrong direction on the way there."""
        normal, pull, fixed = self.normals[new], 0.0, len(self.equal)
        while True:
            q, r = np.linalg.qr(np.concatenate([self.equal, self.normals[active]]).T)
            across = normal - q @ (q.T @ normal)
            across -= q @ (q.T @ across)
            along = np.linalg.solve(r, q.T @ normal)[fixed:]
            # How far until an active constraint pulls no more, and until the new one is satisfied.
            blocking = [(pulls[j] / along[j], j) for j in range(len(active)) if along[j] > 1e-12]
            until, leaves = min(blocking, default=(np.inf, -1))
            square = float(across @ across)
            over = float(normal @ x - self.right[new])
            full = over / square if square > DEPENDENT**2 else np.inf
            step = max(min(until, full), 0.0)
            if not np.isfinite(step):
                # Nothing can move: the constraint follows from the active ones, up to rounding.
                ignored[new] = True
                return x
            if np.isfinite(full):
                x = x - step * across
            pull += step
            pulls[:] = [max(p - step * a, 0.0) for p, a in zip(pulls, along, strict=True)]
            if full <= until:
                active.append(new)
                pulls.append(pull)
                return x
            del active[leaves], pulls[leaves]

    def _on(self, active: list[int], v: np.ndarray) -> np.ndarray:
        """The nearest point to v at which the active constraints hold with equality: without the rounding of the way there."""
        q, r = np.linalg.qr(np.concatenate([self.equal, self.normals[active]]).T)
        right = np.concatenate([self.equal_right, self.right[active]])
        if np.abs(v).max() <= FAR:
            return q @ np.linalg.solve(r.T, right) + v - q @ (q.T @ v)
        across = v - q @ (q.T @ v)
        across -= q @ (q.T @ across)  # what is left of the first rounding
        return q @ np.linalg.solve(r.T, right) + across
