"""Panels of every layout are read, and what is wrong with one is named by file, line, zone and date."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dffl_studies.energy.data import Panel, read_panel
from dffl_studies.energy.data.panel import weekday
from studies.tests.energy.data.made import PRICES, authors_table, panel_table, refused, write, zone_days

Change = Callable[[pd.DataFrame], pd.DataFrame]
HOURLY = "by the hour; prices' components are known only with the prices"


def same_numbers(panel: Panel, table: pd.DataFrame, prices: list[str] = PRICES) -> None:
    np.testing.assert_allclose(panel.prices, table[prices], rtol=1e-15)
    np.testing.assert_allclose(panel.covariates[:, :2], table[["tmean", "wind"]], rtol=1e-15)


def read(folder: Path, table: pd.DataFrame, name: str = "panel.csv", **options: object) -> Panel:
    return read_panel(write(table, folder / name), **options)  # type: ignore[arg-type]


def read_text(folder: Path, text: str | bytes) -> Panel:
    path = folder / "panel.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_panel(path)


def csv(table: pd.DataFrame) -> str:
    return str(table.to_csv(index=False))


# ---- layouts


@pytest.mark.parametrize("name", ["panel.csv", "panel.csv.gz", "panel.parquet", "PANEL.PARQUET"])
def test_a_panel_is_read_from_csv_and_parquet(tmp_path: Path, name: str) -> None:
    table = panel_table()
    path = tmp_path / name
    if name.isupper():
        table.to_parquet(path, index=False)
    else:
        write(table, path)
    panel = read_panel(path)
    assert panel.names == ("A", "B")
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")
    assert repr(panel) == "Panel(2 zones, 3 days, 3 covariates)"
    assert panel.source == str(path)
    assert panel.notes == ()
    assert panel.dates.astype(str).tolist() == ["2021-01-01", "2021-01-02", "2021-01-03"] * 2
    assert panel.covariates[:, 2].tolist() == [4, 5, 6] * 2  # a Friday, a Saturday, a Sunday
    assert panel.starts.tolist() == [0, 3, 6]
    same_numbers(panel, table)


def test_the_layout_of_the_papers_authors_is_read(tmp_path: Path) -> None:
    table = authors_table()
    panel = read(tmp_path, table)
    assert panel.names == ("AECO", "PSEG")
    assert panel.demands.tolist() == [6, 7]
    assert panel.demand_known
    weather = ("temp_c_mean", "temp_c_min", "temp_c_max", "humidity_mean", "wind_speed_mean")
    assert panel.covariate_names == (*weather, "solar_irradiance_mean", "solar_irradiance_max", "day_of_week")
    np.testing.assert_allclose(panel.covariates, table[list(panel.covariate_names)], rtol=1e-15)
    np.testing.assert_allclose(panel.prices, table[[f"total_lmp_{hour}" for hour in range(24)]], rtol=1e-15)
    assert panel.notes == (
        f"{tmp_path / 'panel.csv'}: left out congestion_*, by the hour; prices' components are known only with the prices",
    )
    numbered = read(tmp_path, table.drop(columns="client_name"))
    assert numbered.names == ("1", "2")


def test_their_congestion_is_our_own_part(tmp_path: Path) -> None:
    table = authors_table(("AECO", "BGE", "PSEG"), 4)
    panel = read(tmp_path, table)
    np.testing.assert_allclose(panel.own, table[[f"congestion_{hour}" for hour in range(24)]], atol=1e-12)


def test_the_first_row_of_the_papers_authors_in_numbers(tmp_path: Path) -> None:
    zones = ["AECO", *(f"Z{number:02d}" for number in range(18))]
    # The mean over the 19 zones is such that AECO's first price and own part are those that they publish.
    table = authors_table(zones, 1).assign(total_lmp_0=[21.74849] + [390.87238 / 18] * 18)
    weather = [8.691666666666666, 6.1, 10.5, 79.625, 24.733333333333334, 84.5, 440.0, 2]
    table.iloc[0, 50:58] = weather
    panel = read(tmp_path, table)
    zone = zone_days(panel, "AECO")
    assert zone.dates.astype(str).tolist() == ["2025-01-01"]
    np.testing.assert_allclose(zone.covariates[0], weather, rtol=1e-15)
    assert weekday(zone.dates).tolist() == [2]
    assert panel.demands[0] == 6
    assert panel.own[0, 0] == pytest.approx(0.0316021052631576, abs=1e-12)
    assert panel.costs("total")[0, 0] == 21.74849
    assert panel.costs("total+own")[0, 0] == pytest.approx(21.74849 + 0.0316021052631576, abs=1e-12)


@pytest.mark.parametrize("stem", ["price", "total_lmp", "lmp", "total"])
@pytest.mark.parametrize("first", [0, 1])
def test_prices_have_several_names_and_hours_may_be_those_that_end(tmp_path: Path, stem: str, first: int) -> None:
    table = panel_table()
    names = {f"price_{hour}": f"{stem}_{hour + first}" for hour in range(24)}
    backwards = table[[*reversed(table.columns)]].rename(columns=names)
    panel = read(tmp_path, backwards, covariates=["tmean", "wind"])
    same_numbers(panel, table)


def test_hours_may_have_a_leading_zero(tmp_path: Path) -> None:
    table = panel_table()
    panel = read(tmp_path, table.rename(columns={f"price_{hour}": f"price_{hour:02d}" for hour in range(10)}))
    same_numbers(panel, table)
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")


def test_of_two_families_of_prices_the_one_with_24_hours_is_taken(tmp_path: Path) -> None:
    table = panel_table()
    names = {f"price_{hour}": f"lmp_{hour}" for hour in range(24)}
    panel = read(tmp_path, table.rename(columns=names).assign(price_1=7.0))
    same_numbers(panel, table)
    note = f"{tmp_path / 'panel.csv'}: left out price_*, {HOURLY}"
    assert panel.notes == (note,)
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")


@pytest.mark.parametrize(("lat", "lon"), [("lat", "lon"), ("latitude", "longitude")])
def test_places_are_read(tmp_path: Path, lat: str, lon: str) -> None:
    panel = read(tmp_path, panel_table().assign(**{lat: [40.5] * 3 + [41.25] * 3, lon: [-75.0] * 3 + [-74.0] * 3}))
    np.testing.assert_array_equal(panel.places, [[40.5, -75], [41.25, -74]])
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")
    nowhere = read(tmp_path, panel_table())
    assert np.isnan(nowhere.places).all()
    assert nowhere.places.shape == (2, 2)
    half = read(tmp_path, panel_table().assign(**{lat: [40.5] * 3 + [np.nan] * 3}))
    np.testing.assert_array_equal(half.places, [[40.5, np.nan], [np.nan, np.nan]])


@pytest.mark.parametrize("column", ["demand", "bess"])
def test_demands_are_read_where_they_are_there(tmp_path: Path, column: str) -> None:
    panel = read(tmp_path, panel_table().assign(**{column: [0] * 3 + [24] * 3}), demand_seed=5)
    assert panel.demand_known
    assert panel.demands.tolist() == [0, 24]
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")


def test_demands_are_drawn_by_the_seed_where_they_are_not(tmp_path: Path) -> None:
    zones = [f"Z{number:02d}" for number in range(19)]
    panel = read(tmp_path, panel_table(zones, 2))
    assert not panel.demand_known
    assert panel.demands.tolist() == [11, 10, 9, 7, 8, 9, 9, 9, 5, 10, 7, 6, 4, 5, 11, 8, 10, 7, 4]
    fewer = read(tmp_path, panel_table(["Z07", "Z03"], 2))
    assert dict(zip(fewer.names, fewer.demands, strict=True)) == {"Z03": panel.demands[3], "Z07": panel.demands[7]}
    empty = read(tmp_path, panel_table(zones, 2).assign(demand=np.nan))
    assert not empty.demand_known
    assert empty.demands.tolist() == panel.demands.tolist()
    other = read(tmp_path, panel_table(zones, 2), demand_seed=1)
    assert other.demands.tolist() != panel.demands.tolist()
    assert set(read(tmp_path, panel_table([str(zone) for zone in range(200)], 2)).demands) == set(range(4, 13))


def test_price_components_by_the_hour_never_become_covariates(tmp_path: Path) -> None:
    parts: dict[str, Any] = {f"{name}_{hour}": np.arange(6) for name in ("congestion", "loss") for hour in range(24)}
    parts |= {f"energy_{hour}": np.arange(6) for hour in range(3)} | {"other_component_1": np.arange(6)}
    parts |= {f"temp_{hour}": np.arange(6) for hour in range(24)}
    table = panel_table().assign(**parts)
    panel = read(tmp_path, table)
    assert panel.covariate_names == ("tmean", "wind", "other_component_1", "day_of_week")
    left = "congestion_*, energy_*, loss_*, temp_*"
    assert panel.notes == (
        f"{tmp_path / 'panel.csv'}: left out {left}, by the hour; prices' components are known only with the prices",
    )
    assert read(tmp_path, table, covariates=["all"]).covariate_names == panel.covariate_names
    assert read(tmp_path, table, covariates=["temp_3", "wind"]).covariate_names == ("temp_3", "wind")
    for name in ("congestion_3", "energy_2", "price_5"):
        with refused(f"{tmp_path / 'panel.csv'}: {name} cannot be a covariate: it is known only with the prices"):
            read(tmp_path, table, covariates=["wind", name])


def test_covariates_may_be_chosen_in_any_order_and_the_weekday_follows_from_the_date(tmp_path: Path) -> None:
    table = panel_table()
    assert read(tmp_path, table, covariates=["wind"]).covariate_names == ("wind",)
    both = read(tmp_path, table, covariates=["weekday", "wind", "tmean", "wind"])
    assert both.covariate_names == ("weekday", "wind", "tmean")
    np.testing.assert_allclose(both.covariates[:, 1], table["wind"], rtol=1e-15)
    assert both.covariates[:, 0].tolist() == [4, 5, 6, 4, 5, 6]
    own = read(tmp_path, table.assign(dow=[1, 2, 3] * 2))
    assert own.covariate_names == ("tmean", "wind", "dow")


def test_what_is_true_or_false_is_a_number_and_a_moment_is_none(tmp_path: Path) -> None:
    table = panel_table().assign(holiday=[True, False, False] * 2, made=pd.Timestamp("2021-05-05"), city="Trenton", none=None)
    panel = read(tmp_path, table, "panel.parquet")
    assert panel.covariate_names == ("tmean", "wind", "holiday", "day_of_week")
    assert panel.covariates[:, 2].tolist() == [1, 0, 0, 1, 0, 0]
    assert panel.notes == (f"{tmp_path / 'panel.parquet'}: left out made, city, none, which hold no numbers",)
    table["holiday"] = ["True", "False", None] * 2
    assert "holiday" not in read(tmp_path, table, "panel.parquet").covariate_names


def test_texts_in_parquet_are_read_as_the_numbers_that_they_show(tmp_path: Path) -> None:
    table = panel_table()
    panel = read(tmp_path, table.astype(dict.fromkeys([*PRICES, "tmean", "wind"], str)), "panel.parquet")
    same_numbers(panel, table)


def test_an_index_that_pandas_has_written_makes_no_difference(tmp_path: Path) -> None:
    table = panel_table()
    table.set_index(["zone", "date"]).to_parquet(tmp_path / "index.parquet")
    table.set_axis([3, 1, 4, 15, 9, 2]).to_parquet(tmp_path / "rows.parquet")
    table.to_csv(tmp_path / "rows.csv")
    for name in ("index.parquet", "rows.parquet", "rows.csv"):
        panel = read_panel(tmp_path / name)
        assert panel.covariate_names == ("tmean", "wind", "day_of_week")
        same_numbers(panel, table)


@pytest.mark.parametrize(
    ("zones", "names"),
    [
        ((1, 2), ("1", "2")),
        (("007", "012"), ("007", "012")),
        (("NA", "None"), ("NA", "None")),
        (("Duke Energy, Inc", ' O\'Brien "North" '), ("Duke Energy, Inc", 'O\'Brien "North"')),
        (("Zürich", "ÅÄÖ"), ("Zürich", "ÅÄÖ")),
    ],
)
def test_zones_may_have_any_name(tmp_path: Path, zones: tuple[object, object], names: tuple[str, str]) -> None:
    table = panel_table().assign(zone=np.repeat(np.array(zones, object), 3))
    for file in ("panel.csv", "panel.parquet"):
        panel = read(tmp_path, table, file)
        assert panel.names == names
        same_numbers(panel, table)
        assert read(tmp_path, table, file, without=names[:1]).names == names[1:]


def test_whole_numbers_are_zones_also_where_pandas_has_made_fractions_of_them(tmp_path: Path) -> None:
    assert read(tmp_path, panel_table().assign(zone=[1.0] * 3 + [2.0] * 3), "panel.parquet").names == ("1", "2")


@pytest.mark.parametrize(
    "spelling",
    ["%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%Y-%m-%dT00:00:00Z", "%Y-%m-%d 00:00:00+05:00", "%Y-%m-%d 00:00", " %Y-%m-%d "],
)
def test_dates_may_be_spelt_in_several_ways_and_a_time_zone_moves_no_day(tmp_path: Path, spelling: str) -> None:
    table = panel_table()
    table["date"] = pd.to_datetime(table["date"]).dt.strftime(spelling)
    for file in ("panel.csv", "panel.parquet"):
        assert read(tmp_path, table, file).days.astype(str).tolist() == ["2021-01-01", "2021-01-02", "2021-01-03"]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "America/New_York"])
def test_dates_may_be_moments_in_parquet(tmp_path: Path, zone: str | None) -> None:
    table = panel_table()
    table["date"] = pd.to_datetime(table["date"]).dt.tz_localize(zone)
    assert read(tmp_path, table, "panel.parquet").days.astype(str).tolist() == ["2021-01-01", "2021-01-02", "2021-01-03"]
    table["date"] = table["date"].dt.date
    assert read(tmp_path, table, "panel.parquet").days.astype(str).tolist() == ["2021-01-01", "2021-01-02", "2021-01-03"]


def test_a_mark_at_the_start_of_the_file_and_windows_line_ends_make_no_difference(tmp_path: Path) -> None:
    table = panel_table()
    panel = read_text(tmp_path, b"\xef\xbb\xbf" + csv(table).replace("\n", "\r\n").encode())
    same_numbers(panel, table)
    assert panel.names == ("A", "B")


def test_spaces_around_names_and_cells_make_no_difference(tmp_path: Path) -> None:
    table = panel_table()
    panel = read_text(tmp_path, csv(table).replace(",", " , "))
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")
    assert panel.names == ("A", "B")
    same_numbers(panel, table)


def test_zones_may_be_left_out(tmp_path: Path) -> None:
    table = panel_table(("C", "A", "B"))
    panel = read(tmp_path, table, without=["A"])
    assert panel.names == ("B", "C")
    np.testing.assert_allclose(zone_days(panel, "C").prices, table[PRICES][:3], rtol=1e-15)
    path = tmp_path / "panel.csv"
    with refused(f"{path}: --without names zone 'D', which is not there; it has A, B, C"):
        read_panel(path, without=["A", "D"])
    cheap = write(table.assign(wind=np.where(table["zone"] == "B", np.inf, 5)), tmp_path / "infinite.csv")
    with refused(f"{cheap}, line 8: zone B, 2021-01-01: wind must be a finite number, found 'inf'"):
        read_panel(cheap, without=["A"])
    with refused(f"{path}: --without leaves no zone"):
        read_panel(path, without=["A", "B", "C"])
    many = write(panel_table([f"Z{zone:02d}" for zone in range(30)], 1), tmp_path / "many.csv")
    shown = ", ".join(f"Z{zone:02d}" for zone in range(20))
    with refused(f"{many}: --without names zone 'D', which is not there; it has {shown} and 10 more"):
        read_panel(many, without=["D"])


def test_a_weekday_is_0_on_a_monday() -> None:
    days = np.array(["1969-12-29", "1970-01-01", "2021-01-31", "2024-02-29"], "datetime64[D]")
    assert weekday(days).tolist() == [0, 3, 6, 3]


# ---- what is wrong


def cell(column: str, value: Any, row: int = 4) -> Change:
    """Row 4 of the panel is zone B's second day, in line 6."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        table = table.astype({column: object})
        table.loc[row, column] = value
        return table

    return change


