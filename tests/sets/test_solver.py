"""Any function as a set: what it may answer, what is refused and in which words, and how it trains and is saved."""

from __future__ import annotations

import itertools
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import dffl
from dffl.sets import FeasibleSet, _host, solver, stack

from ..federations import client
from . import solvers
from .solvers import MARK, D, cheapest

COSTS = np.random.default_rng(0).normal(size=(11, D)).astype(np.float32)
EXPECTED = np.array([cheapest(c) for c in COSTS])
MARKED = COSTS.copy()
MARKED[7, 0] = MARK + 1
SIMPLEX = dffl.Polytope(A_eq=np.ones((1, D)), b_eq=[1.0], lower=np.zeros(D))
INSIDE: dict[str, Any] = {
    "nothing": None,
    "function": lambda w: bool(abs(w.sum() - 1) < 1e-9),
    "a set in JAX": dffl.Simplex(D),
    "a set on the host": SIMPLEX,
}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("processes", [0, 2])
def test_it_answers_alone_in_programs_and_in_stacks(inside: str, processes: int) -> None:
    s = dffl.Solver(cheapest, D, INSIDE[inside], processes=processes)
    assert (s.dim, s.batch_shape, s.convex, s.on_host, s.name) == (D, (), False, True, "cheapest")
    for solve in (s.solve, jax.jit(s.solve), jax.vmap(s.solve), jax.jit(jax.vmap(s.solve))):
        np.testing.assert_array_equal(solve(COSTS), EXPECTED)
    both = stack([s, dffl.Solver(lambda c: 1 - cheapest(-c), D, name="other")] if inside == "nothing" else [s, s])
    answers = both.solve(np.stack([COSTS, COSTS]))
    np.testing.assert_array_equal(answers[0], EXPECTED)
    np.testing.assert_array_equal(answers[1], [1 - cheapest(-c) for c in COSTS] if inside == "nothing" else EXPECTED)
    np.testing.assert_array_equal(s.contains([EXPECTED[0], 2 * EXPECTED[0]]), [True, inside == "nothing"])
    with jax.enable_x64(True):
        np.testing.assert_array_equal(s.solve(COSTS.astype(float)), EXPECTED)
    assert s.diameter().lower == pytest.approx(np.sqrt(2))
    rows = np.stack([COSTS[0], np.full(D, np.nan)])
    assert np.isnan(s.solve(rows)).all(axis=-1).tolist() == [False, True]


def test_a_batched_function_gets_all_rows_at_once() -> None:
    asked: list[tuple[int, ...]] = []

    def solve(c: np.ndarray) -> np.ndarray:
        asked.append(c.shape)
        return solvers.all_cheapest(c)

    s = dffl.Solver(solve, D, lambda w: np.isclose(w.sum(axis=1), 1), batched=True)
    np.testing.assert_array_equal(s.solve(COSTS), EXPECTED)
    assert asked == [(1, D), COSTS.shape]
    assert not s.contains(np.ones(D))


def test_answers_may_be_of_any_kind_of_numbers_and_costs_may_be_written_into() -> None:
    def spoils(c: np.ndarray) -> list[int]:
        best = [int(v) for v in cheapest(c)]
        c[:] = np.nan
        return best

    np.testing.assert_array_equal(dffl.Solver(spoils, D).solve(COSTS), EXPECTED)
    np.testing.assert_array_equal(dffl.Solver(lambda c: cheapest(c) > 0, D, name="a").solve(COSTS), EXPECTED)
    kept = np.zeros(D)

    def reuses(c: np.ndarray) -> np.ndarray:
        kept[:] = cheapest(c)
        return kept

    np.testing.assert_array_equal(dffl.Solver(reuses, D).solve(COSTS), EXPECTED)


