"""Distances: literal values, quadratic programmes over vertices, and brackets of different routes that must overlap."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator

import cvxpy as cp
import jax
import numpy as np
import pytest

import dffl
from dffl.sets import (
    Ball,
    Box,
    Bracket,
    Ellipsoid,
    EntropySimplex,
    FeasibleSet,
    FractionalKnapsack,
    Polytope,
    Simplex,
    TopK,
    hausdorff,
    shape_distance,
    stack,
)
from dffl.sets.geometry import distance

from .instances import as_polytope
from .test_diameter import knapsack_vertices, topk_vertices, vertices
from .test_oracles_against_linprog import random_polytope

L50 = math.log(50)


@pytest.mark.parametrize(
    ("s1", "s2", "apart", "shape"),
    [
        (TopK(24, 4), TopK(24, 12), 2.3094, 1.6330),
        (TopK(24, 12), TopK(24, 20), 2.3094, 1.6330),
        (TopK(24, 0), TopK(24, 24), math.sqrt(24), 0),
        (TopK(3, 1), TopK(3, 1.5), math.sqrt(1 / 12 + 1 / 24), math.sqrt(1 / 24)),
        (Ball([0, 0], 1), Ball([3, 4], 3), 7, 2),
        (Ball([0, 0, 0], 2), Ball([0, 0, 1], 2), 1, 0),
        (Box([0, 0], [1, 1]), Box([0, 0], [4, 5]), 5, 2.5),
        (Box([0, 0], [1, 5]), Box([0, 0], [4, 1]), 4, 2),
        (Box([0, 0, 0], [1, 1, 1]), Box([2, 0, 0], [3, 1, 1]), 2, 0),
        (Simplex(2, 1), Simplex(2, 3), 2, math.sqrt(2)),
        (Simplex(5, 1), Simplex(5, 3), 2, 2 * math.sqrt(0.8)),
        (Simplex(1, 1), Simplex(1, 3), 2, 0),
        (EntropySimplex(4, 0), EntropySimplex(4, math.log(4)), math.sqrt(0.75), math.sqrt(0.75)),
        (EntropySimplex(2, 0), EntropySimplex(2, 0.5004024235381879), 0.2 * math.sqrt(2), 0.2 * math.sqrt(2)),  # H(.8, .2)
        (EntropySimplex(1, 0), EntropySimplex(1, 0), 0, 0),
        (Ellipsoid([0, 0], [[4, 0], [0, 9]]), Ellipsoid([0, 0], [[1, 0], [0, 1]]), 2, 2),
        (Ellipsoid([0, 0], [[4, 0], [0, 9]]), Ellipsoid([0, 7], [[1, 0], [0, 1]]), 9, 2),
        (FractionalKnapsack([1, 2, 3], 99), FractionalKnapsack([3, 2, 1], 6), 0, 0),
        (FractionalKnapsack([1, 1, 1, 1], 1), FractionalKnapsack([1, 1, 1, 1], 2), 1 / math.sqrt(2), 0.5),
        (FractionalKnapsack([1, 1], 0), FractionalKnapsack([1, 1], 9), math.sqrt(2), math.sqrt(0.5)),
        (
            Polytope(lower=[0, 0], upper=[1, 1]),
            Polytope(A_ub=[[1, 1]], b_ub=[1], lower=[0, 0]),
            math.sqrt(0.5),
            math.sqrt(2) / 4,
        ),
    ],
)
def test_exact_values(s1: FeasibleSet, s2: FeasibleSet, apart: float, shape: float) -> None:
    assert hausdorff(s1, s2) == pytest.approx((apart, apart), abs=1e-4)
    assert shape_distance(s1, s2) == pytest.approx((shape, shape), abs=1e-4)


def test_the_entropy_bracket_of_the_theory() -> None:
    bracket = hausdorff(EntropySimplex(50, L50 / 2), EntropySimplex(50, 0.65 * L50))
    assert bracket.lower == pytest.approx(0.13881, abs=5e-5)  # the conjectured value: the lower end alone
    assert 1.03 * bracket.lower < bracket.upper < 1.07 * bracket.lower
    assert bracket.upper < 0.3 * 0.65  # the cruder proof by concavity alone


# Independent answers: the farthest vertex by a quadratic programme in inequality form, the best shift by a convex one.


def way_out(w: np.ndarray, s: Polytope, shift: np.ndarray) -> float:
    lp, x = s.constraints, cp.Variable(s.dim)
    sides = [lp.A_ub @ x <= lp.b_ub, lp.A_eq @ x == lp.b_eq]
    sides = [c for c, rows in zip(sides, (lp.A_ub, lp.A_eq), strict=True) if len(rows)]
    bounded = [c for c, b in ((x >= lp.lower, lp.lower), (x <= lp.upper, lp.upper)) if np.isfinite(b).all()]
    cp.Problem(cp.Minimize(cp.sum_squares(x + shift - w)), sides + bounded).solve(solver=cp.CLARABEL)
    return float(np.linalg.norm(x.value + shift - w))


def apart(s1: Polytope, v1: np.ndarray, s2: Polytope, v2: np.ndarray) -> float:
    zero = np.zeros(s1.dim)
    return max(*(way_out(w, s2, zero) for w in v1), *(way_out(w, s1, zero) for w in v2))


def apart_in_shape(v1: np.ndarray, v2: np.ndarray) -> float:
    """One convex programme: the shift, and for every vertex the weights of its nearest point in the other hull."""
    shift = cp.Variable(v1.shape[1])
    p, q = cp.Variable((len(v1), len(v2)), nonneg=True), cp.Variable((len(v2), len(v1)), nonneg=True)
    there = cp.norm(p @ v2 + cp.vstack([shift] * len(v1)) - v1, 2, axis=1)
    back = cp.norm(q @ v1 - v2 - cp.vstack([shift] * len(v2)), 2, axis=1)
    weights = [cp.sum(p, axis=1) == 1, cp.sum(q, axis=1) == 1]
    return float(cp.Problem(cp.Minimize(cp.max(cp.hstack([there, back]))), weights).solve(solver=cp.CLARABEL))


def small(rng: np.random.Generator, d: int) -> Iterator[tuple[FeasibleSet, FeasibleSet, np.ndarray, np.ndarray]]:
    """Pairs within a family, with their vertices."""
    a, a2, k = rng.uniform(0.2, 1, d), rng.uniform(0.2, 1, d), rng.uniform(0, d, 2)
    sacks = [FractionalKnapsack(a, b * a.sum()) for b in rng.uniform(0.1, 1.1, 2)] + [FractionalKnapsack(a2, a2.sum() / 2)]
    for i, j in ((0, 1), (0, 2)):
        yield sacks[i], sacks[j], knapsack_vertices(sacks[i]), knapsack_vertices(sacks[j])
    for k1, k2 in (k, np.floor(k)):
        yield TopK(d, k1), TopK(d, k2), topk_vertices(d, k1), topk_vertices(d, k2)
    low, wide = rng.normal(size=(2, d)), rng.exponential(size=(2, d))
    ends = [np.array(list(itertools.product(*zip(x, x + y, strict=True)))) for x, y in zip(low, wide, strict=True)]
    yield Box(low[0], low[0] + wide[0]), Box(low[1], low[1] + wide[1]), *ends
    yield Simplex(d, 1.5), Simplex(d, 4), 1.5 * np.eye(d), 4 * np.eye(d)


@pytest.mark.parametrize("d", [2, 3])
def test_closed_forms_against_quadratic_programmes(d: int) -> None:
    tight = 0
    for s1, s2, v1, v2 in small(np.random.default_rng(d), d):
        exact = apart(as_polytope(s1), v1, as_polytope(s2), v2)
        shape = apart_in_shape(np.unique(v1.round(12), axis=0), np.unique(v2.round(12), axis=0))
        for (lower, upper), value in ((hausdorff(s1, s2), exact), (shape_distance(s1, s2), shape)):
            assert lower <= value + 1e-4  # the solver's, where the distance is 0
            assert value <= upper + 1e-4
            tight += upper - lower < 1e-9
            if not isinstance(s1, FractionalKnapsack):
                assert upper - lower < 1e-9
            else:
                assert lower >= value / 2 - 1e-5
                assert upper <= 2 * value + 1e-5
    assert tight >= 8


def test_a_heavy_item_that_would_be_taken_out_more_than_once() -> None:
    lower, upper = hausdorff(FractionalKnapsack([1, 10], 0), FractionalKnapsack([1, 10], 5))
    assert lower <= math.hypot(1, 0.4) <= upper  # to (1, .4) from 0, which is all of the first set
    assert 0.9 * upper <= lower


def test_polytopes_against_quadratic_programmes() -> None:
    rng = np.random.default_rng(3)
    for d in (2, 3):
        s1, s2 = random_polytope(rng, d), random_polytope(rng, d)
        v1, v2 = vertices(s1), vertices(s2)
        assert hausdorff(s1, s2) == pytest.approx([apart(s1, v1, s2, v2)] * 2, abs=1e-5)
        assert shape_distance(s1, s2) == pytest.approx([apart_in_shape(v1, v2)] * 2, abs=1e-5)


def test_polytopes_in_one_hyperplane() -> None:
    tops, polytopes = [TopK(4, 1.5), TopK(4, 3)], [as_polytope(TopK(4, 1.5)), as_polytope(TopK(4, 3))]
    # The same equation twice does not change the set.
    twice = Polytope(A_eq=[[1, 1, 1, 1], [2, 2, 2, 2]], b_eq=[3, 6], lower=0, upper=1)
    assert hausdorff(*polytopes) == pytest.approx(hausdorff(*tops), abs=1e-7)
    assert hausdorff(polytopes[0], twice) == pytest.approx(hausdorff(*tops), abs=1e-7)
    assert shape_distance(*polytopes) == pytest.approx(shape_distance(*tops), abs=1e-7)


# The generic route.


def families(rng: np.random.Generator, d: int) -> dict[str, tuple[FeasibleSet, FeasibleSet]]:
    a, a2, m = rng.uniform(0.2, 1, d), rng.uniform(0.2, 1, d), rng.normal(size=(2, d, d))
    centers, wide = rng.normal(size=(2, d)), rng.exponential(size=(2, d))
    q = m @ np.swapaxes(m, -1, -2) + 0.1 * np.eye(d)
    return {
        "Box": (Box(centers[0], centers[0] + wide[0]), Box(centers[1], centers[1] + wide[1])),
        "Ball": (Ball(centers[0], 1), Ball(centers[1], 2)),
        "Ellipsoid": (Ellipsoid(centers[0], q[0]), Ellipsoid(centers[1], q[1])),
        "Simplex": (Simplex(d, 1), Simplex(d, 2.5)),
        "TopK": (TopK(d, 0.3 * d), TopK(d, 0.6 * d)),
        "EntropySimplex": (EntropySimplex(d, 0.3 * math.log(d)), EntropySimplex(d, 0.6 * math.log(d))),
        "FractionalKnapsack": (FractionalKnapsack(a, 0.3 * a.sum()), FractionalKnapsack(a, 0.6 * a.sum())),
        "two knapsacks": (FractionalKnapsack(a, 0.3 * a.sum()), FractionalKnapsack(a2, 0.6 * a2.sum())),
        "Polytope": (random_polytope(rng, d), random_polytope(rng, d)),
    }


@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize("name", families(np.random.default_rng(0), 2))
def test_both_routes_agree(name: str, d: int) -> None:
    s1, s2 = families(np.random.default_rng(d), d)[name]
    pairs = ((hausdorff(s1, s2), distance._hausdorff(s1, s2)), (shape_distance(s1, s2), distance._shape_distance(s1, s2)))
    for known, generic in pairs:
        assert 0 <= known.lower <= known.upper
        assert 0 <= generic.lower <= generic.upper
        assert generic.lower <= known.upper * (1 + 1e-9)
        assert known.lower <= generic.upper * (1 + 1e-9)
        assert generic.lower >= 0.85 * known.lower  # directions find most of it
        if d == 2:
            assert generic.upper - generic.lower <= 5e-3 * generic.upper  # in the plane the proof is tight


@pytest.mark.parametrize("name", ["Ball", "Ellipsoid", "EntropySimplex", "FractionalKnapsack", "two knapsacks", "TopK"])
def test_no_direction_leaves_the_bracket(name: str) -> None:
    s1, s2 = families(np.random.default_rng(9), 6)[name]
    u = np.random.default_rng(1).normal(size=(4000, 6)) ** 3
    u /= np.linalg.norm(u, axis=-1, keepdims=True)
    with jax.enable_x64(True):
        gap = np.asarray(s1.support(u) - s2.support(u))
        widths = np.abs(gap + np.asarray(s1.support(-u) - s2.support(-u))) / 2
    apart, shape = hausdorff(s1, s2), shape_distance(s1, s2)
    assert np.abs(gap).max() <= apart.upper + 1e-9
    assert np.abs(gap).max() >= 0.5 * apart.lower
    assert widths.max() <= shape.upper + 1e-9
    assert shape.upper <= apart.upper + 1e-12


def test_ellipsoid_brackets_nearly_close() -> None:
    for seed in range(4):
        s1, s2 = families(np.random.default_rng(seed), 3 + seed)["Ellipsoid"]
        for lower, upper in (hausdorff(s1, s2), shape_distance(s1, s2)):
            assert upper <= lower * (1 + 1e-3)


def test_mixed_families_by_brute_force() -> None:
    a = np.array([0.3, 0.5, 0.9])
    sack, top, box = FractionalKnapsack(a, 0.8), TopK(3, 1.5), Box([0, 0, 0], [0.5, 1, 0.5])
    corners = {
        0: knapsack_vertices(sack),
        1: topk_vertices(3, 1.5),
        2: np.array(list(itertools.product([0, 0.5], [0, 1], [0, 0.5]))),
    }
    sets = [sack, top, box]
    for i, j in itertools.combinations(range(3), 2):
        exact = apart(as_polytope(sets[i]), corners[i], as_polytope(sets[j]), corners[j])
        shape = apart_in_shape(np.unique(corners[i], axis=0), np.unique(corners[j], axis=0))
        for (lower, upper), value in ((hausdorff(sets[i], sets[j]), exact), (shape_distance(sets[i], sets[j]), shape)):
            assert 0.9 * value <= lower <= value + 1e-5
            assert value - 1e-5 <= upper <= 2.5 * value


class Segment(FeasibleSet):
    """A user's own set, with nothing said of distances: the points between two ends."""

    ends: np.ndarray

    def __init__(self, ends: object):
        self.ends = np.asarray(ends, float)

    @property
    def dim(self) -> int:
        return int(self.ends.shape[-1])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(self.ends.shape[:-2])

    def _minimise(self, c: jax.Array) -> jax.Array:
        first = c @ self.ends[0] <= c @ self.ends[1]
        return jax.numpy.where(first[..., None], self.ends[0], self.ends[1])

    def _excess(self, w: jax.Array) -> jax.Array:
        return jax.numpy.zeros(w.shape[:-1])

    def _diameter(self) -> Bracket:
        value = float(np.linalg.norm(self.ends[1] - self.ends[0]))
        return Bracket(value, value)


