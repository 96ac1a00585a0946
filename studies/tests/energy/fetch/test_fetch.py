"""What the sources share: the layout of prices, the places of zones, and spans of days."""

import pandas as pd
import pytest

from dffl_studies.energy.fetch.eia import fetch_eia
from dffl_studies.energy.fetch.open_meteo import fetch_open_meteo
from dffl_studies.energy.fetch.pjm import fetch_pjm
from dffl_studies.energy.fetch.places import PJM_CODES, PLACES, place
from dffl_studies.energy.fetch.span import Span
from studies.tests.energy.fetch.real import FOLDER, needs_real_files
from studies.tests.energy.fetch.server import Document
from studies.tests.energy.fetch.test_eia import text
from studies.tests.energy.fetch.test_open_meteo import archive
from studies.tests.energy.fetch.test_pjm import KEY, miner


def test_prices_of_all_sources_have_one_layout(server, cache):
    server.on("/pjm_lmp_da_hr_zones_2025.csv", Document(text("2025-01-14", "2025-01-16").encode()))
    server.on("/da_hrl_lmps", miner)
    day = Span.read("2025-01-15", "2025-01-15")
    from_eia = fetch_eia("pjm", "da", day, cache, server.base)
    from_pjm = fetch_pjm("da", day, cache, KEY, server.base)
    assert list(from_eia.table.columns) == list(from_pjm.table.columns)
    assert (len(from_eia.table), len(from_pjm.table)) == (48, 48)
    assert dict(from_eia.table.dtypes) == dict(from_pjm.table.dtypes)


def test_the_weather_of_zones_by_their_names(server, cache):
    base = server.on("/v1/archive", archive)
    zones = ["AECO", "COMED", "A - West", "Texas Hub"]
    places = pd.DataFrame([(zone, *place(zone)[1:]) for zone in zones], columns=["zone", "lat", "lon"])
    found = fetch_open_meteo(places, Span.read("2025-01-01", "2025-01-02"), cache, base)
    assert list(found.table["zone"].unique()) == zones
    assert len(server.asked) == 1


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
    with pytest.raises(ValueError, match="first must be a day such as 2021-01-31, found '2025-02-30'"):
        Span.read("2025-02-30", "2025-03-01")
    with pytest.raises(ValueError, match="first must not be after last, found 2025-03-02 and 2025-03-01"):
        Span.read("2025-03-02", "2025-03-01")


def test_pieces_of_a_span_are_the_span():
    span = Span.read("2023-05-17", "2025-02-28")
    for months in (1, 6, 12):
        pieces = span.pieces(months)
        assert [day for piece in pieces for day in piece.dates()] == span.dates()
        assert sum(piece.days for piece in pieces) == span.days == 654
