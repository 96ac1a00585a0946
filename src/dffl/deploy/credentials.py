"""Certificates: the coordinator's authority signs the requests of sites; a site's private key never leaves the site.

The coordinator's folder contains the keys of the authority and of the server. A site creates its key and a request with its
name and its public key. The coordinator signs the request and returns a kit with the site's certificate, the authority's
certificate and the plan. Nothing in a kit is secret.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dffl.deploy.network import COORDINATOR, Credentials
from dffl.files import read_regular, write_whole

YEARS, AUTHORITY_YEARS = 2, 10
CLOCK_MARGIN = dt.timedelta(days=1)
"""Certificates are valid from a day before they are created, because clocks differ."""
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,46}[A-Za-z0-9])?")
NAMES = "letters, digits, - and _, at most 48, beginning and ending with a letter or a digit"
KIT = "dffl-kit-1"


def require_site_name(name: Any, where: str) -> str:
    """Reject a site's name that cannot be used in a certificate and on the network."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or name.lower() == COORDINATOR:
        raise ValueError(f"{where}: a site's name has {NAMES}, and is not {COORDINATOR!r}, found {name!r:.60}")
    return name


def make_authority(folder: Path, title: str, hosts: list[str]) -> None:
    """Write the authority's and the server's keys and certificates into a folder that only its owner can read."""
    folder.mkdir(mode=0o700, parents=True)
    key, name = _new_key(), _name(f"dffl {title}"[:60])
    write_secret(folder / "authority.key", _private(key))
    _write(folder / "authority.crt", _pem(_certificate(name, key.public_key(), name, key, years=AUTHORITY_YEARS)))
    make_server(folder, hosts)


def make_server(folder: Path, hosts: list[str]) -> None:
    """Write a new key and certificate of the server, for the names and addresses under which sites may find it."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key = _new_key()
    authority, signer = _authority(folder)
    names = x509.SubjectAlternativeName([_host(host) for host in hosts])
    use = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    signed = _certificate(_name(COORDINATOR), key.public_key(), authority.subject, signer, names, use)
    write_secret(folder / "server.key", _private(key))
    _write(folder / "server.crt", _pem(signed))


def require_server(folder: Path, hosts: list[str]) -> None:
    """Reject a certificate of the server that is not valid now, or not valid for these addresses."""
    from cryptography import x509

    for name in ("authority.crt", "server.crt"):
        certificate = x509.load_pem_x509_certificate((folder / name).read_bytes())
        since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if not since <= dt.datetime.now(dt.UTC) <= until:
            fix = "start again with `dffl federation create`" if name == "authority.crt" else f"type {_renew_command(folder)}"
            what = f"is valid from {since:%Y-%m-%d} to {until:%Y-%m-%d}, not now"
            raise ValueError(f"{folder / name}: {what}; {fix}, or correct this machine's clock")
    known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    if lacking := [host for host in hosts if _host(host) not in known]:
        raise ValueError(
            f"{folder / 'server.crt'}: is not valid for {lacking[0]!r}, the address of the plan; type {_renew_command(folder)}"
        )


def _renew_command(folder: Path) -> str:
    return f"dffl federation renew {folder.parent}"


def server_credentials(folder: Path) -> Credentials:
    """The files with which the coordinator's process listens."""
    return Credentials(folder / "server.crt", folder / "server.key", folder / "authority.crt")


def make_request(folder: Path, name: str) -> Path:
    """Write a new private key and a certificate request into a site's folder; returns the path of the request."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    key = _new_key()
    request = x509.CertificateSigningRequestBuilder().subject_name(_name(name)).sign(key, hashes.SHA256())
    write_secret(folder / "site.key", _private(key))
    path = folder / f"{name}.request"
    _write(path, _pem(request))
    return path


def read_request(path: Path) -> tuple[str, Any, str]:
    """The name in a request, the request, and the fingerprint of its key, which people can compare by telephone."""
    from cryptography import x509

    try:
        request = x509.load_pem_x509_csr(read_regular(path))
        if not request.is_signature_valid:
            raise ValueError("its signature is wrong")
        name = str(request.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file; the site writes it with `dffl site request`") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"{path}: is not a request of `dffl site request`, or was changed ({error!s:.80})") from None
    return require_site_name(name, str(path)), request, fingerprint(request.public_key())


def sign(folder: Path, request: Any, name: str) -> bytes:
    """The certificate for a request, signed by the authority of this folder. It is not valid for a server."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority, key = _authority(folder)
    names = x509.SubjectAlternativeName([x509.DNSName(name)])
    use = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return _pem(_certificate(_name(name), request.public_key(), authority.subject, key, names, use))


