"""EIA's files: their names, their days, their signs, and what can be wrong with one."""

import gzip
import socket

import numpy as np
import pandas as pd
import pytest

from dffl_studies.energy.fetch.eia import fetch_eia, file_name
from dffl_studies.energy.fetch.eia_file import parse_eia
from dffl_studies.energy.fetch.span import Span
from dffl_studies.energy.fetch.web import NoNetwork
from studies.tests.energy.fetch.real import FOLDER, needs_real_files
from studies.tests.energy.fetch.server import Document

ZONES = ("ComEd", "American Electric Power Co., Inc", "PJM Total")


def energy(number: int, zones: int) -> np.ndarray:
    """A market's price of energy, and each zone's congestion and loss: (3, zones)."""
    place = np.arange(zones)
    return np.stack([np.full(zones, 30.0 + number % 24), (place - 1.0) * (number % 5), 0.25 * place])


def text(
    first: str, last: str, zones=ZONES, sign: float = 1.0, titles: int = 3, components=True, clock="America/New_York"
) -> str:
    """A file in EIA's layout, from the first to the last local day, as the clock on the wall has them."""
    endings = ("LMP", "(Congestion)", "(Loss)") if components else ("LMP",)
    local = "Local Timestamp Eastern Time"
    times = ["UTC Timestamp (Interval Ending)", f"{local} (Interval Beginning)", f"{local} (Interval Ending)", "Local Date"]
    header = [*times, "Hour Number", *(f'"{zone} {ending}"' for ending in endings for zone in zones)]
    begin = pd.date_range(first, pd.Timestamp(last) + pd.Timedelta("23h"), freq="h", tz=clock)
    lines = [f"Title {number}, of no use" for number in range(titles)] + [",".join(header)]
    end = begin + pd.Timedelta("1h")
    stamps = [times.strftime("%Y-%m-%d %H:%M:%S") for times in (end.tz_convert("UTC"), begin, end)]
    for number, cells in enumerate(zip(*stamps, begin.strftime("%Y-%m-%d"), (begin.hour + 1).astype(str), strict=True)):
        price, congestion, loss = energy(number, len(zones))
        values = (price + congestion + loss, sign * congestion, loss)[: len(endings)]
        lines.append(",".join([*cells, *(f"{value:.2f}" for value in np.concatenate(values))]))
    return "\n".join(lines) + "\n"


def write(tmp_path, content: str):
    path = tmp_path / "pjm_lmp_da_hr_zones_2025.csv"
    path.write_text(content)
    return path


def test_names():
    assert file_name("pjm", "da", 2025) == "pjm_lmp_da_hr_zones_2025.csv"
    assert file_name("miso", "rt", 2021) == "miso_lmp_rt_hr_hubs_2021.csv"
    with pytest.raises(ValueError, match=r"market must be one of pjm, nyiso, .*, found 'entsoe'"):
        file_name("entsoe", "da", 2025)
    with pytest.raises(ValueError, match=r"kind must be da .* found 'hourly'"):
        file_name("pjm", "hourly", 2025)


def test_a_year_has_24_hours_a_day_in_standard_time(tmp_path):
    table, notes = parse_eia(write(tmp_path, text("2025-01-01", "2025-12-31")))
    assert list(table.columns) == ["zone", "date", "hour", "total", "energy", "congestion", "loss"]
    assert list(table["zone"].unique()) == ["COMED", "AEP"]
    assert (table.groupby(["zone", "date"])["hour"].agg(list).map(lambda hours: hours == list(range(24)))).all()
    assert table["date"].nunique() == 365
    np.testing.assert_allclose(table["total"], table["energy"] + table["congestion"] + table["loss"], atol=1e-9)
    # Hours are numbered from the year's first; the clock that goes forward in between does not matter.
    july = table[(table["zone"] == "AEP") & (table["date"] == "2025-07-01")].set_index("hour")
    number = (181 * 24) + 3
    np.testing.assert_allclose(july.loc[3, ["energy", "congestion", "loss"]].astype(float), energy(number, 3)[:, 1])
    assert notes == ["pjm_lmp_da_hr_zones_2025.csv: PJM Total is the whole market and not a zone; left out"]


