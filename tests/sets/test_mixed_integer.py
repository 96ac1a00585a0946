"""Integer programs with helpers and known costs, against another solver and against all points listed."""

from __future__ import annotations

import itertools
import pickle
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

import dffl
from dffl.federation import optima
from dffl.losses import Rows
from dffl.losses.regret import Regret
from dffl.sets import MixedInteger, Polytope, stack
from dffl.sets._calls import Calls, Remembered


def random_set(seed: int, integer: bool = True, helpers: int = 2) -> tuple[MixedInteger | Polytope, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    columns = d + helpers
    a = np.round(rng.normal(size=(3, columns)), 2)
    b = np.abs(a).sum(axis=1) * rng.uniform(0.2, 0.8)
    known = np.round(rng.normal(size=helpers), 2) if helpers else None
    given = {"A_ub": a, "b_ub": b, "lower": np.zeros(columns), "upper": np.full(columns, 2.0)}
    whole = np.arange(columns) % 2 == 0
    extra = {"known_cost": known, "helpers": helpers}
    s = MixedInteger(**given, integer=whole, **extra) if integer else Polytope(**given, **extra)
    full = np.concatenate([np.zeros(d), known]) if helpers else np.zeros(d)
    return s, {**given, "integer": whole if integer else np.zeros(columns, bool), "known": full, "d": np.asarray(d)}


def by_scipy(model: dict[str, np.ndarray], costs: np.ndarray, weight: float = 1.0) -> float:
    full = weight * model["known"]
    full = full + np.concatenate([costs, np.zeros(full.size - costs.size)])
    rows = LinearConstraint(model["A_ub"], -np.inf, model["b_ub"])
    answer = milp(full, integrality=model["integer"], bounds=(0, 2), constraints=rows, options={"mip_rel_gap": 0})
    assert answer.success
    return float(answer.fun)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0, 2]), st.booleans())
def test_answers_cost_what_another_solver_finds(seed: int, integer: bool, helpers: int, maximize: bool) -> None:
    s, model = random_set(seed, integer, helpers)
    costs = np.random.default_rng(seed + 1).normal(size=(4, s.dim))
    sense = -1.0 if maximize else 1.0
    decided = s.decide(costs, maximize)
    full = np.concatenate([np.eye(s.dim), np.zeros((s.dim, helpers))], axis=1).T
    for c, v in zip(costs, decided, strict=True):
        own = full @ c + model["known"]
        assert sense * own @ v == pytest.approx(by_scipy(model, sense * c, sense), abs=5e-6)  # SciPy leaves 1e-6 of each row
        assert (model["A_ub"] @ v <= model["b_ub"] + 1e-7).all()
        assert (v >= -1e-9).all()
        assert (v <= 2 + 1e-9).all()
        np.testing.assert_array_equal(v[model["integer"]], np.round(v[model["integer"]]))
    with jax.enable_x64(True):
        if not maximize:
            np.testing.assert_array_equal(np.asarray(s.solve(costs)), decided[:, : s.dim])
        lifted = np.asarray(s.lifted.solve(sense * np.asarray(dffl.sets.completed(s, costs))))
    np.testing.assert_array_equal(lifted[:, : s.dim], decided[:, : s.dim])
    if helpers:
        np.testing.assert_allclose(lifted[:, s.dim :].sum(axis=1), decided @ model["known"], atol=1e-12)


def test_a_list_of_all_points_agrees() -> None:
    s, model = random_set(7, helpers=0)
    points = np.array(list(itertools.product(*([0.0, 1, 2] for _ in range(s.dim)))))
    whole = MixedInteger(model["A_ub"], model["b_ub"], lower=model["lower"], upper=model["upper"])
    inside = points[(points @ model["A_ub"].T <= model["b_ub"] + 1e-12).all(axis=1)]
    costs = np.random.default_rng(0).normal(size=(50, s.dim))
    with jax.enable_x64(True):
        w = np.asarray(whole.solve(costs))
        np.testing.assert_array_equal(
            np.asarray(whole.contains(points)), (points @ model["A_ub"].T <= model["b_ub"]).all(axis=1)
        )
        assert not np.asarray(whole.contains(points[:1] + 0.5))[0]
    np.testing.assert_allclose(np.sum(costs * w, axis=1), (costs @ inside.T).min(axis=1), atol=1e-9)
    apart = max(np.linalg.norm(a - b) for a in inside for b in inside)
    assert whole.diameter().lower <= apart + 1e-9 <= whole.diameter().upper + 2e-9