del FeasibleSet.families["Segment"]  # other tests count the package's own families


def test_a_set_of_ones_own_needs_no_more_code() -> None:
    short, long = Segment([[0, 0], [1, 0]]), Segment([[0, 3], [0, 7]])
    assert hausdorff(short, long) == pytest.approx((7, 7), abs=1e-6)  # from (0, 7) down to (0, 0)
    assert shape_distance(short, long) == pytest.approx((2, 2), abs=1e-2)
    lower, upper = hausdorff(Segment(np.eye(3)[:2]), Simplex(3))
    assert lower == pytest.approx(math.sqrt(1.5), abs=1e-6)
    assert lower <= upper <= 1.1 * lower
    assert distance._hausdorff(Ball([0, 0, 0], 1), Ball([0, 0, 0], 1)).lower == 0


def test_sets_on_the_line_and_points() -> None:
    assert hausdorff(Ball([0], 1), Box([-2], [5])) == pytest.approx((4, 4), abs=1e-6)
    assert shape_distance(Ball([0], 1), Box([-2], [5])) == pytest.approx((2.5, 2.5), abs=1e-6)
    assert hausdorff(Ball([3, 4], 0), Box([0, 0], [0, 0])) == pytest.approx((5, 5), abs=1e-6)
    assert shape_distance(Ball([3, 4], 0), Box([0, 0], [0, 0])) == pytest.approx((0, 0), abs=1e-6)
    assert hausdorff(Ball([0, 3, 4], 0), Box([0, 0, 0], [0, 0, 0])) == pytest.approx((5, 5), abs=1e-6)


