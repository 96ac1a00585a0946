"""A client's forecast: found by name, put after the other features in the order of the costs, and asked for in new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.forecasts import gives_away
from dffl.training import Run, Settings

HOURS = (1, 2, 10)
COSTS = [f"price_{hour}" for hour in HOURS]
FORECAST = [f"dnn_{hour:02d}" for hour in HOURS]
N = 8
SET = dffl.TopK(3, 1)


def day(seed: int = 0) -> pd.DataFrame:
    """A calendar column stands after the forecast, which has another order than the costs."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.uniform(1, 9, N) for name in ("temp", "dnn_10", "dnn_02", "dnn_01", *COSTS, "weekend")})


DAY = day()
FEATURES = ["temp", *FORECAST[::-1], "weekend"]


def client(name: str = "a", x: Any = DAY[FEATURES], c: Any = DAY[COSTS], forecast: Any = "dnn_*", **more: Any) -> dffl.Client:
    return dffl.Client(name, x, c, SET, forecast=forecast, **more)


WAYS: dict[str, dict[str, Any]] = {
    "a pattern": {"forecast": "dnn_*"},
    "names in the order of the costs": {"forecast": FORECAST},
    "an index of names": {"forecast": pd.Index(FORECAST)},
    "a data frame in any order": {"x": DAY[["temp", "weekend"]], "forecast": DAY[FORECAST[::-1]]},
    "a data frame of columns that x has too": {"forecast": DAY[FORECAST[::-1]]},
    "names of an array": {"x": DAY[FEATURES].to_numpy(), "feature_names": FEATURES},
}


@pytest.mark.parametrize("given", WAYS.values(), ids=WAYS.keys())
def test_the_forecast_is_put_last_in_the_order_of_the_costs(given: dict[str, Any]) -> None:
    one = client(**given)
    np.testing.assert_array_equal(one.forecast, DAY[FORECAST])
    np.testing.assert_array_equal(one.x, DAY[["temp", "weekend", *FORECAST]])
    assert one.feature_names == ("temp", "weekend", *FORECAST)
    part = one.rows(slice(2, 5))
    np.testing.assert_array_equal(part.x, one.x[2:5])
    np.testing.assert_array_equal(part.forecast, one.forecast[2:5])
    np.testing.assert_array_equal(one.with_set(dffl.TopK(3, 2)).x, one.x)
    assert not one.x.flags.writeable


def test_arrays_have_the_order_of_the_costs() -> None:
    x, c, forecast = (DAY[names].to_numpy() for names in (["temp", "weekend"], COSTS, FORECAST))
    one = client(x=x, c=c, forecast=forecast)
    np.testing.assert_array_equal(one.x, np.hstack([x, forecast]))
    assert one.feature_names is None
    named = client(x=DAY[["temp", "weekend"]], forecast=forecast)
    assert named.feature_names == ("temp", "weekend", *(f"forecast of {name}" for name in COSTS))
    # A forecast with the names of the costs must not find realised costs in later rows.
    same = client(x=DAY[["temp"]], forecast=pd.DataFrame(forecast[:, ::-1], columns=COSTS[::-1]))
    assert same.feature_names == ("temp", *(f"forecast of {name}" for name in COSTS))
    np.testing.assert_array_equal(same.forecast, forecast)


def test_numbers_in_names_stay_whole() -> None:
    forecast = DAY[["dnn_10", "dnn_01"]].set_axis(["h10", "h1"], axis=1)
    one = dffl.Client("a", DAY[["temp"]], DAY[["price_1", "price_10"]], dffl.TopK(2, 1), forecast=forecast)
    assert one.feature_names == ("temp", "h1", "h10")
    single = dffl.Client("a", DAY[["temp", "weekend"]], DAY[["price_1"]], dffl.TopK(1, 1), forecast="week*")
    assert single.feature_names == ("temp", "weekend")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a pattern that nothing fits": (
        {"forecast": "lear_*"},
        r"client 'a': forecast: no column fits 'lear_\*'; there are 'temp'",
    ),
    "too many columns": ({"x": DAY[FEATURES].assign(dnn_mean=1.0)}, r"forecast: 4 columns .* for 3 costs"),
    "a name that is not there": ({"forecast": ["dnn_01", "dnn_02", "dnn_3"]}, "forecast: there is no column 'dnn_3'"),
    "names in another order": ({"forecast": FORECAST[::-1]}, "'dnn_10' would forecast the cost 'price_1', though the numbers"),
    "names that match nothing": ({"forecast": "dnn_*", "c": DAY[COSTS].set_axis(list("pqr"), axis=1)}, "do not match by name"),
    "costs without names": ({"c": DAY[COSTS].to_numpy()}, r"'dnn_\*' is matched with the names of the costs, which have none"),
    "features without names": (
        {"x": DAY[FEATURES].to_numpy()},
        "the name of columns of x, which have no names; pass x as a data frame",
    ),
    "another shape": ({"forecast": np.zeros((N, 2))}, r"forecast: must have the shape \(8, 3\), a column for each cost"),
    "by position": ({"forecast": True}, "client 'a': forecast must be"),
    "not finite": ({"forecast": np.full((N, 3), np.nan)}, "client 'a': forecast must be finite"),
    "a column of x with other numbers": ({"forecast": DAY[FORECAST] + 1}, "x has a column 'dnn_10' too, with other numbers"),
}