def test_literal_numbers() -> None:
    # Buy 3 units from two sellers of at most 2 each; what is short costs 6 a unit, and a fixed fee of 1 opens seller 2.
    rows = {"A_ub": [[0.0, 1, 0, -2]], "b_ub": [0.0], "A_eq": [[1.0, 1, 1, 0]], "b_eq": [3.0]}
    s = MixedInteger(**rows, lower=0, upper=[2, 2, 3, 1], integer=[3], helpers=2, known_cost=[6.0, 1.0])
    np.testing.assert_array_equal(s.decide([[4.0, 5.0], [4.0, 6.0], [9.0, 1.0]]), [[2, 1, 0, 1], [2, 0, 1, 0], [0, 2, 1, 1]])
    with jax.enable_x64(True):
        c = np.array([[4.0, 5.0], [9.0, 1.0]])
        np.testing.assert_allclose(dffl.optimal_value(c, s), [14.0, 9.0])
        # Deciding by (9, 1) where (4, 5) is true buys (0, 2) and is short of 1: 10 + 6 + 1 = 17 instead of 14.
        # The other way round it buys (2, 1) for 20 instead of 9.
        np.testing.assert_allclose(dffl.regret(c[::-1], c, s), [3.0, 11.0])
        # SPO+ at c_hat = (9, 1), c = (4, 5): 2 c_hat - c = (14, -3), with known costs of weight 1.
        # w*(c) = (2, 1), known 1, costs 26; the best for (14, -3) is (0, 2), known 7, costs 1.
        value, slope = jax.value_and_grad(lambda p: dffl.spo_plus(p, c[0], s))(c[1])
        np.testing.assert_allclose(value, 25.0)
        np.testing.assert_allclose(slope, 2 * (np.array([2.0, 1.0]) - [0.0, 2.0]))
    assert s.variables == ("w[0]", "w[1]", "helper[0]", "helper[1]")


def test_a_client_that_maximises_has_known_costs_in_its_own_sense() -> None:
    # Sell 0..2 units at a predicted price; each needs one unit of material at 3 (a known profit of -3).
    s = MixedInteger(A_eq=[[1.0, -1.0]], b_eq=[0.0], lower=0, upper=[2, 2], helpers=1, known_cost=[-3.0])
    np.testing.assert_array_equal(s.decide([[4.0], [2.0]], maximize=True), [[2, 2], [0, 0]])
    with jax.enable_x64(True):
        np.testing.assert_allclose(dffl.optimal_value(np.array([[4.0], [2.0]]), s, maximize=True), [2.0, 0.0])
        np.testing.assert_allclose(dffl.regret(np.array([[2.0]]), np.array([[4.0]]), s, maximize=True), [2.0])


def test_no_answer_depends_on_what_was_asked_before_or_beside() -> None:
    s, _ = random_set(3)
    model = s._loaded("test").model
    costs = np.random.default_rng(1).normal(size=(60, s.dim))
    first = model.solve(costs)
    np.testing.assert_array_equal(model.solve(costs[::-1])[::-1], first)
    np.testing.assert_array_equal(np.vstack([model.solve(c[None]) for c in costs]), first)
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(model.solve(costs))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for answer in found:
        np.testing.assert_array_equal(answer, first)