BAD: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "shape": (lambda c: c[:2], r"its answer must be 4 numbers, found shape \(2,\)"),
    "table": (lambda c: c[None], r"its answer must be 4 numbers, found shape \(1, 4\)"),
    "None": (lambda c: None, "its answer must be 4 numbers, found None"),
    "text": (lambda c: "abcd", "its answer must be 4 numbers, found str 'abcd'"),
    "complex": (lambda c: c * 1j, "its answer must be 4 numbers, found ndarray .*"),
    "solution and objective": (lambda c: (cheapest(c), 1.0), r"its answer must be 4 numbers, found \(array.*"),
    "NaN": (lambda c: np.full(D, np.nan), "its answer must be finite, found nan"),
    "infinite": (lambda c: np.full(D, np.inf), "its answer must be finite, found inf"),
    "infeasible": (np.ones_like, r"its answer must be feasible, found that contains is False for \[1., 1., 1., 1.\]"),
    "raises": (lambda c: 1 / 0, "ZeroDivisionError: division by zero"),
    "leaves": (lambda c: sys.exit(3), "SystemExit: 3"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("inside", ["function", "a set in JAX", "a set on the host"])
def test_a_bad_answer_is_refused_when_the_set_is_built_and_later(kind: str, inside: str) -> None:
    answer, words = BAD[kind]
    with pytest.raises(ValueError, match=f"^solver 'bad': row 0: {words}$"):
        dffl.Solver(answer, D, INSIDE[inside], name="bad")

    def bad(c: np.ndarray) -> Any:
        return answer(c) if c[0] > MARK else cheapest(c)

    s = dffl.Solver(bad, D, INSIDE[inside])
    for solve in (s.solve, s.solve, lambda c: stack([s, s]).solve(np.stack([COSTS, c]))):
        np.testing.assert_array_equal(np.reshape(solve(COSTS), (-1, D))[-11:], EXPECTED)
        with pytest.raises(ValueError, match=f"^solver 'bad': row 7: {words}$"):
            solve(MARKED)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda c: c[:, :2], r"rows 0 to 10: its answer must be a table of numbers of shape \(11, 4\), found shape \(11, 2\)"),
        (lambda c: 1 / 0, "rows 0 to 10: ZeroDivisionError: division by zero"),
        (lambda c: np.where(c > MARK, np.nan, 0), "row 7: its answer must be finite, found nan"),
        (lambda c: np.where(c > MARK, 5.0, 0), r"row 7: its answer must be feasible, .* for \[5., 0., 0., 0.\]"),
    ],
)
def test_a_bad_table_is_refused(answer: Callable[[np.ndarray], Any], words: str) -> None:
    def bad(c: np.ndarray) -> Any:
        return answer(c) if (c > MARK).any() else 0 * c

    with pytest.raises(ValueError, match=f"^solver 'bad': {words}$"):
        dffl.Solver(bad, D, lambda w: w.sum(axis=1) < 1, batched=True).solve(MARKED)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (lambda w: None, r"contains must answer True or False, found array\(None, dtype=object\)"),
        (lambda w: w > 0, r"contains must answer True or False, found array\(\[.*"),
        (lambda w: 1 / 0, "contains: ZeroDivisionError: division by zero"),
    ],
)
def test_a_bad_contains_is_refused(inside: Callable[[np.ndarray], Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^solver 'cheapest': row 0: {words}$"):
        dffl.Solver(cheapest, D, inside)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"function": 3}, "Solver: function must be callable, found int; give a function of costs that returns a minimiser"),
        ({"dim": 0}, "solver 'cheapest': dim must be a whole number >= 1, found 0"),
        ({"name": "a\nb"}, r"Solver: name must be a text of printable characters, found 'a\\nb'"),
        ({"name": ""}, "Solver: name must be a text of printable characters, found ''"),
        ({"batched": 1}, "solver 'cheapest': batched must be True or False, found 1"),
        ({"processes": -1}, "solver 'cheapest': processes must be a whole number >= 0, found -1"),
        ({"processes": 1.5}, "solver 'cheapest': processes must be a whole number >= 0, found 1.5"),
        ({"seconds": 0}, "solver 'cheapest': seconds must be a number > 0, found 0"),
        ({"contains": 5}, "solver 'cheapest': contains must be callable, found int; give a function of w, .*"),
        (
            {"contains": dffl.Simplex(D + 1)},
            "solver 'cheapest': contains must be a single set of 4 decisions, found S.*",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        dffl.Solver(**({"function": cheapest, "dim": D} | arguments))


def test_functions_are_told_apart_and_one_function_has_one_model() -> None:
    def made(k: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda c: k * cheapest(c)

    one, two = (dffl.Solver(made(k), D, name="same") for k in (1, 2))
    assert one != two
    np.testing.assert_array_equal(two.solve(COSTS), 2 * EXPECTED)
    np.testing.assert_array_equal(one.solve(COSTS), EXPECTED)
    again = dffl.Solver(cheapest, D)
    assert again == dffl.Solver(cheapest, D)
    assert again._held.models == dffl.Solver(cheapest, D)._held.models
    assert again != dffl.Solver(cheapest, D, name="other")
    assert repr(again) == "Solver('cheapest', dim=4)"
    assert FeasibleSet.families["Solver"] is dffl.Solver


def test_it_is_pickled_with_its_function_or_refused() -> None:
    for s in (
        dffl.Solver(cheapest, D, SIMPLEX, name="mine", seconds=5),
        dffl.Solver(solvers.all_cheapest, D, batched=True),
        dffl.Solver(cheapest, D, processes=1),
        stack([dffl.Solver(cheapest, D)] * 2),
    ):
        other = pickle.loads(pickle.dumps(s))
        assert other == s
        assert repr(other) == repr(s)
    for bad in (dffl.Solver(lambda c: cheapest(c), D, name="mine"), dffl.Solver(cheapest, D, lambda w: True, name="mine")):
        with pytest.raises(ValueError, match=r"^solver 'mine': it cannot be sent to another process; define it at the top .*$"):
            pickle.dumps(bad)


# In training.


def federation(*sets: FeasibleSet) -> dffl.Federation:
    return dffl.Federation([client(f"c{k}", s, 9 + k, maximize=k == 1) for k, s in enumerate(sets)])


@pytest.mark.parametrize("engine", ["vector", "loop"])
def test_an_error_in_training_is_one_line_that_names_client_and_solver(engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    # 1 call when it is built, 10 for the best decisions: the next ones are of the training.
    good, bad = dffl.Solver(cheapest, D), dffl.Solver(solvers.FailsAfter(35), D, name="mine")
    with pytest.raises(ValueError, match=r"^client 'c1': solver 'mine': row \d+: RuntimeError: licence lost$") as caught:
        dffl.fit(federation(good, bad), "fedavg", rounds=50, engine=engine)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("engine", ["vector", "loop"])
def test_row_7_of_a_batch_is_named_inside_a_training_program(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    rows = itertools.count()
    solve = solver._Model.solve

    def begins(model: solver._Model, costs: np.ndarray) -> np.ndarray:
        nonlocal rows
        rows = itertools.count()
        sizes.append(len(costs))
        return solve(model, costs)

    def mine(c: np.ndarray) -> np.ndarray:
        if next(rows) == 7 and len(sizes) == 6:  # it was built, has found the best decisions, and trains
            raise RuntimeError("no more")
        return cheapest(c)

    monkeypatch.setattr(solver._Model, "solve", begins)
    with pytest.raises(ValueError, match=r"^client 'c0': solver 'mine': row 7: RuntimeError: no more$"):
        dffl.fit(federation(dffl.Solver(mine, D)), "fedavg", rounds=5, batch_size=9, engine=engine)
    assert len(sizes) == 6


@pytest.mark.filterwarnings("ignore:.*clients share rows")
def test_the_client_and_the_sample_are_named_also_where_clients_share_a_set() -> None:
    s = dffl.Solver(solvers.raises, D)
    fit = dffl.fit(federation(s, s), "fedavg", rounds=1)
    high = client("c0", s, 5)
    wrong = dffl.Client("c0", high.x, high.c + 2 * MARK, s)
    with pytest.raises(ValueError, match=r"^client 'c0', sample 0: solver 'raises': RuntimeError: no such plan$"):
        _ = wrong.w_star
    both = [wrong, dffl.Client("c1", high.x, high.c + 2 * MARK, s)]
    with pytest.raises(ValueError, match=r"^client 'c0', sample 0: solver 'raises': RuntimeError: no such plan$"):
        dffl.fit(dffl.Federation(both), "fedavg", rounds=1)
    with pytest.raises(ValueError, match=r"^client 'c0', sample 0: solver 'raises': RuntimeError: no such plan$"):
        fit.evaluate(dffl.Federation([wrong]))


def test_a_process_that_ends_or_hangs_in_training_is_named() -> None:
    def marked(s: dffl.Solver) -> dffl.Federation:
        plain = client("c0", s, 9)
        costs = plain.c.copy()
        costs[5, 0] = MARK + 1
        return dffl.Federation([dffl.Client("c0", plain.x, costs, s)])

    with pytest.raises(ValueError, match=r"^client 'c0': solver 'exits': row 5: its process ended \(exit code 7\), as it did"):
        dffl.fit(marked(dffl.Solver(solvers.exits, D, processes=1)), "fedavg", rounds=1)
    with pytest.raises(ValueError, match=r"^client 'c0': solver 'hangs': row 5: its process gave no answer within 0.3 seconds"):
        dffl.fit(marked(dffl.Solver(solvers.hangs, D, processes=1, seconds=0.3)), "fedavg", rounds=1)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, 1, 2])
def test_it_trains_as_a_polytope_of_the_same_answers(processes: int) -> None:
    wanted = dffl.fit(federation(SIMPLEX, SIMPLEX), "interp-spo", rounds=2)
    s = dffl.Solver(cheapest, D, SIMPLEX, processes=processes)
    found = dffl.fit(federation(s, s), "interp-spo", rounds=2)
    for name in ("c0", "c1"):
        x = np.random.default_rng(1).normal(size=(6, 3))
        np.testing.assert_array_equal(found.predict(name, x), wanted.predict(name, x))
        np.testing.assert_array_equal(found.decide(name, x), wanted.decide(name, x))


def test_a_lambda_is_not_sent_to_another_process() -> None:
    s = dffl.Solver(lambda c: cheapest(c), D, name="mine")
    with pytest.raises(ValueError, match="solver 'mine': it cannot be sent to another process; define it at the top"):
        pickle.dumps(s)


def test_losses_that_smooth_are_refused_before_anything_trains() -> None:
    with pytest.raises(ValueError, match="Solver: it cannot project onto itself, since its function only minimises"):
        dffl.fit(federation(dffl.Solver(cheapest, D)), "fedavg", rounds=1, loss="rspo+")


# On disk.


def test_a_fit_is_saved_by_name_and_loaded_with_the_solver(tmp_path: Path) -> None:
    def mine(c: np.ndarray) -> np.ndarray:
        return cheapest(c)

    s, path = dffl.Solver(mine, D, SIMPLEX), tmp_path / "fit.dffl"
    fit = dffl.fit(federation(s, s), "mean-cost")
    fit.save(path)
    content = path.read_bytes()
    assert b"__code__" not in content
    assert b"pickle" not in content
    words = f"^{path}: it needs the solver 'mine', whose code is not in the file; hand it in: load\\(path, solvers={{'mine': "
    for given in (None, {}, {"other": mine}):
        with pytest.raises(ValueError, match=words):
            dffl.load(path, solvers=given)
    x = np.zeros((2, 3))
    for given in (mine, s):
        loaded = dffl.load(path, solvers={"mine": given})
        np.testing.assert_array_equal(loaded.decide("c1", x), fit.decide("c1", x))
        assert loaded.members["c0"].set == loaded.members["c1"].set
    assert loaded.members["c0"].set == s
    loaded.save(tmp_path / "again.dffl")
    assert (tmp_path / "again.dffl").read_bytes() == content
    for bad, found in (
        (3, "solvers: 'mine' must be a function, a dffl.Solver or a model of PyEPO, found 3"),
        (dict, "solvers: 'mine' must be a function, .*, found <class 'dict'>"),
        (dffl.Solver(cheapest, D + 1), r"solvers: 'mine' must have 4 decisions, found Solver\('cheapest', dim=5\)"),
        (lambda c: None, "solver 'mine': row 0: its answer must be 4 numbers, found None"),
    ):
        with pytest.raises(ValueError, match=f"^{path}: {found}$"):
            dffl.load(path, solvers={"mine": bad})


def test_two_functions_of_one_name_cannot_be_saved(tmp_path: Path) -> None:
    sets = [dffl.Solver(lambda c, k=k: k * cheapest(c), D, name="mine") for k in (1.0, 2.0)]
    fit = dffl.fit(federation(*sets), "mean-cost")
    with pytest.raises(ValueError, match="cannot save: two different solvers are named 'mine'; give each its own name="):
        fit.save(tmp_path / "fit.dffl")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_kept_of_a_function_that_is_gone() -> None:
    import gc
    import weakref

    def mine(c: np.ndarray) -> np.ndarray:
        if c[0] > MARK:
            raise RuntimeError
        return cheapest(c)

    s = dffl.Solver(mine, D)
    with pytest.raises(ValueError, match="row 7: RuntimeError"):
        s.solve(MARKED)
    with pytest.raises(RuntimeError, match="solver 'mine': row 7: RuntimeError"):  # a program of the user's own
        jax.jit(lambda c, s=s: s.solve(c))(MARKED)
    gone = weakref.ref(mine)
    del s, mine
    gc.collect()
    _host._late.clear()
    gc.collect()
    assert gone() is None


def test_the_sample_is_named_whatever_was_asked_with_it() -> None:
    s = dffl.Solver(solvers.raises, D, name="once more")
    rng = np.random.default_rng(0)
    c = rng.uniform(1, 2, size=(400, D))  # several blocks of rows
    c[:50] = c[50:100]  # rows that are answered before
    c[333] += 2 * MARK
    with pytest.raises(ValueError, match=r"^client 'a', sample 333: solver 'once more': RuntimeError: no such plan$"):
        dffl.fit(
            dffl.Federation([dffl.Client("a", rng.normal(size=(400, 2)), c, s)]),
            "fedavg",
            rounds=1,
            split="draw",
            progress=False,
        )
    with pytest.raises(ValueError, match=r"^solver 'once more': row 283: RuntimeError: no such plan$"):
        s.solve(c[50:].astype(np.float32))


@pytest.mark.filterwarnings("ignore:.*clients share rows")
def test_an_error_beside_a_knapsack_that_is_asked_on_the_host() -> None:
    rng, asked = np.random.default_rng(0), itertools.count()

    def failing(c: np.ndarray) -> np.ndarray:
        if next(asked) > 30:
            raise RuntimeError("no more")
        return (c < 0).astype(float)

    x, c = rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    odd = dffl.ZeroOneKnapsack([1.234567, 2.345678, 0.7654321], 2.5)
    federation = dffl.Federation([dffl.Client("a", x, c, odd), dffl.Client("b", x, c, dffl.Solver(failing, 3))])
    with pytest.raises(ValueError, match=r"^client 'b'.*: solver 'failing': .*RuntimeError: no more$"):
        dffl.fit(federation, "fedavg", rounds=2)


def test_a_solver_that_its_own_answers_refute_is_named(recwarn: pytest.WarningsRecorder) -> None:
    rng = np.random.default_rng(0)
    x, c = rng.normal(size=(20, 2)), rng.uniform(1, 9, size=(20, 3))
    for name, choose in (("dearest", np.argmax), ("cheapest", np.argmin)):
        s = dffl.Solver(lambda costs, choose=choose: np.eye(3)[choose(costs)], 3, name=name)
        federation = dffl.Federation([dffl.Client("a", x, c, s)])
        dffl.fit(federation, "mean-cost").evaluate(federation)
    said = [str(warning.message) for warning in recwarn]
    assert len(said) == 1
    assert re.match(
        r"client 'a': solver 'dearest': at \d+ of 20 samples another of its answers costs less than the one", said[0]
    )