AT = "{path}, line 6: zone B, 2021-01-02: "
CHOOSE = "or choose the covariates with --covariates"
BUILD = "for days of 23 or 25 hours, build the panel with dffl energy panel"
WRONG: dict[str, tuple[Change, str]] = {
    "text in a price": (cell("price_7", "free"), AT + "price_7 must be a finite number, found 'free'"),
    "decimal comma": (
        cell("price_7", "41,5"),
        AT + "price_7 must be a finite number, found '41,5'; write decimals with a point",
    ),
    "missing price": (cell("price_7", ""), AT + "price_7 is missing; fill it, or leave that row out"),
    "NA for a price": (cell("price_7", "NA"), AT + "price_7 is missing; fill it, or leave that row out"),
    "infinite price": (cell("price_7", "inf"), AT + "price_7 must be a finite number, found 'inf'"),
    "text in a covariate": (cell("wind", "calm"), AT + "wind must be a finite number, found 'calm'"),
    "missing covariate": (cell("wind", ""), AT + f"wind is missing; fill it, or leave that row out, {CHOOSE}"),
    "infinite covariate": (cell("wind", "-inf"), AT + "wind must be a finite number, found '-inf'"),
    "day and month": (
        cell("date", "1/2/2021"),
        "{path}, line 6: zone B: date must be a day such as 2021-01-31, found '1/2/2021'",
    ),
    "no such day": (
        cell("date", "2021-02-30"),
        "{path}, line 6: zone B: date must be a day such as 2021-01-31, found '2021-02-30'",
    ),
    "a time of the day": (
        cell("date", "2021-01-02T05:00Z"),
        "{path}, line 6: zone B: date must be a day such as 2021-01-31, found '2021-01-02T05:00Z'",
    ),
    "no date": (cell("date", ""), "{path}, line 6: zone B: date must be a day such as 2021-01-31, found nothing"),
    "no zone": (cell("zone", ""), "{path}, line 6: zone is empty; name the zone, or remove the line"),
    "a space for a zone": (cell("zone", "  "), "{path}, line 6: zone is empty; name the zone, or remove the line"),
    "two rows": (
        lambda table: pd.concat([table, table.iloc[[4]]]),
        "{path}, line 8: zone B, 2021-01-02: a second row for this zone and date, after line 6; keep one",
    ),
    "23 prices": (
        lambda table: table.drop(columns="price_23"),
        "{path}: a day must have 24 prices, price_0 to price_23, found 23 columns, price_0 to price_22; " + BUILD,
    ),
    "a price less": (
        lambda table: table.drop(columns="price_11"),
        "{path}: a day must have 24 prices, price_0 to price_23, found 23 columns, price_0 to price_23 without price_11; "
        + BUILD,
    ),
    "25 prices": (
        lambda table: table.assign(price_24=1.0),
        "{path}: a day must have 24 prices, price_0 to price_23, found 25 columns, price_0 to price_24; " + BUILD,
    ),
    "no prices": (
        lambda table: table.drop(columns=PRICES),
        "{path}: must have a day's prices in columns price_0 to price_23, found zone, date, tmean, wind",
    ),
    "no column of zones": (
        lambda table: table.drop(columns=["zone", *PRICES]),
        "{path}: must have a column 'zone', found date, tmean, wind",
    ),
    "no column of dates": (
        lambda table: table.drop(columns="date"),
        "{path}: must have a column 'date', found zone, " + ", ".join(PRICES[:11]) + " and 15 more",
    ),
    "too great a demand": (
        lambda table: table.assign(demand=[4] * 3 + [24.5] * 3),
        "{path}, line 5: zone B, 2021-01-01: demand must be from 0 to 24 hours a day, found 24.5",
    ),
    "too small a demand": (
        lambda table: table.assign(bess=[-1] * 3 + [24] * 3),
        "{path}, line 2: zone A, 2021-01-01: bess must be from 0 to 24 hours a day, found -1",
    ),
    "no demand of a zone": (
        lambda table: table.assign(demand=[4.0] * 3 + [np.nan] * 3),
        "{path}, line 5: zone B, 2021-01-01: demand must be from 0 to 24 hours a day, found nothing",
    ),
    "no demand of a day": (
        lambda table: table.assign(demand=[4.0] * 4 + [np.nan] + [4.0]),
        AT + "demand must be the same on all days of a zone, found nothing after 4",
    ),
    "demand that varies": (
        lambda table: table.assign(demand=[4.0] * 4 + [5.0] + [4.0]),
        AT + "demand must be the same on all days of a zone, found 5 after 4",
    ),
    "text for a demand": (cell("demand", "many"), AT + "demand must be a finite number, found 'many'"),
    "place that varies": (
        lambda table: table.assign(latitude=[4.0] * 4 + [4.000001] + [4.0]),
        AT + "latitude must be the same on all days of a zone, found 4.000001 after 4",
    ),
    "two columns of one name": (
        lambda table: table.rename(columns={"wind": "tmean"}),
        "{path}: two columns are named 'tmean'; rename one",
    ),
    "no rows": (lambda table: table.iloc[:0], "{path}: must have at least one row below its header, found none"),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_by_file_line_zone_and_date(tmp_path: Path, change: Change, message: str) -> None:
    table = panel_table()
    if "'many'" in message:
        table["demand"] = 4
    path = tmp_path / "panel.csv"
    with refused(message.format(path=path)):
        read(tmp_path, change(table))


def test_rows_of_parquet_are_counted_from_1(tmp_path: Path) -> None:
    table = panel_table()
    table.loc[4, "price_7"] = np.nan
    path = tmp_path / "panel.parquet"
    with refused(f"{path}, row 5: zone B, 2021-01-02: price_7 is missing; fill it, or leave that row out"):
        read(tmp_path, table, path.name)
    table = panel_table().assign(price_7=pd.Timestamp("2021-01-01"))
    with refused(f"{path}, row 1: zone A, 2021-01-01: price_7 must be a finite number, found '2021-01-01 00:00:00'"):
        read(tmp_path, table, path.name)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["rain"], "must have a column 'rain', found zone, date, " + ", ".join(PRICES[:10]) + " and 16 more"),
        (["price_3"], "price_3 cannot be a covariate: it is known only with the prices"),
        (["zone"], "zone cannot be a covariate: it does not describe a day"),
        ([], "--covariates must name at least one column, found none"),
    ],
)
def test_covariates_that_cannot_be_are_refused(tmp_path: Path, wanted: list[str], message: str) -> None:
    with refused(f"{tmp_path / 'panel.csv'}: {message}"):
        read(tmp_path, panel_table(), covariates=wanted)