def test_stacks_programs_and_pickles() -> None:
    sets = [s for s in (random_set(seed, helpers=2)[0] for seed in range(12)) if s.dim == 3][:2]
    costs = np.random.default_rng(0).normal(size=(2, 5, 5)).astype(np.float32)
    together = stack([s.lifted for s in sets])
    both = np.asarray(jax.jit(together.solve)(costs))
    for s, c, found in zip(sets, costs, both, strict=True):
        np.testing.assert_array_equal(found, s.lifted.solve(c))
        again = pickle.loads(pickle.dumps(s))
        np.testing.assert_array_equal(again.lifted.digest, s.lifted.digest)
        np.testing.assert_array_equal(again.lifted.solve(c), found)


def test_repeated_costs_are_not_solved_again_and_are_counted() -> None:
    s = MixedInteger(A_ub=[[3.0, 5, 7]], b_ub=[9.5], lower=0, upper=[1, 1, 1])
    before = s.calls.asked, s.calls.repeated
    costs = -np.array([[1.0, 2, 3], [3, 2, 1], [1, 2, 3]])
    with jax.enable_x64(True):
        np.testing.assert_array_equal(s.solve(costs), [[0, 0, 1], [1, 1, 0], [0, 0, 1]])
        np.testing.assert_array_equal(s.solve(costs), s.solve(costs))
    assert (s.calls.asked - before[0], s.calls.repeated - before[1]) == (9, 7)


def test_the_memory_of_answers_is_bounded() -> None:
    asked: list[np.ndarray] = []
    calls, kept = Calls(), Remembered(most_bytes=3 * 2 * 8 * 2)  # room for three pairs of two numbers
    solve = lambda rows: (asked.append(rows), 2 * rows)[1]  # noqa: E731
    for row in np.arange(8.0).reshape(4, 2):
        kept.fill(row[None], solve, calls)
    kept.fill(np.array([[6.0, 7.0]]), solve, calls)
    assert (len(asked), calls.repeated) == (4, 1)
    kept.fill(np.array([[0.0, 1.0]]), solve, calls)  # the oldest was forgotten
    assert len(asked) == 5


def test_a_node_limit_is_a_gap_that_is_counted() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(20, 100, size=(2, 14)).astype(float)
    given = {"A_ub": a, "b_ub": 0.4 * a.sum(axis=1), "lower": np.zeros(14), "upper": np.ones(14)}
    exact, cut = MixedInteger(**given), MixedInteger(**given, nodes=1)
    costs = -a.mean(axis=0) - rng.uniform(0, 5, size=(3, 14))
    with jax.enable_x64(True):
        best, found = np.sum(costs * exact.solve(costs), axis=1), np.asarray(cut.solve(costs))
    assert exact.calls.limited == 0
    assert cut.calls.limited > 0
    assert 0 < cut.calls.largest_gap < 1
    assert (a @ found.T <= given["b_ub"][:, None] + 1e-9).all()
    value = np.sum(costs * found, axis=1)
    assert (value >= best - 1e-9).all()
    assert (value - best <= cut.calls.largest_gap * np.abs(value) + 1e-9).all()
    with jax.enable_x64(True):
        np.testing.assert_array_equal(MixedInteger(**given, nodes=1).solve(costs), found)  # the same on every machine


def test_the_relaxation_drops_whole_numbers_alone() -> None:
    s, model = random_set(5)
    polytope = Polytope(
        model["A_ub"], model["b_ub"], lower=model["lower"], upper=model["upper"], helpers=2, known_cost=model["known"][-2:]
    )
    costs = np.random.default_rng(0).normal(size=(10, s.dim))
    with jax.enable_x64(True):
        one, two = dffl.optimal_value(costs, s.relaxed), dffl.optimal_value(costs, polytope)
        np.testing.assert_allclose(one, two, atol=1e-9)
        assert (np.asarray(one) <= np.asarray(dffl.optimal_value(costs, s)) + 1e-9).all()
    assert s.relaxed.convex
    assert not s.convex
    assert s.relaxed.relaxed is not None
    assert polytope.relaxed is polytope


