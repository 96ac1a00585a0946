"""The choice of a fleet whose rows stay apart: what a client says of a rule, and which clients cannot take part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dffl
from dffl.time.choice import choose_rules, eligible, margins, usual_rule
from dffl.time.fleet import FleetRecipe, fit_apart, middle_of
from dffl.time.own_past import OwnPast, origins_in
from dffl.time.past import Past
from dffl.time.timeline import DAY
from tests.time.made import ITEMS, series

FIRST = float(np.datetime64("2021-01-04").astype("M8[s]").astype(int))
RECIPE = FleetRecipe(FIRST + 45 * DAY, past=Past(lags=(1,), means=(3,), season=False))
TRAINED = ("fedavg", "fedavg-vector")


@pytest.mark.parametrize("base", ["steady", "forecast"])
def test_a_single_client_changes_its_rule_where_its_numbers_speak_for_one(base: str) -> None:
    """Of one client the numbers say what `choose_rules` does: whether the usual rule is replaced."""
    brought, rng = base == "forecast", np.random.default_rng(1)
    recipe = replace(RECIPE, base=base, brings=brought, window=20)
    rules = recipe.rules
    names, usual = eligible(rules, TRAINED, base, brought), usual_rule(TRAINED, base, brought)
    assert (names, usual) == (recipe.names, recipe.usual)
    kept = 0
    for _ in range(40):
        lost = rng.gamma(2, 1, (len(rules), 60)) * rng.uniform(0.7, 1.3, (len(rules), 1))
        [rule] = choose_rules(rules, lost[:, None], TRAINED, base, 20, brought=brought)
        some = lost[[rules.index(name) for name in names]]
        found = margins(names, some, usual, base, 20, brought)
        assert found[names.index(usual)] == 0
        assert (recipe.chosen(found) == usual) == (rule == usual)
        assert rule == usual or found[names.index(rule)] < 0
        kept += rule == usual
    assert 0 < kept < 40


def test_what_a_client_says_does_not_depend_on_the_unit_of_its_regrets() -> None:
    lost = np.random.default_rng(2).gamma(2, 1, (len(RECIPE.names), 50))
    one, other = (margins(RECIPE.names, unit * lost, RECIPE.usual, RECIPE.base, 90, False) for unit in (1, 1000))
    np.testing.assert_allclose(one, other)


def test_a_client_is_not_outvoted_by_one_with_more_rows_or_larger_numbers() -> None:
    assert middle_of([np.array([1.0]), np.array([2.0]), np.array([-1e9])])[0] == 1.0


def test_its_numbers_follow_from_its_own_rows_alone() -> None:
    """The rules that need no training, the features and the base of a client: the same whoever else is there."""
    own = OwnPast(series("a", 1, rows=80), RECIPE)
    assert own.known(0) == 45
    assert own.known(1) == own.client.n == 80
    assert own.prepared(0).federation([45]).features == RECIPE.form(1, ITEMS).federation([31]).features
    later = OwnPast(series("a", 1, rows=80).rows(slice(0, 75)), RECIPE)
    for rule, table in own.tables(0).items():
        np.testing.assert_array_equal(table[:75], later.tables(0)[rule])


def test_with_a_delay_the_last_rows_before_an_origin_are_not_known() -> None:
    recipe = replace(RECIPE, later=(FIRST + 60 * DAY,), past=replace(RECIPE.past, known_after=2))
    own = OwnPast(series("a", 1, rows=80), recipe)
    assert [own.known(number) for number in range(3)] == [43, 58, 80]


def test_a_client_that_cannot_take_part_is_refused_in_one_line() -> None:
    short, late = series("a", 1, rows=60), series("a", 1, rows=80, shift=20)
    bad = [
        (short, RECIPE, "client 'a': has 15 rows from 2021-02-18 on, and the choice over time needs 28"),
        (late, RECIPE, "client 'a': has 25 rows before 2021-02-18, and the choice over time needs 31"),
        (replace(short, times=None), RECIPE, "client 'a': the choice over time needs an order of the rows, found none"),
        (series("a", 1, rows=80), replace(RECIPE, later=(FIRST + 80 * DAY,)), "client 'a': has no row between two trainings"),
    ]
    for client, recipe, words in bad:
        with pytest.raises(ValueError, match=words) as refused:
            origins_in(client, recipe)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="needs 3 or more clients, found 2"):
        fit_apart(dffl.Federation([series("a", 1), series("b", 2)]), RECIPE)
