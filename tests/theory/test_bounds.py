"""loss_gap_bound: never violated, nowhere loose for no reason, and its parts add up."""

from __future__ import annotations

import math
import time
from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest

import dffl
from dffl.theory import Geometry, Pair, fixed_sum, loss_gap_bound
from tests.theory.instances import CLOSED, FAMILIES, Clients, clients, evaluate, largest_share, pairs, solve

KINDS = ("theorem1", "strongly_convex", "trivial", "dv", "best")


def check(k: Clients, shares: Counter[str]) -> None:
    bound = loss_gap_bound(k.c_hat, k.c[0], k.s[0], k.c[1], k.s[1])
    for kind in KINDS:
        shares[kind] = max(shares[kind], largest_share(k.gap, getattr(bound, kind), k.noise))
    parts = bound.objective_part + bound.constraint_part + bound.decision_part
    np.testing.assert_allclose(parts, bound.theorem1, rtol=1e-12)
    for kind in KINDS[:-1]:
        assert (bound.best <= getattr(bound, kind) * (1 + 1e-12)).all()
    curved = min(Pair.of(*k.s).radii) < math.inf
    assert np.isfinite(bound.strongly_convex).all() == curved
    assert np.isfinite(bound.dv).all() == all(isinstance(s, dffl.EntropySimplex) for s in k.s)


@pytest.mark.parametrize(("d", "families", "mixed"), [(2, tuple(FAMILIES), 3), (6, CLOSED, 3), (50, CLOSED, 0)])
def test_no_bound_is_violated(d: int, families: tuple[str, ...], mixed: int) -> None:
    shares: Counter[str] = Counter()
    for k in pairs(np.random.default_rng(d), d, n=64, batches=3, families=families, mixed=mixed):
        check(k, shares)
    assert shares["best"] > (0.99 if d == 2 else 0.5)


@pytest.mark.slow
def test_no_bound_is_violated_in_200_000_instances(capsys: pytest.CaptureFixture[str]) -> None:
    # Polytopes have fewer, 2,560, in up to 5 dimensions.
    shares: Counter[str] = Counter()
    count = 0
    for d in (2, 3, 5, 10, 50):
        for seed in range(5):
            for k in pairs(np.random.default_rng([seed, d]), d, n=256, batches=4, families=CLOSED, mixed=2 if d == 50 else 3):
                check(k, shares)
                count += len(k.gap)
    for d in (2, 5):
        for k in pairs(np.random.default_rng(d), d, n=64, batches=4, families=("polytope", "polytope"), mixed=3):
            check(k, shares)
            count += len(k.gap)
    with capsys.disabled():
        print(f"\n{count} instances, largest gap / bound:", {kind: round(share, 6) for kind, share in shares.items()})
    assert count >= 200_000
    assert all(share > 0.99 for share in shares.values())


def test_theorem_1_is_attained() -> None:
    # The paper's two examples: as the costs come together the decision still jumps across the whole set.
    for s in (dffl.Simplex(2), dffl.Polytope(A_ub=[[-1.0, -1.0]], b_ub=[-1.0], lower=[0.0, 0.0], upper=[1.0, 1.0])):
        for eps in (1e-2, 1e-4):
            c_hat, c1, c2 = np.array([[1.0, -1.0]]), np.array([[1.0, 1 + eps]]), np.array([[1 + eps, 1.0]])
            k = evaluate(c_hat, (c1, c2), (s, s), (solve(s, c1), solve(s, c2)))
            bound = loss_gap_bound(c_hat, c1, s, c2, s)
            assert float(k.gap[0]) >= (1 - eps) * float(bound.theorem1[0])


