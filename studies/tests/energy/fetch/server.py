"""A server that answers from a script, remembers what it was asked, and can fail in every way that matters."""

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


@dataclass
class Asked:
    """A request: its path, query and headers."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass
class Reply:
    """An answer; ``cut`` sends that many bytes of it and hangs up, ``hang`` never answers."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    hang: bool = False


def say(content: Any, status: int = 200, **headers: str) -> Reply:
    """JSON."""
    return Reply(json.dumps(content).encode(), status, headers)


class Document:
    """A file that a good server has: it can be asked for a part, or whether it has changed."""

    def __init__(self, body: bytes, etag: str = '"1"', ranges: bool = True, cut: int | None = None):
        self.body, self.etag, self.ranges, self.cut = body, etag, ranges, cut

    def __call__(self, asked: Asked) -> Reply:
        marks = {"ETag": self.etag} if self.etag else {}
        cut, self.cut = self.cut, None
        if asked.headers.get("if-none-match") == self.etag:
            return Reply(b"", 304, marks)
        if self.ranges and "range" in asked.headers and asked.headers.get("if-range") == self.etag:
            begin = int(asked.headers["range"].removeprefix("bytes=").removesuffix("-"))
            if begin >= len(self.body):
                return Reply(b"", 416, {"Content-Range": f"bytes */{len(self.body)}"})
            span = f"bytes {begin}-{len(self.body) - 1}/{len(self.body)}"
            return Reply(self.body[begin:], 206, {"Content-Range": span, **marks}, cut)
        return Reply(self.body, 200, marks, cut)


class Server:
    """Listens on a free port of this machine. ``on`` says what it answers: always the same, or a list, one after another."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._script: dict[str, Any] = {}
        self._over = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._http.server_address[1]}"
        self.host = self.base.removeprefix("http://")

    def on(self, path: str, answer: Reply | Callable[[Asked], Reply] | list[Reply | Callable[[Asked], Reply]]) -> str:
        """The address at which this is answered."""
        self._script[path] = answer
        return self.base + path

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        asked = Asked(parts.path, query, {name.lower(): value for name, value in handler.headers.items()})
        self.asked.append(asked)
        answer = self._script.get(parts.path, Reply(b"", 404))
        if isinstance(answer, list):
            answer = answer.pop(0)
        reply = answer(asked) if callable(answer) else answer
        if reply.hang:
            self._over.wait()
            return
        with contextlib.suppress(ConnectionError):
            handler.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()
            handler.wfile.write(reply.body[: reply.cut])

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
