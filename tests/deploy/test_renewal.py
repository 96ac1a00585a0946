"""A changed plan, a renewed certificate, and what a certificate may be used for."""

from __future__ import annotations

import datetime as dt
import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from dffl.deploy import credentials
from dffl.deploy.certificate_request import request
from dffl.deploy.credentials import Kit, read_request, require_server
from dffl.deploy.federation_plan import read_plan
from dffl.deploy.provisioning import create, init, renew, revoke, rewrite_kits, sign_request, sign_requests
from dffl.deploy.run_state import CoordinatorFolder
from dffl.deploy.server_process import FederationServer
from dffl.deploy.trusted_keys import REVOKED, UNKNOWN, KeyRegistry

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
    said = rewrite_kits(folder)
    after = Kit.read(folder / "kits/harbour.kit")
    assert after.plan == read_plan(folder / "plan.toml").text != before.plan
    assert (after.certificate, after.authority) == (before.certificate, before.authority)
    assert not (folder / "kits/plant.kit").exists()
    assert said.values["missing"] == ["bakery", "mill"]
    after.unpack(folder.parent / "harbour")  # the site's key is the one that it was


def test_without_kits_there_is_nothing_to_write_again(tmp_path: Path) -> None:
    init(tmp_path)
    create(tmp_path / "plan.toml")
    with pytest.raises(ValueError, match="has no kits; name the requests"):
        rewrite_kits(tmp_path)


def test_a_new_address_needs_a_new_certificate_of_the_server(folder: Path) -> None:
    require_server(folder / "secrets", read_plan(folder / "plan.toml").hosts)
    changed(folder, "localhost:8443", "coordinator.example.org:8443")
    hosts = read_plan(folder / "plan.toml").hosts
    with pytest.raises(ValueError, match=r"not valid for 'coordinator.example.org'.*federation renew"):
        require_server(folder / "secrets", hosts)
    authority = (folder / "secrets/authority.crt").read_bytes()
    renew(folder)
    require_server(folder / "secrets", hosts)
    assert (folder / "secrets/authority.crt").read_bytes() == authority
    assert (folder / "secrets/server.key").stat().st_mode & 0o077 == 0


def test_a_certificate_of_the_server_that_has_ended_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = read_plan(folder / "plan.toml")
    with monkeypatch.context() as past:
        past.setattr(credentials, "CLOCK_MARGIN", dt.timedelta(days=1000))
        past.setattr(credentials, "_certificate", partial(credentials._certificate, years=-2))
        renew(folder)
    with pytest.raises(ValueError, match=r"server.crt: is valid from .* not now; type dffl federation renew"):
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


def new_key(folder: Path, name: str, replace: bool) -> None:
    request(name, folder.parent / name, new_key=True)
    sign_request(folder, folder.parent / f"{name}/{name}.request", replace)


def test_a_revoked_key_is_not_trusted_and_not_signed_again_and_others_are(folder: Path) -> None:
    harbour, plant, keys = certificate_of(folder, "harbour"), certificate_of(folder, "plant"), KeyRegistry(folder / "keys.json")
    assert keys.rejection_reason(harbour) == keys.rejection_reason(plant) == ""
    revoke(folder, "harbour")
    assert (keys.rejection_reason(harbour), keys.rejection_reason(plant)) == (REVOKED, "")
    assert not (folder / "kits/harbour.kit").exists()
    with pytest.raises(ValueError, match=r"harbour.request: its key was revoked; .* creates another"):
        sign_request(folder, folder.parent / "harbour/harbour.request", replace=True)
    with pytest.raises(ValueError, match=r"keys.json: no key of 'harbour' is trusted \(trusted: plant\)"):
        revoke(folder, "harbour")
    new_key(folder, "harbour", replace=False)
    assert keys.rejection_reason(certificate_of(folder, "harbour")) == ""
    revoke(folder, "plant")
    assert keys.rejection_reason(harbour) == keys.rejection_reason(plant) == REVOKED


def test_a_key_that_is_replaced_is_revoked_and_one_that_is_renewed_is_not(folder: Path) -> None:
    before, keys = certificate_of(folder, "harbour"), KeyRegistry(folder / "keys.json")
    sign_request(folder, folder.parent / "harbour/harbour.request", replace=True)
    assert certificate_of(folder, "harbour") != before
    assert keys.read().revoked == {}
    with pytest.raises(ValueError, match=r"another key of 'harbour' is trusted; .* --replace signs the new one and revokes"):
        new_key(folder, "harbour", replace=False)
    assert keys.rejection_reason(before) == ""
    new_key(folder, "harbour", replace=True)
    assert keys.rejection_reason(before) == REVOKED


@pytest.mark.parametrize("with_kit", [True, False])
def test_a_site_that_left_the_plan_is_not_trusted_when_its_name_comes_back(with_kit: bool, folder: Path) -> None:
    before, keys = certificate_of(folder, "plant"), KeyRegistry(folder / "keys.json")
    changed(folder, '"plant"]', '"mill"]')
    if not with_kit:
        (folder / "kits/plant.kit").unlink()
    rewrite_kits(folder)
    assert keys.rejection_reason(before) == UNKNOWN
    changed(folder, '"mill"]', '"plant"]')
    new_key(folder, "plant", replace=False)
    assert keys.rejection_reason(before) == UNKNOWN
    assert keys.rejection_reason(certificate_of(folder, "plant")) == ""


