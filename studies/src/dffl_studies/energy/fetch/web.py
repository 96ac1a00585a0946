"""Requests with a pause between them; a fault that may pass is tried again, any other is an error of one line."""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that may be different at the next try."""
FIRST_WAIT = 2.0
"""Seconds before the second try; each further wait is twice as long, so that six tries take longer than a limit per minute."""
MOST_SECONDS = 1800.0
"""The longest that all requests of a command may take together."""
LONGEST_WAIT = 300.0
"""The longest wait in seconds that a server may ask for; a longer one is an error."""

Response: TypeAlias = http.client.HTTPResponse | urllib.error.HTTPError
T = TypeVar("T")


class NoNetwork(OSError):
    """A server could not be reached, or failed at every try."""


class Refused(ValueError):
    """A request that a server refused: the status, and its reason."""

    def __init__(self, line: str, status: int, said: str):
        super().__init__(line)
        self.status, self.said = status, said


class Again(Exception):
    """A reply that cannot be used, where another try may help."""


def require_address(name: str, address: str) -> None:
    """Refuse what is not the address of a server."""
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise ValueError(f"{name} must be an address that begins with http:// or https://, found {address!r:.80}")


class Web:
    """Reads from servers with at least ``pause`` seconds between requests to a host, and at most ``tries`` tries each.

    Time-outs, cut connections and the statuses in ``PASSING`` are tried again after a growing wait, or after the wait that the
    server asks for. A host that cannot be reached at all fails at once. Proxies are those of the environment.
    """

    def __init__(
        self,
        pause: float = 1.0,
        tries: int = 6,
        timeout: float = 60.0,
        most_seconds: float = MOST_SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.pause, self.tries, self.timeout = pause, tries, timeout
        self._clock, self._now, self._sleep = clock, now, sleep
        self._end = clock() + most_seconds
        self._most = most_seconds
        self._next: dict[str, float] = {}  # the earliest time of the next request to a host

    def get(
        self,
        url: str,
        receive: Callable[[Response], T],
        headers: Callable[[], Mapping[str, str]] = dict,
        secrets: Callable[[], Mapping[str, str]] = dict,
        accept: frozenset[int] = frozenset({200}),
    ) -> T:
        """What ``receive`` returns for the reply, if its status is in ``accept``.

        ``headers`` is called at each try; ``secrets`` are not sent to another host, and are in no error message.
        """
        host, hidden = urlsplit(url).netloc, secrets()
        tries = 0
        while True:
            tries += 1
            self._take_turn(host)
            wait = min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT)
            try:
                with self._open(url, headers(), hidden) as response:
                    if response.status in accept:
                        return receive(response)
                    why = _describe(response, hidden)
                    if response.status not in PASSING:
                        raise Refused(f"{host} refused {url} ({why})", int(response.status or 0), why)
                    wait = _asked_wait(response.headers, self._now(), wait)
            except Again as fault:
                why = str(fault)
            except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException, ssl.SSLError) as fault:
                cause = fault.reason if isinstance(fault, urllib.error.URLError) else fault
                why = f"no answer within {self.timeout:g} s" if isinstance(cause, TimeoutError) else _one_line(str(cause))
                if not _passes(cause):
                    raise NoNetwork(f"cannot reach {host} ({why})") from None
            if wait > LONGEST_WAIT:
                raise NoNetwork(f"cannot fetch from {host} ({why}; it asks for a wait of {wait:.0f} s)")
            if tries >= self.tries:
                raise NoNetwork(f"cannot fetch from {host} ({why}; {tries} tries)")
            self._sleep(wait)

    def require_time(self, host: str) -> None:
        """Refuse to go on once the time of all requests together is over: a server may send a little for ever."""
        if self._clock() > self._end:
            raise NoNetwork(f"cannot fetch from {host} (over {self._most:.0f} s in all; what has arrived is kept)")

    def _take_turn(self, host: str) -> None:
        self.require_time(host)
        early = self._next.get(host, 0.0) - self._clock()
        if early > 0:
            self._sleep(early)
        self._next[host] = self._clock() + self.pause

    def _open(self, url: str, headers: Mapping[str, str], secrets: Mapping[str, str]) -> Response:
        """The reply, whatever its status."""
        request = urllib.request.Request(url, headers={"User-Agent": "dffl", **headers})
        for name, value in secrets.items():
            request.add_unredirected_header(name, value)
        try:
            response: Response = urllib.request.urlopen(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            return error
        return response


def _passes(cause: object) -> bool:
    cut = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError, http.client.HTTPException, ssl.SSLEOFError)
    return isinstance(cause, (TimeoutError, *cut))


def _describe(response: Response, hidden: Mapping[str, str]) -> str:
    """A status in words, with the reason that the JSON body gives, without the secrets."""
    text = ""
    try:
        body = json.loads(response.read(10_000))
        reason = body.get("reason") or body.get("message") or body.get("errors") or ""
        text = reason if isinstance(reason, str) else json.dumps(reason)
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        pass  # a body of another kind has no reason for one line
    for secret in hidden.values():
        text = text.replace(secret, "...")
    status = f"{response.status} {response.reason}".strip()
    return f"{status}: {_one_line(text)}" if text else status


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _asked_wait(headers: Message, now: float, otherwise: float) -> float:
    """Seconds until Retry-After, which is a number of seconds or a date."""
    asked = (headers.get("Retry-After") or "").strip()
    if asked.isdigit():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - now)
    except (TypeError, ValueError):
        return otherwise
