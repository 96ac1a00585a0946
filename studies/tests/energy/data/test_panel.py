"""The panel: market and own parts, costs, files, folders, and the real zones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dffl_studies.energy.data import Panel, Sampling, digest, federation, open_panel, read_panel
from dffl_studies.energy.data.panel import check_target
from dffl_studies.energy.data.reading import random_demands
from studies.tests.energy.data.made import (
    FOLDER,
    PRICES,
    hourly_table,
    made_panel,
    needs_real_files,
    panel_table,
    refused,
    weather_table,
    write,
    zone_days,
)


@pytest.fixture
def ragged(tmp_path: Path) -> Panel:
    """Three zones, of which the second lacks two days and the third two others; the last day has one zone."""
    table = panel_table(("A", "B", "C"), 5)
    return read_panel(write(table.drop(index=[6, 9, 12, 14]), tmp_path / "ragged.parquet"))


def test_market_and_own_part_make_the_price(ragged: Panel) -> None:
    np.testing.assert_allclose(ragged.market + ragged.own, ragged.prices, rtol=1e-14)


def test_own_parts_sum_to_zero_over_the_zones_of_a_day(ragged: Panel) -> None:
    assert len(ragged.days) == 5
    counts = []
    for day in ragged.days:
        there = ragged.dates == day
        counts.append(int(there.sum()))
        np.testing.assert_allclose(ragged.own[there].sum(axis=0), np.zeros(24), atol=1e-12)
        np.testing.assert_allclose(ragged.market[there], np.tile(ragged.prices[there].mean(axis=0), (counts[-1], 1)))
    assert counts == [3, 2, 2, 3, 1]
    np.testing.assert_array_equal(ragged.own[ragged.dates == ragged.days[-1]], np.zeros((1, 24)))


def test_costs_in_numbers(tmp_path: Path) -> None:
    prices = {name: [10.0, 20.0, 60.0] for name in PRICES} | {"price_5": [-5.0, 0.0, 5.0]}
    panel = read_panel(write(panel_table(("A", "B", "C"), 1).assign(**prices), tmp_path / "panel.csv"))
    assert panel.market[:, 0].tolist() == [30, 30, 30]
    assert panel.own[:, 0].tolist() == [-20, -10, 30]
    assert panel.costs()[:, 0].tolist() == [10, 20, 60]
    assert panel.costs("total+own")[:, 0].tolist() == [-10, 10, 90]
    assert panel.costs("total+own")[:, 5].tolist() == [-10, 0, 10]
    with refused("cost must be one of total, total+own, found 'congestion'"):
        panel.costs("congestion")


def test_zones_are_found_by_name(ragged: Panel) -> None:
    assert list(ragged.zones) == ["A", "B", "C"]
    for zone, days in zip("ABC", ([1, 2, 3, 4, 5], [1, 3, 4], [1, 2, 4]), strict=True):
        found = zone_days(ragged, zone)
        assert [int(str(day)[-2:]) for day in found.dates] == days
        assert found.prices.shape == (len(days), 24)
        assert found.covariates.shape == (len(days), 3)
    with refused(f"{ragged.source}: there is no zone 'D'; it has A, B, C"):
        ragged.rows("D")


@pytest.mark.parametrize("name", ["panel.csv", "panel.csv.gz", "panel.parquet"])
@pytest.mark.parametrize("known", [True, False])
def test_what_is_written_is_read_again(tmp_path: Path, name: str, known: bool) -> None:
    zones = ["007", "NA", 'O\'Brien, "North"']
    table = panel_table(zones, 4).drop(index=[5])
    if known:
        table = table.assign(demand=table["zone"].map(dict(zip(zones, (4.5, 0, 24), strict=True))))
        table = table.assign(lat=table["zone"].map({zones[0]: 1 / 3, zones[2]: 45.0}), lon=table["zone"].map({zones[0]: -75.1}))
    panel = read_panel(write(table, tmp_path / "source.parquet"))
    panel.write(tmp_path / name)
    again = read_panel(tmp_path / name)
    assert again.names == panel.names == tuple(zones)
    assert again.covariate_names == panel.covariate_names
    assert again.demand_known is known
    for field in ("starts", "dates", "demands", "places"):
        np.testing.assert_array_equal(getattr(again, field), getattr(panel, field))
    for field in ("prices", "covariates"):
        np.testing.assert_allclose(getattr(again, field), getattr(panel, field), rtol=0 if name.endswith("parquet") else 1e-15)
    assert again.notes == panel.notes
    pd.testing.assert_frame_equal(again.frame(), panel.frame(), rtol=1e-15)


def test_the_table_of_a_panel_has_its_columns_in_order(tmp_path: Path) -> None:
    panel = made_panel(tmp_path, days=2)
    assert panel.frame().columns.tolist() == ["zone", "date", *PRICES, "tmean", "wind", "day_of_week"]
    known = made_panel(tmp_path, days=2, demand=5, lat=40.0)
    assert known.frame().columns[-3:].tolist() == ["demand", "lat", "lon"]


@pytest.mark.parametrize("name", ["panel.csv", "panel.csv.gz", "panel.parquet"])
def test_the_same_panel_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    panel = made_panel(tmp_path)
    contents = []
    for _ in range(2):
        panel.write(str(tmp_path / name))
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    if name.endswith(".gz"):
        assert contents[0][3:8] == bytes(5)  # neither a file's name nor a time
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"made.parquet", name})


def test_a_file_that_a_panel_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    panel = made_panel(tmp_path, days=1)
    path = tmp_path / "panel.xlsx"
    with refused(f"{path}: a panel must end in .csv, .csv.gz, .parquet"):
        panel.write(path)
    path = tmp_path / "nowhere" / "panel.csv"
    with refused(f"the path of a panel must name a file in a folder that exists, found {str(path)!r}"):
        panel.write(path)
    path = tmp_path / "folder.csv"
    path.mkdir()
    with refused(f"--out must name a file in a folder that exists, found {str(path)!r}"):
        check_target(path)


# ---- folders


def folder_of(folder: Path, zones: pd.DataFrame | None = None) -> Path:
    write(hourly_table(), folder / "prices.csv.gz")
    write(weather_table(), folder / "weather.csv.gz")
    if zones is not None:
        write(zones, folder / "zones.csv")
    return folder


PLACES = pd.DataFrame({"zone": ["A", "B"], "lat": [41.0, 42.0], "lon": [-71.0, -72.0]})


def test_a_folder_is_opened_as_a_panel(tmp_path: Path) -> None:
    panel = open_panel(folder_of(tmp_path))
    assert panel.names == ("A", "B")
    assert np.isnan(panel.places).all()
    panel = open_panel(str(folder_of(tmp_path, PLACES)), ["A"], ["wind"], demand_seed=4)
    assert panel.names == ("B",)
    assert panel.covariate_names == ("wind",)
    np.testing.assert_array_equal(panel.places, [[42, -72]])
    assert panel.demands.tolist() == random_demands("B", 4).tolist() != random_demands("B", 0).tolist()


def test_a_file_is_opened_as_a_panel(tmp_path: Path) -> None:
    path = write(panel_table(), tmp_path / "panel.csv")
    panel = open_panel(str(path), ["A"], ["wind"], demand_seed=4)
    assert panel.demands.tolist() == random_demands("B", 4).tolist()
    assert panel.names == ("B",)
    assert panel.covariate_names == ("wind",)


def test_a_folder_needs_prices_and_no_weather(tmp_path: Path) -> None:
    folder_of(tmp_path)
    (tmp_path / "weather.csv.gz").unlink()
    assert open_panel(tmp_path).covariate_names == ("day_of_week",)
    (tmp_path / "prices.csv.gz").unlink()
    message = f"{tmp_path / 'prices.csv.gz'}: there is no such file; the folder must hold prices.csv.gz (and weather.csv.gz)"
    with refused(message):
        open_panel(tmp_path)
    with refused(message):
        digest(tmp_path)
    with refused(f"{tmp_path / 'no.csv'}: there is no such file"):
        digest(tmp_path / "no.csv")
    with refused(f"{tmp_path / 'no.csv'}: there is no such file"):
        open_panel(tmp_path / "no.csv")


def test_a_fingerprint_goes_with_everything_that_decisions_depend_on(tmp_path: Path) -> None:
    def of(zones: pd.DataFrame | None) -> str:
        (tmp_path / "zones.csv").unlink(missing_ok=True)
        if zones is not None:
            write(zones, tmp_path / "zones.csv")
        return digest(tmp_path)

    folder_of(tmp_path)
    alone, places = of(None), of(PLACES)
    demands, other = of(PLACES.assign(demand=[5, 6])), of(PLACES.assign(demand=[5, 7]))
    assert alone == places
    assert len({alone, demands, other}) == 3
    write(weather_table().assign(wind=0.0), tmp_path / "weather.csv.gz")
    assert of(None) != alone
    assert digest(str(tmp_path)) == digest(tmp_path)
    one, two = (write(panel_table(seed=seed), tmp_path / f"{seed}.csv") for seed in (0, 1))
    assert digest(one) == digest(write(panel_table(), tmp_path / "copy.csv"))
    assert digest(one) != digest(two)


# ---- the real zones


@pytest.fixture(scope="module")
def real() -> Panel:
    return open_panel(FOLDER)


@needs_real_files
def test_the_real_zones_in_numbers(real: Panel) -> None:
    assert repr(real) == "Panel(20 zones, 365 days, 6 covariates)"
    assert (str(real.days[0]), str(real.days[-1])) == ("2021-01-01", "2021-12-31")
    assert np.diff(real.starts).tolist() == [365] * 20
    assert real.covariate_names == ("tmean", "tmin", "tmax", "humidity", "wind", "dow")
    left = "dewpoint, wind_max, precip, slp, visib"
    assert real.notes == (
        f"{FOLDER / 'weather.csv.gz'}: left out {left}, which the paper does not use (--covariates all takes them)",
    )
    assert zone_days(real, "NY_J_NYC").prices.mean() == pytest.approx(42.4697717, abs=1e-6)
    assert zone_days(real, "MISO_TEXAS").prices.mean() == pytest.approx(41.3660468, abs=1e-6)
    assert (real.prices.min(), real.prices.max()) == (-1086.21, 3500)
    assert zone_days(real, "MISO_ARKANSAS").prices[0, :3].tolist() == [18.43, 19.31, 19.17]
    assert zone_days(real, "NY_A_WEST").covariates[0].tolist() == [-0.79, -3.61, 2.98, 77.96, 11.3, 4]
    np.testing.assert_array_equal(real.covariates[:, 5], (real.dates.astype(int) + 3) % 7)
    assert np.isfinite(real.places).all()
    assert not real.demand_known


@needs_real_files
def test_the_real_zones_are_those_of_their_hourly_table(real: Panel) -> None:
    raw = pd.read_csv(FOLDER / "prices.csv.gz").pivot_table(index=["zone", "date"], columns="hour", values="total")
    np.testing.assert_array_equal(real.prices, raw.to_numpy())
    np.testing.assert_allclose(real.own.reshape(20, 365, 24).sum(axis=0), 0, atol=1e-9)


@needs_real_files
def test_the_real_zones_as_clients() -> None:
    panel = open_panel(FOLDER, without=["NE_INTERNAL_HUB"])
    assert panel.demands.tolist() == random_demands(panel.names, 0).tolist()
    early, late = federation(panel, last="2021-06-30"), federation(panel, first="2021-07-01")
    assert (set(early.counts), set(late.counts), len(late)) == ({181}, {184}, 19)
    assert (federation(panel, Sampling(weight=0.1)).feature_names or ())[-1] == "recent_23"