def test_geometry_is_of_the_decisions_without_known_costs() -> None:
    box = {"A_eq": [[1.0, 1, -1]], "b_eq": [0.0], "lower": 0, "upper": [1, 1, 2]}
    plain, known = Polytope(**box, helpers=1), Polytope(**box, helpers=1, known_cost=[100.0])
    unit = dffl.Box(np.zeros(2), np.ones(2))
    for s in (plain, known):
        with jax.enable_x64(True):
            np.testing.assert_allclose(s.support(np.array([[1.0, 1.0], [1, -1]])), [2.0, 1.0])
        assert s.diameter().upper == pytest.approx(np.sqrt(2))
        assert s.largest_norm() == pytest.approx(np.sqrt(2))
        assert dffl.hausdorff(s, unit).upper < 1e-6
    assert dffl.hausdorff(MixedInteger(**box, helpers=1, known_cost=[1.0]), unit).upper < 1e-6  # of the convex hull


REFUSED = {
    "no feasible point: row 'A_ub\\[0\\]', row 'A_ub\\[1\\]'": {"A_ub": [[1.0, 1], [-1, -1]], "b_ub": [1, -3]},
    "column 0 has no lower end; give it a lower bound": {"A_ub": [[1.0, 1]], "b_ub": [1], "lower": None},
    "column 1 has no upper end; give it an upper bound": {"A_ub": [[1.0, 0]], "b_ub": [1], "upper": [1, np.inf]},
    "no feasible point with whole numbers": {"A_eq": [[2.0, 2]], "b_eq": [1]},
    "helpers must be .* fewer than all 2, found 2": {"helpers": 2},
    "helpers must be .* found \\[0, 7\\]": {"helpers": [0, 7]},
    "helpers must name each column once, found column 1 twice": {"helpers": [1, 1]},
    "integer must name each column once, found column 0 twice": {"integer": [0, 1, 0]},
    "nodes must be a whole number from 1 to 2,147,483,647, found 4611686018427387904": {"nodes": 2**62},
    "known_cost must be one number for each of the 1 helpers, or for each of the 2 columns": {
        "helpers": 1,
        "known_cost": [1, 2, 3],
    },
    "known_cost must be finite": {"known_cost": [np.nan, 1]},
    "integer must be True, a mask of 2 values": {"integer": [5]},
    "integer must be True": {"integer": "all"},
    "nodes": {"nodes": 0},
    "seconds": {"seconds": -1},
    "A_ub and b_ub go together": {"A_ub": [[1.0, 1]]},
    "lower must be <= upper": {"lower": [3, 0]},
}


@pytest.mark.parametrize(("message", "given"), REFUSED.items(), ids=range(len(REFUSED)))
def test_bad_input_is_one_clear_line(message: str, given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=message) as found:
        MixedInteger(**({"lower": [0, 0], "upper": [2, 2]} | given))
    assert "\n" not in str(found.value)


def test_unbounded_helpers_are_fine_in_the_sense_in_which_they_cost() -> None:
    s = Polytope(A_eq=[[1.0, 1.0]], b_eq=[3.0], lower=0, upper=[2, np.inf], helpers=1, known_cost=[5.0])
    np.testing.assert_array_equal(s.decide([[1.0], [9.0]]), [[2, 1], [0, 3]])
    free = Polytope(A_ub=[[-1.0, -1.0]], b_ub=[-3.0], lower=0, upper=[2, np.inf], helpers=1, known_cost=[5.0])
    x, c = np.zeros((2, 1)), np.ones((2, 1))
    dffl.Client("buys", x, c, free)
    with pytest.raises(ValueError, match="client 'sells': Polytope: for a client that maximises, its known costs have no end"):
        dffl.Client("sells", x, c, free, maximize=True)
    assert free.lifted.diameter().upper == np.inf


