"""A panel from hourly prices and daily weather: what is mended, what is left out and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dffl_studies.energy.data import Panel, build_panel
from dffl_studies.energy.data.columns import DATE, ZONE
from dffl_studies.energy.data.hourly import daily_prices
from dffl_studies.energy.input_table import InputTable
from studies.tests.energy.data.made import hourly_table, refused, weather_table, write

Change = Callable[[pd.DataFrame], pd.DataFrame]
SQUARES = np.arange(24.0) ** 2


def build(
    folder: Path,
    prices: pd.DataFrame,
    weather: pd.DataFrame | None = None,
    zones: pd.DataFrame | None = None,
    **options: object,
) -> Panel:
    paths = [
        write(prices, folder / "prices.csv"),
        write(weather_table() if weather is None else weather, folder / "weather.csv"),
    ]
    if zones is not None:
        paths.append(write(zones, folder / "zones.csv"))
    return build_panel(*paths, **options)  # type: ignore[arg-type]


def lacking(*hours: int, zone: str = "A", date: str = "2021-11-06") -> pd.DataFrame:
    table = hourly_table()
    return table[~((table["zone"] == zone) & (table["date"] == date) & table["hour"].isin(hours))]


def and_again(table: pd.DataFrame, *rows: int, total: float = 0.0) -> pd.DataFrame:
    """The table with some of its rows once more, at another price."""
    return pd.concat([table, table.iloc[list(rows)].assign(total=total)], ignore_index=True)


def test_a_panel_is_built_of_prices_and_weather(tmp_path: Path) -> None:
    panel = build(tmp_path, hourly_table().sample(frac=1, random_state=0), weather_table().sample(frac=1, random_state=1))
    assert panel.names == ("A", "B")
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")
    assert panel.notes == ()
    assert panel.source == str(tmp_path / "prices.csv")
    assert not panel.demand_known
    np.testing.assert_array_equal(panel.prices, SQUARES + np.array([[0], [100], [1000], [1100]]))
    np.testing.assert_array_equal(panel.covariates, [[0, 0, 5], [1, 10, 6], [2, 20, 5], [3, 30, 6]])
    assert panel.dates.astype(str).tolist() == ["2021-11-06", "2021-11-07"] * 2


@pytest.mark.parametrize("column", ["total", "price", "lmp", "total_lmp"])
def test_prices_have_several_names(tmp_path: Path, column: str) -> None:
    panel = build(tmp_path, hourly_table().rename(columns={"total": column}))
    np.testing.assert_array_equal(panel.prices[0], SQUARES)


def test_hours_may_be_numbered_from_1_to_24(tmp_path: Path) -> None:
    panel = build(tmp_path, hourly_table().assign(hour=hourly_table()["hour"] + 1))
    np.testing.assert_array_equal(panel.prices[0], SQUARES)
    path = tmp_path / "prices.csv"
    assert panel.notes == (f"{path}: hours are numbered 1 to 24: hour 1 was read as the one that begins at midnight",)


def test_daily_prices_are_a_row_a_day_with_the_line_that_it_begins_in(tmp_path: Path) -> None:
    rows = InputTable.read(write(hourly_table(), tmp_path / "prices.csv"), ZONE, DATE)
    notes: list[str] = []
    days, prices = daily_prices(rows, notes)
    assert [days.line(row) for row in range(4)] == ["line 2", "line 26", "line 50", "line 74"]
    assert days.keys.tolist() == ["A", "A", "B", "B"]
    assert days.dates.astype(str).tolist() == ["2021-11-06", "2021-11-07"] * 2
    np.testing.assert_array_equal(prices, SQUARES + np.array([[0], [100], [1000], [1100]]))
    assert notes == []


# ---- hours that lack


@pytest.mark.parametrize(
    ("hours", "found"),
    [
        ((5,), {5: 26.0}),
        ((5, 6), {5: 27.0, 6: 38.0}),
        ((5, 9), {5: 26.0, 9: 82.0}),
        ((0,), {0: 1.0}),
        ((0, 1), {0: 4.0, 1: 4.0}),
        ((23,), {23: 484.0}),
        ((0, 23), {0: 1.0, 23: 484.0}),
    ],
)
def test_one_or_two_missing_hours_are_interpolated_within_their_day(
    tmp_path: Path, hours: tuple[int, ...], found: dict[int, float]
) -> None:
    expected = SQUARES.copy()
    expected[list(found)] = list(found.values())
    by_line = build(tmp_path, lacking(*hours))
    emptied = hourly_table()
    emptied.loc[list(hours), "total"] = np.nan
    by_cell = build(tmp_path, emptied)
    for panel in (by_line, by_cell):
        np.testing.assert_allclose(panel.prices[0], expected)
        np.testing.assert_array_equal(panel.prices[1:], SQUARES + np.array([[100], [1000], [1100]]))
        what = f"zone A, 2021-11-06: {len(hours)} of 24 hours missing, interpolated within the day"
        assert panel.notes == (f"{tmp_path / 'prices.csv'}: {what}",)


def test_a_day_that_lacks_three_hours_is_left_out(tmp_path: Path) -> None:
    panel = build(tmp_path, lacking(3, 8, 9, zone="B", date="2021-11-07"))
    path = tmp_path / "prices.csv"
    assert panel.notes == (f"{path}: zone B, 2021-11-07: 3 of 24 hours missing, the day was left out",)
    assert panel.starts.tolist() == [0, 2, 3]
    both = hourly_table().drop(index=[*range(3), *range(30, 37), 50])
    assert build(tmp_path, both).notes == (
        f"{path}: zone B, 2021-11-06: 1 of 24 hours missing, interpolated within the day",
        f"{path}: zone A, 2021-11-06: 3 of 24 hours missing, the day was left out (2 such zone-days in all)",
        "left out: zone A, without prices",
    )


def test_prices_of_which_no_day_is_complete_are_refused(tmp_path: Path) -> None:
    found = "found zone A, 2021-11-06: 14 of 24 missing"
    with refused(f"{tmp_path / 'prices.csv'}: no day has the price of at least 22 hours, {found}"):
        build(tmp_path, hourly_table().query("hour < 10"))


# ---- hours that stand there twice


def test_the_hour_that_the_clocks_repeat_in_autumn_is_averaged(tmp_path: Path) -> None:
    panel = build(tmp_path, and_again(hourly_table(), 25, total=9.0))  # line 27: 7 November, hour 1, at 101
    expected = 100 + SQUARES
    expected[1] = 55
    np.testing.assert_array_equal(panel.prices[1], expected)
    note = "zone A, 2021-11-07, hour 1 is there twice, as the clocks repeat it: averaged"
    assert panel.notes == (f"{tmp_path / 'prices.csv'}, line 98: {note}",)
    every = build(tmp_path, and_again(hourly_table(), 25, 73, total=9.0))
    assert every.prices[3, 1] == (1101 + 9) / 2
    assert every.notes == (f"{tmp_path / 'prices.csv'}, line 98: {note} (2 such hours in all)",)
    ending = and_again(hourly_table().assign(hour=hourly_table()["hour"] + 1), 25, total=9.0)
    assert "hour 2 is there twice" in build(tmp_path, ending).notes[1]


def test_the_hour_is_averaged_in_every_year(tmp_path: Path) -> None:
    prices, weather = (
        pd.concat([made(("A",), 1, day) for day in ("2021-11-07", "2022-11-06")], ignore_index=True)
        for made in (hourly_table, weather_table)
    )
    assert build(tmp_path, and_again(prices, 1, 25, total=9.0), weather).prices[:, 1].tolist() == [5, 5]


@pytest.mark.parametrize(
    ("start", "rows", "at", "after"),
    [
        ("2021-11-06", (1,), "line 98: zone A, 2021-11-06, hour 1", "line 3"),  # a Saturday
        ("2021-11-06", (28,), "line 98: zone A, 2021-11-07, hour 4", "line 30"),  # too late in the day
        ("2021-11-06", (25, 25), "line 99: zone A, 2021-11-07, hour 1", "line 27"),  # three times
        ("2021-11-06", (25, 26), "line 99: zone A, 2021-11-07, hour 2", "line 28"),  # two hours
        ("2021-03-13", (25,), "line 98: zone A, 2021-03-14, hour 1", "line 27"),  # a Sunday in spring
        ("2021-12-04", (25,), "line 98: zone A, 2021-12-05, hour 1", "line 27"),  # a Sunday in winter
    ],
)
def test_any_other_second_row_for_an_hour_is_refused(
    tmp_path: Path, start: str, rows: tuple[int, ...], at: str, after: str
) -> None:
    table = and_again(hourly_table(start=start), *rows)
    with refused(f"{tmp_path / 'prices.csv'}, {at}: a second row for this hour, after {after}; keep one of them"):
        build(tmp_path, table, weather_table(start=start))


def test_clocks_are_turned_back_once_a_year(tmp_path: Path) -> None:
    table = and_again(hourly_table(("A",), 8, "2021-10-31"), 1, 7 * 24 + 1)  # both Sundays
    at = f"{tmp_path / 'prices.csv'}, line 195: zone A, 2021-11-07, hour 1"
    with refused(f"{at}: a second row for this hour, after line 171; keep one of them"):
        build(tmp_path, table)


def test_a_second_row_is_told_by_the_hour_that_the_file_has(tmp_path: Path) -> None:
    table = and_again(hourly_table().assign(hour=hourly_table()["hour"] + 1), 5)
    at = f"{tmp_path / 'prices.csv'}, line 98: zone A, 2021-11-06, hour 6"
    with refused(f"{at}: a second row for this hour, after line 7; keep one of them"):
        build(tmp_path, table)


# ---- what is wrong with prices


def hour(value: Any, shift: int = 0) -> Change:
    def change(table: pd.DataFrame) -> pd.DataFrame:
        table = table.assign(hour=(table["hour"] + shift).astype(object))
        table.loc[30, "hour"] = value
        return table

    return change


AT = "{path}, line 32: zone A, 2021-11-07: "
HOUR = AT + "hour must be a whole number from 0 to 23, or from 1 to 24 throughout, found {found}; "
CLOCK = "number the hours of a day of 25 by the clock, the repeated one twice"
WRONG: dict[str, tuple[Change, str]] = {
    "hour 24 after hour 0": (hour(24), HOUR.replace("{found}", "24") + CLOCK),
    "hour 25 after hour 1": (hour(25, 1), HOUR.replace("{found}", "25") + CLOCK),
    "hour 0 with hour 24": (hour(-1), HOUR.replace("{found}", "-1") + CLOCK),
    "half an hour": (hour(6.5), HOUR.replace("{found}", "6.5") + CLOCK),
    "no hour": (hour(None), HOUR.replace("{found}", "nothing") + CLOCK),
    "text for an hour": (hour("06:00"), AT + "hour must be a finite number, found '06:00'"),
    "no hours": (
        lambda table: table.assign(hour=np.nan),
        HOUR.replace("line 32: zone A, 2021-11-07", "line 2: zone A, 2021-11-06").replace("{found}", "nothing") + CLOCK,
    ),
    "no column of hours": (
        lambda table: table.drop(columns="hour"),
        "{path}: must have a column 'hour', found zone, date, total",
    ),
    "no column of prices": (
        lambda table: table.drop(columns="total"),
        "{path}: must have a column 'total', found zone, date, hour",
    ),
    "text for a price": (
        lambda table: table.assign(total=table["total"].astype(object).where(table.index != 30, "x")),
        AT + "total must be a finite number, found 'x'",
    ),
    "infinite price": (
        lambda table: table.assign(total=table["total"].where(table.index != 30, -np.inf)),
        AT + "total must be a finite number, found '-inf'",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_prices_is_named(tmp_path: Path, change: Change, message: str) -> None:
    with refused(message.replace("{path}", str(tmp_path / "prices.csv"))):
        build(tmp_path, change(hourly_table()))


def test_components_that_do_not_add_up_are_noted(tmp_path: Path) -> None:
    table = hourly_table()
    parts = table.assign(energy=table["total"] - 3, congestion=1.0, loss=2.04)
    assert build(tmp_path, parts).notes == ()
    parts.loc[[30, 40], "congestion"] = -4.0
    panel = build(tmp_path, parts)
    off = "hour 6: the price is 4.96 off energy + congestion + loss (2 such rows in all); the price was taken as it is"
    assert panel.notes == (f"{tmp_path / 'prices.csv'}, line 32: zone A, 2021-11-07, {off}",)
    np.testing.assert_array_equal(panel.prices[1], 100 + SQUARES)


# ---- weather


def test_the_papers_covariates_are_taken_and_all_if_asked_for(tmp_path: Path) -> None:
    weather = weather_table().assign(rain=[1, 2, 3, 5], dow=[5, 6, 5, 6], station="JFK", humidity=[5, 5, 6, 7])
    path = tmp_path / "weather.csv"
    default = build(tmp_path, hourly_table(), weather)
    assert default.covariate_names == ("tmean", "humidity", "wind", "dow")
    assert default.notes == (
        f"{path}: left out rain, which the paper does not use (--covariates all takes them)",
        f"{path}: left out station, which hold no numbers",
        "covariate humidity is constant at zone A: it has no effect there",
    )
    everything = build(tmp_path, hourly_table(), weather, covariates=["all"])
    assert everything.covariate_names == ("tmean", "wind", "rain", "dow", "humidity")
    chosen = build(tmp_path, hourly_table(), weather, covariates=["rain", "weekday"])
    assert chosen.covariate_names == ("rain", "weekday")
    np.testing.assert_array_equal(chosen.covariates, [[1, 5], [2, 6], [3, 5], [5, 6]])
    assert build(tmp_path, hourly_table(), weather, covariates=["weekday"]).covariate_names == ("weekday",)


def test_where_none_but_the_weekday_is_the_papers_all_are_taken(tmp_path: Path) -> None:
    weather = weather_table().rename(columns={"tmean": "snow", "wind": "rain"}).assign(dow=[5, 6, 5, 6])
    assert build(tmp_path, hourly_table(), weather).covariate_names == ("snow", "rain", "dow")


def test_columns_of_the_weather_never_stand_in_for_prices(tmp_path: Path) -> None:
    weather = weather_table().assign(price_0=-1.0, line=[4, 3, 2, 1], demand=3.0, lat=5.0)
    panel = build(tmp_path, hourly_table(), weather, covariates=["all"])
    assert panel.covariate_names == ("tmean", "wind", "line", "day_of_week")
    np.testing.assert_array_equal(panel.prices[0], SQUARES)
    assert not panel.demand_known
    assert np.isnan(panel.places).all()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["hail"], "must have a column 'hail', found zone, date, tmean, wind"),
        (["date"], "date cannot be a covariate: it does not describe a day"),
        ([], "--covariates must name at least one column, found none"),
    ],
)
def test_covariates_that_cannot_be_are_refused(tmp_path: Path, wanted: list[str], message: str) -> None:
    with refused(f"{tmp_path / 'weather.csv'}: {message}"):
        build(tmp_path, hourly_table(), covariates=wanted)


def test_what_is_wrong_with_the_weather_is_named(tmp_path: Path) -> None:
    path, weather = tmp_path / "weather.csv", weather_table()
    with refused(f"{path}, line 6: zone A, 2021-11-07: a second row for this zone and date, after line 3; keep one"):
        build(tmp_path, hourly_table(), pd.concat([weather, weather.iloc[[1]]]))
    with refused(f"{path}, line 3: zone A, 2021-11-07: wind must be a finite number, found 'calm'"):
        build(tmp_path, hourly_table(), weather.assign(wind=[1, "calm", 2, 3]))
    with refused(f"{path}: must have at least one column of numbers in addition to zone and date, found none"):
        build(tmp_path, hourly_table(), weather.drop(columns=["tmean", "wind"]).assign(sky="blue"))


def test_days_with_incomplete_weather_are_left_out(tmp_path: Path) -> None:
    weather = weather_table()
    weather.loc[1, "wind"] = np.nan
    one = build(tmp_path, hourly_table(), weather)
    at = f"{tmp_path / 'weather.csv'}, line 3: zone A, 2021-11-07: wind is missing: the day was left out"
    lost = "left out: zone A, 2021-11-07, with prices and no weather"
    assert one.notes == (at, lost)
    assert one.starts.tolist() == [0, 1, 3]
    weather.loc[2, ["tmean", "wind"]] = np.nan
    two = build(tmp_path, hourly_table(), weather)
    assert two.notes == (f"{at} (2 such zone-days in all)", f"{lost} (2 such zone-days in all)")


def test_weather_that_is_complete_on_no_day_is_refused(tmp_path: Path) -> None:
    weather = weather_table().assign(humidity=[1, np.nan, 1, 1], wind=[np.nan, 1, np.nan, np.nan])
    at = f"{tmp_path / 'weather.csv'}, line 2: zone A, 2021-11-06"
    with refused(f"{at}: wind is missing, and something on every day; choose the covariates with --covariates"):
        build(tmp_path, hourly_table(), weather)


def test_zones_and_days_that_only_one_table_has_are_left_out_and_noted(tmp_path: Path) -> None:
    prices, weather = hourly_table(("A", "B", "C", "D")), weather_table(("A", "B", "E"))
    late = weather_table(("D",), start="2022-11-06")
    panel = build(tmp_path, prices, pd.concat([weather.drop(index=0), late]))
    assert panel.names == ("A", "B")
    assert panel.notes == (
        "left out: zone C, without weather",
        "left out: zone E, without prices",
        "left out: zone D, with no day that has both prices and weather",
        "left out: zone A, 2021-11-06, with prices and no weather",
    )
    found = f"{tmp_path / 'prices.csv'} and {tmp_path / 'weather.csv'} have no zone and day in common"
    with refused(f"{found}; zones must have the same names in both"):
        build(tmp_path, prices, weather_table(("X", "Y")))


def test_zones_may_be_left_out_of_both_tables(tmp_path: Path) -> None:
    panel = build(tmp_path, hourly_table(("A", "B", "C")), weather_table(("A", "B")), without=["A", "C"])
    assert panel.names == ("B",)
    assert panel.notes == ()
    np.testing.assert_array_equal(panel.prices, SQUARES + np.array([[1000], [1100]]))
    with refused(f"{tmp_path / 'prices.csv'}: --without names zone 'Z', which is not there; it has A, B"):
        build(tmp_path, hourly_table(), without=["Z"])
    with refused(f"{tmp_path / 'weather.csv'}: --without leaves no zone"):
        build(tmp_path, hourly_table(), weather_table(("A",)), without=["A"])


def test_zones_may_be_numbers_in_all_tables(tmp_path: Path) -> None:
    prices, weather = (table.replace({"zone": {"A": 1, "B": 2}}) for table in (hourly_table(), weather_table()))
    zones = pd.DataFrame({"zone": [2, 1], "lat": [42.0, 41.0], "lon": [-72.0, -71.0]})
    panel = build(tmp_path, prices, weather, zones)
    assert panel.names == ("1", "2")
    np.testing.assert_array_equal(panel.places, [[41, -71], [42, -72]])
    mixed = build_panel(
        write(prices, tmp_path / "p.parquet"), write(weather, tmp_path / "w.csv"), write(zones, tmp_path / "z.parquet")
    )
    np.testing.assert_array_equal(mixed.places, panel.places)


# ---- the table of zones


def test_a_table_of_zones_tells_places_and_demands(tmp_path: Path) -> None:
    zones = pd.DataFrame({"zone": ["B", "Z", "A"], "latitude": [42, 0, 41], "longitude": [-72, 0, -71], "bess": [6, 99, 5]})
    panel = build(tmp_path, hourly_table(), None, zones)
    assert panel.demand_known
    assert panel.demands.tolist() == [5, 6]
    np.testing.assert_array_equal(panel.places, [[41, -71], [42, -72]])
    assert panel.notes == ()
    places = build(tmp_path, hourly_table(), None, zones.drop(columns="bess").query("zone == 'B'"))
    np.testing.assert_array_equal(places.places, [[np.nan, np.nan], [42, -72]])
    assert places.notes == (f"{tmp_path / 'zones.csv'}: has no row for zone A",)
    assert not places.demand_known
    drawn = build(tmp_path, hourly_table(), None, zones.assign(bess=np.nan), demand_seed=3)
    assert not drawn.demand_known
    assert drawn.demands.tolist() == build(tmp_path, hourly_table(), demand_seed=3).demands.tolist()


ZONES = pd.DataFrame({"zone": ["A", "B"], "lat": [41.0, 42.0], "lon": [-71.0, -72.0], "demand": [5.0, 6.0]})


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        (pd.concat([ZONES, ZONES[:1]]), ", line 4: zone A: a second row for this zone, after line 2; keep one"),
        (ZONES[["zone"]].assign(city="x"), ": must have the columns zone, lat and lon (or demand), found zone, city"),
        (ZONES.drop(columns="zone"), ": must have a column 'zone', found lat, lon, demand"),
        (ZONES.assign(demand=[5, 25]), ", line 3: zone B: demand must be from 0 to 24 hours a day, found 25"),
        (ZONES.assign(demand=[5, np.nan]), ", line 3: zone B: demand must be from 0 to 24 hours a day, found nothing"),
        (ZONES.assign(lat=["41N", "42N"]), ", line 2: zone A: lat must be a finite number, found '41N'"),
        (ZONES[:1], ": must have the demand of every zone or of none, found none of zone B"),
    ],
)
def test_what_is_wrong_with_a_table_of_zones_is_named(tmp_path: Path, zones: pd.DataFrame, message: str) -> None:
    with refused(f"{tmp_path / 'zones.csv'}{message}"):
        build(tmp_path, hourly_table(), None, zones)
