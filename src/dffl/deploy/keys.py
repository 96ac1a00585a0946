"""Which key of each site the coordinator believes: the one that was signed last, until somebody revokes it.

That the authority has signed a certificate is not enough: a key may have been stolen since, or replaced.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from dffl.deploy.credentials import fingerprint
from dffl.deploy.locks import locked
from dffl.files import write_text

REVOKED = "the key of this site was revoked; make another with `dffl site request --new-key`, and ask the coordinator for a kit"
UNKNOWN = "the coordinator believes no key of this site; ask it for a kit"
CHANGING_SECONDS = 10.0
"""How long a command waits while another one changes the list."""
SAID_AGAIN_SECONDS = 60.0


@dataclass
class Book:
    """The keys, by their fingerprints."""

    believed: dict[str, str] = field(default_factory=dict)
    """The key of each site."""
    revoked: dict[str, str] = field(default_factory=dict)
    """Whose it was and since when, for each key that is never believed and never signed again."""

    def revoke(self, name: str) -> str:
        """Believe the key of a site no longer; its fingerprint."""
        key = self.believed.pop(name)
        self.revoked[key] = f"{name}, {dt.datetime.now(dt.UTC):%Y-%m-%d}"
        return key


class Keys:
    """The list in a coordinator's folder. It is read again whenever it has changed, so that it holds while somebody serves."""

    def __init__(self, path: Path, log: logging.Logger | None = None):
        self.path, self._log = path, log
        self._last: tuple[tuple[int, ...], Book] = ((), Book())
        self._said = -SAID_AGAIN_SECONDS

    def require_readable(self) -> None:
        """Refuse to serve without a list."""
        if not self.path.exists():
            fix = "put back a copy, or sign the requests of all sites again"
            raise ValueError(f"{self.path}: there is no such file, so no site would be believed; {fix}")
        self._known()

    def read(self) -> Book:
        """What is on the disk; an empty list if there is none."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            book = Book(**found)
            texts = (text for part in (book.believed, book.revoked) for pair in part.items() for text in pair)
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("a value is no text")
        except FileNotFoundError:
            return Book()
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{self.path}: is no list of keys, or was changed; put back a copy") from None
        return book

    @contextmanager
    def changed(self) -> Iterator[Book]:
        """Change the list: whole or not at all, and one after the other."""
        with locked(self.path.with_suffix(".lock"), "another command changes the keys; try again", CHANGING_SECONDS):
            book = self.read()
            yield book
            write_text(self.path, json.dumps(book.__dict__, indent=1) + "\n")

    def objection(self, certificate: bytes) -> str:
        """Why a certificate is not believed, if it is not. A list that cannot be read for a while leaves the last one valid."""
        try:
            book = self._known()
        except (OSError, ValueError) as error:
            book = self._last[1]
            if self._log is not None and time.monotonic() - self._said > SAID_AGAIN_SECONDS:
                self._said = time.monotonic()
                self._log.error("the keys are those that were read before: %s", error)
        name, key = _of(certificate)
        if book.believed.get(name) == key:
            return ""
        return REVOKED if key in book.revoked else UNKNOWN

    def _known(self) -> Book:
        found = self.path.stat()
        state = (found.st_ino, found.st_mtime_ns, found.st_size)
        if state != self._last[0]:
            self._last = state, self.read()
        return self._last[1]


@lru_cache(maxsize=1000)
def _of(certificate: bytes) -> tuple[str, str]:
    """Whose a certificate is, and the fingerprint of its key."""
    from cryptography import x509

    found = x509.load_pem_x509_certificate(certificate)
    [name] = found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(name.value), fingerprint(found.public_key())
