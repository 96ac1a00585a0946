"""A model for tomorrow: what it decides, what it expects to pay, and what it refuses."""

import os

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl_studies.energy.data import open_panel, read_panel
from dffl_studies.energy.data.lagged import steady_average
from dffl_studies.energy.decide import decide
from dffl_studies.energy.model import RECENT_DAYS, CostRange, cost_range, train
from dffl_studies.energy.naive import tuned_weight
from dffl_studies.energy.setup import Setup, halves
from studies.tests.energy.data.made import zone_days
from studies.tests.energy.markets import frame, panel_file

QUICK = {"rounds": 2}
PRICES = [f"price_{h}" for h in range(24)]


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    return read_panel(panel_file(tmp_path_factory.mktemp("market")))


@pytest.fixture(scope="module")
def weather_model(panel):
    return train(panel, Setup(settings=QUICK), progress=False)


@pytest.fixture(scope="module")
def lagged_model(panel):
    return train(panel, Setup(lags=True, settings=QUICK), progress=False)


def tomorrow(folder, date="2022-03-02", **columns):
    path = folder / "tomorrow.csv"
    pd.DataFrame([{"date": date, "temperature": 3.5, "wind": 8.0, **columns}]).to_csv(path, index=False)
    return path


def test_the_decision_is_the_models_at_these_features(weather_model, tmp_path):
    [found] = decide(weather_model.model, "Z01", tomorrow(tmp_path))
    x = np.array([[3.5, 8.0, 2.0]])  # 2022-03-02 was a Wednesday
    np.testing.assert_array_equal(found.hours, weather_model.model.decide("Z01", x)[0])
    assert (found.zone, found.date, found.demand, len(found.buy)) == ("Z01", "2022-03-02", 6.0, 6)
    assert found.prices_until == "2022-03-01"
    assert "Wed 2022-03-02: buy 6 hours: " in found.in_words()


def test_a_model_that_was_saved_decides_the_same(lagged_model, tmp_path):
    lagged_model.model.save(tmp_path / "model.dffl")
    again = dffl.load(tmp_path / "model.dffl")
    path = tomorrow(tmp_path)
    assert decide(again, "Z02", path) == decide(lagged_model.model, "Z02", path)


def test_past_prices_reach_the_decision_through_the_moving_average(panel, lagged_model, tmp_path):
    weight = lagged_model.model.about["energy"]["recipe"]["weight"]
    forecast = steady_average(zone_days(panel, "Z00").prices, zone_days(panel, "Z00").dates, weight)[-1]
    x = np.concatenate([[3.5, 8.0, 2.0, 0.0], forecast])[None]
    [found] = decide(lagged_model.model, "Z00", tomorrow(tmp_path))
    np.testing.assert_array_equal(found.hours, lagged_model.model.decide("Z00", x)[0])
    assert found.prices_until == "2022-03-01"


def test_prices_since_training_count_as_if_it_had_known_them(panel, lagged_model, tmp_path):
    later = frame(days=70).query("date > '2022-03-01'")
    later.sort_values("date", ascending=False).to_csv(tmp_path / "past.csv", index=False)  # in any order
    weight = lagged_model.model.about["energy"]["recipe"]["weight"]
    own = later[later["zone"] == "Z00"]
    prices = np.concatenate([zone_days(panel, "Z00").prices, own[PRICES].to_numpy()])
    dates = np.concatenate([zone_days(panel, "Z00").dates, own["date"].to_numpy("datetime64[D]")])
    forecast = steady_average(prices, dates, weight)[-1]
    [found] = decide(lagged_model.model, "Z00", tomorrow(tmp_path, "2022-03-12"), tmp_path / "past.csv")
    x = np.concatenate([[3.5, 8.0, 5.0, 1.0], forecast])[None]  # a Saturday
    np.testing.assert_array_equal(found.hours, lagged_model.model.decide("Z00", x)[0])
    assert found.prices_until == "2022-03-11"


def test_the_expected_cost_is_what_past_prices_say_of_the_hours_corrected_by_late_errors(panel, weather_model, tmp_path):
    [found] = decide(weather_model.model, "Z01", tomorrow(tmp_path))
    known = weather_model.model.about["energy"]["zones"]["Z01"]
    zone = zone_days(panel, "Z01")
    forecast = steady_average(zone.prices, zone.dates, known["memory"]["weight"])[-1]
    reference = float(np.array(found.hours) @ forecast)
    expected = [reference * (1 + known["cost_range"][name]) for name in ("middle", "low", "high")]
    assert (found.expected_cost, found.low, found.high) == pytest.approx(expected)
    assert found.low < found.expected_cost < found.high


