"""A model for tomorrow: what it decides, what it expects to pay, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.data.energy import read_panel
from dffl.data.energy.lagged import steady_average
from dffl.studies.energy.decide import decide
from dffl.studies.energy.model import cost_line, paid, train
from dffl.studies.energy.protocol import Protocol, halves
from tests.studies.energy.markets import frame, panel_file

QUICK = {"rounds": 2}
PRICES = [f"price_{h}" for h in range(24)]


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    return read_panel(panel_file(tmp_path_factory.mktemp("market")))


@pytest.fixture(scope="module")
def weather_model(panel):
    return train(panel, Protocol(settings=QUICK), progress=False)


@pytest.fixture(scope="module")
def lagged_model(panel):
    return train(panel, Protocol(lags=True, settings=QUICK), progress=False)


def tomorrow(folder, date="2022-03-02", **columns):
    path = folder / "tomorrow.csv"
    pd.DataFrame([{"date": date, "temperature": 3.5, "wind": 8.0, **columns}]).to_csv(path, index=False)
    return path


def test_the_decision_is_the_models_at_these_features(weather_model, tmp_path):
    [found] = decide(weather_model.model, "Z01", tomorrow(tmp_path))
    x = np.array([[3.5, 8.0, 2.0]])  # 2022-03-02 was a Wednesday
    np.testing.assert_array_equal(found.hours, weather_model.model.decide("Z01", x)[0])
    assert (found.zone, found.date, found.demand, len(found.buy)) == ("Z01", "2022-03-02", 6.0, 6)
    assert found.prices_until is None
    assert "Wed 2022-03-02: buy 6 hours: " in found.in_words()


def test_a_model_that_was_saved_decides_the_same(lagged_model, tmp_path):
    lagged_model.model.save(tmp_path / "model.dffl")
    again = dffl.load(tmp_path / "model.dffl")
    path = tomorrow(tmp_path)
    assert decide(again, "Z02", path) == decide(lagged_model.model, "Z02", path)


def test_past_prices_reach_the_decision_through_the_moving_average(panel, lagged_model, tmp_path):
    weight = lagged_model.model.about["energy"]["recipe"]["weight"]
    forecast = steady_average(panel.zone("Z00").prices, panel.zone("Z00").dates, weight)[-1]
    x = np.concatenate([[3.5, 8.0, 2.0, 0.0], forecast])[None]
    [found] = decide(lagged_model.model, "Z00", tomorrow(tmp_path))
    np.testing.assert_array_equal(found.hours, lagged_model.model.decide("Z00", x)[0])
    assert found.prices_until == "2022-03-01"


def test_prices_since_training_count_as_if_it_had_known_them(panel, lagged_model, tmp_path):
    later = frame(days=70).query("date > '2022-03-01'")
    later.sort_values("date", ascending=False).to_csv(tmp_path / "past.csv", index=False)  # in any order
    weight = lagged_model.model.about["energy"]["recipe"]["weight"]
    own = later[later["zone"] == "Z00"]
    prices = np.concatenate([panel.zone("Z00").prices, own[PRICES].to_numpy()])
    dates = np.concatenate([panel.zone("Z00").dates, own["date"].to_numpy("datetime64[D]")])
    forecast = steady_average(prices, dates, weight)[-1]
    [found] = decide(lagged_model.model, "Z00", tomorrow(tmp_path, "2022-03-12"), tmp_path / "past.csv")
    x = np.concatenate([[3.5, 8.0, 5.0, 1.0], forecast])[None]  # a Saturday
    np.testing.assert_array_equal(found.hours, lagged_model.model.decide("Z00", x)[0])
    assert found.prices_until == "2022-03-11"


def test_the_expected_cost_is_right_on_average_over_the_days_that_made_it(weather_model):
    client = weather_model.test["Z01"]
    predicted, cost = paid(weather_model.first_half, client)
    line = cost_line(predicted, cost)
    expected = np.array([line.expected(one) for one in predicted])
    assert expected[:, 0].mean() == pytest.approx(cost.mean())
    inside = (cost >= expected[:, 1] - 1e-9) & (cost <= expected[:, 2] + 1e-9)
    assert 0.7 <= inside.mean() <= 0.9
    hours = weather_model.first_half.decide("Z01", client.x)
    np.testing.assert_allclose(cost, (hours * client.c).sum(axis=1))


def test_a_cost_line_is_found_again_and_never_points_downwards():
    x = np.linspace(0, 10, 50)
    line = cost_line(x, 3 + 2 * x)
    assert (line.start, line.slope, line.low, line.high) == pytest.approx((3, 2, 0, 0))
    assert cost_line(x, -x).slope == 0
    assert cost_line(np.ones(5), np.arange(5.0)).expected(1.0)[0] == 2


@pytest.mark.parametrize(
    ("lags", "date", "message"),
    [
        (
            True,
            "2022-03-01",
            r"tomorrow\.csv, line 2: zone Z00, 2022-03-01: prices are known up to 2022-03-01; decide for a day",
        ),
        (True, "2022-03-12", r"prices are known up to 2022-03-01 only, 11 days before; pass the prices since then with --past"),
    ],
)
def test_days_that_a_moving_average_cannot_serve_are_refused(lagged_model, tmp_path, lags, date, message):
    with pytest.raises(ValueError, match=message):
        decide(lagged_model.model, "Z00", tomorrow(tmp_path, date))


def test_what_cannot_be_decided_is_named(weather_model, tmp_path):
    model = weather_model.model
    with pytest.raises(ValueError, match="--zone must be one of Z00, Z01, Z02, Z03, found 'Z9'"):
        decide(model, "Z9", tomorrow(tmp_path))
    with pytest.raises(ValueError, match=r"tomorrow\.csv: must have a row for zone 'Z00', found Z01"):
        decide(model, "Z00", tomorrow(tmp_path, zone="Z01"))
    with pytest.raises(ValueError, match=r"--past is of no use: this model takes no past prices"):
        decide(model, "Z00", tomorrow(tmp_path), tmp_path / "past.csv")
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
        made.append(halves(read_panel(tmp_path / name), Protocol(split="2022-02-20", lags=True)))
    until = 10  # the test half starts on 2022-02-20, so that 2022-03-01 is its tenth day
    for one, other in zip(made[0].test, made[1].test, strict=True):
        np.testing.assert_array_equal(one.x[:until], other.x[:until])
        assert not np.array_equal(one.x[until], other.x[until])
        np.testing.assert_array_equal(one.c[: until - 1], other.c[: until - 1])
    for one, other in zip(made[0].train, made[1].train, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
