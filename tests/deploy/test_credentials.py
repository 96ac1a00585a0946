"""Keys stay where they are made, and what is not what it says it is is refused."""

from __future__ import annotations

import datetime as dt
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dffl.deploy import credentials
from dffl.deploy.certificate_request import request
from dffl.deploy.credentials import Kit, read_request, require_site_name, sign
from dffl.deploy.provisioning import create, sign_request
from tests.deploy.made import plan_text


def provisioned(base: Path, name: str = "north") -> tuple[Path, Path, Path]:
    """A coordinator's folder, the folder of a site, and its kit."""
    folder, own = base / "coordinator", base / f"{name}-site"
    if not folder.exists():
        folder.mkdir()
        (folder / "plan.toml").write_text(plan_text())
        create(folder / "plan.toml")
    request(name, own)
    sign_request(folder, own / f"{name}.request", replace=False)
    return folder, own, folder / "kits" / f"{name}.kit"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def secret_lines(path: Path) -> list[bytes]:
    """The lines of a private key, without those that all keys have."""
    return path.read_bytes().splitlines()[1:-1]


def test_secrets_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    folder, own, _ = provisioned(tmp_path)
    assert mode(folder / "secrets") == 0o700
    assert mode(own) == 0o700
    for key in (folder / "secrets" / "authority.key", folder / "secrets" / "server.key", own / "site.key"):
        assert mode(key) == 0o600
        assert key.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")


def test_no_key_is_in_what_is_sent(tmp_path: Path) -> None:
    folder, own, kit = provisioned(tmp_path)
    secrets = [line for path in [*folder.glob("secrets/*.key"), own / "site.key"] for line in secret_lines(path)]
    assert len(secrets) >= 6
    for sent in (own / "north.request", kit):
        content = sent.read_bytes()
        assert b"PRIVATE" not in content
        assert not any(line in content for line in secrets)


def test_a_kit_is_unpacked_beside_its_key(tmp_path: Path) -> None:
    _, own, path = provisioned(tmp_path)
    found = Kit.read(path).unpack(own)
    assert found.key == own / "site.key"
    assert found.certificate.read_text().startswith("-----BEGIN CERTIFICATE-----")


def test_a_kit_for_another_key_is_refused(tmp_path: Path) -> None:
    _, own, kit = provisioned(tmp_path)
    _, other, _ = provisioned(tmp_path, "south")
    with pytest.raises(ValueError, match="its key does not match the kit of 'north'"):
        Kit.read(kit).unpack(other)
    with pytest.raises(ValueError, match=r"has no site\.key"):
        Kit.read(kit).unpack(tmp_path)
    (own / "site.key").chmod(0o644)
    with pytest.raises(ValueError, match="can be read by other users; type chmod 600"):
        Kit.read(kit).unpack(own)
    (own / "site.key").chmod(0o600)
    (own / "site.key").write_text("nonsense")
    with pytest.raises(ValueError, match=r"site\.key: is not a private key"):
        Kit.read(kit).unpack(own)


def test_an_expired_certificate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "CLOCK_MARGIN", dt.timedelta(days=900))
    monkeypatch.setattr(credentials, "YEARS", -1)
    _, _, kit = provisioned(tmp_path)
    with pytest.raises(ValueError, match="not now; request a new one"):
        Kit.read(kit)


def changed(kit: Path, **changes: Any) -> Path:
    content = {key: value for key, value in (json.loads(kit.read_text()) | changes).items() if value is not None}
    path = kit.with_name("changed.kit")
    path.write_text(json.dumps(content))
    return path


