"""The lemmas one by one: never violated, attained where they claim to be, and sharper than the paper's where we say so."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import dffl
from dffl.sets import FeasibleSet
from dffl.theory import dv, lemmas
from dffl.theory.geometry import decision_shift, set_shift
from tests.theory.instances import CLOSED, FAMILIES, Clients, clients, largest_share, solve

D, N = 6, 64  # few shapes: most of the time goes into compiling


def support(s: FeasibleSet, u: np.ndarray) -> np.ndarray:
    return dot(u, solve(s, -u))


def dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sum(x * y, axis=-1)


def near_uniform(rng: np.random.Generator, d: int) -> dffl.EntropySimplex:
    """An entropy set with h > log(d - 1): strongly convex within its hyperplane."""
    return dffl.EntropySimplex(d, rng.uniform(math.log(d - 1) + 1e-3, math.log(d) - 1e-3))


def check_all_sets(k: Clients, shares: Counter[str]) -> None:
    """What holds for every compact convex set, or every two."""
    (s1, s2), (c1, c2), (w1, w2), p = k.s, k.c, k.w, k.c_hat

    def reach(name: str, left: np.ndarray, right: np.ndarray) -> None:
        shares[name] = max(shares[name], largest_share(left, right, k.noise))

    noise = 1e-9 * (np.abs(c1) + np.abs(c2) + np.abs(p)).sum(-1) * (np.abs(w1).max() + np.abs(w2).max())
    k = k._replace(noise=k.noise + noise)
    u = c1 - 2 * p
    reach("support_gap", np.abs(support(s1, u) - support(s2, u)), lemmas.support_gap(u, s1, s2))
    reach("value_gap", np.abs(dot(c1, w1 - solve(s2, c1))), lemmas.value_gap(c1, s1, s2))
    reach("functional_gap", np.abs(dot(p, w1 - w2)), lemmas.functional_gap(p, s1, s2))
    for s, w in ((s1, w1), (s2, solve(s2, c1))):
        joint = [support(s, c - 2 * p) + support(s, -c) for c in (c1, c2)]
        reach("diameter_lipschitz", np.abs(joint[0] - joint[1]), lemmas.diameter_lipschitz(c1, c2, s))
        losses = [dot(2 * q - c1, w - solve(s, 2 * q - c1)) for q in (p, c2)]
        reach("prediction_lipschitz", np.abs(losses[0] - losses[1]), lemmas.prediction_lipschitz(p, c2, s))
        reach("loss_ceiling", losses[0], lemmas.loss_ceiling(p, c1, s))
        regret = dot(c1, solve(s, p) - w)
        np.testing.assert_array_less(np.abs(lemmas.bregman(c1 - 2 * p, -c1, s) - losses[0]), k.noise + 1e-12)
        np.testing.assert_array_less(np.abs(lemmas.bregman(-c1, -p, s) - regret), k.noise + 1e-12)


def check_curved(k: Clients, shares: Counter[str]) -> None:
    """What holds where at least one of two sets is strongly convex; instances with a zero cost are left out."""
    (s1, s2), (c1, c2), p = k.s, k.c, k.c_hat
    flat = dffl.theory.Pair.of(s1, s2).flat

    def directed(x: np.ndarray) -> np.ndarray:
        return np.ptp(x, axis=-1) > 0 if flat else np.abs(x).max(axis=-1) > 0

    keep = directed(c1) & directed(c2) & directed(p)
    # Left-out rows become copies of one that stays, so that the shapes stay too.
    rows = np.where(keep, np.arange(len(keep)), np.flatnonzero(keep)[0])
    c1, c2, p, w1, w2 = c1[rows], c2[rows], p[rows], k.w[0][rows], k.w[1][rows]
    # Near a zero (projected) cost an optimum is known to sqrt of rounding only, relative to the costs as they are.
    size = np.abs(w1).max() + np.abs(w2).max()
    blur = 1e-7 * (1 + np.abs(c1).max(-1) / (c1.std(-1) + 1e-300) + np.abs(c2).max(-1) / (c2.std(-1) + 1e-300)) * size
    noise = k.noise[rows] + 1e-9 * (np.abs(c1) + np.abs(c2) + np.abs(p)).sum(-1) * size

    def reach(name: str, left: np.ndarray, right: np.ndarray, noise: np.ndarray) -> None:
        shares[name] = max(shares[name], largest_share(left, right, noise))

    sharp = lemmas.curved_functional_gap(p, c1, s1, c2, s2)
    paper = lemmas.curved_functional_gap(p, c1, s1, c2, s2, form="paper")
    assert (sharp <= paper * (1 + 1e-12)).all()
    reach("curved_functional_gap", np.abs(dot(p, w1 - w2)), sharp, noise + blur * np.abs(p).sum(-1))
    step = np.linalg.norm(w1 - solve(s2, c1), axis=-1)
    reach("set_stability", step, np.full_like(step, lemmas.set_stability(s1, s2)), blur)
    assert lemmas.set_stability(s1, s2) <= lemmas.set_stability(s1, s2, form="paper")
    for s in {id(s): s for s in (s1, s2) if math.isfinite(s.curvature())}.values():
        w, v = solve(s, c1), solve(s, c2)
        reach("directional_stability", np.linalg.norm(w - v, axis=-1), lemmas.directional_stability(c1, c2, s), blur)
        reach("cost_stability", np.linalg.norm(w - v, axis=-1), lemmas.cost_stability(c1, c2, s), blur)
        turned = lemmas.directional_stability(c1, c2, s) - 1e-12 * s.curvature()  # directions are rounded
        assert (lemmas.cost_stability(c1, c2, s) >= turned * (1 - 1e-9)).all()
        reach("quadratic_growth", lemmas.quadratic_growth(c1, v, s), dot(c1, v - w), noise)
        loss, regret = dot(2 * p - c1, w - solve(s, 2 * p - c1)), dot(c1, solve(s, p) - w)
        reach("ball_ceiling", loss, lemmas.ball_ceiling(p, c1, s), noise)
        reach("error_bound", loss, lemmas.error_bound(p, c1, s), noise)
        reach("angle_bound", regret, lemmas.angle_bound(p, c1, s), noise)
        assert (lemmas.ball_ceiling(p, c1, s) <= lemmas.error_bound(p, c1, s) * (1 + 1e-9) + noise).all()


def check_entropy(s: dffl.EntropySimplex, k: Clients, shares: Counter[str]) -> None:
    (c1, c2), p = k.c, k.c_hat
    w1, w2 = solve(s, c1), solve(s, c2)
    loss = dot(2 * p - c1, w1 - solve(s, 2 * p - c1))
    noise = k.noise + 1e-9 * (np.abs(c1) + np.abs(p)).sum(-1)
    bound = dv.dv_bound(p, c1, s)
    shares["dv_bound"] = max(shares["dv_bound"], largest_share(loss, bound, noise))
    shares["dv_range_bound"] = max(shares["dv_range_bound"], largest_share(bound, dv.dv_range_bound(p, c1, s), noise))
    step = np.linalg.norm(w1 - w2, axis=-1)
    stability = dv.entropy_stability(c1, c2, s)
    blur = np.full(len(step), 1e-6)
    shares["entropy_stability"] = max(shares["entropy_stability"], largest_share(step, stability, blur))
    r1, r2 = dv.directional_radius(c1, s), dv.directional_radius(c2, s)
    active = np.isfinite(r1) & np.isfinite(r2) & (r1 > 0) & (r2 > 0)
    p1, p2 = ((c - c.mean(-1, keepdims=True))[active] for c in (c1, c2))
    turn = np.linalg.norm(p1 / np.linalg.norm(p1, axis=-1)[:, None] - p2 / np.linalg.norm(p2, axis=-1)[:, None], axis=-1)
    harmonic = 2 / (1 / r1[active] + 1 / r2[active]) * turn
    assert (stability[active] <= harmonic * (1 + 1e-6) + 1e-9).all()
    # The set lies in the ball that touches at w*(c1).
    growth = dot(c1, w2 - w1)
    size = np.linalg.norm(c1 - c1.mean(-1, keepdims=True), axis=-1)
    shares["directional_radius"] = max(
        shares["directional_radius"],
        largest_share(np.where(np.isfinite(r1) & (r1 > 0), size * step**2 / (2 * np.maximum(r1, 1e-300)), 0), growth, noise),
    )


def curved_pairs(rng: np.random.Generator, d: int) -> Iterator[tuple[FeasibleSet, FeasibleSet]]:
    ball, ellipsoid, box = FAMILIES["ball"], FAMILIES["ellipsoid"], FAMILIES["box"]
    for one, other in ((ball, ball), (ellipsoid, ellipsoid), (ball, ellipsoid), (ball, box), (near_uniform, near_uniform)):
        yield one(rng, d), other(rng, d)
    yield near_uniform(rng, d), dffl.EntropySimplex(d, 0.3 * math.log(d))  # one of the two only


def sweep(seed: int, d: int, n: int, batches: int) -> Counter[str]:
    rng, shares = np.random.default_rng([seed, d]), Counter[str]()
    one = {name: (FAMILIES[name](rng, d), FAMILIES[name](rng, d)) for name in CLOSED}
    for s1, s2 in [*one.values(), (one["knapsack"][0], one["simplex"][0])]:
        for _ in range(batches):
            check_all_sets(clients(rng, s1, s2, n), shares)
    for s1, s2 in curved_pairs(rng, d):
        for _ in range(batches):
            check_curved(clients(rng, s1, s2, n), shares)
    for s in (*one["entropy"], near_uniform(rng, d)):
        for _ in range(batches):
            check_entropy(s, clients(rng, s, s, n), shares)
    return shares


def test_no_lemma_is_violated() -> None:
    shares = sweep(0, D, N, batches=3)
    for tight in (
        "diameter_lipschitz",
        "prediction_lipschitz",
        "quadratic_growth",
        "ball_ceiling",
        "angle_bound",
        "loss_ceiling",
    ):
        assert shares[tight] > 0.99, tight


def test_no_lemma_is_violated_by_polytopes() -> None:
    rng, shares = np.random.default_rng(0), Counter[str]()
    check_all_sets(clients(rng, FAMILIES["polytope"](rng, 2), FAMILIES["polytope"](rng, 2), N), shares)


@pytest.mark.slow
def test_no_lemma_is_violated_in_200_000_instances(capsys: pytest.CaptureFixture[str]) -> None:
    total: Counter[str] = Counter()
    for d in (2, 3, 5, 10, 50):
        for seed in range(1, 6):
            total |= sweep(seed, d, 256, batches=2 if d == 50 else 8)  # 17 pairs of sets each time: 739,840 instances
    for seed in range(4):
        rng = np.random.default_rng(seed)
        check_all_sets(clients(rng, FAMILIES["polytope"](rng, 4), FAMILIES["polytope"](rng, 4), N), total)
    with capsys.disabled():
        print("\nlargest left / right:", {name: round(share, 6) for name, share in sorted(total.items())})


def test_literal_values() -> None:
    small, large, box = dffl.Ball([0.0, 0.0], 1.0), dffl.Ball([3.0, 4.0], 1.5), dffl.Box([0.0, 0.0], [3.0, 4.0])
    assert lemmas.support_gap([3.0, 4.0], small, large) == pytest.approx(5 * 5.5)
    assert lemmas.value_gap([[3.0, 4.0]], small, large) == pytest.approx([5 * 5.5])
    assert lemmas.diameter_lipschitz([1.0, 1.0], [0.0, 1.0], box) == pytest.approx(5.0)
    assert lemmas.functional_gap([1.0, 0.0], small, large) == pytest.approx(5.5 + 2)
    assert lemmas.prediction_lipschitz([1.0, 1.0], [0.0, 1.0], box) == pytest.approx(10.0)
    assert lemmas.directional_stability([2.0, 0.0], [0.0, 0.1], large) == pytest.approx(1.5 * math.sqrt(2))
    assert lemmas.quadratic_growth([2.0, 0.0], [0.0, 1.0], small) == pytest.approx(2.0)  # 2 / 2 |(1, 1)|^2, and c . w - z* = 2
    assert lemmas.set_stability(small, large, form="paper") == pytest.approx(5.5 + 2 * math.sqrt(5.5))
    assert lemmas.set_stability(small, large) == pytest.approx(math.sqrt(5.5**2 + 2 * 1.2 * 5.5))
    assert lemmas.error_bound([0.5, -0.5], [1.0, 0.0], dffl.Ball([0.0, 0.0], 3.0)) == pytest.approx(3.0)
    assert lemmas.ball_ceiling([0.5, -0.5], [1.0, 0.0], dffl.Ball([0.0, 0.0], 3.0)) == pytest.approx(3.0)
    assert lemmas.angle_bound([0.0, 1.0], [2.0, 0.0], small) == pytest.approx(2.0)
    assert lemmas.loss_ceiling([2.0, 0.0], [1.0, 0.0], box) == 0.0
    assert lemmas.loss_ceiling([0.0, 1.0], [1.0, 0.0], small) == pytest.approx(2 * math.sqrt(5))


def test_the_corrected_error_bound_is_attained() -> None:
    s, c = dffl.Ball([0.0, 0.0], 3.0), np.array([[2.0, 0.0]])
    for size in (1e-1, 1e-3):
        c_hat = c + np.array([0.0, size])
        loss = float(lemmas.bregman(c - 2 * c_hat, -c, s)[0])
        assert loss <= float(lemmas.error_bound(c_hat, c, s)[0]) <= loss * (1 + size)


def test_the_sharp_set_stability_is_attained_with_one_curved_set() -> None:
    # The ball of radius 1, and the same grown by delta and cut at delta below its top: at distance delta from each other.
    delta, r = 0.1, 1.0
    angle = np.linspace(0, 2 * math.pi, 20001)
    rim = (r + delta) * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    cut = rim[rim[:, 1] <= r - delta]
    u = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    distance = np.abs((u[::20] @ cut.T).max(axis=-1) - r).max()  # of convex sets: the largest difference of supports
    assert distance == pytest.approx(delta, rel=1e-3)
    corner = cut[np.argmax(cut[:, 1] + 1e-6 * cut[:, 0])]  # the optimum for a cost that leans a little
    step = float(np.linalg.norm(corner - [0.0, r]))
    assert 0.998 * set_shift(delta, r, math.inf) < step < 1.002 * set_shift(delta, r, math.inf)
    assert set_shift(delta, r, math.inf) == pytest.approx(math.sqrt(delta**2 + 4 * r * delta))


def test_the_sharp_decision_shift_is_never_more_than_the_papers_and_meets_the_lemmas_it_joins() -> None:
    rng = np.random.default_rng(0)
    turn = np.concatenate([[0.0], rng.uniform(0, 2, 200)])
    for r1, r2, delta in zip(rng.lognormal(0, 2, 50), rng.lognormal(0, 2, 50), rng.lognormal(0, 3, 50), strict=True):
        sharp = decision_shift(turn, delta, r1, r2)
        assert (sharp <= decision_shift(turn, delta, r1, r2, "paper")).all()
        assert sharp[0] == pytest.approx(set_shift(delta, r1, r2))
        assert (sharp <= decision_shift(turn, delta, r1, math.inf) + 1e-12).all()
        np.testing.assert_allclose(decision_shift(turn, 0.0, r1, r1), r1 * turn)


def test_dv_at_the_ends() -> None:
    rng = np.random.default_rng(0)
    c = rng.normal(size=(N, D))
    c_hat = rng.normal(size=(N, D))
    point = dffl.EntropySimplex(D, math.log(D))
    assert (dv.dv_bound(c_hat, c, point) == 0).all()
    assert (dv.dv_range_bound(c_hat, c, point) == 0).all()
    assert (dv.directional_radius(c, point) == 0).all()
    # A slack constraint: three equal costs of six are spread enough for h = log 2, and the bound is the simplex's loss.
    s = dffl.EntropySimplex(D, math.log(2))
    tied = np.where(np.arange(D) < 3, -1.0, np.abs(c))
    w = np.where(np.arange(D) < 3, 1 / 3, 0.0)
    v = tied - 2 * c_hat
    expected = v.max(-1) - dot(v, w)
    np.testing.assert_allclose(dv.dv_bound(c_hat, tied, s), expected, rtol=1e-12)
    loss = dot(-v, solve(s, tied) - solve(s, -v))
    assert (loss <= expected + 1e-9).all()
    assert np.isinf(dv.dv_range_bound(c_hat, tied, s)).all()
    assert np.isinf(dv.directional_radius(tied, s)).all()
    assert np.isinf(dv.entropy_stability(tied, tied, s)).all()
    assert np.isfinite(dv.entropy_stability(tied, c, s)).all()
    # A common error costs nothing, and only the error's range counts.
    np.testing.assert_allclose(dv.dv_bound(c + 3.0, c, s), 0, atol=1e-9)
    np.testing.assert_allclose(dv.dv_bound(c_hat + 3.0, c, s), dv.dv_bound(c_hat, c, s), rtol=1e-9)


def test_dv_keeps_its_digits_at_every_scale() -> None:
    rng = np.random.default_rng(1)
    c, c_hat, s = rng.normal(size=(N, D)), rng.normal(size=(N, D)), dffl.EntropySimplex(D, 1.0)
    plain = dv.dv_bound(c_hat, c, s)
    for scale in (1e-150, 1e150):
        np.testing.assert_allclose(dv.dv_bound(scale * c_hat, scale * c, s), scale * plain, rtol=1e-7)
    # Small errors: (2 / b) Var(e), which a logarithm of a sum near 1 would round away.
    w, _, b = dv.optimum(c, s)
    e = rng.normal(size=(N, D))
    variance = dot(w, (e - dot(w, e)[:, None]) ** 2)
    for size in (1e-4, 1e-7):
        np.testing.assert_allclose(dv.dv_bound(c - size * e, c, s), 2 * size**2 * variance / b, rtol=1e-2)
    # Near a vertex: the weights underflow, their logarithms do not.
    vertex = dffl.EntropySimplex(D, 1e-9)
    bound = dv.dv_bound(c_hat, c, vertex)
    loss = dot(2 * c_hat - c, solve(vertex, c) - solve(vertex, 2 * c_hat - c))
    assert np.isfinite(bound).all()
    assert (loss <= bound * (1 + 1e-9) + 1e-9).all()


@pytest.mark.parametrize(
    ("name", "field", "call"),
    [
        ("directional_stability", "c1", lambda z, c, s: lemmas.directional_stability(z, c, s)),
        ("directional_stability", "c2", lambda z, c, s: lemmas.directional_stability(c, z, s)),
        ("curved_functional_gap", "c2", lambda z, c, s: lemmas.curved_functional_gap(c, c, s, z, s)),
        ("ball_ceiling", "c", lambda z, c, s: lemmas.ball_ceiling(c, z, s)),
        ("error_bound", "c", lambda z, c, s: lemmas.error_bound(c, z, s)),
        ("angle_bound", "c_hat", lambda z, c, s: lemmas.angle_bound(z, c, s)),
    ],
)
def test_a_vector_without_direction_is_refused_by_name(name: str, field: str, call) -> None:
    with pytest.raises(ValueError, match=f"{name}: {field} must not be zero: every decision is optimal"):
        call([0.0, 0.0], [1.0, 2.0], dffl.Ball([0.0, 0.0], 1.0))
    with pytest.raises(ValueError, match=f"{name}: {field} must not be zero after projection"):
        call([[0.1, 0.1, 0.1]], [1.0, 2.0, 3.0], dffl.EntropySimplex(3, 1.05))


def test_polyhedra_have_no_curved_bounds() -> None:
    s, c = dffl.Box([0.0, 0.0], [1.0, 1.0]), np.array([1.0, 2.0])
    for bound in (lemmas.directional_stability(c, c, s), lemmas.error_bound(c, c, s), lemmas.ball_ceiling(c, c, s)):
        assert np.isinf(bound)
    assert lemmas.set_stability(s, s) == math.inf
    assert lemmas.quadratic_growth(c, c, s) == 0


def test_leading_axes_are_broadcast_and_stacks_are_refused() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=D), rng.normal(size=(N, D))
    s, ball = dffl.EntropySimplex(D, 1.0), dffl.Ball(np.zeros(D), 1.0)
    for bound in (dv.dv_bound, dv.dv_range_bound, dv.entropy_stability):
        np.testing.assert_allclose(bound(a, b, s), bound(np.broadcast_to(a, b.shape), b, s))
    for each in (s, ball):
        for bound in (
            lemmas.quadratic_growth,
            lemmas.angle_bound,
            lemmas.loss_ceiling,
            lemmas.ball_ceiling,
            lemmas.error_bound,
        ):
            assert bound(a, b, each).shape == (N,)
        assert lemmas.curved_functional_gap(a, b, each, a, each).shape == (N,)
    with pytest.raises(ValueError, match="dv_bound: it is of single sets, found a stack of shape"):
        dv.dv_bound(a, b, dffl.EntropySimplex(D, [0.5, 1.0]))


def test_cost_stability_is_attained_at_c_min_and_needs_it() -> None:
    ball = dffl.Ball([0.0, 0.0], 2.0)
    # Opposite costs of norm .5: the decision crosses the ball, 4 = (2 / .5) * 1.
    c1, c2 = np.array([0.5, 0.0]), np.array([-0.5, 0.0])
    assert float(lemmas.cost_stability(c1, c2, ball)) == 4.0 == float(np.linalg.norm(solve(ball, c1) - solve(ball, c2)))
    assert float(lemmas.cost_stability([3.0, 0.0], c1, ball, least=0.5)) == 10.0
    assert float(lemmas.cost_stability([3.0, 0.0], c1, ball, least=0.25)) == 20.0
    assert lemmas.cost_stability([3.0, 0.0], c1, dffl.Box([0.0, 0.0], [1.0, 1.0])) == math.inf
    for least in (0.6, 0.0, -1.0):
        with pytest.raises(ValueError, match=r"cost_stability: least must be > 0 and at most the least norm, 0\.5, found"):
            lemmas.cost_stability([3.0, 0.0], c1, ball, least=least)
    with pytest.raises(ValueError, match="cost_stability: c2 must not be zero"):
        lemmas.cost_stability(c1, [0.0, 0.0], ball)
