"""What is saved follows from the regrets of single rows, and is said without a digit below its noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dffl
from dffl.comparing import Start
from dffl.report.money import Saving
from dffl.report.numbers import sure_digits
from dffl.report.saved_words import against_now, headline, tiles, together_or_alone
from dffl.report.savings import Judged, kept, now_of, over_time, savings
from dffl.report.summary import LINES, summary
from dffl.report.verdict import verdict
from tests.report.made import made, made_over_time

DAY = 86400.0


def judged(
    gain: float, noise: float = 1.0, units: dict[str, str] | None = None, main: str = "chosen", rows: int = 60
) -> Judged:
    """Two clients whose main method loses 5 a day, and the forecast this much more, with noise from day to day."""
    rng = np.random.default_rng(0)
    test = dffl.Federation(
        [
            dffl.Client(name, np.zeros((rows, 1)), rng.uniform(1, 2, (rows, 4)), dffl.TopK(4, 2), times=DAY * np.arange(rows))
            for name in ("north", "south")
        ]
    )
    mine = [rng.uniform(4, 6, rows) for _ in test]
    theirs = [lost + gain + rng.normal(size=rows) for lost in mine]
    lost = {main: mine, "forecast": theirs, "local-tuned": [one + rng.normal(size=rows) for one in mine]}
    facts: dict[str, Any] = {name: [{"relative_regret": 0.1}] * 2 for name in lost}
    return Judged([Start(facts, lost)], test, main, {"north": "EUR", "south": "EUR"} if units is None else units, True)


def test_a_known_gain_is_inside_its_interval_and_a_year_has_its_days() -> None:
    found = {(one.client, one.against): one for one in savings(judged(2.0), "forecast", "local-tuned")}
    for client, known in (("", 4.0), ("north", 2.0), ("south", 2.0)):
        one = found[client, "forecast"]
        assert one.low is not None
        assert one.high is not None
        assert one.low < known < one.high
        assert one.clear
        assert one.other - one.lost == pytest.approx(one.value)
        assert one.a_year == pytest.approx(365.25)
        assert not found[client, "local-tuned"].clear


def test_nobody_saves_more_than_the_other_rule_lost() -> None:
    few = judged(2.0, rows=20)
    losing = [np.where(np.arange(20) % 7 == 3, 200.0, 7.0) for _ in few.test]
    few.runs[0].lost["forecast"] = losing
    for one in savings(few, "forecast", None):
        if one.against == "forecast" and one.judged:
            assert one.high == one.other


@pytest.mark.parametrize(("copies", "shared"), [(4, False), (1, True)])
def test_copies_and_rows_that_clients_share_are_no_more_evidence(copies: int, shared: bool) -> None:
    """Without an order. Of savings that are noise, 28 % of four copies of each row were clear, and 32 % of four equal sites."""
    rng, clear, times = np.random.default_rng(0), np.zeros(2), 60
    for _ in range(times):
        rows = [rng.uniform(1, 2, (60, 4)) for _ in range(1 if shared else 4)] * (4 if shared else 1)
        noise = [rng.normal(size=60) for _ in range(1 if shared else 4)] * (4 if shared else 1)
        test = dffl.Federation(
            [
                dffl.Client(f"s{k}", np.repeat(c[:, :1], copies, axis=0), np.repeat(c, copies, axis=0), dffl.TopK(4, 1 + k % 3))
                for k, c in enumerate(rows)
            ]
        )
        mine = [np.full(60 * copies, 5.0) for _ in test]
        lost = {"crossfit": mine, "mean-cost": [5 + np.repeat(own, copies) for own in noise]}
        facts: dict[str, Any] = {name: [{"relative_regret": 0.1}] * 4 for name in lost}
        found = savings(
            Judged([Start(facts, lost)] * 3, test, "crossfit", dict.fromkeys(test.names, "EUR"), False), "mean-cost", None
        )
        clear += [one.clear for one in found if one.client in ("", "s0")]
    assert (clear / times <= 0.12).all()


def test_a_client_counts_alike_where_others_have_more_moments() -> None:
    """Of clients at different hours, or with a shorter test, the mean of shares is that of each client's own share."""
    rng, hours = np.random.default_rng(0), (0, 6)
    test = dffl.Federation(
        [
            dffl.Client(
                f"s{hour}", np.zeros((60, 1)), rng.uniform(1, 2, (60, 4)), dffl.TopK(4, 2), times=DAY * np.arange(60) + hour
            )
            for hour in hours
        ]
    )
    lost = {"chosen": [np.full(60, 1.0)] * 2, "forecast": [rng.uniform(1, 3, 60) for _ in test]}
    facts: dict[str, Any] = {name: [{"relative_regret": 0.1}] * 2 for name in lost}
    found = {one.client: one for one in savings(Judged([Start(facts, lost)], test, "chosen", {}, True), "forecast", None)}
    assert found[""].value == pytest.approx((found["s0"].value + found["s6"].value) / 2)


def test_one_training_of_an_ordinary_method_is_not_judged() -> None:
    assert not any(one.judged for one in savings(judged(2.0, main="crossfit"), "forecast", None))


def test_clients_of_several_units_are_added_in_shares() -> None:
    one = judged(2.0, units={"north": "EUR", "south": "US$"})
    found = {(saving.client, saving.against): saving for saving in savings(one, "forecast", None)}
    sizes = [float(client.z_star_size.mean()) for client in one.test]
    north, south, both = (found[name, "forecast"] for name in ("north", "south", ""))
    assert (north.unit, south.unit, both.unit) == ("EUR", "US$", "")
    assert both.value == pytest.approx((north.value / sizes[0] + south.value / sizes[1]) / 2)