def test_a_slip_in_a_column_of_numbers_is_an_error_and_a_column_of_texts_is_left_out(tmp_path: Path) -> None:
    table = panel_table().assign(rain=["", "", "", "", "0.5", "wet"])
    assert read(tmp_path, table).notes == (f"{tmp_path / 'panel.csv'}: left out rain, which hold no numbers",)
    table["rain"] = ["", "", "", "0.5", "0.5", "wet"]
    with refused(f"{tmp_path / 'panel.csv'}, line 7: zone B, 2021-01-03: rain must be a finite number, found 'wet'"):
        read(tmp_path, table)


def test_blank_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    table = panel_table()
    lines = csv(table).splitlines()
    blanks = "," * lines[0].count(",")
    spread = "\n".join([lines[0], "", lines[1], blanks, "", *lines[2:], "", ""])
    panel = read_text(tmp_path, spread)
    same_numbers(panel, table)
    path = tmp_path / "panel.csv"
    with refused(f"{path}, line 7: zone A, 2021-01-03: price_0 must be a finite number, found 'x'"):
        read_text(tmp_path, spread.replace(f"2021-01-03,{table['price_0'][2]}", "2021-01-03,x"))
    same_numbers(read_text(tmp_path, spread.replace("2021-01-", "202101")), table)


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    path, good = tmp_path / "panel.csv", csv(panel_table())
    lines = good.splitlines()
    cells = "write decimals with a point, texts with commas in quotes, and the names of all columns in the first line"
    header = ": its first line must name the columns, found nothing there"
    utf_8 = ": cannot be read as CSV, as it is not text in UTF-8; save it as CSV in UTF-8"
    for text, message in (
        ("", header),
        ("\n" + good, header),
        (good.replace(".", ","), f", line 2: has 54 cells, where 28 were expected; {cells}"),
        ("\n".join([*lines[:3], lines[3] + ",5,6"]), f", line 4: has 30 cells, where 28 were expected; {cells}"),
        (good.encode("utf-16"), utf_8),
        (good.replace("A", "Ö").encode("latin-1"), f", line 2{utf_8}"),
        (bytes(range(256)), utf_8),
    ):
        with refused(f"{path}{message}"):
            read_text(tmp_path, text)


