"""Keys that are believed no longer, though the authority has signed them: a site's key that was stolen or replaced."""

from __future__ import annotations

import datetime as dt
import json
from functools import lru_cache
from pathlib import Path

from dffl.deploy.credentials import fingerprint
from dffl.files import write_text

REVOKED = "the key of this site was revoked; make a new one with `dffl site request`, and ask the coordinator for a new kit"
UNREADABLE = "the coordinator cannot read its list of revoked keys"


class Revoked:
    """The list in a coordinator's folder, by fingerprints. It is read again whenever it has changed: it holds at once."""

    def __init__(self, path: Path):
        self.path = path
        self._read: tuple[tuple[int, ...] | None, frozenset[str]] = (None, frozenset())

    def add(self, name: str, key: str) -> None:
        """Believe a site's key, which its fingerprint names, no longer."""
        since = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
        write_text(self.path, json.dumps({**self._listed(), key: {"site": name, "since": since}}, indent=1) + "\n")

    def __contains__(self, key: str) -> bool:
        return key in self.known()

    def known(self) -> frozenset[str]:
        """The fingerprints on the list."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return frozenset()
        state, (before, known) = (found.st_ino, found.st_mtime_ns, found.st_size), self._read
        if state != before:
            known = frozenset(self._listed())
            self._read = state, known
        return known

    def sites(self) -> set[str]:
        """The sites that have a key on the list."""
        return {entry["site"] for entry in self._listed().values()}

    def _listed(self) -> dict[str, dict[str, str]]:
        if not self.path.exists():
            return {}
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            return {key: {"site": str(entry["site"]), "since": str(entry["since"])} for key, entry in found.items()}
        except (ValueError, TypeError, AttributeError, KeyError):
            raise ValueError(
                f"{self.path}: is no list of revoked keys; put back a copy, without it no key is believed"
            ) from None

    def objection(self, certificate: bytes) -> str:
        """Why a certificate is not believed, if it is not; without a list that can be read, none is."""
        try:
            return REVOKED if _key(certificate) in self else ""
        except (OSError, ValueError):
            return UNREADABLE


@lru_cache(maxsize=1000)
def _key(certificate: bytes) -> str:
    from cryptography import x509

    return fingerprint(x509.load_pem_x509_certificate(certificate).public_key())
