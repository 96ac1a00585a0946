"""Files in the cache: once fetched, resumed, checked, or put there by hand."""

import socket
from dataclasses import replace

import pytest

from dffl.progress import Progress
from dffl_studies.energy.fetch.download import CHUNK, Cache
from dffl_studies.energy.fetch.web import NoNetwork, Refused, Web
from studies.tests.energy.fetch.server import Document, Reply

BODY = b"".join(b"%d,text\n" % number for number in range(40_000))
"""A few chunks."""
FIRST = CHUNK + 1000


def test_a_file_that_is_there_is_not_fetched_again(server, cache):
    url = server.on("/a.csv", Document(BODY))
    assert cache.fetch(url, "a.csv").read_bytes() == BODY
    assert cache.fetch(url, "a.csv").read_bytes() == BODY
    assert len(server.asked) == 1
    assert not list(cache.folder.glob("*.part*"))
    assert not list(cache.folder.glob(".*"))


def test_a_cut_connection_is_resumed_at_once(server, cache):
    url = server.on("/a.csv", Document(BODY, cut=FIRST))
    assert cache.fetch(url, "a.csv").read_bytes() == BODY
    assert [asked.headers.get("range") for asked in server.asked] == [None, f"bytes={FIRST}-"]


def test_the_next_run_resumes_where_the_last_was_cut(server, cache, tmp_path):
    url = server.on("/a.csv", Document(BODY, cut=FIRST))
    once = replace(cache, web=Web(tries=1))
    with pytest.raises(NoNetwork, match=rf"ended after {FIRST} of {len(BODY)} bytes; 1 tries"):
        once.fetch(url, "a.csv")
    assert (tmp_path / "a.csv.part").read_bytes() == BODY[:FIRST]
    assert not (tmp_path / "a.csv").exists()
    assert cache.fetch(url, "a.csv").read_bytes() == BODY
    assert server.asked[1].headers["range"] == f"bytes={FIRST}-"
    assert server.asked[1].headers["if-range"] == '"1"'


def test_an_interrupt_keeps_what_has_arrived(server, cache, tmp_path):
    class Impatient(Progress):
        def advance(self, units, label):
            raise KeyboardInterrupt

    url = server.on("/a.csv", Document(BODY))
    with pytest.raises(KeyboardInterrupt):
        cache.fetch(url, "a.csv", progress=Impatient(show=False))
    kept = (tmp_path / "a.csv.part").read_bytes()
    assert 0 < len(kept) < len(BODY)
    assert BODY.startswith(kept)
    assert cache.fetch(url, "a.csv").read_bytes() == BODY
    assert server.asked[1].headers["range"] == f"bytes={len(kept)}-"


def test_progress_counts_bytes_from_where_it_resumes(server, cache):
    progress = Progress(show=False)
    cache.fetch(server.on("/a.csv", Document(BODY, cut=FIRST)), "a.csv", progress=progress)
    assert progress.done == progress.total == len(BODY)


def test_a_server_without_ranges_sends_all_again(server, cache):
    url = server.on("/a.csv", Document(BODY, ranges=False, cut=FIRST))
    assert cache.fetch(url, "a.csv").read_bytes() == BODY
    assert "range" in server.asked[1].headers


def test_without_a_strong_mark_nothing_is_resumed(server, cache):
    for mark in ("", 'W/"1"'):
        url = server.on(f"/{len(mark)}.csv", Document(BODY, etag=mark, cut=FIRST))
        assert cache.fetch(url, f"{len(mark)}.csv").read_bytes() == BODY
        assert "range" not in server.asked[-1].headers


def test_the_date_of_change_is_a_mark_too(server, cache):
    date = "Wed, 01 Jan 2025 00:00:00 GMT"
    first = Reply(BODY, headers={"Last-Modified": date}, cut=FIRST)
    rest = Reply(BODY[FIRST:], 206, {"Last-Modified": date, "Content-Range": f"bytes {FIRST}-{len(BODY) - 1}/{len(BODY)}"})
    assert cache.fetch(server.on("/a.csv", [first, rest]), "a.csv").read_bytes() == BODY
    assert server.asked[1].headers["if-range"] == date


def test_a_file_that_changed_meanwhile_is_fetched_whole(server, cache):
    new = b"new " * 50_000
    url = server.on("/a.csv", [Document(BODY, cut=FIRST), Document(new, etag='"2"')])
    assert cache.fetch(url, "a.csv").read_bytes() == new


def test_the_rest_of_another_version_is_not_appended(server, cache):
    rest = Reply(b"x" * 10, 206, {"ETag": '"2"', "Content-Range": f"bytes {FIRST}-{FIRST + 9}/{FIRST + 10}"})
    new = Document(b"new", etag='"2"')
    assert cache.fetch(server.on("/a.csv", [Document(BODY, cut=FIRST), rest, new]), "a.csv").read_bytes() == b"new"


