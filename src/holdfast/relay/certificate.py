"""TLS: given certificate files, or a self-signed certificate for a LAN.

Clients check a self-signed certificate by its fingerprint, the SHA-256 of the certificate, which is
printed at the start and carried by links. The certificate is kept, so that the fingerprint stays
the same.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import ipaddress
import os
import socket
import ssl
from typing import TYPE_CHECKING

from holdfast.model.errors import InvalidArgument, StorageFailed

if TYPE_CHECKING:
    from cryptography import x509

_VALID_DAYS = 3650  # clients compare the fingerprint, so an expiry would only break links
_RENEW_DAYS = 30


def context_of(certificate: str, key: str) -> ssl.SSLContext:
    """A server's TLS context from two PEM files. After a renewal, `load` into the same context."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    load(context, certificate, key)
    return context


def load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise InvalidArgument(
            f"not a certificate with its key: {certificate}, {key} ({error.reason or error})",
            hint="both in PEM, and the key without a passphrase",
        ) from error
    except OSError as error:
        raise InvalidArgument(f"cannot read the certificate: {error}") from error


def fingerprint_of(certificate: str) -> str:
    """SHA-256 of the first certificate in a PEM file, in hex."""
    with open(certificate, encoding="ascii") as file:
        text = file.read()
    end = "-----END CERTIFICATE-----"
    first = text[: text.index(end) + len(end)]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).hexdigest()


def self_signed(directory: str, names: list[str]) -> tuple[str, str]:
    """The paths of the self-signed certificate and its key, created if missing."""
    certificate, key = f"{directory}/self-signed.crt", f"{directory}/self-signed.key"
    if not _usable(certificate, key):
        made, private = _make(names)
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            _write(key, private)
            _write(certificate, made)
        except OSError as error:
            raise StorageFailed(f"cannot store the certificate: {error}") from error
    return certificate, key


def _usable(certificate: str, key: str) -> bool:
    from cryptography import x509

    with contextlib.suppress(OSError, ValueError, InvalidArgument):
        with open(certificate, "rb") as file:
            known = x509.load_pem_x509_certificate(file.read())
        context_of(certificate, key)
        left = known.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        return left.days > _RENEW_DAYS
    return False


def _make(names: list[str]) -> tuple[bytes, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())  # accepted by every browser
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "holdfast relay")])
    began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)  # clocks differ
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + datetime.timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(_alternatives(names)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return made.public_bytes(serialization.Encoding.PEM), private


def _alternatives(names: list[str]) -> list[x509.GeneralName]:
    from cryptography import x509

    found: list[x509.GeneralName] = []
    for name in dict.fromkeys(["localhost", socket.gethostname(), "127.0.0.1", "::1", *names]):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            with contextlib.suppress(ValueError):
                found.append(x509.DNSName(name))
    return found


def _write(path: str, data: bytes) -> None:
    """Atomically, and readable only for us."""
    beside = f"{path}.new"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
    os.replace(beside, path)
