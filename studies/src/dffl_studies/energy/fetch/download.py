"""Files from the web in a cache: each is fetched once, an interrupted download is continued, and a file is complete or absent.

name            the file, complete: fetched, or put there by hand
name.part       the part that has arrived
name.origin     where it came from, and the marks by which the server distinguishes versions; also of name.part
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dffl.files import naming, write_text, write_whole
from dffl.progress import Progress
from dffl_studies.energy.fetch.web import Again, NoNetwork, Response, Web

CHUNK = 1 << 16
MOST_BYTES = 1 << 29
"""The largest file that is fetched: a year of a market's hourly prices has less than a tenth of it."""
T = TypeVar("T")


@dataclass(frozen=True)
class Cache:
    """A folder of fetched files. With ``refresh``, the server is asked whether an existing file has changed."""

    folder: Path
    web: Web = field(default_factory=Web)
    refresh: bool = False
    progress: Progress = field(default_factory=lambda: Progress(show=False))
    most_bytes: int = MOST_BYTES

    def fetch(
        self, url: str, name: str, *, check: Callable[[bytes], object] | None = None,
        secrets: Callable[[], Mapping[str, str]] = dict, advice: str | None = None, progress: Progress | None = None,
    ) -> Path:  # fmt: skip
        """The file of this name, fetched from ``url`` unless it exists; a file that the user has put there counts.

        ``check`` raises ValueError for content that must not be kept. ``secrets`` are headers that are not stored.
        ``advice`` is what to do without a network, if the user cannot put the file there. ``progress`` counts bytes.
        """
        target = self.folder / name
        if self.refresh or not target.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            download = _Download(url, target, progress, self.web, self.most_bytes)
            try:
                fresh = self.web.get(url, download.receive, download.headers, secrets, frozenset({200, 206, 304, 416}))
            except NoNetwork as error:
                by_hand = advice or f"download {url} by hand and save it as {target}, then run the same command again"
                message = f"{target} is there from an earlier run; leave out the refresh to use it"
                raise NoNetwork(f"{error}: {message if target.exists() else by_hand}") from None
            if fresh:
                download.finish(check)
        return target

    def fetch_json(self, url: str, name: str, read: Callable[[Any, str], T], **options: Any) -> tuple[Path, T]:
        """The file of this name, and what ``read`` makes of its JSON; ``read`` raises ValueError for what must not be kept."""
        reply = f"the reply of {urlsplit(url).netloc}"
        path = self.fetch(url, name, check=lambda content: read(_json(content, reply), reply), **options)
        return path, read(_json(path.read_bytes(), str(path)), str(path))


class _Download:
    """The part of a file that has arrived, and how it becomes the file."""

    def __init__(self, url: str, target: Path, progress: Progress | None, web: Web, most_bytes: int):
        self.url, self.target, self.progress = url, target, progress
        self.web, self.most_bytes = web, most_bytes
        self.part = target.with_name(f"{target.name}.part")

    def headers(self) -> dict[str, str]:
        """A request for the rest of the part, for the file if it has changed, or for the whole file."""
        part, complete = _origin(self.part), _origin(self.target)
        size = self._size()
        # A weak ETag does not guarantee the same bytes, so that a part must not be continued because of it.
        strong = part["etag"] if part.get("etag", "W/").startswith('"') else part.get("modified")
        if size and strong and part.get("url") == self.url:
            return {"Range": f"bytes={size}-", "If-Range": strong}
        if self.target.exists() and complete.get("url") == self.url:
            marks = {"If-None-Match": complete.get("etag"), "If-Modified-Since": complete.get("modified")}
            return {name: mark for name, mark in marks.items() if mark}
        return {}

    def receive(self, response: Response) -> bool:
        """Whether the part is now a complete new file; if the reply was cut, the rest is asked for again."""
        if response.status == 304:
            return False
        begin = self._begin(response)
        length = response.headers.get("Content-Length")
        expected = begin + int(length) if length and length.isdigit() else None
        if not begin:
            self._drop()  # first, so that old bytes are never stored with new marks
            write_text(_origin_path(self.part), json.dumps(_marks(self.url, response)))
        if self.progress:
            self.progress.expect(expected or 0, begin)
        self._require_size(max(expected or 0, begin))
        with self.part.open("ab") as file:
            arrived = begin
            while chunk := response.read(CHUNK):
                arrived += len(chunk)
                self._require_size(arrived)
                self.web.require_time(urlsplit(self.url).netloc)
                with naming(self.part):
                    file.write(chunk)
                if self.progress:
                    self.progress.advance(len(chunk), self.target.name)
        size = self._size()
        if expected is not None and size != expected:
            raise Again(f"the connection ended after {size} of {expected} bytes")
        return True

    def _require_size(self, size: int) -> None:
        """Refuse a file that is too large, as soon as that is known; what has arrived of it goes."""
        if size > self.most_bytes:
            self._drop()
            raise ValueError(
                f"{self.url} is larger than {self.most_bytes >> 20} MB, the most that is fetched: is it the right file?"
            )

    def _begin(self, response: Response) -> int:
        """The position in the file at which the reply begins. A continuation that does not fit the part is dropped with it."""
        if response.status == 200:
            return 0
        size, match = self._size(), re.match(r"bytes (\d+)-", response.headers.get("Content-Range") or "")
        same = _marks(self.url, response) == _origin(self.part)
        if response.status == 206 and same and size and match and int(match[1]) == size:
            return size
        self._drop()
        raise Again("the file has changed since its first part came")

    def finish(self, check: Callable[[bytes], object] | None) -> None:
        """Rename the part to the file, if it is what was asked for."""
        try:
            content = self.part.read_bytes()
            if content[:CHUNK].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
                raise ValueError(f"{self.url} is a web page, not data; look at it in a browser, or try again later")
            if check:
                check(content)
        except ValueError:
            self._drop()
            raise
        write_whole(self.target, self.part.replace)
        _origin_path(self.part).replace(_origin_path(self.target))

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _drop(self) -> None:
        self.part.unlink(missing_ok=True)
        _origin_path(self.part).unlink(missing_ok=True)


def _origin_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.origin")


def _origin(path: Path) -> dict[str, str]:
    """Where a file came from; empty for a file that the user has put there."""
    try:
        return dict(json.loads(_origin_path(path).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def _marks(url: str, response: Response) -> dict[str, str]:
    marks = {"url": url, "etag": response.headers.get("ETag"), "modified": response.headers.get("Last-Modified")}
    return {name: mark for name, mark in marks.items() if mark}


def _json(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise ValueError(f"{where}: is not JSON ({error}); fetch it again") from None
