"""Data Miner's pages: all of them once, with a key that nobody sees, in days of 24 hours."""

import json
import math
import socket
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dffl.progress import Progress
from dffl_studies.energy.fetch.pjm import fetch_pjm
from dffl_studies.energy.fetch.pjm_rows import parse_pjm
from dffl_studies.energy.fetch.span import Span
from dffl_studies.energy.fetch.web import NoNetwork
from studies.tests.energy.fetch.server import Asked, Reply, say

KEY = "k3y0123456789"
EASTERN = "America/New_York"
DAY = Span.read("2025-01-15", "2025-01-15")


def rows(first: str, last: str, zones=("AECO", "RECO", "PJM-RTO"), kind: str = "da") -> list[dict]:
    """Rows from one hour of the Eastern clock to another, in Data Miner's layout."""
    items = []
    for begin in pd.date_range(first, last, freq="h", tz=EASTERN):
        utc = begin.tz_convert("UTC")
        for number, zone in enumerate(zones):
            energy, congestion, loss = 20.0 + utc.hour, number - 0.5, 0.125 * number
            prices = {"system_energy_price": energy, "congestion_price": congestion, "marginal_loss_price": loss}
            prices["total_lmp"] = energy + congestion + loss
            times = {"datetime_beginning_utc": utc, "datetime_beginning_ept": begin}
            items.append(
                {name: time.strftime("%Y-%m-%dT%H:%M:%S") for name, time in times.items()}
                | {"pnode_name": zone}
                | {f"{name}_{kind}": price for name, price in prices.items()}
            )
    return items


def miner(asked: Asked) -> Reply:
    """Data Miner with all hours of all time: it takes the key, the window and the page as the real one does."""
    if asked.headers.get("ocp-apim-subscription-key") != KEY:
        return say({"statusCode": 401, "message": f"invalid key {asked.headers.get('ocp-apim-subscription-key')}"}, 401)
    first, last = asked.query["datetime_beginning_ept"].split(" to ")
    assert pd.Timestamp(last) - pd.Timestamp(first) < pd.Timedelta(days=366)
    assert (asked.query["type"], asked.query["row_is_current"]) == ("ZONE", "TRUE")
    kind = asked.path[1:3]
    found = rows(first, last, kind=kind)
    start, count = int(asked.query["startRow"]), int(asked.query["rowCount"])
    fields = asked.query["fields"].split(",")
    page = [{name: row[name] for name in fields} for row in found[start - 1 : start - 1 + count]]
    return say({"items": page, "totalRows": len(found)})


def fetch(server, cache, span=DAY, kind="da", **options):
    return fetch_pjm(kind, span, cache, **({"key": KEY, "base": server.base} | options))


def test_pages_make_up_the_whole(server, cache, monkeypatch):
    server.on("/da_hrl_lmps", miner)
    found = fetch(server, cache, rows=30)
    # 25 hours with the one after midnight, of 3 zones each
    assert [asked.query["startRow"] for asked in server.asked] == ["1", "31", "61"]
    assert server.asked[0].query["datetime_beginning_ept"] == "01/15/2025 00:00 to 01/16/2025 00:00"
    table = found.table
    assert list(table.columns) == ["zone", "date", "hour", "total", "energy", "congestion", "loss"]
    assert table.groupby(["zone", "date"])["hour"].agg(list).to_dict() == {
        (zone, "2025-01-15"): list(range(24)) for zone in ("AECO", "RECO")
    }
    np.testing.assert_allclose(table["total"], table["energy"] + table["congestion"] + table["loss"])
    assert table["energy"][0] == 25.0
    assert found.notes == ["PJM: PJM-RTO: a sum of zones and not a zone; left out"]
    again = fetch(server, cache, rows=30)
    pd.testing.assert_frame_equal(again.table, table)
    assert len(server.asked) == 3
    monkeypatch.delenv("PJM_API_KEY", raising=False)
    fetch(server, cache, rows=30, key=None)  # what is there needs no key


def test_real_time_prices(server, cache):
    server.on("/rt_hrl_lmps", miner)
    assert len(fetch(server, cache, kind="rt").table) == 48
    assert "total_lmp_rt" in server.asked[0].query["fields"]
    with pytest.raises(ValueError, match="kind must be da"):
        fetch(server, cache, kind="id")