def test_a_part_that_begins_elsewhere_is_not_appended(server, cache):
    rest = Reply(BODY[:10], 206, {"ETag": '"1"', "Content-Range": f"bytes 0-9/{len(BODY)}"})
    assert cache.fetch(server.on("/a.csv", [Document(BODY, cut=FIRST), rest, Document(BODY)]), "a.csv").read_bytes() == BODY


def test_a_part_that_is_already_all_of_it_starts_over(server, cache, tmp_path):
    url = server.on("/a.csv", Document(BODY, cut=FIRST))
    with pytest.raises(NoNetwork):
        replace(cache, web=Web(tries=1)).fetch(url, "a.csv")
    (tmp_path / "a.csv.part").write_bytes(BODY)
    assert cache.fetch(url, "a.csv").read_bytes() == BODY


def test_a_length_that_is_never_reached_is_named(server, cache):
    url = server.on("/a.csv", Reply(b"short", headers={"Content-Length": "100"}))
    with pytest.raises(NoNetwork, match=r"the connection ended after 5 of 100 bytes; 4 tries"):
        cache.fetch(url, "a.csv")
    assert not (cache.folder / "a.csv").exists()


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><html>", b"\n  <html>", b"\xef\xbb\xbf<html>"])
def test_a_web_page_is_not_kept(server, cache, page):
    url = server.on("/a.csv", Document(page))
    with pytest.raises(ValueError, match=r"/a\.csv is a web page, not data"):
        cache.fetch(url, "a.csv")
    assert not list(cache.folder.iterdir())


def test_content_that_fails_its_check_is_not_kept(server, cache):
    def refuse(content: bytes) -> None:
        raise ValueError(f"{len(content)} bytes are too many")

    with pytest.raises(ValueError, match="3 bytes are too many"):
        cache.fetch(server.on("/a.csv", Document(b"abc")), "a.csv", check=refuse)
    assert not list(cache.folder.iterdir())


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_without_a_network_one_line_says_which_file_to_put_where(cache, tmp_path):
    host = f"127.0.0.1:{closed_port()}"
    with pytest.raises(NoNetwork) as caught:
        cache.fetch(f"http://{host}/a.csv", "a.csv")
    line = str(caught.value)
    assert line.startswith(f"cannot reach {host} (")
    assert line.endswith(
        f": download http://{host}/a.csv by hand and save it as {tmp_path / 'a.csv'}, then run the same command again"
    )
    assert "\n" not in line
    (tmp_path / "a.csv").write_bytes(b"by hand")
    assert cache.fetch(f"http://{host}/a.csv", "a.csv").read_bytes() == b"by hand"


def test_a_refresh_asks_whether_the_file_has_changed(server, cache):
    document = Document(BODY)
    url = server.on("/a.csv", document)
    cache.fetch(url, "a.csv")
    fresh = replace(cache, refresh=True)
    assert fresh.fetch(url, "a.csv").read_bytes() == BODY
    assert server.asked[1].headers["if-none-match"] == '"1"'
    document.body, document.etag = b"new", '"2"'
    assert fresh.fetch(url, "a.csv").read_bytes() == b"new"
    assert cache.fetch(url, "a.csv").read_bytes() == b"new"
    assert len(server.asked) == 3


def test_a_refresh_without_a_network_says_what_is_there(cache, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"by hand")
    with pytest.raises(NoNetwork, match=r"a\.csv is there from an earlier run; leave out the refresh to use it"):
        replace(cache, refresh=True).fetch(f"http://127.0.0.1:{closed_port()}/a.csv", "a.csv")


def test_a_file_that_the_server_does_not_have_leaves_nothing(server, tmp_path, web):
    cache = Cache(tmp_path / "deep" / "cache", web)
    with pytest.raises(Refused, match="404 Not Found"):
        cache.fetch(server.base + "/a.csv", "a.csv")
    assert not list(cache.folder.iterdir())


def test_a_download_without_an_end_is_ended_by_its_size(server, web, tmp_path):
    cache = Cache(tmp_path, web, most_bytes=1 << 20)
    for headers in ({}, {"Content-Length": str(1 << 40)}):  # a size that is told is believed at once
        url = server.on("/huge", Reply(b"x" * ((1 << 20) + 1), headers=headers))
        with pytest.raises(ValueError, match=r"/huge is larger than 1 MB, the most that is fetched: is it the right file\?$"):
            cache.fetch(url, "huge.csv")
        assert not list(tmp_path.iterdir())


def test_a_download_without_an_end_is_ended_by_its_time(server, time, tmp_path):
    slow = Web(most_seconds=30.0, clock=time, now=time, sleep=time.sleep)
    url = server.on("/slow", [Reply(b"", 503, {"Retry-After": "20"}), Reply(b"", 503, {"Retry-After": "20"}), Reply(b"late")])
    with pytest.raises(NoNetwork, match=r"over 30 s in all; what has arrived is kept\): download .*/slow by hand"):
        Cache(tmp_path, slow).fetch(url, "slow.csv")
    assert len(server.asked) == 2