@pytest.mark.parametrize(("first", "last"), [("2025-03-07", "2025-03-11"), ("2025-10-31", "2025-11-04")])
def test_days_on_which_the_clock_changes_lose_and_repeat_nothing(tmp_path, first, last):
    table, _ = parse_eia(write(tmp_path, text(first, last, zones=("B - Genessee",))))
    inner = table[table["date"].between(first, last, inclusive="neither")]
    assert (inner.groupby("date")["hour"].agg(list).map(lambda hours: hours == list(range(24)))).all()
    assert set(inner["zone"]) == {"B - Genessee"}


def test_a_clock_that_never_changes(tmp_path):
    table, _ = parse_eia(write(tmp_path, text("2025-03-07", "2025-03-11", clock="Etc/GMT+6")))
    assert table.groupby(["zone", "date"]).size().eq(24).all()


def test_one_slip_of_the_local_clock_moves_no_day(tmp_path):
    lines = text("2025-01-01", "2025-01-31", zones=("A",)).splitlines()
    lines[30] = lines[30].replace("2025-01-02 02:00:00", "2025-01-02 00:00:00")
    table, _ = parse_eia(write(tmp_path, "\n".join(lines)))
    assert table.groupby("date").size().eq(24).all()


def test_congestion_that_the_market_subtracts_is_turned_round(tmp_path):
    straight, _ = parse_eia(write(tmp_path, text("2025-01-01", "2025-01-03")))
    turned, notes = parse_eia(write(tmp_path, text("2025-01-01", "2025-01-03", sign=-1.0)))
    pd.testing.assert_frame_equal(straight, turned)
    assert any("the market subtracts congestion" in note for note in notes)


@pytest.mark.parametrize("titles", [0, 1, 5])
def test_any_number_of_titles_plain_or_compressed(tmp_path, titles):
    content = text("2025-01-01", "2025-01-02", titles=titles)
    plain, _ = parse_eia(write(tmp_path, content))
    path = tmp_path / "again.csv.gz"
    path.write_bytes(gzip.compress(content.encode()))
    pd.testing.assert_frame_equal(plain, parse_eia(path).table)


def test_prices_without_components(tmp_path):
    table, notes = parse_eia(write(tmp_path, text("2025-01-01", "2025-01-02", zones=("A", "B"), components=False)))
    assert list(table.columns) == ["zone", "date", "hour", "total"]
    assert notes == ["pjm_lmp_da_hr_zones_2025.csv: has no components of the prices"]


