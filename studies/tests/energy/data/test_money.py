"""Currencies and units: from the file, from an option, mixed, and converted."""

from pathlib import Path

import pandas as pd
import pytest

from dffl_studies.energy.data import Panel, read_panel
from dffl_studies.energy.data.money import Money
from studies.tests.energy.data.made import panel_table, refused, write


def read(folder: Path, table: pd.DataFrame, money: Money = Money()) -> Panel:  # noqa: B008
    return read_panel(write(table, folder / "panel.csv"), money=money)


def rates(folder: Path, text: str = "currency,rate\nSEK,0.1\nGBP,1.25\n") -> Path:
    path = folder / "rates.csv"
    path.write_text(text)
    return path


def test_the_currency_is_that_of_the_file_or_of_the_option_and_is_written_again(tmp_path: Path) -> None:
    assert (read(tmp_path, panel_table()).currency, read(tmp_path, panel_table()).unit) == ("", "MWh")
    panel = read(tmp_path, panel_table().assign(currency="EUR", unit="kWh"))
    assert (panel.currency, panel.unit, panel.money) == ("EUR", "kWh", "EUR")
    assert panel.covariate_names == ("tmean", "wind", "day_of_week")
    panel.write(tmp_path / "again.csv")
    again = read_panel(tmp_path / "again.csv")
    assert (again.currency, again.unit) == ("EUR", "kWh")
    assert read(tmp_path, panel_table(), Money("NOK", "kWh")).money == "NOK"


def test_prices_are_converted_by_the_users_table_and_a_note_says_so(tmp_path: Path) -> None:
    plain = read(tmp_path, panel_table())
    table = panel_table().assign(currency=["EUR"] * 3 + ["SEK"] * 3)
    panel = read(tmp_path, table, Money("EUR", rates=rates(tmp_path)))
    assert panel.prices[:3].tolist() == plain.prices[:3].tolist()
    assert panel.prices[3:].tolist() == (0.1 * plain.prices[3:]).tolist()
    assert panel.notes == (f"{tmp_path / 'panel.csv'}: prices were converted (1 SEK = 0.1 EUR)",)


@pytest.mark.parametrize(
    ("second", "money", "message"),
    [
        ("SEK", Money(), "line 5: zone B, 2021-01-01: currency is SEK, and line 2 has EUR; {rates}"),
        ("EUR", Money("USD"), "line 2: zone A, 2021-01-01: currency is EUR, and --currency is USD; {rates}"),
        ("", Money(), "line 5: zone B, 2021-01-01: currency is missing, and other rows have it; write it in every row"),
    ],
)
def test_mixed_currencies_are_refused(tmp_path: Path, second: str, money: Money, message: str) -> None:
    fix = "give a table of rates (--rates FILE with the columns currency and rate, and --currency)"
    table = panel_table().assign(currency=["EUR"] * 3 + [second] * 3)
    with refused(f"{tmp_path / 'panel.csv'}, {message.format(rates=fix)}"):
        read(tmp_path, table, money)


def test_a_unit_that_changes_and_rates_that_cannot_be_are_refused(tmp_path: Path) -> None:
    path, mixed = tmp_path / "panel.csv", panel_table().assign(currency=["EUR"] * 3 + ["CHF"] * 3)
    with refused(f"{path}, line 5: zone B, 2021-01-01: unit is kWh, and line 2 has MWh; write all prices for one unit"):
        read(tmp_path, panel_table().assign(unit=["MWh"] * 3 + ["kWh"] * 3))
    known = rates(tmp_path)
    with refused(f"{path}, line 5: zone B, 2021-01-01: {known} has no rate of CHF; it has EUR, GBP, SEK"):
        read(tmp_path, mixed, Money("EUR", rates=known))
    with refused("--rates requires --currency, the currency that prices are converted to"):
        read(tmp_path, mixed, Money(rates=known))
    with refused(f"{path}: must have a column 'currency' to convert by --rates, found none"):
        read(tmp_path, panel_table(), Money("EUR", rates=known))
    with refused(f"{known}, line 2: currency SEK: rate must be above 0, found -1"):
        read(tmp_path, mixed, Money("EUR", rates=rates(tmp_path, "currency,rate\nSEK,-1\n")))
