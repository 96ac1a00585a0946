"""Rows whose coefficients differ by many powers of ten: compared with all whole numbers listed and the rest in fractions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.sets import MixedInteger, Polytope, _solving, _wide_rows
from dffl.sets._calls import CallLimits
from tests.sets import exact

MPS = """NAME plant
ROWS
 N cost
 L cap
COLUMNS
 x_1 cap {0}
 x_2 cap {1}
RHS
 RHS cap {0}
BOUNDS
 UP B x_1 1
 UP B x_2 {2}
ENDATA
"""


@pytest.mark.parametrize("row", [[2e9, 1.0], [1.0, 5e-10], [1e6, 1e-4], [1e9, 1.0]])
def test_a_small_coefficient_counts_as_much_as_a_large_one(row: list[float]) -> None:
    end = row[0] / row[1]
    given: dict[str, Any] = {"A_ub": [row], "b_ub": [row[0]], "lower": [0, 0], "upper": [1, end]}
    sets = [Polytope(**given), MixedInteger(**given, integer=[0])]
    if min(row) > 1e-9:
        sets.append(dffl.ModelFile(text=MPS.format(*row, end), format="mps", predicted="x_*"))
    for s in sets:
        np.testing.assert_allclose(s.decide([-1.0, -1.5 / end]), [0, end], rtol=1e-9)
        np.testing.assert_allclose(s.decide([-1.0, -0.5 / end]), [1, 0], rtol=1e-9)
        np.testing.assert_array_equal(s.contains([[1.0, 0.0], [0.0, end], [1.0, end], [1.0, 1e-3 * end]]), [1, 1, 0, 0])
        assert s.calls.unproven == 0
    with_helper = Polytope(**given, helpers=[1], known_cost=[-1.5 / end])
    np.testing.assert_allclose(with_helper.decide([[-1.0], [-2.0]]), [[0, end], [1, 0]], rtol=1e-9)
    np.testing.assert_array_equal(with_helper.contains([[0.5], [1.0], [1.1]]), [1, 1, 0])


def test_a_set_with_points_is_not_called_empty() -> None:
    s = Polytope([[-1.0, -(2.0**-31)]], [-3.0], lower=[0, 0], upper=[1, 2.0**34], helpers=1, known_cost=[1.0])
    np.testing.assert_allclose(s.decide([1.0]), [1, 2.0**32], rtol=1e-12)
    with pytest.raises(ValueError, match="no feasible point"):
        Polytope([[-1.0, -(2.0**-31)]], [-3.0], lower=[0, 0], upper=[1, 2.0**31], helpers=1, known_cost=[1.0])


@pytest.mark.parametrize("largest", [1e6, 1e8, 1e9, 1e10])
@pytest.mark.parametrize("end", [np.inf, 1e6])
def test_a_helper_without_an_end_does_not_pass_its_switch(largest: float, end: float) -> None:
    # Buy w at 50, or make p at 1 where the switch is on, which costs 100, or 10.
    for fixed, best in ((100.0, [1, 0, 0]), (10.0, [0, 1, 1])):
        given: dict[str, Any] = {"lower": 0.0, "upper": [2, end, 1], "integer": [2], "helpers": 2}
        s = MixedInteger([[-1, -1, 0], [0, 1, -largest]], [-1, 0], **given, known_cost=[1, fixed])
        np.testing.assert_allclose(s.decide([50.0]), best, atol=1e-9)
        assert s.calls.unproven == 0
        np.testing.assert_array_equal(s.contains([[0.0], [1.0], [3.0]]), [1, 1, 0])


def test_switches_that_begin_at_1_or_work_together() -> None:
    s = MixedInteger([[1, -1e9]], [-1e9], lower=[0, 1], upper=[1, 2], integer=[1], helpers=1, known_cost=[5.0])
    np.testing.assert_array_equal(s.decide([[-1.0], [-6.0]]), [[0, 1], [1, 2]])
    s = MixedInteger([[1, -1e9, 1e9]], [0], lower=0, upper=np.ones(3), integer=[1, 2], helpers=2, known_cost=[5.0, 0.0])
    np.testing.assert_array_equal(s.decide([[-1.0], [-6.0]]), [[0, 0, 0], [1, 1, 0]])
    s = MixedInteger([[1e10, 1]], [1e10 + 3], lower=0, upper=[2, 5])
    np.testing.assert_array_equal(s.decide([[-10.0, -1.0], [-1.0, -1.0], [-1.0, -9.0]]), [[1, 3], [0, 5], [0, 5]])
    # The factors range over 1e4 only, and the terms over 1e9.
    s = MixedInteger([[1e5, -1e9]], [0], lower=0, upper=[1e-5, 1], integer=[1], helpers=1, known_cost=[5.0])
    np.testing.assert_array_equal(s.decide([[-1e5], [-6e5]]), [[0, 0], [1e-5, 1]])


def test_a_row_that_is_too_wide_is_refused_by_its_name() -> None:
    fix = "measure its variables in other units, or choose a smaller big-M"
    line = r"Polytope: row 'A_ub\[1\]' cannot be solved: its coefficients range from 2 to 4e\+25 in size; " + fix
    for helpers in (0, 1):
        with pytest.raises(ValueError, match=line):
            Polytope([[1, 1], [4e25, 2]], [1, 4e25], lower=0, upper=[1, 1], helpers=helpers)
    with pytest.raises(
        ValueError, match=r"MixedInteger: row 'A_eq\[0\]' cannot be solved: .* from 1 to 1e\+11 in size; " + fix
    ):
        MixedInteger(A_eq=[[1e11, 1]], b_eq=[1e11], lower=0, upper=[1, 1])
    text = "min\n x_1 + x_2\nst\n link: 1e11 x_1 - x_2 = 0\nbounds\n x_1 <= 1\n x_2 <= 1\ngen\n x_1 x_2\nend\n"
    with pytest.raises(
        ValueError, match=r"ModelFile model.lp: row 'link' cannot be solved: .* from 1 to 1e\+11 in size; " + fix
    ):
        dffl.ModelFile(text=text, format="lp", predicted="x_*")


def test_an_answer_that_breaks_a_row_counts_as_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"A_ub": [[2e9, 1.0]], "b_ub": [2e9], "lower": [0, 0], "upper": [1, 2e9]}
    sets = [Polytope(**given), Polytope(**given, helpers=1), MixedInteger(**given, integer=[0])]
    monkeypatch.setattr(_solving.ProgramModel, "_breaks", lambda *_: True)
    for s in sets:
        with pytest.warns(UserWarning, match="not proven to be the best") as said, CallLimits({"south": s.calls}, "decisions"):
            s.decide(np.full(s.dim, -1.0))
        assert len(said) == 1
        assert s.calls.unproven == 1


def test_nothing_changes_where_coefficients_range_over_less(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(_solving, "RowCheck", never)
    monkeypatch.setattr(_wide_rows.Program, "in_units", never)
    for smallest, wide in ((1.1e-6, False), (0.9e-6, True)):
        given: dict[str, Any] = {"A_ub": [[1.0, smallest]], "b_ub": [1.0], "lower": 0, "upper": [1, 1]}
        for make in (lambda g: Polytope(**g), lambda g: Polytope(**g, helpers=1), lambda g: MixedInteger(**g, integer=[0])):
            if wide:
                with pytest.raises(AssertionError):
                    make(given)
            else:
                make(given)


def program(seed: int) -> dict[str, np.ndarray]:
    """Rows of random numbers in units that differ by up to 1e11, with switches that are far too large."""
    rng = np.random.default_rng(seed)
    d, count = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    a = np.round(16 * rng.normal(size=(count, d))) / 16 * (rng.random((count, d)) < 0.8)
    upper = rng.integers(1, 4, d).astype(float)
    b = np.round(16 * (a @ (upper * rng.random(d)))) / 16 + 0.5
    whole = rng.random(d) < 0.4
    if seed % 2 and whole.any() and not whole.all():  # x <= M b for one of each
        switch, other = np.flatnonzero(whole)[0], np.flatnonzero(~whole)[0]
        row = np.zeros(d)
        row[other], row[switch] = 1.0, -(10.0 ** rng.integers(6, 11))
        a, b, upper[switch] = np.vstack([a, row]), np.append(b, 0.0), 1.0
    unit = np.where(whole, 1.0, 2.0 ** rng.integers(-18, 19, d))
    return {"a_ub": a * unit, "b_ub": b, "lower": np.zeros(d), "upper": upper / unit, "whole": whole, "unit": unit}


def judged(seeds: range) -> Counter[str]:
    """How many answers are right, wrong, and without a proof."""
    count: Counter[str] = Counter()
    for seed in seeds:
        p = program(seed)
        unit = p.pop("unit")
        costs = np.round(np.random.default_rng(seed).normal(size=p["upper"].size), 2) * unit
        best = exact.optimum(costs, **p)
        given: dict[str, Any] = {"A_ub": p["a_ub"], "b_ub": p["b_ub"], "lower": p["lower"], "upper": p["upper"]}
        try:
            s = MixedInteger(**given, integer=p["whole"]) if p["whole"].any() else Polytope(**given)
        except ValueError as error:
            count["empty" if best is None else "REFUSED: " + str(error)] += 1
            continue
        assert best is not None, seed
        v = s.decide(costs)
        terms = np.abs(p["a_ub"]) @ np.abs(v) + np.abs(p["b_ub"])
        broken = (p["a_ub"] @ v - p["b_ub"] > 1e-6 * terms).any() or (np.maximum(-v, v - p["upper"]) > 1e-9 / unit).any()
        off = abs(float(exact.cost(costs, v) - best))
        right = not broken and off <= 1e-6 * max(1.0, float(np.abs(costs) @ np.abs(v)))
        count["right" if right else "wrong, said so" if s.calls.unproven else f"WRONG IN SILENCE {seed}"] += 1
        count["unproven"] += s.calls.unproven > 0
        count["wide"] += (np.ptp(np.log10(np.abs(p["a_ub"][p["a_ub"] != 0]))) if p["a_ub"].any() else 0.0) >= 6
    return count


def test_answers_are_right_in_units_that_differ_by_up_to_1e11() -> None:
    count = judged(range(40))
    assert set(count) <= {"right", "empty", "wide", "unproven"}, count
    assert count["wide"] >= 20, count
    assert count["unproven"] <= 1, count


@pytest.mark.slow
def test_1000_programs_in_units_that_differ_by_up_to_1e11() -> None:
    count = judged(range(1000))
    print(dict(count))
    assert set(count) <= {"right", "empty", "wide", "unproven"}, count
    assert count["unproven"] <= 10, count
