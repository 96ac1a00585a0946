"""Days of any number of periods, days on which clocks change, and days that are not complete."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dffl_studies.energy.data import build_panel, open_panel, read_panel
from studies.tests.energy.data.made import keys, refused, write


def wide(periods: int, days: int = 3, start: str = "2021-01-01") -> pd.DataFrame:
    table = keys(("A", "B"), days, start)
    values = np.random.default_rng(0).normal(40, 5, (len(table), periods)).round(2)
    return table.join(pd.DataFrame(values, columns=[f"price_{period}" for period in range(periods)]))


def quarters(days: int = 2, start: str = "2021-01-01", zones: tuple[str, ...] = ("A",)) -> pd.DataFrame:
    """Prices by the quarter hour: the hour plus a hundredth of the minute."""
    table = keys(zones, days, start)
    table = table.loc[np.repeat(table.index, 96)].reset_index(drop=True)
    quarter = np.tile(np.arange(96), len(zones) * days)
    table = table.assign(hour=quarter // 4, minute=15 * (quarter % 4))
    return table.assign(total=table["hour"] + table["minute"] / 100)


@pytest.mark.parametrize("periods", [2, 6, 24, 48, 96])
def test_a_panel_may_have_any_number_of_periods(tmp_path: Path, periods: int) -> None:
    table = wide(periods)
    panel = read_panel(write(table, tmp_path / "p.csv"))
    assert (panel.periods, panel.covariate_names) == (periods, ("day_of_week",))
    np.testing.assert_allclose(panel.prices, table.filter(like="price_"), rtol=1e-15)
    panel.write(tmp_path / "again.parquet")
    np.testing.assert_array_equal(read_panel(tmp_path / "again.parquet").prices, panel.prices)
    assert ((panel.demands >= 1) & (panel.demands <= periods / 2)).all()


@pytest.mark.parametrize(("periods", "whole"), [(23, 24), (25, 24), (92, 96), (100, 96), (50, 48)])
def test_the_periods_of_a_day_on_which_clocks_change_are_no_days(tmp_path: Path, periods: int, whole: int) -> None:
    path = write(wide(periods), tmp_path / "p.csv")
    with pytest.raises(
        ValueError, match=rf"a day must have {whole} prices, price_0 to price_{whole - 1}, found {periods} columns"
    ):
        read_panel(path)


def test_demands_are_counted_in_periods(tmp_path: Path) -> None:
    assert read_panel(write(wide(96).assign(demand=40), tmp_path / "p.csv")).demands.tolist() == [40, 40]
    with refused(f"{tmp_path / 'p.csv'}, line 2: zone A, 2021-01-01: demand must be from 0 to 96 periods a day, found 97"):
        read_panel(write(wide(96).assign(demand=97), tmp_path / "p.csv"))


def test_the_hour_that_clocks_leave_out_is_filled_in_a_panel(tmp_path: Path) -> None:
    table = wide(24, 3, "2021-03-27")  # clocks change on Sunday, 28 March
    table.loc[1, "price_2"] = np.nan
    path = write(table, tmp_path / "p.csv")
    panel = read_panel(path)
    assert panel.prices[1, 2] == pytest.approx((table["price_1"][1] + table["price_3"][1]) / 2)
    assert panel.notes == (
        f"{path}, line 3: zone A, 2021-03-28: the hour that the clocks leave out was filled by its neighbours",
    )
    four = wide(96, 3, "2021-03-27")
    four.loc[1, ["price_8", "price_9", "price_10", "price_11"]] = np.nan
    assert np.isfinite(read_panel(write(four, path)).prices).all()
    four.loc[1, "price_12"] = np.nan
    with refused(f"{path}, line 3: zone A, 2021-03-28: price_8 is missing; fill it, or leave that row out"):
        read_panel(write(four, path))


def test_a_last_day_that_is_not_complete_is_left_out_with_a_note(tmp_path: Path) -> None:
    table = wide(24, 4)
    table.loc[7, [f"price_{hour}" for hour in range(13, 24)]] = np.nan
    path = write(table, tmp_path / "p.csv")
    panel = read_panel(path)
    assert panel.starts.tolist() == [0, 4, 7]
    assert panel.notes == (f"{path}, line 9: zone B, 2021-01-04: the last day has 13 of 24 prices, and was left out",)


def test_days_of_hours_among_days_of_quarter_hours_are_refused(tmp_path: Path) -> None:
    path, fix = tmp_path / "p.csv", "use days of one kind (--from, --to), or write each hour's price into all of its periods"
    table = wide(96)
    table.loc[1, [f"price_{period}" for period in range(24, 96)]] = np.nan
    with refused(f"{path}, line 3: zone A, 2021-01-02: has 24 prices where other days have 96; {fix}"):
        read_panel(write(table, path))
    mixed = quarters(3)
    mixed = mixed[(mixed["date"] != "2021-01-02") | (mixed["minute"] == 0)]
    has = "has one price an hour, and line 2, zone A, 2021-01-01 has 4"
    with refused(f"{path}, line 98: zone A, 2021-01-02: {has}; {fix}"):
        build_panel(write(mixed, path))


def test_prices_by_the_quarter_hour_alone_are_a_panel(tmp_path: Path) -> None:
    panel = open_panel(write(quarters(2, zones=("A", "B")), tmp_path / "prices.csv"))
    assert (panel.periods, panel.names, panel.covariate_names) == (96, ("A", "B"), ("day_of_week",))
    np.testing.assert_allclose(panel.prices[0, :6], [0, 0.15, 0.3, 0.45, 1, 1.15])
    numbered = quarters().assign(period=np.tile(np.arange(1, 97), 2)).drop(columns=["hour", "minute"])
    np.testing.assert_array_equal(open_panel(write(numbered, tmp_path / "n.csv")).prices, panel.prices[:2])


def test_the_hour_that_clocks_repeat_is_averaged_by_quarter_hours(tmp_path: Path) -> None:
    table = quarters(2, "2021-10-30")  # clocks change on Sunday, 31 October
    again = table[(table["date"] == "2021-10-31") & (table["hour"] == 2)]
    panel = build_panel(write(pd.concat([table, again.assign(total=again["total"] + 10)]), tmp_path / "p.csv"))
    np.testing.assert_allclose(panel.prices[1, 8:12], [7, 7.15, 7.3, 7.45])
    assert "is there twice, as the clocks repeat it: averaged (4 such hours in all)" in panel.notes[0]
    wrong = table[(table["date"] == "2021-10-30") & (table["hour"] == 2)]
    with pytest.raises(ValueError, match="2021-10-30, hour 2, minute 0: a second row for this hour"):
        build_panel(write(pd.concat([table, wrong]), tmp_path / "p.csv"))


def test_a_published_forecast_is_read_next_to_the_prices(tmp_path: Path) -> None:
    table = wide(6)
    ahead = table.filter(like="price_").add(1).rename(columns=lambda name: name.replace("price", "forecast"))
    panel = read_panel(write(table.join(ahead), tmp_path / "p.csv"))
    assert panel.forecast is not None
    np.testing.assert_allclose(panel.forecast, panel.prices + 1)
    assert panel.notes == ()
    with refused(f"{tmp_path / 'p.csv'}: must have a forecast of every price, forecast_0 to forecast_5, found 5 such columns"):
        read_panel(write(table.join(ahead.drop(columns="forecast_3")), tmp_path / "p.csv"))
