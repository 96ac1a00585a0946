"""Pauses, tries and one-line errors of requests."""

import email.utils
import socket

import pytest

from dffl_studies.energy.fetch.web import NoNetwork, Refused, Web
from studies.tests.energy.fetch.server import Reply, say


def read(response):
    return response.read()


def test_requests_to_a_host_are_a_pause_apart(server, time):
    web = Web(pause=3.0, clock=time, now=time, sleep=time.sleep)
    url = server.on("/a", Reply(b"yes"))
    assert web.get(url, read) == b"yes"
    assert time.waits == []
    time.now += 1.0
    web.get(url, read)
    assert time.waits == [2.0]
    time.now += 5.0
    web.get(url, read)
    assert time.waits == [2.0]


def test_a_pause_to_one_host_does_not_hold_up_another(server, time):
    web = Web(pause=3.0, clock=time, now=time, sleep=time.sleep)
    web.get(server.on("/a", Reply(b"yes")), read)
    web.get(server.base.replace("127.0.0.1", "localhost") + "/a", read)
    assert time.waits == []


def test_a_wait_that_is_asked_for_in_seconds_is_kept(server, web, time):
    url = server.on("/a", [Reply(b"", 429, {"Retry-After": "17"}), Reply(b"yes")])
    assert web.get(url, read) == b"yes"
    assert time.waits == [17.0]


def test_a_wait_that_is_asked_for_as_a_date_is_kept(server, web, time):
    date = email.utils.formatdate(time.now + 21, usegmt=True)
    url = server.on("/a", [Reply(b"", 503, {"Retry-After": date}), Reply(b"yes")])
    assert web.get(url, read) == b"yes"
    assert time.waits == [21.0]


def test_a_wait_of_an_hour_is_not_kept(server, web, time):
    url = server.on("/a", Reply(b"", 429, {"Retry-After": "3600"}))
    with pytest.raises(NoNetwork, match=r"429 Too Many Requests; it asks for a wait of 3600 s"):
        web.get(url, read)
    assert time.waits == []


def test_a_server_that_goes_on_failing_is_left_after_longer_and_longer_waits(server, web, time):
    url = server.on("/a", Reply(b"", 500))
    with pytest.raises(NoNetwork, match=rf"^cannot fetch from {server.host} \(500 Internal Server Error; 4 tries\)$"):
        web.get(url, read)
    assert len(server.asked) == 4
    assert time.waits == [2.0, 4.0, 8.0]


def test_a_server_that_does_not_answer_is_tried_again(server, time):
    web = Web(tries=2, timeout=0.05, clock=time, now=time, sleep=time.sleep)
    url = server.on("/a", Reply(hang=True))
    with pytest.raises(NoNetwork, match=r"no answer within 0.05 s; 2 tries"):
        web.get(url, read)
    url = server.on("/a", [Reply(hang=True), Reply(b"yes")])
    assert web.get(url, read) == b"yes"


def test_a_cut_connection_is_tried_again(server, web):
    url = server.on("/a", [Reply(b"all of it", cut=3), Reply(b"all of it")])
    assert web.get(url, read) == b"all of it"


def test_a_host_that_is_not_there_fails_at_once(web, time):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NoNetwork, match=rf"^cannot reach 127.0.0.1:{port} \(.*refused\)$"):
        web.get(f"http://127.0.0.1:{port}/a", read)
    assert time.waits == []


def test_a_final_no_is_one_line_with_the_servers_reason(server, web):
    url = server.on("/a", say({"error": True, "reason": "latitude must\nbe a number"}, 400))
    with pytest.raises(Refused) as caught:
        web.get(url, read)
    assert str(caught.value) == f"{server.host} refused {url} (400 Bad Request: latitude must be a number)"
    assert caught.value.status == 400
    assert len(server.asked) == 1


def test_a_secret_is_sent_but_neither_shown_nor_sent_on(server, web):
    other = server.base.replace("127.0.0.1", "localhost") + "/b"
    url = server.on("/a", Reply(b"", 302, {"Location": other}))
    server.on("/b", say({"message": "no such key: s3cret"}, 403))
    with pytest.raises(Refused, match=r"403 Forbidden: no such key: \.\.\.\)$"):
        web.get(url, read, secrets=lambda: {"X-Key": "s3cret"})
    assert server.asked[0].headers["x-key"] == "s3cret"
    assert "x-key" not in server.asked[1].headers