def _authority(folder: Path) -> tuple[Any, Any]:
    """The authority's certificate and its private key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    certificate = x509.load_pem_x509_certificate((folder / "authority.crt").read_bytes())
    return certificate, serialization.load_pem_private_key((folder / "authority.key").read_bytes(), None)


def fingerprint(key: Any) -> str:
    """A digest of a public key, in groups that can be read aloud."""
    from cryptography.hazmat.primitives import hashes, serialization

    encoded = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    digest = hashes.Hash(hashes.SHA256())
    digest.update(encoded)
    text = digest.finalize().hex()[:32]
    return "-".join(text[start : start + 4] for start in range(0, 32, 4))


@dataclass(frozen=True)
class Kit:
    """The file that a site receives: its certificate, the authority's certificate, and the plan with the address."""

    name: str
    certificate: str
    authority: str
    plan: str
    """The text of the plan."""

    def write(self, path: Path) -> None:
        _write(path, json.dumps({"format": KIT, **self.__dict__}, indent=1).encode())

    @classmethod
    def read(cls, path: Path) -> Kit:
        """Read a kit, and reject one whose certificate is not valid now."""
        kit = cls.parse(path)
        if period := kit.invalid_period:
            fix = "request a new one with `dffl site request`, or correct this machine's clock"
            raise ValueError(f"{path}: its certificate is valid {period}, not now; {fix}")
        return kit

    @classmethod
    def parse(cls, path: Path) -> Kit:
        """Read a kit, whether its certificate is valid now or not."""
        try:
            content = json.loads(read_regular(path).decode())
            if not isinstance(content, dict) or content.pop("format", None) != KIT:
                raise ValueError(f"its format is not {KIT}")
            kit = cls(**content)
            if not all(isinstance(value, str) for value in content.values()):
                raise ValueError("a value is not a text")
            require_site_name(kit.name, "its name")  # the site's folder is named by it
            kit._require_certificate()
        except FileNotFoundError:
            raise ValueError(f"{path}: there is no such file; the coordinator writes it with `dffl federation sign`") from None
        except OSError as error:
            raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}: is not a kit of `dffl federation sign`, or was changed ({error!s:.80})") from None
        return kit

    @property
    def invalid_period(self) -> str:
        """The period for which its certificate is valid, if it is not valid now; else an empty text."""
        certificate = self._certificate()
        since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return "" if since <= dt.datetime.now(dt.UTC) <= until else f"from {since:%Y-%m-%d} to {until:%Y-%m-%d}"

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the site's key."""
        return fingerprint(self._certificate().public_key())

    def _certificate(self) -> Any:
        from cryptography import x509

        return x509.load_pem_x509_certificate(self.certificate.encode())

    def _require_certificate(self) -> None:
        """Reject a certificate with another name, or one that the authority in the kit has not signed."""
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature

        certificate, authority = self._certificate(), x509.load_pem_x509_certificate(self.authority.encode())
        if [attribute.value for attribute in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)] != [
            self.name
        ]:
            raise ValueError(f"its certificate is not for {self.name!r:.60}")
        try:
            certificate.verify_directly_issued_by(authority)
        except InvalidSignature:
            raise ValueError("its certificate is not signed by its authority") from None

    def unpack(self, folder: Path) -> Credentials:
        """Write the certificates next to the site's private key, which must match them."""
        key = folder / "site.key"
        if not key.is_file():
            fix = "set --folder to the folder that `dffl site request` wrote"
            raise ValueError(f"{folder}: has no site.key, the private key of this kit; {fix}")
        from cryptography.hazmat.primitives import serialization

        try:
            private_key: Any = serialization.load_pem_private_key(key.read_bytes(), None)
        except (ValueError, TypeError):
            raise ValueError(f"{key}: is not a private key of `dffl site request`, or was changed") from None
        if private_key.public_key() != self._certificate().public_key():
            raise ValueError(f"{folder}: its key does not match the kit of {self.name!r}; use the folder of that key")
        if os.name == "posix" and key.stat().st_mode & 0o077:
            raise ValueError(f"{key}: can be read by other users; type chmod 600 {key}")
        _write(folder / "site.crt", self.certificate.encode())
        _write(folder / "authority.crt", self.authority.encode())
        return Credentials(folder / "site.crt", key, folder / "authority.crt")


def persistent_secret(path: Path) -> bytes:
    """A random secret, created once and kept in a file: it makes privacy noise repeatable after a restart."""
    if not path.exists():
        write_secret(path, os.urandom(32))
    return path.read_bytes()


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    write_whole(path, lambda where: where.write_bytes(content), mode=0o600)


def _write(path: Path, content: bytes) -> None:
    write_whole(path, lambda where: where.write_bytes(content))


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(common: str) -> Any:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


def _host(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _certificate(subject: Any, key: Any, issuer: Any, signer: Any, *extensions: Any, years: int | None = None) -> Any:
    """A certificate for a subject; the authority signs its own."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    now, authority = dt.datetime.now(dt.UTC), subject == issuer
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_MARGIN)
        .not_valid_after(now + dt.timedelta(days=365 * (YEARS if years is None else years)))
        .add_extension(x509.BasicConstraints(authority, 0 if authority else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
                key_agreement=False, key_cert_sign=authority, crl_sign=authority, encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )
    )  # fmt: skip
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _private(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


def _pem(value: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return value.public_bytes(Encoding.PEM)
