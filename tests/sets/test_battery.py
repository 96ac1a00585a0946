"""The battery: against a program written in another way, by hand, and where prices are negative."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

import dffl
from dffl.sets import Battery


def by_scipy(prices: np.ndarray, hours: int, exclusive: bool, **own: float) -> float:
    """Charge, discharge and a switch for each hour; the level is a running sum. Known wear included, load excluded."""
    way, eye, none = np.sqrt(own["efficiency"]), np.eye(hours), np.zeros((hours, hours))
    running = np.tril(np.ones((hours, hours)))
    level = np.hstack([way * running, -running / way, none])
    rows = [LinearConstraint(level, -own["initial"], own["capacity"] - own["initial"])]
    rows += [LinearConstraint(level[-1:], own["final"] - own["initial"], np.inf)]
    if exclusive:
        rows += [LinearConstraint(np.hstack([eye, none, -own["charge"] * eye]), -np.inf, 0)]
        rows += [LinearConstraint(np.hstack([none, eye, own["discharge"] * eye]), -np.inf, own["discharge"])]
    upper = np.repeat([own["charge"], own["discharge"], 1.0], hours)
    cost = np.concatenate([prices, own["wear"] - prices, np.zeros(hours)])
    whole = np.repeat([0, 0, 1 if exclusive else 0], hours)
    found = milp(cost, integrality=whole, bounds=(0, upper), constraints=rows, options={"mip_rel_gap": 0})
    assert found.success
    return float(found.fun)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.booleans(), st.floats(0.5, 1.0), st.sampled_from([0.0, 2.5]))
def test_another_formulation_agrees(seed: int, hours: int, exclusive: bool, efficiency: float, wear: float) -> None:
    rng = np.random.default_rng(seed)
    own = {
        "capacity": 4.0,
        "charge": 1.5,
        "discharge": 1.0,
        "efficiency": efficiency,
        "initial": 1.0,
        "final": 0.5,
        "wear": wear,
    }
    s = Battery(hours, **own, exclusive=exclusive)
    prices = rng.normal(10, 20, size=(3, hours))  # some are negative
    with jax.enable_x64(True):
        values = np.asarray(dffl.optimal_value(prices, s))
        assert np.asarray(s.contains(np.asarray(s.solve(prices)))).all()
    for c, value, all_of_it in zip(prices, values, s.decide(prices), strict=True):
        assert value == pytest.approx(by_scipy(c, hours, exclusive, **own), abs=1e-4)
        purchase, discharge, level = np.split(all_of_it, 4 if exclusive else 3)[:3]
        charge = purchase + discharge
        assert (charge >= -1e-7).all()
        np.testing.assert_allclose(
            np.diff(level, prepend=1.0), np.sqrt(efficiency) * charge - discharge / np.sqrt(efficiency), atol=1e-7
        )
        if exclusive:
            assert (np.minimum(charge, discharge) <= 1e-7).all()


def test_literal_numbers() -> None:
    s = Battery(3, capacity=2, charge=1, efficiency=0.81)
    # Buy 1 in each of the two cheap hours, 0.9 of it is kept; selling gives 0.9 of what leaves the battery: at most 1.
    np.testing.assert_allclose(s.decide([10.0, 20.0, 90.0])[:3], [1, 1 / 0.81 - 1, -1], atol=1e-9)
    assert s.variables is not None
    assert s.variables[:4] == ("purchase_0", "purchase_1", "purchase_2", "discharge_0")
    used = Battery(2, capacity=1, charge=1, load=[0.5, 2.0], efficiency=1, least_purchase=0)
    np.testing.assert_allclose(used.decide([1.0, 3.0]), [1.5, 1, 0, 1, 1, 0, 1, 0], atol=1e-9)


def test_negative_prices_reward_losing_energy_unless_it_is_excluded() -> None:
    prices = np.array([-50.0, -50.0])
    own = {"hours": 2, "capacity": 0.5, "charge": 1, "efficiency": 0.25}
    exact, loose = Battery(**own), Battery(**own, exclusive=False)  # type: ignore[arg-type]
    with jax.enable_x64(True):
        gained, more = (-float(dffl.optimal_value(prices, s)) for s in (exact, loose))
    assert more > gained + 1
    assert (exact.convex, loose.convex, exact.relaxed.convex) == (False, True, True)
    np.testing.assert_allclose(exact.relaxed.decide(prices), loose.decide(prices), atol=1e-9)


def test_wear_is_a_known_cost() -> None:
    s = Battery(2, capacity=1, charge=1, efficiency=1, wear=30.0)
    np.testing.assert_array_equal(s.decide([10.0, 35.0])[:2], [0, 0])
    np.testing.assert_array_equal(s.decide([10.0, 45.0])[:2], [1, -1])
    with jax.enable_x64(True):
        np.testing.assert_allclose(dffl.regret(np.array([10.0, 35.0]), np.array([10.0, 45.0]), s), 5.0)


@pytest.mark.parametrize(
    ("message", "given"),
    [
        ("hours|dim must be a whole number", {"hours": 0}),
        ("capacity must be > 0", {"capacity": 0}),
        ("efficiency must be in \\(0, 1\\]", {"efficiency": 1.2}),
        ("initial must be in \\[0, 2\\]", {"initial": 3}),
        ("load must be one number, or one for each of 3 hours", {"load": [1, 2]}),
        ("hour 0: the purchase must be at least 5 and at most 1", {"least_purchase": 5}),
        ("no feasible point", {"final": 2, "capacity": 2, "charge": 0.1}),
        ("charge must be one number", {"charge": [1, 2, 3]}),
        ("wear must be >= 0", {"wear": -1}),
    ],
)
def test_bad_input_is_one_clear_line(message: str, given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=message) as found:
        Battery(**({"hours": 3, "capacity": 2, "charge": 1} | given))  # type: ignore[arg-type]
    assert "\n" not in str(found.value)
