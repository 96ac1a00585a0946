"""What the command line calls: sources by name, one cache, the authors' panel, and places."""

import socket
from pathlib import Path

import pandas as pd
import pytest

from dffl.cases.energy.fetch import (
    NoNetwork,
    default_cache,
    fetch_authors,
    fetch_prices,
    fetch_weather,
    place,
    places_of,
)
from dffl.cases.energy.fetch.authors import COLUMNS
from dffl.cases.energy.fetch.places import PJM_CODES, PLACES
from dffl.cases.energy.fetch.span import Span
from tests.cases.energy.fetch.real import FOLDER, needs_real_files
from tests.cases.energy.fetch.server import Document
from tests.cases.energy.fetch.test_eia import text
from tests.cases.energy.fetch.test_open_meteo import archive
from tests.cases.energy.fetch.test_pjm import KEY, miner


def test_prices_by_the_name_of_their_source(server, web, tmp_path):
    server.on("/pjm_lmp_da_hr_zones_2025.csv", Document(text("2025-01-14", "2025-01-16").encode()))
    server.on("/da_hrl_lmps", miner)
    days = ("2025-01-15", "2025-01-15")
    from_eia = fetch_prices("eia", "pjm", *days, cache=tmp_path, base=server.base, web=web, progress=False)
    from_pjm = fetch_prices("pjm", "pjm", *days, cache=tmp_path, base=server.base, web=web, key=KEY, progress=False)
    assert list(from_eia.table.columns) == list(from_pjm.table.columns)
    assert (len(from_eia.table), len(from_pjm.table)) == (48, 48)
    assert dict(from_eia.table.dtypes) == dict(from_pjm.table.dtypes)
    for source, market in (("pjm", "nyiso"), ("noaa", "pjm")):
        with pytest.raises(ValueError, match=rf"source must be eia, or pjm .* found '{source}' for the market '{market}'"):
            fetch_prices(source, market, *days, cache=tmp_path)


def test_the_weather_of_zones_by_their_names(server, web, tmp_path):
    base = server.on("/v1/archive", archive)
    places = places_of(["AECO", "COMED", "A - West", "Texas Hub"])
    found = fetch_weather(places, "2025-01-01", "2025-01-02", cache=tmp_path, base=base, web=web, progress=False)
    assert list(found.table["zone"].unique()) == ["AECO", "COMED", "A - West", "Texas Hub"]
    assert len(server.asked) == 1
    with pytest.raises(ValueError, match="zone Atlantis: its coordinates are not known; give a table with zone, lat and lon"):
        places_of(["AECO", "Atlantis"])


def test_the_authors_panel(server, web, tmp_path):
    header = ",".join(COLUMNS)
    server.on("/main/src/data/exp3/pjm_data.csv", Document(f"{header}\n1,2025-01-01\n".encode()))
    server.on("/old/src/data/exp3/pjm_data.csv", Document(f"{header.replace('bess', 'demand')}\n".encode()))
    options = {"cache": tmp_path, "base": server.base, "web": web, "progress": False}
    path = fetch_authors(**options)
    assert path == tmp_path / "pjm_data.csv"
    assert fetch_authors(**options).read_text().startswith(header)
    assert len(server.asked) == 1
    with pytest.raises(ValueError, match=r"pjm_data_old\.csv: is not the authors' panel \(no column bess\); remove it"):
        fetch_authors(branch="old", **options)
    assert (tmp_path / "pjm_data_old.csv").exists()
    with pytest.raises(ValueError, match="SHA-256 must be 00"):
        fetch_authors(sha256="00", **options)


def test_the_panels_columns():
    assert len(COLUMNS) == 2 + 48 + 7 + 3
    assert COLUMNS[:3] == ("client_id", "date", "total_lmp_0")
    assert {"congestion_23", "solar_irradiance_max", "day_of_week", "bess", "client_name"} <= set(COLUMNS)


def test_without_a_network_each_source_says_what_to_do(tmp_path, web):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
    options = {"cache": tmp_path, "base": base, "web": web, "progress": False}
    days = ("2025-01-01", "2025-01-02")
    for call in (
        lambda: fetch_prices("eia", "pjm", *days, **options),
        lambda: fetch_weather(places_of(["AECO"]), *days, **options),
        lambda: fetch_authors(**options),
    ):
        with pytest.raises(NoNetwork, match=rf"^cannot reach 127.*by hand and save it as {tmp_path}/.*, then run the same"):
            call()


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "dffl" / "energy"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert default_cache() == Path("/home/somebody/.cache/dffl/energy")


def test_every_zone_of_pjm_has_a_place_under_both_names():
    assert len(PJM_CODES) == len(set(PJM_CODES.values())) == 21
    for name, code in PJM_CODES.items():
        assert place(name) == place(code) == PLACES[code]
    assert len(PLACES) == 21 + 11 + 8
    assert place("NE_INTERNAL_HUB") is None
    assert all(29 < one.lat < 46 and -95 < one.lon < -72 for one in PLACES.values())


@needs_real_files
def test_places_are_those_of_the_real_table():
    real = pd.read_csv(FOLDER / "zones.csv").set_index("zone")
    found = [(one.lat, one.lon) for one in PLACES.values()]
    for lat, lon in real.loc[real.index != "NE_INTERNAL_HUB", ["lat", "lon"]].itertuples(index=False):
        assert (lat, lon) in found


def test_days_that_are_no_days():
    with pytest.raises(ValueError, match="first must be a date like 2025-01-31, found '2025-02-30'"):
        Span.read("2025-02-30", "2025-03-01")
    with pytest.raises(ValueError, match="first must not be after last, found 2025-03-02 and 2025-03-01"):
        Span.read("2025-03-02", "2025-03-01")


def test_pieces_of_a_span_are_the_span():
    span = Span.read("2023-05-17", "2025-02-28")
    for months in (1, 6, 12):
        pieces = span.pieces(months)
        assert [day for piece in pieces for day in piece.dates()] == span.dates()
        assert sum(piece.days for piece in pieces) == span.days == 654
