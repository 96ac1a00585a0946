"""The trusted key of each site: the key that was signed last, until it is revoked.

A signature of the authority is not enough: a key may have been stolen or replaced since.
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
from typing import Any

from dffl.deploy.credentials import fingerprint
from dffl.deploy.locks import locked
from dffl.files import write_text

REVOKED = (
    "the key of this site was revoked; create another with `dffl site request --new-key`, and ask the coordinator for a kit"
)
UNKNOWN = "the coordinator trusts no key of this site; ask it for a kit"
LOCK_SECONDS = 10.0
"""Time-out of a command that waits while another one changes the list."""
LOG_AGAIN_SECONDS = 60.0
FIELDS = {"believed": "trusted", "revoked": "revoked"}
"""For each field of the file, the attribute of `SiteKeys`."""


@dataclass
class SiteKeys:
    """The keys of all sites, by their fingerprints."""

    trusted: dict[str, str] = field(default_factory=dict)
    """The trusted key of each site. Files call this field ``believed``."""
    revoked: dict[str, str] = field(default_factory=dict)
    """For each revoked key, its site and the date. A revoked key is never trusted or signed again."""

    def revoke(self, name: str) -> str:
        """Revoke the key of a site; returns its fingerprint."""
        key = self.trusted.pop(name)
        self.revoked[key] = f"{name}, {dt.datetime.now(dt.UTC):%Y-%m-%d}"
        return key

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> SiteKeys:
        return cls(**{FIELDS[name]: value for name, value in content.items()})

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, attribute) for name, attribute in FIELDS.items()}


class KeyRegistry:
    """The list in a coordinator's folder. It is read again after every change, also by a running coordinator."""

    def __init__(self, path: Path, log: logging.Logger | None = None):
        self.path, self._log = path, log
        self._last: tuple[tuple[int, ...], SiteKeys] = ((), SiteKeys())
        self._last_logged = -LOG_AGAIN_SECONDS

    def require_readable(self) -> None:
        """Reject a folder without a readable list."""
        if not self.path.exists():
            fix = "restore a copy, or sign the requests of all sites again"
            raise ValueError(f"{self.path}: there is no such file, so no site would be trusted; {fix}")
        self._current()

    def read(self) -> SiteKeys:
        """The list on disk; empty if there is no file."""
        try:
            keys = SiteKeys.from_json(json.loads(self.path.read_text(encoding="utf-8")))
            texts = (text for part in (keys.trusted, keys.revoked) for pair in part.items() for text in pair)
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("a value is not a text")
        except FileNotFoundError:
            return SiteKeys()
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            raise ValueError(f"{self.path}: is not a list of keys, or was changed; restore a copy") from None
        return keys

    @contextmanager
    def changed(self) -> Iterator[SiteKeys]:
        """Change the list atomically, one command at a time."""
        with locked(self.path.with_suffix(".lock"), "another command is changing the keys; try again", LOCK_SECONDS):
            keys = self.read()
            yield keys
            write_text(self.path, json.dumps(keys.as_json(), indent=1) + "\n")

    def rejection_reason(self, certificate: bytes) -> str:
        """Why a certificate is not trusted, or an empty text. While the list cannot be read, the last one stays valid."""
        try:
            keys = self._current()
        except (OSError, ValueError) as error:
            keys = self._last[1]
            if self._log is not None and time.monotonic() - self._last_logged > LOG_AGAIN_SECONDS:
                self._last_logged = time.monotonic()
                self._log.error("keeping the keys that were read before: %s", error)
        name, key = _owner_and_fingerprint(certificate)
        if keys.trusted.get(name) == key:
            return ""
        return REVOKED if key in keys.revoked else UNKNOWN

    def _current(self) -> SiteKeys:
        stat = self.path.stat()
        version = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if version != self._last[0]:
            self._last = version, self.read()
        return self._last[1]


@lru_cache(maxsize=1000)
def _owner_and_fingerprint(certificate: bytes) -> tuple[str, str]:
    """The site of a certificate, and the fingerprint of its key."""
    from cryptography import x509

    parsed = x509.load_pem_x509_certificate(certificate)
    [name] = parsed.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(name.value), fingerprint(parsed.public_key())