def test_the_errors_are_those_of_the_first_halfs_model_on_the_last_days_of_the_second(panel, weather_model):
    client = weather_model.test["Z01"]
    zone, weight = zone_days(panel, "Z01"), tuned_weight(panel, "total", "2022-01-31")
    hours = weather_model.first_half.decide("Z01", client.x)
    reference = (hours * steady_average(zone.prices, zone.dates, weight)[:-1][-client.n :]).sum(axis=1)
    errors = ((hours * client.c).sum(axis=1) - reference) / reference
    found = CostRange(**weather_model.model.about["energy"]["zones"]["Z01"]["cost_range"])
    assert found.middle == pytest.approx(errors.mean())
    assert (found.low, found.high) == pytest.approx(np.quantile(errors, [0.05, 0.95]))


def test_a_range_in_numbers_also_where_prices_are_near_zero():
    found = cost_range(np.array([100.0, 100.0, 0.0, 100.0]), np.array([110.0, 90.0, 5.0, 100.0]))
    assert found.least == 25
    assert found.middle == pytest.approx((0.1 - 0.1 + 0.2 + 0) / 4)
    assert found.around(200.0)[0] == pytest.approx(210)
    assert found.around(0.0)[0] == pytest.approx(25 * 0.05)
    assert cost_range(np.zeros(3), np.zeros(3)).around(0.0) == (0, 0, 0)


def test_a_model_from_weather_alone_decides_for_any_day_but_tells_costs_only_near_known_prices(weather_model, tmp_path):
    [late] = decide(weather_model.model, "Z00", tomorrow(tmp_path, "2022-06-01"))
    assert late.expected_cost is None
    assert (
        "expected cost unknown: prices are known up to 2022-03-01, and costs are estimated for 7 days after them"
        in late.in_words()
    )
    later = frame(days=152).query("date > '2022-03-01'")
    later.to_csv(tmp_path / "past.csv", index=False)
    [known] = decide(weather_model.model, "Z00", tomorrow(tmp_path, "2022-06-02"), tmp_path / "past.csv")
    assert known.expected_cost is not None
    assert known.prices_until == "2022-06-01"


def test_a_model_of_yesterdays_weather_decides_for_the_day_after_the_weather(panel, tmp_path):
    trained = train(panel, Setup(weather_lag=1, settings=QUICK), method="fedavg", progress=False)
    [found] = decide(trained.model, "Z01", tomorrow(tmp_path, "2022-03-01"))
    assert found.date == "2022-03-02"
    x = np.array([[3.5, 8.0, 2.0]])  # the weather of Tuesday, for a Wednesday
    np.testing.assert_array_equal(found.hours, trained.model.decide("Z01", x)[0])


def test_options_of_other_methods_in_the_setup_do_not_stop_a_model(panel):
    options = {"rounds": 1, "finetune.epochs": (0, 1), "finetune-mix.epochs": (0, 1)}
    trained = train(panel, Setup(settings=options), method="finetune-mix", progress=False)
    assert trained.model.method == "finetune-mix"
    assert {member.choices["epochs"] for member in trained.model.members.values()} <= {0, 1}


def test_weekdays_that_are_counted_in_another_way_have_to_be_given(tmp_path):
    table = frame()
    table["weekday"] = pd.to_datetime(table["date"]).dt.day_of_week + 1.0
    table.assign(demand=5).to_csv(tmp_path / "panel.csv", index=False)
    trained = train(read_panel(tmp_path / "panel.csv"), Setup(settings={"rounds": 1}), method="fedavg", progress=False)
    with pytest.raises(ValueError, match=r"tomorrow\.csv: must have a column 'weekday'"):
        decide(trained.model, "Z00", tomorrow(tmp_path))
    [found] = decide(trained.model, "Z00", tomorrow(tmp_path, weekday=3.0))
    assert len(found.buy) == 5


def test_an_hour_that_is_bought_in_part_is_named(tmp_path):
    frame().assign(demand=2.25).to_csv(tmp_path / "panel.csv", index=False)
    trained = train(read_panel(tmp_path / "panel.csv"), Setup(settings={"rounds": 1}), method="fedavg", progress=False)
    [found] = decide(trained.model, "Z00", tomorrow(tmp_path))
    [part] = [hour for hour in found.buy if found.hours[hour] < 1]
    assert f"{part:02d}:00-{part + 1:02d}:00 (0.25 of it)" in found.in_words()


def test_gaps_and_doubles_in_the_past_are_refused(lagged_model, tmp_path):
    later = frame(days=90).query("date > '2022-03-01' and zone == 'Z00'")
    later.tail(2).to_csv(tmp_path / "gap.csv", index=False)
    with pytest.raises(ValueError, match=r"gap\.csv, line 2: zone Z00, 2022-03-30: .* known is 2022-03-01; give the 28 days"):
        decide(lagged_model.model, "Z00", tomorrow(tmp_path, "2022-04-01"), tmp_path / "gap.csv")
    pd.concat([later.head(2), later.head(1)]).to_csv(tmp_path / "double.csv", index=False)
    with pytest.raises(ValueError, match=r"double\.csv, line 4: zone Z00, 2022-03-02: a second row for this zone and date"):
        decide(lagged_model.model, "Z00", tomorrow(tmp_path, "2022-03-04"), tmp_path / "double.csv")


