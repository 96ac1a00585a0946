"""Open-Meteo's hours as days: whichever clock, spelling or gap they come with."""

import gzip
import json
import socket
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dffl.progress import Progress
from dffl_studies.energy.fetch.open_meteo import fetch_open_meteo
from dffl_studies.energy.fetch.open_meteo_days import COVARIATES, parse_open_meteo
from dffl_studies.energy.fetch.span import Span
from dffl_studies.energy.fetch.web import NoNetwork
from studies.tests.energy.fetch.real import FOLDER, needs_real_files
from studies.tests.energy.fetch.server import Asked, Reply, say

PLACES = pd.DataFrame({"zone": ["AECO", "COMED", "RECO"], "lat": [39.36, 41.88, 41.09], "lon": [-74.42, -87.63, -74.14]})
SPAN = Span.read("2025-01-30", "2025-02-02")


def reply(first: str, last: str, lat: float = 40.0, lon: float = -75.0, clock: str = "America/New_York") -> dict:
    """A place's hours, whose temperature counts them and whose wind is its latitude."""
    time = pd.date_range(first, pd.Timestamp(last) + pd.Timedelta("23h"), freq="h", tz=clock)
    count = np.arange(len(time))
    return {
        "latitude": lat + 0.05,
        "longitude": lon - 0.05,
        "hourly": {
            "time": list(time.strftime("%Y-%m-%dT%H:%M")),
            "temperature_2m": [float(value) for value in count],
            "relative_humidity_2m": [int(value) for value in 50 + count % 24],
            "wind_speed_10m": [lat] * len(time),
            "shortwave_radiation": [float(max(0, 12 - abs(hour - 12))) for hour in time.hour],
        },
    }


def archive(asked: Asked) -> Reply:
    """The archive: a list of places, or the only one."""
    lats, lons = (list(map(float, asked.query[name].split(","))) for name in ("latitude", "longitude"))
    assert asked.query["hourly"] == "temperature_2m,relative_humidity_2m,wind_speed_10m,shortwave_radiation"
    first, last = asked.query["start_date"], asked.query["end_date"]
    found = [reply(first, last, lat, lon, asked.query["timezone"]) for lat, lon in zip(lats, lons, strict=True)]
    return say(found if len(found) > 1 else found[0])


def test_places_are_asked_for_in_batches(server, cache):
    base = server.on("/v1/archive", archive)
    progress = Progress(show=False)
    table, notes = fetch_open_meteo(PLACES, SPAN, replace(cache, progress=progress), base, batch=2)
    assert [asked.query["latitude"] for asked in server.asked] == ["39.36,41.88", "41.09"]
    assert list(table.columns) == ["zone", "date", *COVARIATES, "day_of_week"]
    assert list(table["zone"]) == [zone for zone in PLACES["zone"] for _ in range(4)]
    assert list(table["date"][:4]) == ["2025-01-30", "2025-01-31", "2025-02-01", "2025-02-02"]
    assert list(table["day_of_week"][:4]) == [3, 4, 5, 6]
    assert list(table.groupby("zone")["wind_speed_mean"].first()) == pytest.approx([39.36, 41.88, 41.09])
    first = table.iloc[0]
    assert (first["temp_c_mean"], first["temp_c_min"], first["temp_c_max"]) == (11.5, 0.0, 23.0)
    assert (first["humidity_mean"], first["solar_irradiance_mean"], first["solar_irradiance_max"]) == (61.5, 6.0, 12.0)
    assert notes == []
    assert progress.done == progress.total
    again, _ = fetch_open_meteo(PLACES, SPAN, cache, base, batch=2)
    pd.testing.assert_frame_equal(again, table)
    assert len(server.asked) == 2


def test_years_are_asked_for_one_by_one(server, cache):
    base = server.on("/v1/archive", archive)
    table, _ = fetch_open_meteo(PLACES, Span.read("2024-12-30", "2025-01-02"), cache, base)
    assert [(asked.query["start_date"], asked.query["end_date"]) for asked in server.asked] == [
        ("2024-12-30", "2024-12-31"),
        ("2025-01-01", "2025-01-02"),
    ]
    assert len(table) == 12