@pytest.mark.parametrize("factor", [1e5, 1e9, 1e10, 1e12])
@pytest.mark.parametrize("earns", [1.0, 8.0])
def test_a_switch_with_a_large_factor_is_paid_for(factor: float, earns: float) -> None:
    # x <= factor * b, where b costs 5: x is worth it if it earns more. The same with b' = 1 - b, which earns 5.
    best = [1.0, 1.0] if earns > 5 else [0.0, 0.0]
    given = {"lower": 0, "upper": [1.0, 1], "integer": [1], "helpers": 1}
    s = MixedInteger([[1.0, -factor]], [0.0], **given, known_cost=[5.0])
    np.testing.assert_array_equal(s.decide([-earns]), best)
    s = MixedInteger([[1.0, factor]], [factor], **given, known_cost=[-5.0])
    np.testing.assert_array_equal(s.decide([-earns]), [best[0], 1 - best[1]])
    # The switch has more than two values.
    s = MixedInteger([[1.0, -factor]], [0.0], **(given | {"upper": [1.0, 3]}), known_cost=[5.0])
    np.testing.assert_array_equal(s.decide([-earns]), best)
    # The end of x is a row, not a bound.
    s = MixedInteger([[1.0, -factor], [1.0, 0]], [0.0, 1], **(given | {"upper": [np.inf, 1]}), known_cost=[5.0])
    np.testing.assert_array_equal(s.decide([-earns]), best)


def test_large_factors_are_made_smaller_and_others_are_left() -> None:
    given = {"lower": [0, -2, 0, 0], "upper": [3, 4, 1, 1], "integer": [2, 3]}
    rows = [[1.0, 1, -1e8, 0], [1, -1, 1e8, 0], [1, 1, -1e8, -1e8], [1, 1, -70, 0], [1, 1, -2e4, 0], [0, 0, 1e8, 1e8]]
    s = MixedInteger(rows, [2.0, 1e8, 0, 0, 0, 1e8], **given)
    changed = s.program
    assert changed is not None
    small = [[1.0, 1, -5, 0], [1, -1, 5, 0], [1, 1, -7, -7], [1, 1, -70, 0], [1, 1, -2e4, 0], [0, 0, 1e8, 1e8]]
    np.testing.assert_array_equal(changed.matrix.toarray(), small)
    np.testing.assert_array_equal(changed.row_upper, [2, 5, 0, 0, 0, 1e8])
    turned = MixedInteger(-np.array(rows), np.full(6, 1e9), **given).program  # rows that say nothing at all
    assert turned is not None
    assert (np.abs(turned.matrix.toarray()[:, :2]) == np.abs(np.array(rows)[:, :2])).all()


def test_unbounded_helpers_of_a_client_that_maximises() -> None:
    given = {"A_ub": [[-1.0, -1, -1]], "b_ub": [-3.0], "lower": 0, "upper": [2, 2, np.inf], "helpers": 1}
    s = MixedInteger(**given, integer=False, known_cost=[-100.0])
    np.testing.assert_array_equal(s.decide([-1.0, -2.0], maximize=True), [2, 1, 0])
    x, c = np.zeros((1, 1)), np.ones((1, 2))
    dffl.Client("sells", x, c, s, maximize=True)
    with pytest.raises(ValueError, match="for a client that minimises, its known costs have no end"):
        dffl.Client("buys", x, c, s)
    text = "max\n - 100 short\nst\n x_1 + x_2 + short >= 3\nbounds\n x_1 <= 2\n x_2 <= 2\nend\n"
    file = dffl.ModelFile(text=text, format="lp", predicted="x_*")
    np.testing.assert_array_equal(file.decide([-1.0, -2.0], maximize=True), [2, 1, 0])
    for wrong in (text.replace("max", "min"), text.replace("- 100", "100")):
        with pytest.raises(ValueError, match="its objective has no end"):
            dffl.ModelFile(text=wrong, format="lp", predicted="x_*")
    both = [[1.0, 0, 0, 0]]  # one helper without an end costs, and one earns: there is no end in either sense
    with pytest.raises(ValueError, match="its objective has no end"):
        MixedInteger(both, [3.0], lower=0, upper=[2, 2, np.inf, np.inf], integer=False, helpers=2, known_cost=[1.0, -2.0])