def test_the_key_comes_from_the_environment_and_is_written_nowhere(server, cache, monkeypatch):
    monkeypatch.setenv("PJM_API_KEY", f" {KEY}\n")
    server.on("/da_hrl_lmps", miner)
    fetch(server, cache, key=None)
    assert server.asked[0].headers["ocp-apim-subscription-key"] == KEY
    assert KEY not in str(server.asked[0].query)
    assert all(KEY not in path.read_text() for path in cache.folder.iterdir())


def test_a_key_that_is_missing_or_no_key(server, cache, monkeypatch):
    monkeypatch.delenv("PJM_API_KEY", raising=False)
    with pytest.raises(ValueError, match=r"needs a key in PJM_API_KEY: .*apiportal\.pjm\.com; EIA's files need none"):
        fetch(server, cache, key=None)
    with pytest.raises(ValueError, match="one word of plain letters") as caught:
        fetch(server, cache, key="two\nwords")
    assert "words" not in str(caught.value)
    assert server.asked == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_not_shown(server, cache, status):
    server.on("/da_hrl_lmps", lambda asked: say({"message": f"no: {asked.headers['ocp-apim-subscription-key']}"}, status))
    with pytest.raises(ValueError, match=rf"PJM refused the key \({status}\).*dataminer2\.pjm\.com.*apiportal") as caught:
        fetch(server, cache, key="wr0ng")
    assert "wr0ng" not in str(caught.value)


def test_a_request_that_is_refused_says_why_without_the_key(server, cache):
    server.on("/da_hrl_lmps", say({"errors": [{"field": "type", "message": f"not for {KEY}"}]}, 400))
    with pytest.raises(ValueError, match=r"PJM refused the request \(400 Bad Request: .*not for \.\.\.") as caught:
        fetch(server, cache)
    assert KEY not in str(caught.value)


def test_an_interrupted_fetch_goes_on_with_the_page_it_lacks(server, cache):
    server.on("/da_hrl_lmps", [miner, Reply(b"", 500), Reply(b"", 500), Reply(b"", 500), Reply(b"", 500), miner, miner])
    with pytest.raises(NoNetwork, match=rf"500 .* 4 tries\): the pages so far are kept in {cache.folder}; run the same"):
        fetch(server, cache, rows=30)
    assert len(fetch(server, cache, rows=30).table) == 48
    assert [asked.query["startRow"] for asked in server.asked] == ["1", *["31"] * 5, "61"]


def test_long_spans_are_asked_for_in_parts_of_the_year(server, cache):
    server.on("/da_hrl_lmps", miner)
    progress = Progress(show=False)
    found = fetch(server, replace(cache, progress=progress), Span.read("2023-12-01", "2025-01-31"))
    assert [asked.query["datetime_beginning_ept"] for asked in server.asked] == [
        "12/01/2023 00:00 to 12/31/2023 23:00",
        "01/01/2024 00:00 to 06/30/2024 23:00",
        "07/01/2024 00:00 to 12/31/2024 23:00",
        "01/01/2025 00:00 to 02/01/2025 00:00",
    ]
    assert len(found.table) == 2 * 24 * 428
    assert found.table.groupby(["zone", "date"]).size().eq(24).all()
    assert progress.done == pytest.approx(progress.total)


@pytest.mark.parametrize("day", ["2025-03-09", "2025-11-02", "2025-07-01"])
def test_a_day_has_24_hours_in_standard_time(server, cache, day):
    server.on("/da_hrl_lmps", miner)
    found = fetch(server, cache, Span.read(day, day))
    one = found.table[found.table["zone"] == "AECO"]
    assert list(one["hour"]) == list(range(24))
    assert list(one["energy"]) == [20.0 + (hour + 5) % 24 for hour in range(24)]  # the price tells the hour in UTC


def test_without_utc_days_are_those_of_the_clock(server, cache):
    def without_utc(asked: Asked) -> Reply:
        page = json.loads(miner(asked).body)
        page["items"] = [{name: value for name, value in row.items() if "utc" not in name} for row in page["items"]]
        return say(page)

    server.on("/da_hrl_lmps", without_utc)
    spring = fetch(server, cache, Span.read("2025-03-09", "2025-03-09"))
    assert list(spring.table["hour"][:23]) == [0, 1, *range(3, 24)]
    assert any("no UTC times" in note and "23 hours" in note for note in spring.notes)
    assert any("2 prices are missing, in 1 hours; the first is AECO, 2025-03-09 02:00" in note for note in spring.notes)
    autumn = fetch(server, cache, Span.read("2025-11-02", "2025-11-02"))
    assert list(autumn.table["hour"][:25]) == [0, 1, *range(1, 24)]
    assert set(autumn.table["date"]) == {"2025-11-02"}