@pytest.mark.parametrize(("day", "hours"), [("2025-03-09", 23), ("2025-11-02", 25), ("2025-07-01", 24)])
def test_a_day_may_have_23_or_25_hours(day, hours):
    said = reply(day, day)
    assert len(said["hourly"]["time"]) == hours
    table, _ = parse_open_meteo(said, "here")
    assert list(table["date"]) == [day]
    assert table["temp_c_max"][0] == hours - 1
    assert table["temp_c_mean"][0] == (hours - 1) / 2


def test_the_replys_clock_is_noted():
    _, notes = parse_open_meteo(reply("2025-01-01", "2025-01-02") | {"utc_offset_seconds": -14400}, "here")
    assert notes == ["Open-Meteo: days are those of a clock at UTC-4"]


def test_older_names_are_understood_and_what_is_absent_is_noted():
    said = reply("2025-01-01", "2025-01-02")
    hourly = said["hourly"]
    hourly["relativehumidity_2m"] = hourly.pop("relative_humidity_2m")
    hourly["windspeed_10m"] = hourly.pop("wind_speed_10m")
    hourly["cloudcover"] = hourly.pop("shortwave_radiation")
    table, notes = parse_open_meteo(said, "here")
    assert list(table.columns) == ["date", *list(COVARIATES)[:5]]
    assert notes == ["Open-Meteo: no shortwave_radiation in the reply, so no solar_irradiance_mean, solar_irradiance_max"]
    said["hourly"] = {"time": hourly["time"], "cloudcover": hourly["cloudcover"]}
    with pytest.raises(ValueError, match=r"here: must have one of temperature_2m, .*, found time, cloudcover"):
        parse_open_meteo(said, "here")


def test_a_day_needs_18_hours_of_a_variable(server, cache):
    def gaps(asked: Asked) -> Reply:
        said = json.loads(archive(asked).body)
        hourly = said[1]["hourly"]
        hourly["temperature_2m"][:6] = [None] * 6
        hourly["temperature_2m"][24:31] = [None] * 7
        for name in list(hourly)[1:]:
            hourly[name][48:72] = [None] * 24
        return say(said)

    table, notes = fetch_open_meteo(PLACES, SPAN, cache, server.on("/v1/archive", gaps))
    zone = table[table["zone"] == "COMED"].set_index("date")
    assert zone.loc["2025-01-30", "temp_c_mean"] == np.arange(6, 24).mean()
    assert np.isnan(zone.loc["2025-01-31", "temp_c_max"])
    assert zone.loc["2025-01-31", "humidity_mean"] == 61.5
    assert "2025-02-01" not in zone.index
    assert len(table) == 11
    assert "Open-Meteo: temp_c_mean is missing on 2 days of zones, the first COMED, 2025-01-31" in notes
    assert "Open-Meteo: wind_speed_mean is missing on 1 days of zones, the first COMED, 2025-02-01" in notes


def test_a_request_that_is_refused_is_one_line(server, cache):
    base = server.on("/v1/archive", say({"error": True, "reason": "Parameter 'end_date' is out of allowed range"}, 400))
    line = r"^Open-Meteo refused the request \(400 Bad Request: Parameter 'end_date' is out of allowed range\)$"
    with pytest.raises(ValueError, match=line):
        fetch_open_meteo(PLACES, SPAN, cache, base)