@pytest.mark.skipif("DFFL_ENERGY_DATA" not in os.environ, reason="DFFL_ENERGY_DATA does not name the real zones' folder")
def test_on_the_real_zones_four_days_in_five_are_in_the_reported_range():
    """A model of January to June: its errors of the 60 days before each day give a range for that day."""
    panel = open_panel(os.environ["DFFL_ENERGY_DATA"], without=["NE_INTERNAL_HUB"])
    setup = Setup(lags=True)
    train_half, test, _, first_test = halves(panel, setup)
    model = dffl.fit(train_half, "fedavg", progress=False, **setup.training(0))
    weight, inside, bias = tuned_weight(panel, "total", first_test), [], []
    for name in panel.names:
        client, zone = test[name], zone_days(panel, name)
        hours = model.decide(name, client.x)
        reference = (hours * steady_average(zone.prices, zone.dates, weight)[:-1][-client.n :]).sum(axis=1)
        cost = (hours * client.c).sum(axis=1)
        for day in range(92, client.n):
            recent = cost_range(reference[day - RECENT_DAYS : day], cost[day - RECENT_DAYS : day])
            expected, low, high = recent.around(float(reference[day]))
            inside.append(low <= cost[day] <= high)
            bias.append((expected - cost[day]) / np.abs(cost[92:]).mean())
    assert 0.78 <= np.mean(inside) <= 0.88
    assert abs(np.mean(bias)) < 0.06


@pytest.mark.parametrize(
    ("date", "message"),
    [
        (
            "2022-03-01",
            r"tomorrow\.csv, line 2: zone Z00, 2022-03-01: prices are known up to 2022-03-01; decide for a day",
        ),
        ("2022-03-12", r"prices are known up to 2022-03-01 only, 11 days before; pass the prices since then with --past"),
    ],
)
def test_days_that_a_moving_average_cannot_serve_are_refused(lagged_model, tmp_path, date, message):
    with pytest.raises(ValueError, match=message):
        decide(lagged_model.model, "Z00", tomorrow(tmp_path, date))


def test_what_cannot_be_decided_is_named(weather_model, tmp_path):
    model = weather_model.model
    with pytest.raises(ValueError, match="--zone must be one of Z00, Z01, Z02, Z03, found 'Z9'"):
        decide(model, "Z9", tomorrow(tmp_path))
    with pytest.raises(ValueError, match=r"tomorrow\.csv: must have a row for zone 'Z00', found Z01"):
        decide(model, "Z00", tomorrow(tmp_path, zone="Z01"))
    pd.DataFrame([{"date": "2022-03-02", "wind": 8.0}]).to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(ValueError, match=r"less\.csv: must have a column 'temperature', found date, wind, zone"):
        decide(model, "Z00", tmp_path / "less.csv")
    with pytest.raises(ValueError, match="MODEL must be made by dffl energy run or dffl energy train"):
        decide(weather_model.first_half, "Z00", tomorrow(tmp_path))


def test_a_sample_knows_no_price_of_its_day_or_later(tmp_path):
    table = frame(days=80).assign(demand=6.0)
    changed = table.copy()
    late = changed["date"] >= "2022-03-01"
    changed.loc[late, PRICES] += np.random.default_rng(3).normal(0, 50, (late.sum(), 24))
    made = []
    for name, one in (("a.csv", table), ("b.csv", changed)):
        one.to_csv(tmp_path / name, index=False)
        made.append(halves(read_panel(tmp_path / name), Setup(split="2022-02-20", lags=True)))
    until = 10  # the test half starts on 2022-02-20, so that 2022-03-01 is its tenth day
    for one, other in zip(made[0].test, made[1].test, strict=True):
        np.testing.assert_array_equal(one.x[:until], other.x[:until])
        assert not np.array_equal(one.x[until], other.x[until])
        np.testing.assert_array_equal(one.c[: until - 1], other.c[: until - 1])
    for one, other in zip(made[0].train, made[1].train, strict=True):
        np.testing.assert_array_equal(one.x, other.x)


def test_weather_that_was_never_seen_is_doubted(weather_model, tmp_path):
    [usual] = decide(weather_model.model, "Z00", tomorrow(tmp_path))
    assert usual.notes == []
    [odd] = decide(weather_model.model, "Z00", tomorrow(tmp_path, temperature=400.0))
    assert odd.notes[0].startswith("temperature is 400, and was ")
    assert "do not rely on this" in odd.in_words()
