"""Zones as clients, from tables like the market's."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.data import energy


def write(folder: Path, hours: int = 24, zones: tuple[str, ...] = ("A", "B", "NE_INTERNAL_HUB")) -> None:
    days = pd.date_range("2021-01-01", periods=6).strftime("%Y-%m-%d")
    rng = np.random.default_rng(0)
    prices = [(z, d, h, rng.normal(40, 5)) for z in zones for d in days for h in range(hours)]
    pd.DataFrame(prices, columns=["zone", "date", "hour", "total"]).to_csv(folder / "prices.csv.gz", index=False)
    weather = [(z, d, *rng.normal(10, 3, 5), i % 7) for z in zones for i, d in enumerate(days)]
    pd.DataFrame(weather, columns=["zone", "date", *energy.WEATHER]).to_csv(folder / "weather.csv.gz", index=False)


def test_each_zone_buys_some_hours_of_each_day_in_the_order_of_time(tmp_path):
    write(tmp_path)
    fed = energy.zones(tmp_path, "2021-01-02", "2021-01-05")
    assert fed.names == ["A", "B"]
    assert fed.counts == [4, 4]
    assert fed.feature_names == energy.WEATHER
    raw = pd.read_csv(tmp_path / "prices.csv.gz").query("zone == 'B' and date == '2021-01-03'").sort_values("hour")["total"]
    np.testing.assert_allclose(fed["B"].c[1], raw)
    assert all(isinstance(one.set, dffl.TopK) and 4 <= float(one.set.k) <= 12 for one in fed)
    assert [float(one.set.k) for one in fed] == [float(one.set.k) for one in energy.zones(tmp_path)]


def test_a_day_without_24_hours_is_named(tmp_path):
    write(tmp_path, hours=23)
    with pytest.raises(ValueError, match="zone A, 2021-01-01: every day must have 24 prices"):
        energy.zones(tmp_path)


def test_what_is_wrong_with_a_table_is_named(tmp_path):
    write(tmp_path)
    prices = pd.read_csv(tmp_path / "prices.csv.gz")
    pd.concat([prices, prices.iloc[[30]]]).to_csv(tmp_path / "prices.csv.gz", index=False)
    with pytest.raises(ValueError, match=r"prices\.csv\.gz: two rows for zone A, date 2021-01-02, hour 6; keep one"):
        energy.zones(tmp_path)
    prices.drop(columns="total").to_csv(tmp_path / "prices.csv.gz", index=False)
    with pytest.raises(ValueError, match=r"prices\.csv\.gz: must have a column 'total', found zone, date, hour"):
        energy.zones(tmp_path)
    write(tmp_path)
    with pytest.raises(ValueError, match="zone A: no day has prices and weather between 2030-01-01 and any"):
        energy.zones(tmp_path, "2030-01-01")


@pytest.mark.skipif("DFFL_ENERGY_DATA" not in os.environ, reason="DFFL_ENERGY_DATA does not name the real zones' folder")
def test_the_real_zones():
    fed = energy.zones(os.environ["DFFL_ENERGY_DATA"])
    assert len(fed) == 19
    assert set(fed.counts) == {365}
    found = dffl.advise(fed, quick=True, blocks=True, progress=False)
    assert len(found.table) == 19