def test_too_many_requests_are_one_line_with_the_reason(server, cache):
    reason = "Minutely API request limit exceeded. Please try again in one minute."
    base = server.on("/v1/archive", say({"error": True, "reason": reason}, 429))
    with pytest.raises(NoNetwork, match=rf"429 Too Many Requests: {reason}; 4 tries"):
        fetch_open_meteo(PLACES, SPAN, cache, base)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (say({"error": True, "reason": "no"}), "must have 3 places, found 1"),
        (say([{}, {"error": True, "reason": "no"}, {}]), r"Open-Meteo refused the request \(no\)"),
        (say([1, 2, 3]), "must have 3 places"),
        (Reply(b'{"hourly": '), "is not JSON"),
    ],
)
def test_a_reply_of_another_kind_is_not_kept(server, cache, said, complaint):
    with pytest.raises(ValueError, match=rf"the reply of 127\.0\.0\.1:\d+: {complaint}"):
        fetch_open_meteo(PLACES, SPAN, cache, server.on("/v1/archive", said))
    assert not list(cache.folder.iterdir())


def test_a_reply_for_another_place_is_refused(server, cache):
    base = server.on("/v1/archive", lambda asked: say(list(reversed(json.loads(archive(asked).body)))))
    with pytest.raises(ValueError, match=r"zone AECO: is at 39\.36, -74\.42, but the reply is for 41\.14, "):
        fetch_open_meteo(PLACES, SPAN, cache, base)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"temperature_2m": ["cold"] * 24}, r"temperature_2m at 2025-01-01 00:00 must be a number, found 'cold'"),
        ({"temperature_2m": [1.0]}, r"temperature_2m: must have a value for each of 24 hours"),
        ({"time": ["noon"] * 24}, r"a time must be like 2025-01-31T05:00, found 'noon'"),
        ({"time": None}, r"must have hourly values with their times"),
    ],
)
def test_what_is_wrong_in_a_reply_is_named(change, complaint):
    said = reply("2025-01-01", "2025-01-01")
    said["hourly"] |= change
    with pytest.raises(ValueError, match=f"^here: {complaint}"):
        parse_open_meteo(said, "here")


@pytest.mark.parametrize(
    ("places", "complaint"),
    [
        (PLACES.drop(columns="lat"), "there is no lat"),
        (PLACES.iloc[:0], "one row per zone, found none"),
        (pd.concat([PLACES, PLACES]), "one row per zone, found AECO, COMED, RECO, AECO"),
        (PLACES.assign(lat=[39.36, 141.88, None]), r"zone COMED: lat must be degrees, found .*141\.88"),
        (PLACES.assign(lon="west"), "zone AECO: lon must be degrees, found 'west'"),
    ],
)
def test_what_is_wrong_with_places_is_named(cache, places, complaint):
    with pytest.raises(ValueError, match=complaint):
        fetch_open_meteo(places, SPAN, cache)


def test_without_a_network_the_reply_can_be_put_there_by_hand(server, cache):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(NoNetwork, match=r"download http://.* by hand and save it as ") as caught:
        fetch_open_meteo(PLACES, SPAN, cache, base)
    name = str(caught.value).split("save it as ")[1].split(", then")[0]
    url = str(caught.value).split("download ")[1].split(" by hand")[0]
    query = dict(pair.split("=") for pair in url.split("?")[1].split("&"))
    (cache.folder / name).write_bytes(archive(Asked("/", query, {})).body)
    assert len(fetch_open_meteo(PLACES, SPAN, cache, base).table) == 12


@needs_real_files
def test_a_real_reply():
    said = json.loads(gzip.decompress((FOLDER / "open_meteo_archive_sample.json.gz").read_bytes()))
    table, notes = parse_open_meteo(said, "here")
    assert len(table) == 60
    assert (table["date"].iloc[0], table["date"].iloc[-1]) == ("2023-01-01", "2023-03-01")
    assert list(table.columns) == ["date", *list(COVARIATES)[:5]]
    np.testing.assert_allclose(table["temp_c_mean"][1], np.mean(said["hourly"]["temperature_2m"][24:48]))
    np.testing.assert_allclose(table["wind_speed_mean"][59], np.mean(said["hourly"]["windspeed_10m"][-24:]))
    assert table["humidity_mean"].between(0, 100).all()
    assert notes[0] == "Open-Meteo: days are those of a clock at UTC-4"
    assert len(notes) == 2