def test_a_changed_kit_is_refused(tmp_path: Path) -> None:
    _, _, north = provisioned(tmp_path)
    _, _, south = provisioned(tmp_path, "south")
    (tmp_path / "elsewhere").mkdir()
    _, _, foreign = provisioned(tmp_path / "elsewhere")
    other = json.loads(foreign.read_text())
    wrong: list[dict[str, Any]] = [
        {"name": "south"},
        {"name": "../x"},
        {"name": 3},
        {"certificate": json.loads(south.read_text())["certificate"]},
        {"certificate": other["certificate"]},  # of a site of the same name in another federation
        {"authority": other["authority"]},
        {"authority": "none"},
        {"authority": None},
        {"certificate": ""},
        {"plan": None},
        {"plan": 7},
        {"format": "dffl-kit-9"},
        {"format": None},
        {"more": "x"},
    ]
    for changes in wrong:
        with pytest.raises(ValueError, match=r"changed\.kit: is not a kit of") as refused:
            Kit.read(changed(north, **changes))
        assert "\n" not in str(refused.value)
    assert Kit.read(changed(north)).name == "north"


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"{", b"\xff\xfe", b"[" * 99_999, b"-----BEGIN CERTIFICATE-----"])
def test_what_is_no_kit_or_request_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.kit"
    with pytest.raises(ValueError, match="there is no such file"):
        Kit.read(path)
    with pytest.raises(ValueError, match="there is no such file"):
        read_request(path)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.kit: is not a kit"):
        Kit.read(path)
    with pytest.raises(ValueError, match=r"x\.kit: is not a request"):
        read_request(path)


def test_a_changed_request_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own"
    request("north", own)
    lines = (own / "north.request").read_text().splitlines()
    for number in range(1, len(lines) - 1):
        line = lines[number]
        swapped = line[:20] + ("A" if line[20:21] != "A" else "B") + line[21:]
        (own / "changed.request").write_text("\n".join([*lines[:number], swapped, *lines[number + 1 :]]))
        with pytest.raises(ValueError, match=r"changed\.request: is not a request"):
            read_request(own / "changed.request")


@pytest.mark.parametrize("name", ["", "server", "SERVER", "a b", "a/b", "..", "-a", "a-", "ä", "x" * 49, "a\n", None, 3])
def test_names_that_a_certificate_cannot_carry_are_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="a site's name has letters"):
        require_site_name(name, "here")


@pytest.mark.parametrize("name", ["a", "north-1", "A_b", "x" * 48])
def test_names_that_are_right_are_taken(name: str) -> None:
    assert require_site_name(name, "here") == name


def test_who_is_not_in_the_plan_and_who_has_a_kit_already_is_not_signed(tmp_path: Path) -> None:
    folder, _, kit = provisioned(tmp_path)
    request("east", tmp_path / "east")
    with pytest.raises(ValueError, match="'east' is not among the sites of the plan"):
        sign_request(folder, tmp_path / "east" / "east.request", replace=False)
    request("north", tmp_path / "thief")
    before = kit.read_text()
    with pytest.raises(ValueError, match="another key of 'north' is trusted"):
        sign_request(folder, tmp_path / "thief" / "north.request", replace=False)
    assert kit.read_text() == before
    sign_request(folder, tmp_path / "thief" / "north.request", replace=True)
    assert Kit.read(kit).unpack(tmp_path / "thief")


def test_a_key_is_not_overwritten(tmp_path: Path) -> None:
    request("north", tmp_path / "own")
    before = (tmp_path / "own" / "site.key").read_bytes()
    with pytest.raises(ValueError, match="already exists"):
        request("north", tmp_path / "own")
    assert (tmp_path / "own" / "site.key").read_bytes() == before


def test_a_site_cannot_sign_others(tmp_path: Path) -> None:
    """A site's certificate is no authority: what it signs is not taken for what the authority signs."""
    from cryptography import x509

    folder, own, path = provisioned(tmp_path)
    name, asked, fingerprint = read_request(own / "north.request")
    signed = x509.load_pem_x509_certificate(sign(folder / "secrets", asked, name))
    assert not signed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not signed.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert len(fingerprint.replace("-", "")) == 32
    assert Kit.read(path).name == name


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "\x1b[2J"])
def test_a_kit_cannot_name_a_folder_elsewhere_or_steer_a_terminal(name: str, tmp_path: Path) -> None:
    folder, own, path = provisioned(tmp_path)
    _, asked, _ = read_request(own / "north.request")
    signed = sign(folder / "secrets", asked, name).decode()  # by a coordinator that lies
    with pytest.raises(ValueError, match=r"changed\.kit: is not a kit of .*its name: a site's name has letters, digits"):
        Kit.read(changed(path, name=name, certificate=signed))
