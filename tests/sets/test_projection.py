"""The Euclidean projection: against CVXPY, by the inequality that defines it, and as a function of points of any scale."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import wrightomega

from dffl.losses import Loss
from dffl.sets import (
    Ball,
    Box,
    Ellipsoid,
    EntropySimplex,
    FeasibleSet,
    FractionalKnapsack,
    HostSet,
    Polytope,
    Simplex,
    TopK,
    stack,
)
from dffl.sets.base import Bracket
from dffl.sets.entropy_projection import wright_omega
from tests.sets.instances import FAMILIES, TOLERANCE, instances

D = 5
ROWS = np.random.default_rng(3).uniform(0.2, 1, (3, D))
SETS: dict[str, FeasibleSet] = {
    "FractionalKnapsack": FractionalKnapsack(np.linspace(0.5, 1.5, D), 0.4 * D),
    "TopK": TopK(D, 2.5),
    "Simplex": Simplex(D, 2.0),
    "EntropySimplex": EntropySimplex(D, 1.2),
    "EntropySimplex near the uniform point": EntropySimplex(D, np.log(D) - 1e-3),
    "EntropySimplex near the corners": EntropySimplex(D, 1e-3),
    "Box": Box(-np.ones(D), np.arange(1.0, D + 1)),
    "Ball": Ball(np.ones(D), 2.0),
    "Ellipsoid": Ellipsoid(np.ones(D), np.diag(np.arange(1.0, D + 1)) + 0.5),
    "Polytope": Polytope(A_ub=ROWS, b_ub=ROWS.sum(axis=1) / 2, A_eq=[[1, 1, -1, 0, 0]], b_eq=[0.2], lower=0, upper=1),
}
every_family = pytest.mark.parametrize("s", SETS.values(), ids=SETS.keys())
POINTS = np.concatenate([scale * np.random.default_rng(7).normal(size=(4, D)) for scale in (0.1, 1.0, 5.0)])


def constraints(s: Any, w: cp.Variable) -> list[Any]:
    """The set as CVXPY has it."""
    if isinstance(s, FractionalKnapsack):
        return [w >= 0, w <= 1, s.weights @ w <= s.budget]
    if isinstance(s, TopK):
        return [w >= 0, w <= 1, cp.sum(w) == s.k]
    if isinstance(s, Simplex):
        return [w >= 0, cp.sum(w) == s.scale]
    if isinstance(s, EntropySimplex):
        return [cp.sum(w) == 1, cp.sum(cp.entr(w)) >= s.min_entropy]
    if isinstance(s, Box):
        return [w >= s.lower, w <= s.upper]
    if isinstance(s, Ball):
        return [cp.norm(w - s.center) <= s.radius]
    if isinstance(s, Ellipsoid):
        return [cp.norm(np.linalg.inv(np.linalg.cholesky(s.shape)) @ (w - s.center)) <= 1]
    lp = s.constraints
    return [lp.A_ub @ w <= lp.b_ub, lp.A_eq @ w == lp.b_eq, w >= lp.lower, w <= lp.upper]


def nearest(s: FeasibleSet, v: np.ndarray) -> np.ndarray:
    if bool(s.contains(v, 0.0)):
        return v  # a solver of squared distances has few digits here
    w = cp.Variable(s.dim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may not reach the tolerance, but it comes close
        cp.Problem(cp.Minimize(cp.sum_squares(w - v)), constraints(s, w)).solve(
            cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
        )
    return np.asarray(w.value)


def project(s: FeasibleSet, v: np.ndarray, dtype: str = "float64") -> np.ndarray:
    with jax.enable_x64(dtype == "float64"):
        answer = s.project(np.asarray(v, dtype))
        assert answer.dtype == dtype
        return np.asarray(answer, np.float64)


def test_every_family_is_here() -> None:
    convex = {name for name, family in FeasibleSet.families.items() if family.convex is True}
    # Programs with helpers or whole numbers cannot project; Lifted, Shadow and Padded are other forms of a set.
    assert {type(s).__name__ for s in SETS.values()} == (convex - {"Padded"}) | {"Polytope"}


@every_family
def test_the_projection_is_that_of_an_independent_solver(s: FeasibleSet) -> None:
    wanted, digits = np.array([nearest(s, v) for v in POINTS]), 1e-4 if isinstance(s, Ellipsoid) else 2e-6
    found = project(s, POINTS)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=digits)  # on a curved set the solver itself has four digits
    assert (np.linalg.norm(found - POINTS, axis=1) <= np.linalg.norm(wanted - POINTS, axis=1) + 1e-7).all()
    assert np.asarray(s.contains(found, 1e-6)).all()
    np.testing.assert_allclose(project(s, POINTS, "float32"), found, rtol=0, atol=1e-5)


def test_literal_projections() -> None:
    for s, v, wanted in (
        (TopK(3, 1), [0.5, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]),
        (TopK(3, 1), [1e6, 1e6 - 0.5, 0], [0.75, 0.25, 0]),
        (TopK(3, 2), [9, 9, 9], [2 / 3, 2 / 3, 2 / 3]),
        (Simplex(2), [0.6, 0.2], [0.7, 0.3]),
        (FractionalKnapsack([1, 2], 2), [1, 1], [0.8, 0.6]),
        (FractionalKnapsack([1, 2], 9), [-1, 0.4], [0, 0.4]),
        (FractionalKnapsack([1, 2], 0), [3, 4], [0, 0]),
        (Box([0, 0], [1, 2]), [-1, 3], [0, 2]),
        (Ball([1, 1], 1), [1, 5], [1, 2]),
        (Ellipsoid([0, 0], np.diag([4, 1])), [9, 0], [2, 0]),
        (EntropySimplex(4, np.log(4)), [5, 1, 1, 1], [0.25, 0.25, 0.25, 0.25]),
        (EntropySimplex(2, np.log(2) / 2), [0.6, 0.4], [0.6, 0.4]),
        (Polytope(A_ub=[[1, 1]], b_ub=[1], lower=0, upper=1), [1, 0.5], [0.75, 0.25]),
    ):
        np.testing.assert_allclose(project(s, np.array(v)), wanted, rtol=0, atol=1e-12, err_msg=repr(s))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in FAMILIES if FeasibleSet.families[name].convex])
def test_points_of_every_scale_have_a_feasible_nearest_point(name: str, dtype: str) -> None:
    """Adversarial sets and ties: no point y of the set lies in front of the plane through the answer, (v - p)(y - p) <= 0."""
    dims, sets, rows = ([4], 6, 4) if name == "Polytope" else ([7], 12, 12)
    tolerance = max(TOLERANCE[dtype], 1e-7 if name == "Polytope" else 0.0)
    for s, c in instances(name, 5, iter(dims), sets, rows):
        if name == "Polytope":  # as large as the set: its answers have an error of v's last digits
            size = np.array([s[i].largest_norm() for i in range(sets)])[:, None, None]
            c = c / np.maximum(np.abs(c).max(axis=-1, keepdims=True), 1e-30) * size
        v = np.concatenate([-c * scale for scale in (1e-6, 1.0, 1e6)], axis=1).astype(np.float32)
        p = project(s, v, dtype)
        with jax.enable_x64(True):
            y = np.asarray(s.solve(p - v))
            assert np.asarray(s.contains(p, tolerance)).all()
        gap = np.sum((v - p) * (y - p), axis=-1) / np.maximum(np.linalg.norm(v - p, axis=-1), 1e-300)
        size = np.maximum(np.linalg.norm(v, axis=-1), np.linalg.norm(p, axis=-1))
        slack = 20 * tolerance * (size + np.linalg.norm(y - p, axis=-1))
        near = np.linalg.norm(v - p, axis=-1) <= 10 * tolerance * size  # as good as inside
        assert ((gap <= slack) | near).all(), f"{name}: {np.max(gap - slack)}"
        again = project(s, p, dtype)
        assert (np.abs(again - p).max(axis=-1) <= 20 * tolerance * np.maximum(np.abs(p).max(axis=-1), 1)).all()


@every_family
def test_inside_nothing_moves_and_nowhere_are_distances_stretched(s: FeasibleSet) -> None:
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        corners = np.asarray(s.solve(rng.normal(size=(40, D))))
    inside = np.einsum("ij,jk->ik", rng.dirichlet(np.ones(40), size=10), corners)
    np.testing.assert_allclose(project(s, inside), inside, rtol=0, atol=1e-8)
    v = rng.normal(size=(30, D)) * 10.0 ** rng.integers(-2, 3, (30, 1))
    step = 0.3 * rng.normal(size=(30, D))
    moved = np.linalg.norm(project(s, v + step) - project(s, v), axis=1)
    assert (moved <= np.linalg.norm(step, axis=1) * (1 + 1e-6) + 1e-7).all()
    assert moved.max() > 1e-3


@pytest.mark.slow
@every_family
def test_one_by_one_in_batches_in_stacks_and_in_programs_the_answer_is_the_same(s: FeasibleSet) -> None:
    v = np.concatenate([POINTS, POINTS]).reshape(2, 12, D).astype(np.float32)
    wanted = project(s, v, "float32")
    kind = jax.vmap if s.on_host else lambda f: jax.jit(jax.vmap(f))
    np.testing.assert_allclose(kind(s.project)(v), wanted, rtol=0, atol=2e-6)
    np.testing.assert_allclose(stack([s, s]).project(v), wanted, rtol=0, atol=2e-6)
    np.testing.assert_allclose(s.project(v[0, 5]), wanted[0, 5], rtol=0, atol=2e-6)
    np.testing.assert_allclose(project(s, v), wanted, rtol=0, atol=1e-5)
    gradient = jax.grad(lambda v: jnp.sum(s.project(v) * v))(v[0, 6])
    np.testing.assert_allclose(gradient, wanted[0, 6], rtol=0, atol=2e-6)


def test_what_is_not_a_number_stays_so_and_harms_no_other_row() -> None:
    for s in (SETS["TopK"], SETS["FractionalKnapsack"], SETS["EntropySimplex"], SETS["Polytope"], SETS["Ellipsoid"]):
        v = POINTS.copy()
        v[3, 2] = np.nan
        found = project(s, v)
        assert np.isnan(found[3]).any()
        np.testing.assert_allclose(np.delete(found, 3, axis=0), np.delete(project(s, POINTS), 3, axis=0), rtol=0, atol=1e-12)


def test_the_omega_function_is_scipys() -> None:
    z = np.concatenate([np.linspace(-690, 1000, 5001), np.linspace(-5, 10, 5001), np.logspace(1, 15, 100)])
    with jax.enable_x64(True):
        np.testing.assert_allclose(wright_omega(jnp.asarray(z)), wrightomega(z), rtol=1e-14)


# A family that cannot project.


def segment() -> FeasibleSet:
    """A set of a family of its own, which is a family only in the test that asks for it."""

    class Segment(FeasibleSet):
        """{t a : 0 <= t <= 1}."""

        end: np.ndarray

        def __init__(self, end: Any):
            self.end = np.asarray(end, np.float64)

        @property
        def dim(self) -> int:
            return int(self.end.shape[-1])

        @property
        def batch_shape(self) -> tuple[int, ...]:
            return tuple(self.end.shape[:-1])

        def _minimise(self, c: jax.Array) -> jax.Array:
            return jnp.where(jnp.sum(c * self.end, axis=-1, keepdims=True) < 0, self.end, 0 * self.end)

        def _excess(self, w: jax.Array) -> jax.Array:
            return jnp.max(jnp.abs(w - jnp.clip(jnp.sum(w * self.end) / jnp.sum(self.end**2), 0, 1) * self.end), axis=-1)

        def _diameter(self) -> Bracket:
            return Bracket.at(float(np.linalg.norm(self.end)))

    return Segment([3, 4])


def segment_on_host() -> FeasibleSet:
    """The same with an oracle on the host."""

    class SegmentOnHost(HostSet):
        """The same, with an oracle on the host."""

        def __init__(self, end: Any):
            self_end = np.asarray(end, np.float64)
            super().__init__(self_end.size, {"end": self_end}, lambda: _SegmentModel(self_end))

    return SegmentOnHost([3, 4])


class _SegmentModel:
    def __init__(self, end: np.ndarray):
        self.end = end

    def solve(self, costs: np.ndarray) -> np.ndarray:
        return np.where((costs @ self.end < 0)[:, None], self.end, 0.0)

    def excess(self, w: np.ndarray) -> np.ndarray:
        return np.zeros(len(w))


@pytest.mark.parametrize(
    ("make", "fix"),
    [(segment, r"define _project\(v\) in the family"), (segment_on_host, r"give its host model a method project\(points\)")],
)
def test_a_family_without_a_projection_refuses_in_one_line(make: Callable[[], FeasibleSet], fix: str) -> None:
    s = make()
    assert not s.projects
    with pytest.raises(ValueError, match=rf"^{type(s).__name__}: it cannot project onto itself; {fix}"):
        s.project([1.0, 1.0])
    with pytest.raises(ValueError, match=rf"loss 'rspo\+' needs sets that can project; {type(s).__name__}: .*{fix}"):
        Loss.of("rspo+").check(s)
    Loss.of("spo+").check(s)
    assert s.largest_norm() == pytest.approx(5)  # of the box around it, which here is exact


# The largest norm.


@every_family
def test_no_point_is_longer_than_the_largest_norm(s: FeasibleSet) -> None:
    with jax.enable_x64(True):
        corners = np.asarray(s.solve(np.random.default_rng(2).normal(size=(300, D))))
    longest = np.linalg.norm(corners, axis=1).max()
    assert longest <= s.largest_norm() * (1 + 1e-9)
    assert s.largest_norm() <= 1.6 * longest


def test_the_largest_norm_of_a_knapsack_is_that_of_its_longest_vertex() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, budget = rng.uniform(0.3, 2, 5), rng.uniform(0.1, 6)
        longest = 0.0
        for full in itertools.product([0.0, 1.0], repeat=5):
            rest = budget - a @ full
            for j in np.flatnonzero(np.array(full) == 0) if rest >= 0 else ():
                longest = max(longest, float(np.hypot(np.linalg.norm(full), min(rest / a[j], 1.0))))
            longest = max(longest, float(np.linalg.norm(full)) if rest >= 0 else 0.0)
        assert FractionalKnapsack(a, budget).largest_norm() == pytest.approx(longest, rel=1e-12)


def test_literal_largest_norms() -> None:
    assert TopK(6, 4).largest_norm() == 2.0
    assert TopK(6, 2.5).largest_norm() == 1.5
    assert Simplex(3, 2.0).largest_norm() == 2.0
    assert Box([-3, 0], [1, 4]).largest_norm() == 5.0
    assert Ball([3, 4], 2).largest_norm() == 7.0
    assert Ellipsoid([3, 4], np.diag([9.0, 1.0])).largest_norm() == pytest.approx(8.0)
    assert EntropySimplex(4, 0.0).largest_norm() == pytest.approx(1.0)
    assert EntropySimplex(4, np.log(4)).largest_norm() == pytest.approx(0.5)
    assert Polytope(lower=[-3, 0], upper=[1, 4]).largest_norm() == pytest.approx(5.0)
