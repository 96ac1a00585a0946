"""Files of ENTSO-E, Energy-Charts and epftoolbox, in the layouts in which they are published."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dffl_studies.energy.data import open_panel
from studies.tests.energy.data.made import refused


def hours(first: str, last: str, zone: str = "Europe/Brussels") -> pd.DatetimeIndex:
    return pd.date_range(first, last, freq="h", tz=zone, inclusive="left")


def new_entsoe(moments: pd.DatetimeIndex, prices: np.ndarray, area: str = "BZN|BE") -> str:
    lines = ['"MTU (CET/CEST)","Area","Sequence","Day-ahead Price (EUR/MWh)"']
    for when, price in zip(moments, prices, strict=True):
        end = when + pd.Timedelta(hours=1)
        mark = f" ({when:%Z})" if when.date().isoformat() in ("2024-03-31", "2024-10-27") else ""
        span = f"{when:%d/%m/%Y %H:%M:%S}{mark} - {end:%d/%m/%Y %H:%M:%S}"
        lines += [f'"{span}","{area}","Without Sequence","{price}"', f'"{span}","{area}","Sequence 2","-"']
    return "\n".join(lines) + "\n"


def test_entsoe_as_it_is_exported_today_with_both_days_of_clocks(tmp_path: Path) -> None:
    for start, end, count in (("2024-03-30", "2024-04-02", 71), ("2024-10-26", "2024-10-29", 73)):
        moments = hours(start, end)
        assert len(moments) == count
        path = tmp_path / "GUI_ENERGY_PRICES.csv"
        path.write_text(new_entsoe(moments, np.arange(count) * 1.0))
        panel = open_panel(path)
        assert (panel.names, panel.periods, len(panel.days), panel.currency) == (("BE",), 24, 3, "EUR")
    assert panel.prices[1, :4].tolist() == [24, 25, 26.5, 28]  # hour 2 comes twice, 26 and 27
    spring = hours("2024-03-30", "2024-04-02")
    path.write_text(new_entsoe(spring, np.arange(71) * 1.0))
    assert open_panel(path).prices[1, :4].tolist() == [24, 25, 25.5, 26]  # hour 2 is not there


def test_entsoe_as_it_was_exported_before(tmp_path: Path) -> None:
    lines = ['"MTU (CET/CEST)","Day-ahead Price [GBP/MWh]","Currency","BZN|GB"']
    lines += [f'"{when:%d.%m.%Y %H:%M} - x","{when.hour}.5","GBP",""' for when in hours("2021-01-01", "2021-01-03")]
    path = tmp_path / "Day-ahead Prices.csv"
    path.write_text("\n".join(lines))
    panel = open_panel(path)
    assert (panel.names, panel.currency, len(panel.days)) == (("GB",), "GBP", 2)
    assert panel.prices[1].tolist() == [hour + 0.5 for hour in range(24)]
    path.write_text("\n".join([*lines, '"soon","3","GBP",""']))
    with refused(f"{path}, line 50: MTU (CET/CEST) must be as 31/01/2024 13:00 - ..., found 'soon'"):
        open_panel(path)


def test_energy_charts_in_quarter_hours_of_the_local_day(tmp_path: Path) -> None:
    moments = pd.date_range("2025-10-01", "2025-10-03", freq="15min", tz="Europe/Berlin", inclusive="left")
    seconds = (moments.tz_convert("UTC") - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
    reply = {"license_info": "CC BY 4.0", "unix_seconds": seconds.tolist(), "price": (moments.hour * 1.0).tolist()}
    path = tmp_path / "DE-LU.json"
    path.write_text(json.dumps(reply | {"unit": "EUR / MWh", "deprecated": False}))
    panel = open_panel(path)
    assert (panel.names, panel.periods, panel.currency, panel.unit) == (("DE-LU",), 96, "EUR", "MWh")
    assert panel.prices[0].tolist() == [float(quarter // 4) for quarter in range(96)]
    path.write_text(json.dumps(reply | {"price": [1.0]}))
    with pytest.raises(ValueError, match="must have as many prices as moments, found 1 and 192"):
        open_panel(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"DE-LU\.json: cannot be read as prices of Energy-Charts \(KeyError"):
        open_panel(path)


def test_forecasts_as_epftoolbox_publishes_them(tmp_path: Path) -> None:
    moments = pd.date_range("2015-01-04", periods=48, freq="h")
    table = pd.DataFrame({"Real price": np.arange(48.0), "DNN 1": 1.0, "DNN Ensemble": np.arange(48.0) + 2}, index=moments)
    path = tmp_path / "forecasts_BE.csv"
    table.to_csv(path)
    assert open_panel(path).forecast is None
    panel = open_panel(path, forecast="DNN Ensemble")
    assert (panel.names, panel.periods) == (("BE",), 24)
    np.testing.assert_array_equal(panel.forecast, panel.prices + 2)
    with refused(f"{path}: --forecast must be one of DNN 1, DNN Ensemble, found 'ARIMA'"):
        open_panel(path, forecast="ARIMA")