def test_a_new_authority_trusts_no_key_of_the_old_one_and_forgets_no_revoked_one(folder: Path) -> None:
    before, keys = certificate_of(folder, "plant"), KeyRegistry(folder / "keys.json")
    revoke(folder, "harbour")
    shutil.rmtree(folder / "secrets")
    create(folder / "plan.toml")
    assert keys.rejection_reason(before) == UNKNOWN
    assert list(keys.read().revoked.values()) == [f"harbour, {dt.datetime.now(dt.UTC):%Y-%m-%d}"]
    with pytest.raises(ValueError, match=r"plant.kit: is signed by another authority; remove it, and sign"):
        rewrite_kits(folder)


def test_a_kit_that_has_ended_is_renewed_as_others_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = folder.parent / "harbour/harbour.request"
    with monkeypatch.context() as past:
        past.setattr(credentials, "CLOCK_MARGIN", dt.timedelta(days=1000))
        past.setattr(credentials, "_certificate", partial(credentials._certificate, years=-2))
        sign_request(folder, asked, replace=False)
    said = rewrite_kits(folder)
    assert said.values["ended"] == ["harbour"]
    assert "but its certificate is only valid from" in "\n".join(said.lines)
    sign_request(folder, asked, replace=False)
    assert rewrite_kits(folder).values["ended"] == []


def test_a_kit_of_another_site_or_a_damaged_one_stops_nobody(folder: Path) -> None:
    """Nothing is written, the line says what to do, and keys can be revoked and signed all the same."""
    kit, plant = folder / "kits/harbour.kit", folder / "kits/plant.kit"
    before = plant.read_bytes()
    changed(folder, "seed = 0", "seed = 1")
    for content, why in ((b"damaged", "is not a kit"), (before, "its key is not the trusted key of 'harbour'")):
        kit.write_bytes(content)
        with pytest.raises(ValueError, match=rf"harbour.kit: {why}.*remove it, and sign the request of 'harbour' again"):
            rewrite_kits(folder)
        assert plant.read_bytes() == before
        assert set(KeyRegistry(folder / "keys.json").read().trusted) == {"harbour", "plant"}
    revoke(folder, "harbour")
    assert not kit.exists()
    assert KeyRegistry(folder / "keys.json").rejection_reason(certificate_of(folder, "plant")) == ""
    new_key(folder, "harbour", replace=False)
    assert rewrite_kits(folder).values["missing"] == ["bakery"]


def test_keys_that_are_revoked_at_once_are_all_revoked(folder: Path) -> None:
    request("bakery", folder.parent / "bakery")
    sign_request(folder, folder.parent / "bakery/bakery.request", replace=False)
    names = ["harbour", "plant", "bakery"]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: revoke(folder, name), names))
    book = KeyRegistry(folder / "keys.json").read()
    assert (book.trusted, len(book.revoked)) == ({}, 3)


DEEP = "[" * 100_000
BAD = [
    "",
    "nonsense",
    "[1, 2]",
    "7",
    '"text"',
    "null",
    '{"a": {}}',
    '{"believed": {"a": 1}, "revoked": {}}',
    '{"believed": 1}',
    DEEP,
]


@pytest.mark.parametrize("content", BAD, ids=[one[:20] for one in BAD])
def test_without_a_list_that_can_be_read_nothing_is_served_and_nothing_changed(content: str, folder: Path) -> None:
    (folder / "keys.json").write_text(content)
    for use in (
        lambda: FederationServer(CoordinatorFolder(folder), logging.getLogger("test")),
        lambda: revoke(folder, "harbour"),
    ):
        with pytest.raises(ValueError, match=r"keys.json: is not a list of keys"):
            use()
    assert (folder / "kits/harbour.kit").exists()
    assert (folder / "keys.json").read_text() == content


@pytest.mark.parametrize("content", [None, "", DEEP])
def test_a_list_that_cannot_be_read_while_somebody_serves_leaves_the_last_one_valid(
    content: str | None, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    harbour, plant = certificate_of(folder, "harbour"), certificate_of(folder, "plant")
    revoke(folder, "harbour")
    keys = KeyRegistry(folder / "keys.json", logging.getLogger("test"))
    keys.require_readable()
    if content is None:
        (folder / "keys.json").unlink()
    else:
        (folder / "keys.json").write_text(content)
    for _ in range(3):
        assert (keys.rejection_reason(harbour), keys.rejection_reason(plant)) == (REVOKED, "")
    [line] = [record.getMessage() for record in caplog.records]
    assert "keeping the keys that were read before" in line
    assert "keys.json" in line


def test_nobody_serves_without_a_list(folder: Path) -> None:
    (folder / "keys.json").unlink()
    with pytest.raises(ValueError, match=r"keys.json: there is no such file, .* sign the requests of all sites again"):
        FederationServer(CoordinatorFolder(folder), logging.getLogger("test"))
    sign_request(folder, folder.parent / "harbour/harbour.request", replace=False)
    assert set(FederationServer(CoordinatorFolder(folder), logging.getLogger("test"))._keys.read().trusted) == {"harbour"}
