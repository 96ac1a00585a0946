"""`dffl energy fetch`: from servers to a panel that runs."""

import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dffl.cli import app
from dffl_studies.energy.data import read_panel
from dffl_studies.energy.fetch.market import AUTHORS_COLUMNS, FetchRequest, fetch_panel
from dffl_studies.energy.fetch.web import NoNetwork
from studies.tests.energy.fetch.server import Document
from studies.tests.energy.fetch.test_eia import text
from studies.tests.energy.fetch.test_open_meteo import archive
from studies.tests.energy.fetch.test_pjm import KEY, miner


def call(*arguments: object):
    return CliRunner().invoke(app, ["energy", "fetch", *map(str, arguments)], catch_exceptions=False)


def test_prices_and_weather_become_a_panel_with_places(server, tmp_path):
    server.on("/pjm_lmp_da_hr_zones_2025.csv", Document(text("2025-01-10", "2025-01-20").encode()))
    weather = server.on("/v1/archive", archive)
    options = ("--first", "2025-01-11", "--last", "2025-01-14", "--cache", tmp_path / "kept", "--quiet")
    answer = call("eia", "-o", tmp_path / "panel.csv", *options, "--prices-from", server.base, "--weather-from", weather)
    assert answer.exit_code == 0, answer.output
    panel = read_panel(tmp_path / "panel.csv")
    assert len(panel.names) == 2
    assert [str(day) for day in panel.days] == ["2025-01-11", "2025-01-12", "2025-01-13", "2025-01-14"]
    assert panel.covariate_names[:3] == ("temp_c_mean", "temp_c_min", "temp_c_max")
    assert np.isfinite(panel.places).all()
    asked = len(server.asked)
    again = call("eia", "-o", tmp_path / "again.csv", *options, "--prices-from", server.base, "--weather-from", weather)
    assert again.exit_code == 0
    assert len(server.asked) == asked  # everything was kept
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "panel.csv").read_bytes()


def test_pjm_with_a_key_gives_the_same_kind_of_panel(server, tmp_path, monkeypatch):
    monkeypatch.setenv("PJM_API_KEY", KEY)
    server.on("/da_hrl_lmps", miner)
    weather = server.on("/v1/archive", archive)
    panel = fetch_panel(
        FetchRequest("pjm", "pjm", "2025-01-15", "2025-01-16", cache=tmp_path, prices_from=server.base, weather_from=weather),
        progress=False,
    )
    assert len(panel.days) == 2
    assert KEY not in "".join(path.read_text() for path in tmp_path.iterdir())


def test_pjm_has_its_own_prices_alone():
    with pytest.raises(ValueError, match="source pjm has prices of the market pjm only, found 'nyiso'; use eia"):
        FetchRequest("pjm", "nyiso")


def test_without_a_network_each_source_says_what_to_do(tmp_path, web, monkeypatch):
    monkeypatch.setenv("PJM_API_KEY", KEY)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
    for source in ("eia", "authors"):
        request = FetchRequest(source, first="2025-01-01", last="2025-01-02", cache=tmp_path, prices_from=base)
        with pytest.raises(NoNetwork, match=rf"^cannot reach 127.*by hand and save it as {tmp_path}/.*, then run the same"):
            fetch_panel(request, progress=False, web=web)
    with pytest.raises(NoNetwork, match=r"^cannot reach 127.*run the same command again when it can be reached"):
        fetch_panel(replace(request, source="pjm"), progress=False, web=web)


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert FetchRequest("eia").folder == tmp_path / "dffl" / "energy"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert FetchRequest("eia").folder == Path("/home/somebody/.cache/dffl/energy")
    assert FetchRequest("eia", cache=tmp_path).folder == tmp_path


def test_a_file_that_is_not_the_authors_panel_is_refused(server, tmp_path, web):
    assert len(AUTHORS_COLUMNS) == 2 + 48 + 7 + 3
    assert AUTHORS_COLUMNS[:3] == ("client_id", "date", "total_lmp_0")
    assert {"congestion_23", "solar_irradiance_max", "day_of_week", "bess", "client_name"} <= set(AUTHORS_COLUMNS)
    body = pd.DataFrame([dict.fromkeys(AUTHORS_COLUMNS, 1)]).drop(columns="bess").to_csv(index=False)
    server.on("/main/src/data/exp3/pjm_data.csv", Document(body.encode()))
    request = FetchRequest("authors", cache=tmp_path, prices_from=server.base)
    with pytest.raises(ValueError, match=r"pjm_data\.csv: is not the authors' panel \(no column bess\); remove it"):
        fetch_panel(request, progress=False, web=web)


def test_the_authors_panel_gets_its_places(server, tmp_path):
    row = dict.fromkeys(AUTHORS_COLUMNS, 1.5) | {
        "client_id": 1,
        "date": "2025-01-01",
        "bess": 6,
        "client_name": "AECO",
        "day_of_week": 2,
    }
    body = pd.DataFrame([row]).to_csv(index=False)
    server.on("/main/src/data/exp3/pjm_data.csv", Document(body.encode()))
    answer = call("authors", "-o", tmp_path / "p.parquet", "--cache", tmp_path, "--prices-from", server.base, "--quiet")
    assert answer.exit_code == 0, answer.output
    panel = read_panel(tmp_path / "p.parquet")
    assert (panel.names, panel.demands.tolist()) == (("AECO",), [6.0])
    np.testing.assert_allclose(panel.places, [[39.36, -74.42]], atol=0.1)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("noaa", "-o", "p.csv", "--year", "2025"), "SOURCE must be one of eia, pjm, authors, found 'noaa'"),
        (("eia", "-o", "p.txt"), "p.txt: a panel must end in .csv, .csv.gz, .parquet"),
        (("eia", "-o", "p.csv"), "give --year, or --first and --last"),
        (("eia", "-o", "p.csv", "--year", "2025", "--first", "2025-01-01"), "--year replaces --first and --last"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(arguments, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = call(*arguments)
    assert answer.exit_code == 3
    assert line in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_zones_that_nobody_knows_need_a_table_of_places(server, tmp_path):
    body = text("2025-01-10", "2025-01-20").replace("ComEd", "Atlantis")
    assert "Atlantis" in body
    server.on("/pjm_lmp_da_hr_zones_2025.csv", Document(body.encode()))
    weather = server.on("/v1/archive", archive)
    asked = {
        "first": "2025-01-11",
        "last": "2025-01-12",
        "cache": tmp_path,
        "prices_from": server.base,
        "weather_from": weather,
    }
    with pytest.raises(ValueError, match="--places must name a table with the lat and lon of zone Atlantis"):
        fetch_panel(FetchRequest("eia", **asked), progress=False)
    pd.DataFrame([{"zone": "Atlantis", "lat": 31.0, "lon": -24.0}]).to_csv(tmp_path / "places.csv", index=False)
    request = FetchRequest("eia", **asked, places=tmp_path / "places.csv")
    panel = fetch_panel(request, progress=False)
    assert panel.places[panel.names.index("Atlantis")].tolist() == [31.0, -24.0]
    for line, complaint in (
        ("Atlantis,31.0,-24.0", "line 3: zone Atlantis: a second row for this zone, after line 2; keep one"),
        ("Lemuria,north,80", "line 3: zone Lemuria: lat must be a finite number, found 'north'"),
    ):
        (tmp_path / "places.csv").write_text(f"zone,lat,lon\nAtlantis,31.0,-24.0\n{line}\n")
        with pytest.raises(ValueError, match=f"places.csv, {complaint}"):
            fetch_panel(request, progress=False)