@pytest.mark.parametrize("d", [3, 30])
def test_equal_sets_under_two_names(d: int) -> None:
    cube, sack = Box(np.zeros(d), np.ones(d)), FractionalKnapsack(np.ones(d), d)
    lower, upper = hausdorff(cube, sack)
    assert lower == 0
    assert upper <= (
        1e-6 if d == 3 else math.sqrt(d) / 2 + 1e-6
    )  # a proof by corners in a few dimensions, by one point in many
    assert shape_distance(Simplex(d), TopK(d, 1)).lower <= 1e-9


# What every distance does.


def everything() -> list[FeasibleSet]:
    pairs = families(np.random.default_rng(5), 3).values()
    return [s for pair in pairs for s in pair]


def test_symmetric_and_zero_to_itself() -> None:
    sets = everything()
    for s in sets:
        again = type(s)(**s.spec())
        assert hausdorff(s, again) == shape_distance(s, again) == (0, 0)
    for s1, s2 in [*zip(sets[::2], sets[1::2], strict=True), (sets[0], sets[2]), (sets[9], sets[12])]:
        assert hausdorff(s1, s2) == hausdorff(s2, s1)
        assert shape_distance(s1, s2) == shape_distance(s2, s1)
        assert hausdorff(s1, s2).upper > 0