def test_a_test_of_three_weeks_says_nothing_about_a_year() -> None:
    assert {one.a_year for one in savings(judged(2.0, rows=21), "forecast", None)} == {None}


def test_rows_over_time_add_up() -> None:
    one = judged(2.0)
    found = over_time(one, "forecast", None, None)
    assert found is not None
    assert (found.first, found.last, found.rows, found.days) == ("1970-01-01", "1970-03-01", 60, 59.0)
    total, north = found.course(""), found.course("north")
    assert total is not None
    assert north is not None
    assert sum(value or 0 for value in north.main) == pytest.approx(one.lost("chosen", 0).sum(), rel=1e-3)
    assert sum(value or 0 for value in total.now) == pytest.approx(sum(one.lost("forecast", k).sum() for k in (0, 1)), rel=1e-3)


def test_what_the_user_does_now() -> None:
    one = judged(2.0)
    assert now_of(one) == "forecast"
    start = one.runs[0]
    rules = {"mean-7": 0.3, "steady": 0.2, "mean-cost": 0.1}
    rows = {name: [{"relative_regret": value}] * 2 for name, value in rules.items()}
    without = one._replace(runs=[Start(rows, dict.fromkeys(rules, start.lost["forecast"]))])
    assert now_of(without) == "steady"  # the best moving average
    assert kept({"a": "mean-7", "b": "mean-7"}) == "mean-7"
    assert kept({"a": "mix"}) is None


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (1744.3, 503.0, "1,740"), (1744.3, 12.0, "1,744"), (0.01234, 0.005, "0.0123"), (-1744.3, 503.0, "\u22121,740"),
        (-3.0, 500.0, "0"), (0.0, 1.0, "0"),
    ],
)  # fmt: skip
def test_no_digit_is_below_the_noise(value: float, half: float, text: str) -> None:
    assert sure_digits(value, half) == text


def changed(value: float, low: float | None, high: float | None, **more: Any) -> Any:
    data = made_over_time()
    first = tuple(replace(one, value=value, low=low, high=high) if not one.client else one for one in data.savings)
    return replace(data, savings=first, **more)


def test_the_page_speaks_of_money_first() -> None:
    data = made_over_time()
    assert headline(data) == "The chosen rule saves 730 EUR a year at 2 clients against your forecast"
    assert verdict(data)[0].replace("\u00a0", " ") == (
        "Against your forecast, the chosen rule saves 730 EUR a year at the 2 clients together (95 % interval: 550 to 910), at "
        "the rate of the 60 test days from 2024-04-01 to 2024-05-30; other seasons may differ."
    )
    assert verdict(data)[1].startswith(
        "Together or alone: against each client's own model (local-tuned), the chosen rule saves"
    )
    assert verdict(data)[2] == data.answer
    assert [one[1] for one in tiles(data)] == ["730", "1,830", "2,560", "1"]


def test_what_may_be_noise_is_not_called_a_saving() -> None:
    unclear = changed(0.5, -1.0, 2.0)
    assert headline(unclear) == "No saving is shown against your forecast"
    assert "no difference is shown: the chosen rule saves between \u2212370 and 730 EUR a year" in against_now(unclear)
    assert tiles(unclear)[0][1] == "unclear"
    worse = changed(-2.0, -2.5, -1.5)
    assert headline(worse) == "The chosen rule loses 730 EUR a year more at 2 clients than your forecast"
    assert "(95 % interval: 550 to 910)" in against_now(worse)
    few = changed(2.0, None, None)
    assert headline(few) == few.title
    assert "which does not judge the difference" in against_now(few)
    assert tiles(few) == []


def test_money_against_the_own_model_is_named_where_it_is_more_than_noise() -> None:
    for low, named in ((-1.0, False), (1.5, True), (None, False)):
        high = None if low is None else 2.5
        data = replace(made(), savings=(Saving("", "local-tuned", 2.0, low, high, 5.0, 7.0, "EUR"),))
        assert ("EUR" in verdict(data)[0]) == named


def test_who_is_told_to_keep_a_forecast_reads_it_first() -> None:
    over = made_over_time().over_time
    assert over is not None
    keeps = replace(over, rules=dict.fromkeys(over.rules, "forecast"))
    assert headline(changed(0.5, -1.0, 2.0, over_time=keeps)) == "Keep your forecast: nothing is shown to save more"
    assert headline(changed(-2.0, -2.5, -1.5, over_time=keeps)) == "Keep your forecast: leaving it costs 730 EUR a year"


def test_without_a_year_amounts_are_of_a_row() -> None:
    data = made_over_time()
    short = replace(data, sample="hour", savings=tuple(replace(one, a_year=None) for one in data.savings))
    assert headline(short) == "The chosen rule saves 2.00 EUR an hour at 2 clients against your forecast"
    assert "on the 60 test hours from 2024-04-01" in against_now(short)


def test_costs_that_are_prices_give_sums_of_money() -> None:
    data = made_over_time(unit="EUR/MWh")
    assert "saves 730 EUR a year" in headline(data)
    assert "EUR/MWh" not in verdict(data)[0]


def test_without_a_unit_shares_are_compared() -> None:
    data = made_over_time(unit="")
    shares = tuple(Saving(one.client, one.against, 0.02, 0.009, 0.031, 0.05, 0.07) for one in data.savings)
    said = against_now(replace(data, savings=shares))
    assert (
        "saves 2.0 % of the best possible result at the 2 clients on average (95 % interval: 0.9 to 3.1), on the 60 test days"
        in said
    )
    assert together_or_alone(replace(data, savings=())) == ""


@pytest.mark.parametrize("data", [made(), made(judged=False), made_over_time(), made_over_time(unit="")])
def test_a_summary_has_five_lines(data: Any) -> None:
    found = summary(data)
    assert len(found) == LINES
    assert all(line and "\n" not in line for line in found)