def test_missing_hours_and_prices_stay_missing(tmp_path):
    lines = text("2025-01-01", "2025-01-02", zones=("A", "B")).splitlines()
    del lines[10]
    cells = lines[20].split(",")
    lines[20] = ",".join([*cells[:5], "", *cells[6:]])
    table, _ = parse_eia(write(tmp_path, "\n\n".join(lines)))
    assert table.groupby("zone").size().to_dict() == {"A": 46, "B": 47}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (",40.00,", ",n/a,", r", line 15: A LMP at 2025-01-01 10:00:00 must be a number, found 'n/a'; correct it"),
        (",40.00,", ",inf,", r", line 15: A LMP at 2025-01-01 10:00:00 must be a number, found 'inf'"),
        (",40.00,", ",nan,", r", line 15: A LMP at 2025-01-01 10:00:00 must be a number, found 'nan'"),
        ("2025-01-01 16:00:00,2025-01-01 10", "soon,2025-01-01 10", r", line 15: UTC Timestamp .* must be a time .* 'soon'"),
        ("01 16:00:00,2025-01-01 10", "01 15:00:00,2025-01-01 10", r", line 15: every zone has the hour .*, in line 14;"),
        ("01 16:00:00,2025-01-01 10", "01 16:15:00,2025-01-01 10", r", line 15: .*16:15:00 is not on the hour"),
        (",40.00,", ",", r", line 15: must have 8 cells, found 7; download the file again"),
        ("UTC Timestamp", "Time", r": is not one of EIA's price files"),
        ("A LMP", "A Price", r": is not one of EIA's price files"),
        ("(Interval Beginning)", "(Beginnt)", r": must have a column 'Local Timestamp ... \(Beginning\)'"),
        ("(Congestion)", "LMP", r", line 4: two columns have the same name"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, old, new, complaint):
    good = text("2025-01-01", "2025-01-01", zones=("A",))
    assert old in good
    path = write(tmp_path, good.replace(old, new, 1))
    with pytest.raises(ValueError, match=complaint) as caught:
        parse_eia(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"<html>", b"\x1f\x8b\x08cut", b"\xff\xfe\x00", b"", b"UTC Timestamp,Local Timestamp,A LMP\n"]
)
def test_what_is_no_such_file_is_named(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.csv: "):
        parse_eia(path)


def test_years_are_fetched_one_after_another_and_cut_to_the_days_asked_for(server, cache):
    for year, first, last in ((2024, "2024-12-20", "2024-12-31"), (2025, "2025-01-01", "2025-01-10")):
        server.on(f"/csv/nyiso_lmp_rt_hr_zones_{year}.csv", Document(text(first, last, zones=("A", "B")).encode()))
    found = fetch_eia("nyiso", "rt", Span.read("2024-12-30", "2025-01-02"), cache, server.base + "/csv")
    assert list(found.table["date"].unique()) == ["2024-12-30", "2024-12-31", "2025-01-01", "2025-01-02"]
    assert len(found.table) == 2 * 4 * 24
    assert found.notes == []
    fetch_eia("nyiso", "rt", Span.read("2024-12-30", "2025-01-02"), cache, server.base + "/csv")
    assert len(server.asked) == 2


def test_a_year_that_ends_early_is_noted(server, cache):
    content = text("2025-01-01", "2025-01-03", zones=("A",), clock="Etc/GMT+5")
    server.on("/pjm_lmp_da_hr_zones_2025.csv", Document(content.encode()))
    found = fetch_eia("pjm", "da", Span.read("2025-01-01", "2025-01-05"), cache, server.base)
    assert found.notes == ["pjm day-ahead: 48 prices are missing, in 48 hours; the first is A, 2025-01-04 00:00"]
    with pytest.raises(ValueError, match="no price from 2025-02-01 to 2025-02-02"):
        fetch_eia("pjm", "da", Span.read("2025-02-01", "2025-02-02"), cache, server.base)


def test_a_file_that_eia_does_not_have(server, cache):
    with pytest.raises(ValueError, match=r"EIA has no hourly real-time prices of ercot for 2019 .*404.*choose another year"):
        fetch_eia("ercot", "rt", Span.read("2019-01-01", "2019-01-02"), cache, server.base)


def test_without_a_network_the_file_can_be_put_there_by_hand(cache, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
    span = Span.read("2025-01-01", "2025-01-02")
    name = "pjm_lmp_da_hr_zones_2025.csv"
    with pytest.raises(NoNetwork, match=rf"download {base}/{name} by hand and save it as {tmp_path}/{name}, then"):
        fetch_eia("pjm", "da", span, cache, base)
    write(tmp_path, text("2025-01-01", "2025-01-02"))
    assert len(fetch_eia("pjm", "da", span, cache, base).table) == 2 * 48


@needs_real_files
@pytest.mark.parametrize(
    ("name", "market", "missing"), [("nyiso_lmp_rt_hr_zones_2021", "NYISO", 11), ("miso_lmp_rt_hr_hubs_2021", "MISO", 0)]
)
def test_real_files_give_the_prices_that_were_made_from_them(name, market, missing):
    prices = pd.read_csv(FOLDER / "prices.csv.gz").query("iso == @market and filled == 0")
    zones = [zone for zone in pd.read_csv(FOLDER / "zones.csv")["zone"] if zone in set(prices["zone"])]
    table, _ = parse_eia(FOLDER / f"{name}.csv.gz")
    table = table.assign(zone=table["zone"].map(dict(zip(table["zone"].unique(), zones, strict=True))))
    both = prices.merge(table, on=["zone", "date", "hour"], suffixes=("", "_parsed"))
    assert len(both) == len(table) == len(prices) == len(zones) * 8760 - missing
    for part in ("total", "energy", "congestion", "loss"):
        np.testing.assert_allclose(both[f"{part}_parsed"], both[part], atol=0.011, rtol=0)
