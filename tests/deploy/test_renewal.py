"""A changed plan, a renewed certificate, and what a certificate may be used for."""

from __future__ import annotations

import datetime as dt
import logging
from functools import partial
from pathlib import Path

import pytest

from dffl.deploy import credentials
from dffl.deploy.create import create, init, kits_again, renew, revoke, sign_request, sign_requests
from dffl.deploy.credentials import Kit, read_request, require_server
from dffl.deploy.plan import read_plan
from dffl.deploy.requesting import request
from dffl.deploy.revoked import REVOKED, UNREADABLE, Revoked
from dffl.deploy.server import FederationServer
from dffl.deploy.state import Folder

x509 = pytest.importorskip("cryptography.x509")
pytest.importorskip("nvflare")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A coordinator's folder, with kits for two of its three sites."""
    made = tmp_path / "coordinator"
    init(made)
    create(made / "plan.toml")
    for name in ("harbour", "plant"):
        request(name, tmp_path / name)
    sign_requests(made, [tmp_path / name / f"{name}.request" for name in ("harbour", "plant")], replace=False)
    return made


def changed(folder: Path, before: str, after: str) -> None:
    path = folder / "plan.toml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_kits_are_written_again_with_the_plan_of_now(folder: Path) -> None:
    before = Kit.read(folder / "kits/harbour.kit")
    changed(folder, '"plant"]', '"mill"]')
    said = kits_again(folder)
    after = Kit.read(folder / "kits/harbour.kit")
    assert after.plan == read_plan(folder / "plan.toml").text != before.plan
    assert (after.certificate, after.authority) == (before.certificate, before.authority)
    assert not (folder / "kits/plant.kit").exists()
    assert said.values["missing"] == ["bakery", "mill"]
    after.unpack(folder.parent / "harbour")  # the site's key is the one that it was


def test_without_kits_there_is_nothing_to_write_again(tmp_path: Path) -> None:
    init(tmp_path)
    create(tmp_path / "plan.toml")
    with pytest.raises(ValueError, match="no kits yet"):
        kits_again(tmp_path)


def test_a_new_address_needs_a_new_certificate_of_the_server(folder: Path) -> None:
    require_server(folder / "secrets", read_plan(folder / "plan.toml").hosts)
    changed(folder, "localhost:8443", "coordinator.example.org:8443")
    hosts = read_plan(folder / "plan.toml").hosts
    with pytest.raises(ValueError, match=r"not for 'coordinator.example.org'.*federation renew"):
        require_server(folder / "secrets", hosts)
    authority = (folder / "secrets/authority.crt").read_bytes()
    renew(folder)
    require_server(folder / "secrets", hosts)
    assert (folder / "secrets/authority.crt").read_bytes() == authority
    assert (folder / "secrets/server.key").stat().st_mode & 0o077 == 0


def test_a_certificate_of_the_server_that_has_ended_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = read_plan(folder / "plan.toml")
    with monkeypatch.context() as past:
        past.setattr(credentials, "EARLIER", dt.timedelta(days=1000))
        past.setattr(credentials, "_certificate", partial(credentials._certificate, years=-2))
        renew(folder)
    with pytest.raises(ValueError, match=r"server.crt: holds from .* and not now; type dffl federation renew"):
        require_server(folder / "secrets", plan.hosts)


def test_no_site_can_pose_as_the_coordinator(folder: Path) -> None:
    """A site's certificate is for clients only, whatever its name, and the server's for servers only."""
    use = x509.oid.ExtendedKeyUsageOID
    _, asked, _ = read_request(folder.parent / "harbour/harbour.request")
    signed = x509.load_pem_x509_certificate(credentials.sign(folder / "secrets", asked, "localhost"))
    server = x509.load_pem_x509_certificate((folder / "secrets/server.crt").read_bytes())
    for certificate, wanted in ((signed, use.CLIENT_AUTH), (server, use.SERVER_AUTH)):
        assert list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [wanted]


def certificate_of(folder: Path, name: str) -> bytes:
    return Kit.read(folder / f"kits/{name}.kit").certificate.encode()


def test_a_revoked_key_is_not_believed_and_not_signed_again_and_others_are(folder: Path) -> None:
    harbour, plant, known = certificate_of(folder, "harbour"), certificate_of(folder, "plant"), Revoked(folder / "revoked.json")
    assert known.objection(harbour) == known.objection(plant) == ""
    revoke(folder, "harbour")
    assert (known.objection(harbour), known.objection(plant)) == (REVOKED, "")
    with pytest.raises(ValueError, match=r"harbour.request: its key was revoked; .* makes a new one"):
        sign_request(folder, folder.parent / "harbour/harbour.request", replace=True)
    with pytest.raises(ValueError, match=r"harbour.kit: there is no such file, .* is revoked already"):
        revoke(folder, "harbour")
    with pytest.raises(ValueError, match=r"bakery.kit: there is no such file, .* put back a copy"):
        revoke(folder, "bakery")
    request("harbour", folder.parent / "new")
    sign_request(folder, folder.parent / "new/harbour.request", replace=False)
    assert known.objection(certificate_of(folder, "harbour")) == ""
    revoke(folder, "plant")
    assert known.objection(harbour) == known.objection(plant) == REVOKED


def test_a_key_that_is_replaced_is_revoked_and_one_that_is_renewed_is_not(folder: Path) -> None:
    before, known = certificate_of(folder, "harbour"), Revoked(folder / "revoked.json")
    sign_request(folder, folder.parent / "harbour/harbour.request", replace=True)
    assert certificate_of(folder, "harbour") != before
    assert known.known() == frozenset()
    request("harbour", folder.parent / "new")
    with pytest.raises(ValueError, match="--replace signs the new one and revokes the old one"):
        sign_request(folder, folder.parent / "new/harbour.request", replace=False)
    assert known.objection(before) == ""
    sign_request(folder, folder.parent / "new/harbour.request", replace=True)
    assert known.objection(before) == REVOKED


def test_a_kit_that_has_ended_is_renewed_and_revoked_as_others_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = folder.parent / "harbour/harbour.request"
    with monkeypatch.context() as past:
        past.setattr(credentials, "EARLIER", dt.timedelta(days=1000))
        past.setattr(credentials, "_certificate", partial(credentials._certificate, years=-2))
        sign_request(folder, asked, replace=False)
    [line] = [line for line in kits_again(folder).lines if "harbour" in line and "wrote" in line]
    assert "but its certificate holds from" in line
    sign_request(folder, asked, replace=False)
    revoke(folder, "harbour")
    assert len(Revoked(folder / "revoked.json").known()) == 1


@pytest.mark.parametrize("content", ["", "nonsense", "[1, 2]", "7", '"text"', "null", '{"a": 1}', '{"a": {}}'])
def test_without_a_list_that_can_be_read_nobody_is_believed_and_nothing_is_served(content: str, folder: Path) -> None:
    (folder / "revoked.json").write_text(content)
    assert Revoked(folder / "revoked.json").objection(certificate_of(folder, "harbour")) == UNREADABLE
    with pytest.raises(ValueError, match=r"revoked.json: is no list of revoked keys"):
        FederationServer(Folder(folder), logging.getLogger("test"))
    with pytest.raises(ValueError, match=r"revoked.json: is no list of revoked keys"):
        revoke(folder, "harbour")
    assert (folder / "kits/harbour.kit").exists()
    assert (folder / "revoked.json").read_text() == content