@pytest.mark.parametrize("sign", [";", "\t"])
def test_semicolons_and_tabs_are_read_also_with_decimal_commas(tmp_path: Path, sign: str) -> None:
    table = panel_table()
    good = csv(table).replace(",", sign)
    for text in (good, good.replace(".", ",")):
        same_numbers(read_text(tmp_path, text), table)


def test_a_damaged_archive_and_what_is_no_parquet_are_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(csv(panel_table()).encode()))
    for content, name, kind in (
        (b"zone,date", "plain.csv.gz", "CSV"),
        (bytes(packed[:200]), "cut.csv.gz", "CSV"),
        (bytes(packed[:40] + b"\xff" * 40 + packed[80:]), "damaged.csv.gz", "CSV"),
        (b"zone,date", "no.csv.zip", "CSV"),
        (b"zone,date", "no.csv.xz", "CSV"),
        (b"zone,date", "no.parquet", "Parquet"),
        (b"", "empty.parquet", "Parquet"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name}: cannot be read as {kind} \(.+\)$") as caught:
            read_panel(path)
        assert "\n" not in str(caught.value)


def test_a_folder_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with refused(f"{tmp_path}: a folder, not a file"):
        read_panel(tmp_path)
    with refused(f"{tmp_path / 'no.csv'}: there is no such file"):
        read_panel(tmp_path / "no.csv")


def test_two_columns_of_one_name_are_refused_in_parquet_too(tmp_path: Path) -> None:
    path = write(panel_table().rename(columns={"wind": " tmean "}), tmp_path / "panel.parquet")
    with refused(f"{path}: two columns are named 'tmean'; rename one"):
        read_panel(path)


# ---- what is noted


def test_rows_may_stand_in_any_order(tmp_path: Path) -> None:
    table = panel_table(days=4)
    panel = read(tmp_path, table.iloc[[4, 0, 2, 1, 5, 3, 6, 7]])
    same_numbers(panel, table)
    assert panel.notes == (
        f"{tmp_path / 'panel.csv'}, line 5: zone A, 2021-01-02 follows a later day, 2021-01-03: the days were sorted",
    )
    zones_apart = read(tmp_path, table.sort_values("date", kind="stable"))
    assert zones_apart.notes == ()
    same_numbers(zones_apart, table)


def test_gaps_are_noted(tmp_path: Path) -> None:
    table = panel_table(days=6)
    one = read(tmp_path, table.drop(index=[2, 3]))
    tail = "the last day before a gap is used as yesterday"
    assert one.notes == (f"zone A: 2 days are missing, the first 2021-01-03; {tail}",)
    two = read(tmp_path, table.drop(index=[3, 7, 9]))
    assert two.notes == (f"zone A: a day is missing, 2021-01-04 (2 zones have gaps); {tail}",)
    assert two.starts.tolist() == [0, 5, 9]
    assert read(tmp_path, table.drop(index=[0, 11])).notes == ()


def test_constant_covariates_are_noted(tmp_path: Path) -> None:
    zones = list("ABCDE")
    wind = np.random.default_rng(0).normal(size=15)
    for flat, where in ((5, "every zone"), (2, "zone A, B"), (4, "zone A, B, C and more")):
        panel = read(tmp_path, panel_table(zones).assign(wind=np.where(np.arange(15) < 3 * flat, 4.0, wind)))
        assert panel.notes == (f"covariate wind is constant at {where}: it has no effect there",)
    assert read(tmp_path, panel_table(days=1)).notes == ()


def test_a_covariate_with_the_name_of_a_price_is_noted(tmp_path: Path) -> None:
    panel = read(tmp_path, panel_table().assign(gas_price=np.arange(6), congestion=np.arange(6)))
    assert panel.covariate_names == ("tmean", "wind", "gas_price", "congestion", "day_of_week")
    names = "covariate gas_price, congestion has the name of a price"
    assert panel.notes == (f"{names}: leave it out unless it is known the day before",)