@pytest.mark.parametrize(("given", "line"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_matched_is_refused_in_one_line(given: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line) as refused:
        client(**given)
    assert "\n" not in str(refused.value)


def test_all_clients_bring_a_forecast_or_none() -> None:
    without = dffl.Client("b", DAY[["temp", "weekend"]], DAY[COSTS], SET)
    with pytest.raises(ValueError, match="client 'b': brings no forecast, client 'a' one; all clients"):
        dffl.Federation([client(), without])
    with pytest.raises(ValueError, match="client 'a': brings a forecast, client 'b' none; all clients"):
        dffl.Federation([without, client()])


def test_a_forecast_by_position_is_refused_with_what_to_write() -> None:
    last = [*FORECAST, "temp", "weekend"]  # a calendar behind the forecast
    by_position = dffl.Federation([dffl.Client(f"{n}", (own := day(n))[last], own[COSTS], SET) for n in range(2)])
    with pytest.raises(ValueError, match=r"by position; name the columns: .*dffl.Client\(..., forecast=\"dnn_\*\"\) in Python"):
        dffl.fit(by_position, "local", forecast=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="by position"):
        dffl.advise(by_position, forecast=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="by position"):
        Run(by_position, Settings(forecast=True))


@pytest.fixture(scope="module")
def fit() -> dffl.Fit:
    other = day(2)
    return dffl.fit(dffl.Federation([client("a"), client("b", other[FEATURES], other[COSTS])]), "forecast")


def test_new_rows_bring_the_forecast_by_name_or_beside_the_features(fit: dffl.Fit) -> None:
    fresh = day(1)
    wanted = fresh[FORECAST].to_numpy()
    others = fresh[["weekend", "temp"]]
    for given in (
        (fresh,),
        (fresh[["temp", "weekend", *FORECAST]].to_numpy(),),  # as Client.x has it
        (others, wanted),
        (others, fresh[FORECAST[::-1]]),
        (others, fresh[FORECAST[::-1]].set_axis(["lear_10", "lear_2", "lear_1"], axis=1)),
        (others.to_numpy()[:, ::-1], wanted),
    ):
        np.testing.assert_array_equal(fit.predict("a", *given), wanted)
        np.testing.assert_array_equal(fit.decide("a", *given).argmax(axis=1), wanted.argmin(axis=1))
    np.testing.assert_array_equal(fit.predict("a", [1.0, 0.0], [3.0, 2.0, 1.0]), [3.0, 2.0, 1.0])


def test_rows_without_the_forecast_are_refused_by_name(fit: dffl.Fit) -> None:
    with pytest.raises(ValueError, match="found none named 'dnn_02', a column of the forecast; pass that column, or"):
        fit.decide("a", DAY.drop(columns="dnn_02"))
    with pytest.raises(ValueError, match=r"x must have 5 columns.* the last 3 are the forecast: hand it in as forecast="):
        fit.decide("a", DAY[["temp", "weekend"]].to_numpy())
    with pytest.raises(ValueError, match=r"forecast must have the shape \(8, 3\), a column for each cost, found \(7, 3\)"):
        fit.decide("a", DAY[["temp", "weekend"]], DAY[FORECAST][1:])
    with pytest.raises(ValueError, match="forecast must be finite"):
        fit.decide("a", DAY[["temp", "weekend"]], DAY[FORECAST] * np.inf)
    plain = dffl.Client("new", DAY[["temp", "weekend", *FORECAST]], DAY[COSTS], SET)
    with pytest.raises(ValueError, match="client 'new': must bring a forecast, as in training"):
        fit.regrets(plain)
    with pytest.raises(ValueError, match="test: must bring a forecast, as in training"):
        fit.evaluate(dffl.Federation([plain]))
    naive = dffl.fit(dffl.Federation([plain]), "mean-cost")
    with pytest.raises(ValueError, match="the clients of training brought none"):
        naive.decide("new", DAY, DAY[FORECAST])
    with pytest.raises(ValueError, match="must bring no forecast: training had none"):
        naive.evaluate(dffl.Federation([client("new")]))


def test_a_column_that_is_a_cost_itself_is_found() -> None:
    rng = np.random.default_rng(0)
    c, x = 5 + rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    for copy in (c[:, 1], -2.5 * c[:, 1] + 7, 1e9 * c[:, 1], c[:, 1].astype(np.float32), np.round(c[:, 1], 3)):
        assert gives_away(np.column_stack([x, copy]), c) == (2, 1)
    close = c[:, 1] + rng.normal(0, 0.02, 40)  # far better than any forecast, and none of the costs
    constant = np.full(40, 3.0)
    before = np.roll(c[:, 1], 1)  # the row before: known
    for honest in (close, constant, before):
        assert gives_away(np.column_stack([x, honest]), c) is None
    assert gives_away(np.column_stack([x, constant]), np.column_stack([c[:, :2], constant])) is None
    assert gives_away(c[:9], c[:9]) is None
