"""Who is not of the federation is refused at the door, and the refusal is in the log; nobody blocks the others."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dffl.deploy import credentials
from dffl.deploy.certificate_request import request
from dffl.deploy.credentials import Kit
from dffl.deploy.network import Credentials
from dffl.deploy.provisioning import create, sign_request
from tests.deploy.real import Real

REFUSED = "rejected a connection: its certificate is missing, expired or from another federation"
SECONDS = 30


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    base = tmp_path_factory.mktemp("strangers")
    with Real(base, rounds=2, patience={"join_seconds": 10, "quorum": 0.3}, wire={"most_megabytes": 1}) as made:
        made.serve()
        made.until(lambda: is_listening(made.port))  # it says that it serves a moment before
        yield made


def is_listening(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def kit_of(real: Real, name: str) -> Credentials:
    return Kit.read(real.folder.kits / f"{name}.kit").unpack(real.base / name / "own")


def handshake(real: Real, certificate: Path | None = None, key: Path | None = None) -> None:
    """Dial the coordinator as somebody who has its authority's certificate, which is no secret, and some key."""
    context = ssl.create_default_context(cafile=str(real.folder.secrets / "authority.crt"))
    context.set_alpn_protocols(["h2"])
    if certificate is not None and key is not None:
        context.load_cert_chain(certificate, key)
    plain = socket.create_connection(("127.0.0.1", real.port), timeout=SECONDS)
    with plain, context.wrap_socket(plain, server_hostname="localhost") as secured:
        secured.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        if not secured.recv(100):
            raise ssl.SSLError("closed")


def require_refused(real: Real, certificate: Path | None = None, key: Path | None = None) -> None:
    before = real.log.count(REFUSED)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(real, certificate, key)
    real.until(lambda: real.log.count(REFUSED) > before, SECONDS)
    time.sleep(1.1)  # the log names such refusals once a second


def foreign_kit(base: Path, plan: Path) -> Credentials:
    (base / "coordinator").mkdir(parents=True)
    (base / "coordinator" / "plan.toml").write_text(plan.read_text())
    create(base / "coordinator" / "plan.toml")
    request("site-1", base / "own")
    sign_request(base / "coordinator", base / "own" / "site-1.request", replace=False)
    return Kit.read(base / "coordinator" / "kits" / "site-1.kit").unpack(base / "own")


def test_without_a_certificate(real: Real) -> None:
    require_refused(real)


def test_with_the_certificate_of_another_authority(real: Real, tmp_path: Path) -> None:
    foreign = foreign_kit(tmp_path, real.folder.path / "plan.toml")
    require_refused(real, foreign.certificate, foreign.key)


def test_with_an_expired_certificate(real: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request("site-1", tmp_path / "own")
    _, asked, _ = credentials.read_request(tmp_path / "own" / "site-1.request")
    monkeypatch.setattr(credentials, "CLOCK_MARGIN", dt.timedelta(days=900))
    monkeypatch.setattr(credentials, "YEARS", -1)
    (tmp_path / "site.crt").write_bytes(credentials.sign(real.folder.secrets, asked, "site-1"))
    require_refused(real, tmp_path / "site.crt", tmp_path / "own" / "site.key")


def test_with_a_certificate_that_it_signed_itself(real: Real, tmp_path: Path) -> None:
    credentials.make_authority(tmp_path / "own", "mine", ["localhost"])
    require_refused(real, tmp_path / "own" / "server.crt", tmp_path / "own" / "server.key")


def test_a_right_certificate_passes_the_same_door(real: Real) -> None:
    """Else the tests above would show nothing."""
    own = kit_of(real, "site-3")
    handshake(real, own.certificate, own.key)


def stranger(real: Real, name: str, own: Credentials, *more: str) -> str:
    words = [name, f"localhost:{real.port}", str(own.certificate), str(own.key), str(own.authority), "4", *more]
    command = [sys.executable, "-m", "tests.deploy.stranger", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout


def test_a_site_under_the_name_of_another(real: Real) -> None:
    stranger(real, "site-1", kit_of(real, "site-2"))
    assert "site-1: connected" not in real.log
    lines = [line for line in real.log.splitlines() if "WARNING rejected a connection" in line and "site-1" in line]
    assert lines
    assert "site-2" in lines[0]


def test_a_message_above_the_limit_is_not_taken(real: Real) -> None:
    said = stranger(real, "site-2", kit_of(real, "site-2"), str(3 * 2**20))
    assert "up server" in said
    assert "down server" in said
    assert real.processes["coordinator"].poll() is None


def test_a_site_whose_key_is_revoked_is_cut_off_at_once_and_comes_back_with_a_new_key(real: Real, tmp_path: Path) -> None:
    kit, home = real.folder.kits / "site-3.kit", real.base / "site-3"
    copied = tmp_path / "site-3.kit"
    copied.write_bytes(kit.read_bytes())
    real.join("site-3")
    real.until(lambda: "site-3: joined" in real.log)
    assert real.command("federation", "revoke", str(real.folder.path), "site-3").returncode == 0
    real.until(lambda: real.processes["site-3"].poll() is not None, SECONDS)
    again = real.command("site", "join", str(copied), "--client", str(home / "site.toml"), "--folder", str(home / "own"))
    for code, said in ((real.processes["site-3"].returncode, real.said("site-3")), (again.returncode, again.stderr)):
        assert code == 3
        assert "the key of this site was revoked; create another" in said
    assert real.log.count("rejected a connection: site-3: the key of this site was revoked") == 1
    assert real.log.count("site-3: joined") == 1
    request("site-3", home / "own", new_key=True)
    sign_request(real.folder.path, home / "own" / "site-3.request", replace=False)
    assert "up server" in stranger(real, "site-3", Kit.read(kit).unpack(home / "own"))


def test_who_says_nothing_blocks_nobody_and_the_others_train(real: Real) -> None:
    silent = [socket.create_connection(("127.0.0.1", real.port)) for _ in range(20)]
    try:
        real.join("site-2")
        real.until(lambda: "site-2: joined" in real.log)
        real.train()
        real.until(lambda: real.processes["site-2"].poll() is not None)
        assert real.processes["site-2"].returncode == 0, real.said("site-2")
    finally:
        for one in silent:
            one.close()