@pytest.mark.parametrize(
    ("given", "cost", "best"),
    [
        # Bounds of whole numbers that are not whole: HiGHS misses the best answer.
        (
            {
                "A_ub": [[0.0, -1, 4], [4, 2, -1]], "b_ub": [2.5, 14.0],
                "lower": [0.4, -1.8, -1.5], "upper": [4.7, 2.5, 1.8],
            },
            [-0.6, -0.1, 1.4],
            [3.0, 0, -1],
        ),
        # Large whole numbers, on which HiGHS misses the best answer with small tolerances.
        (
            {
                "A_ub": [[3e3, 4e3, -1e3, 1e3, 4e3, -3e3, 2e3]], "b_ub": [18e3],
                "A_eq": [[-1.0, -1, 1, -1, -1, 0, 2]], "b_eq": [108.0],
                "lower": [0.0, -4, 0, -4, 0, 0, 0], "upper": [1.0, 96, 1e6, 96, 1e6, 3, 100],
            },
            [36.0, -23, 16, 24, 0, 0, 0],
            [0.0, -3, 29, -4, 0, 3, 36],
        ),
        (
            {
                "A_ub": [[-1.0, 2, -1, 2, 2], [3, -2, -2, 2, -3], [-1, 0, 2, 2, 4], [2, -4, 4, 3, -1]],
                "b_ub": [4.0, 6, 4.5, 7], "A_eq": [[1.0, -1, -1, 1, 2]], "b_eq": [-1e6],
                "lower": [0.0, 0, 0, 0, -1e6], "upper": [1e6, 1e6, 1e6, 1, 0],
            },
            [0.0, 0, 0, -1, -2],
            [2.0, 333336, 285718, 0, -190474],
        ),
    ],
)  # fmt: skip
def test_bounds_of_whole_numbers_may_be_large_or_not_whole(given: dict, cost: list[float], best: list[float]) -> None:
    c = np.array(cost)
    assert c @ MixedInteger(**given).decide(c) <= c @ np.array(best) + 1e-9


@pytest.mark.parametrize("penalty", [10.0, 1e6, 1e7, 1e8, 1e9])
def test_a_penalty_that_must_be_paid_costs_no_digits_of_a_regret(penalty: float) -> None:
    # w + v >= 1, where v costs 1.5; u >= 1.5 is paid for in any case. At c = 1, deciding by 2 costs 1.5 and not 1.
    s = dffl.MixedInteger(
        A_ub=[[-1.0, -1, 0], [0, 0, -1]], b_ub=[-1.0, -1.5], lower=[0, 0, 0], upper=[1, 1, 9], integer=[False] * 3,
        helpers=2, known_cost=[1.5, penalty],
    )  # fmt: skip
    assert float(dffl.regret([2.0], [1.0], s)) == 0.5
    assert float(dffl.spo_plus([2.0], [1.0], s)) == 1.5
    client = dffl.Client("a", [[0.0], [1.0]], [[1.0], [1.2]], s)
    judged = Regret()(client.completed(np.full((2, 1), 2.0)), table_rows(client), client.oracle, None)
    np.testing.assert_allclose(judged, [0.5, 0.3], rtol=1e-5)


def table_rows(client: dffl.Client) -> Rows:
    """A client's samples as training sees them, in single precision."""
    c, w_star = client.completed(client.c), optima([client])[0]
    return Rows.cut(jnp.asarray(np.hstack([client.x, c, w_star]), jnp.float32), 1, client.oracle.dim)


def test_a_set_as_small_as_the_solvers_tolerance_is_refused() -> None:
    small = {"A_ub": [[1.0, 2, 1.5], [2, 1, 1]], "A_eq": [[1.0, 1, 1]], "lower": np.zeros(3)}
    for size, answer in ((1e-7, True), (1e-10, False)):
        given = small | {"b_ub": size * np.array([3.0, 4]), "b_eq": [1.5 * size], "upper": size * np.ones(3)}
        for kind in (Polytope, lambda **given: MixedInteger(**given, integer=[False] * 3)):
            if answer:
                assert kind(**given).decide([-0.9, 0.1, 0.1]).sum() == pytest.approx(1.5 * size, rel=1e-3)
            else:
                with pytest.raises(ValueError, match="right-hand sides and bounds are below 1e-08 in size, found 4e-10"):
                    kind(**given)