def test_no_detour_is_shorter() -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(0.2, 1, 20)
    for make in (lambda b: TopK(20, 20 * b), lambda b: FractionalKnapsack(a, b * 12), lambda b: EntropySimplex(20, b * 2.9)):
        near, mid, far = (make(b) for b in (0.2, 0.45, 0.9))
        for measure in (hausdorff, shape_distance):
            assert 0 < measure(near, far).lower <= measure(near, mid).upper + measure(mid, far).upper
        # Nested sets, or hyperplanes one after the other: the middle one is between the others.
        assert hausdorff(near, far).upper > max(hausdorff(near, mid).lower, hausdorff(mid, far).lower)


def test_the_shape_distance_does_not_see_a_translation() -> None:
    rng, move = np.random.default_rng(2), np.array([5.0, -3.0, 0.25])
    box, other = families(rng, 3)["Box"]
    assert shape_distance(Box(box.lower + move, box.upper + move), other) == pytest.approx(shape_distance(box, other))
    ball = Ball([1, 2, 3], 2)
    assert shape_distance(Ball(ball.center + move, 2), ball) == (0, 0)
    s, t = families(rng, 3)["Polytope"]
    lp = s.constraints
    moved = Polytope(A_ub=lp.A_ub, b_ub=lp.b_ub + lp.A_ub @ move, lower=lp.lower + move, upper=lp.upper + move)
    assert shape_distance(moved, t) == pytest.approx(shape_distance(s, t), abs=1e-6)
    assert hausdorff(moved, t).lower > hausdorff(s, t).upper
    assert shape_distance(moved, s).upper < 1e-6


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="hausdorff: the sets must have the same dimension, found 3 and 5"):
        hausdorff(TopK(3, 1), TopK(5, 1))
    with pytest.raises(ValueError, match="shape_distance: the sets must have the same dimension, found 5 and 3"):
        shape_distance(TopK(5, 1), Simplex(3))
    with pytest.raises(ValueError, match="hausdorff: it is of two feasible sets, found"):
        hausdorff(TopK(3, 1), [0, 1, 2])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"hausdorff\(\) is of one set; this is a stack of shape \(2,\)"):
        hausdorff(TopK(3, 1), stack([TopK(3, 1), TopK(3, 2)]))


def test_all_pairs_of_twenty_sets_are_quick() -> None:
    rng, d = np.random.default_rng(0), 50
    a = rng.uniform(0.2, 1, d)
    sets: list[FeasibleSet] = [FractionalKnapsack(a, b * a.sum()) for b in np.linspace(0.1, 1.1, 20)]
    dffl.hausdorff(sets[0], sets[1])
    begin = time.process_time()
    for s1, s2 in itertools.combinations(sets, 2):
        lower, upper = dffl.hausdorff(s1, s2)
        assert lower <= upper <= 1.1 * lower or upper == 0
        lower, upper = dffl.shape_distance(s1, s2)
        assert lower <= upper <= 2 * lower or upper == 0
    assert time.process_time() - begin < 3
