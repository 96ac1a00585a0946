"""A web that is only on this machine, and whose waits take no time."""

from collections.abc import Iterator

import pytest

from dffl_studies.energy.fetch.download import Cache
from dffl_studies.energy.fetch.web import Web
from studies.tests.energy.fetch.server import Server


class Time:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as one:
        yield one


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def web(time) -> Web:
    return Web(tries=4, timeout=5.0, clock=time, now=time, sleep=time.sleep)


@pytest.fixture
def cache(tmp_path, web) -> Cache:
    return Cache(tmp_path, web)