def test_an_hour_that_is_there_twice_is_refused():
    items = rows("2025-01-15 00:00", "2025-01-15 05:00", zones=("AECO",))
    with pytest.raises(ValueError, match="here: zone AECO, 2025-01-15 03:00 is there twice"):
        parse_pjm([*items, items[3]], "da", "here")
    bare = [{name: value for name, value in row.items() if "utc" not in name} for row in items]
    with pytest.raises(ValueError, match="here: zone AECO, 2025-01-15 01:00 is there twice"):
        parse_pjm([*bare, bare[1]], "da", "here")


@pytest.mark.parametrize(("said", "found"), [(80, 75), (70, 75)])
def test_a_total_that_the_pages_do_not_make_up_is_refused(server, cache, said, found):
    def miscounts(asked: Asked) -> Reply:
        page = json.loads(miner(asked).body)
        return say(page | {"totalRows": said})

    server.on("/da_hrl_lmps", miscounts)
    with pytest.raises(ValueError, match=rf"totalRows is {said}, but the pages have {found} rows; remove pjm_da_.*run again"):
        fetch(server, cache, rows=30)


def test_a_total_that_changes_between_pages_is_refused(server, cache):
    totals = iter((75, 78))

    def grows(asked: Asked) -> Reply:
        return say(json.loads(miner(asked).body) | {"totalRows": next(totals)})

    server.on("/da_hrl_lmps", grows)
    with pytest.raises(ValueError, match=r"row_31\.json: totalRows was 75 in the page before and is 78 here"):
        fetch(server, cache, rows=30)


def test_fields_that_are_missing_are_named():
    items = rows("2025-01-15 00:00", "2025-01-15 01:00")
    for row in items:
        del row["congestion_price_da"], row["pnode_name"]
    with pytest.raises(ValueError, match="here: the reply has no pnode_name, congestion_price_da"):
        parse_pjm(items, "da", "here")


@pytest.mark.parametrize(("bad", "shown"), [("n/a", "'n/a'"), (math.inf, "inf")])
def test_a_price_that_is_no_number_is_named(bad, shown):
    items = rows("2025-01-15 00:00", "2025-01-15 05:00", zones=("AECO", "RECO"))
    items[5]["total_lmp_da"] = bad
    with pytest.raises(ValueError, match=f"here: zone RECO, 2025-01-15 02:00: total_lmp_da must be a number, found {shown}"):
        parse_pjm(items, "da", "here")
    items[5] |= {"total_lmp_da": 1.0, "datetime_beginning_utc": "soon"}
    with pytest.raises(ValueError, match="here: zone RECO: datetime_beginning_utc must be a time, found 'soon'"):
        parse_pjm(items, "da", "here")


def test_a_price_that_is_missing_stays_missing():
    items = rows("2025-01-15 00:00", "2025-01-15 05:00", zones=("AECO",))
    items[2]["total_lmp_da"] = None
    assert list(parse_pjm(items, "da", "here").table["hour"]) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("reply", [Reply(b"[1, 2"), say({"errors": ["too many"]}), say([1])])
def test_a_reply_of_another_kind_is_not_kept(server, cache, reply):
    server.on("/da_hrl_lmps", reply)
    with pytest.raises(ValueError, match=r"the reply of 127.0.0.1:\d+: (is not JSON|must have items and totalRows, found )"):
        fetch(server, cache)
    assert not list(cache.folder.iterdir())


def test_days_without_prices(server, cache):
    server.on("/da_hrl_lmps", say({"items": [], "totalRows": 0}))
    with pytest.raises(ValueError, match="PJM da_hrl_lmps: no price from 2025-01-15 to 2025-01-15"):
        fetch(server, cache)


def test_without_a_network(cache):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(NoNetwork, match=r"^cannot reach 127.*: the pages so far are kept in .*; run the same command again"):
        fetch_pjm("da", DAY, cache, key=KEY, base=base)


def test_a_key_is_never_sent_in_the_clear(cache):
    with pytest.raises(ValueError, match="must begin with https: a key goes there"):
        fetch_pjm("da", Span.read("2025-01-15", "2025-01-15"), cache, KEY, "http://mirror.example/api")