def test_the_dv_bound_is_attained() -> None:
    # Where the error leaves the entropy of softmax((2 e - c) / b) as it is, to second order.
    rng, s = np.random.default_rng(0), dffl.EntropySimplex(6, 1.1)
    c, e = rng.normal(size=(64, 6)), rng.normal(size=(64, 6))
    w = solve(s, c)

    def around(x: np.ndarray) -> np.ndarray:
        return x - np.sum(w * x, axis=-1, keepdims=True)

    e = around(e) - around(c) * (np.sum(w * around(e) * around(c), -1) / np.sum(w * around(c) ** 2, -1))[:, None]
    k = evaluate(c - 1e-3 * e, (c, 0 * c), (s, s), (w, solve(s, 0 * c)))
    own = loss_gap_bound(c - 1e-3 * e, c, s, c - 1e-3 * e, s)  # the second client's prediction is right: its loss is 0
    assert largest_share(k.loss[0], own.dv, 1e-13) > 0.99


def test_costs_are_projected_where_both_sums_are_fixed_and_only_there() -> None:
    rng = np.random.default_rng(0)
    c_hat, c1, c2 = rng.normal(size=(3, 64, 6))
    top, sack, ball = dffl.TopK(6, 2), dffl.FractionalKnapsack(np.ones(6), 2), dffl.Ball(np.zeros(6), 1.0)
    poly = dffl.Polytope(A_eq=np.ones((1, 6)), b_eq=[2.0], lower=0, upper=np.ones(6))
    for s1, s2 in [(top, dffl.Simplex(6, 3.0)), (dffl.EntropySimplex(6, 1.0), dffl.EntropySimplex(6, 0.5)), (poly, poly)]:
        plain = loss_gap_bound(c_hat, c1, s1, c2, s2)
        shifted = loss_gap_bound(c_hat + 30, c1 - 100, s1, c2 + 7, s2)
        for one, other in zip(plain, shifted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
    assert (loss_gap_bound(c_hat + 30, c1, top, c2, sack).theorem1 > loss_gap_bound(c_hat, c1, top, c2, sack).theorem1).all()
    assert [fixed_sum(s) for s in (top, poly, sack, ball, dffl.Simplex(1), dffl.Ball(np.ones(3), 0.0))] == [1, 1, 0, 0, 1, 1]
    assert not fixed_sum(dffl.Box(np.full(4, 1e9), np.full(4, 1e9 + 0.1)))


def test_a_set_that_is_curved_within_its_hyperplane_only_does_not_lend_its_radius_to_one_outside() -> None:
    curved, ball = dffl.EntropySimplex(6, math.log(6) - 0.01), dffl.Ball(np.zeros(6), 0.5)
    assert math.isfinite(curved.curvature())
    assert Pair.of(curved, ball).radii == (math.inf, 0.5)
    assert Pair.of(curved, dffl.EntropySimplex(6, 0.1)).radii == (curved.curvature(), math.inf)
    shares: Counter[str] = Counter()
    check(clients(np.random.default_rng(0), curved, ball, 64), shares)
    check(clients(np.random.default_rng(0), curved, dffl.EntropySimplex(6, 0.1), 64), shares)
    assert shares["best"] > 0.1


@pytest.mark.parametrize("name", ["ball", "entropy"])
def test_a_cost_without_direction_falls_back_on_the_diameter(name: str) -> None:
    s = {"ball": dffl.Ball(np.zeros(3), 2.0), "entropy": dffl.EntropySimplex(3, math.log(3) - 0.01)}[name]
    c_hat, c = np.array([1.0, 2.0, -1.0]), np.array([[0.3, 0.1, 0.5], [0.1, 0.1, 0.1]])
    zero = np.zeros(3) if name == "ball" else np.full(3, 0.1)
    bound = loss_gap_bound(c_hat, zero, s, c, s)
    assert np.isfinite(bound.strongly_convex).all()
    np.testing.assert_allclose(bound.strongly_convex, bound.theorem1, rtol=1e-12)


def test_maximising_is_minimising_the_negated_costs() -> None:
    rng = np.random.default_rng(3)
    c_hat, c1, c2 = rng.normal(size=(3, 64, 6))
    s1, s2 = dffl.EntropySimplex(6, 1.0), dffl.EntropySimplex(6, 0.5)
    for one, other in zip(
        loss_gap_bound(c_hat, c1, s1, c2, s2, maximize=True), loss_gap_bound(-c_hat, -c1, s1, -c2, s2), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_leading_axes_are_broadcast_and_lists_and_single_vectors_are_taken() -> None:
    s1, s2 = dffl.Ball([0.0, 0.0], 1.0), dffl.Ball([1.0, 0.0], 2.0)
    rng = np.random.default_rng(0)
    c_hat, c1 = rng.normal(size=(5, 1, 2)), rng.normal(size=(4, 2))
    bound = loss_gap_bound(c_hat, c1, s1, jnp.ones(2), s2)
    assert all(np.shape(x) == (5, 4) and x.dtype == np.float64 for x in bound)
    one = loss_gap_bound(c_hat[2, 0].tolist(), c1[3].tolist(), s1, [1, 1], s2)
    assert one.best.shape == ()
    assert float(one.best) == pytest.approx(float(bound.best[2, 3]))


def test_tiny_and_huge_costs_keep_their_bounds() -> None:
    rng = np.random.default_rng(0)
    c_hat, c1, c2 = rng.normal(size=(3, 64, 6))
    for s in (dffl.Ball(np.zeros(6), 2.0), dffl.TopK(6, 2), dffl.EntropySimplex(6, 1.0)):
        plain = loss_gap_bound(c_hat, c1, s, c2, s)
        for scale in (1e-170, 1e170):
            for one, other in zip(plain, loss_gap_bound(scale * c_hat, scale * c1, s, scale * c2, s), strict=True):
                np.testing.assert_allclose(one * scale, other, rtol=1e-6)


def test_a_single_point_has_no_gap() -> None:
    rng = np.random.default_rng(0)
    c_hat, c1, c2 = rng.normal(size=(3, 64, 6))
    for s in (dffl.EntropySimplex(6, math.log(6)), dffl.Ball(np.ones(6), 0.0), dffl.Simplex(6, 0.0)):
        assert (loss_gap_bound(c_hat, c1, s, c2, s).best == 0).all()


def test_what_does_not_fit_is_refused() -> None:
    s = dffl.Simplex(3)
    with pytest.raises(ValueError, match=r"loss_gap_bound: c2 must have shape \(\.\.\., 3\), found \(2,\)"):
        loss_gap_bound(np.ones(3), np.ones(3), s, np.ones(2), s)
    with pytest.raises(ValueError, match="the two sets must have the same dimension, found 3 and 4"):
        loss_gap_bound(np.ones(3), np.ones(3), s, np.ones(3), dffl.Simplex(4))
    with pytest.raises(ValueError, match="stack"):
        loss_gap_bound(np.ones(3), np.ones(3), dffl.Simplex(3, [1.0, 2.0]), np.ones(3), s)


def test_geometry_is_computed_once_for_equal_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    diameter = dffl.Ball._diameter
    monkeypatch.setattr(dffl.Ball, "_diameter", lambda s: calls.append(s) or diameter(s))
    one, other = dffl.Ball([0.0, 0.0], 1.2345), dffl.Ball([0.0, 0.0], 1.2345)
    assert Pair.of(one, other) is Pair.of(other, one)
    assert Geometry.of(one) is Geometry.of(other)
    assert len(calls) == 1


def test_all_pairs_of_a_federation_take_seconds() -> None:
    rng = np.random.default_rng(0)
    sets = [dffl.TopK(50, k) for k in rng.uniform(2, 30, 20)]
    c, c_hat = rng.normal(size=(20, 200, 50)), rng.normal(size=(200, 50))
    start = time.perf_counter()
    for i in range(20):
        for j in range(i):
            loss_gap_bound(c_hat, c[i], sets[i], c[j], sets[j])
    assert time.perf_counter() - start < 20  # under 2 s on an idle core; the margin is for a busy one


def test_costs_that_cannot_be_bounded_are_refused() -> None:
    s, c = dffl.TopK(3, 1), np.ones((4, 3))
    with pytest.raises(ValueError, match="loss_gap_bound: c1 must be finite, found nan"):
        loss_gap_bound(c, np.full(3, np.nan), s, c, s)
    with pytest.raises(
        ValueError, match=r"c_hat, c1 and c2 must be of equal length, found shapes \(4, 3\), \(2, 3\) and \(4, 3\)"
    ):
        loss_gap_bound(c, c[:2], s, c, s)
