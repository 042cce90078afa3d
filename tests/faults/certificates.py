"""Certificates of every kind of wrong, by an authority that the test makes and may trust."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


class Authority:
    """`file`: its own certificate, for SSL_CERT_FILE."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("an authority")
        now = datetime.datetime.now(datetime.UTC)
        own = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * _DAY)
            .not_valid_after(now + 10 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = directory / "authority.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def words(self, kind: str) -> list[str]:
        """How a relay is started with such a certificate: good, expired, not yet valid, or
        another's."""
        if kind == "self-signed":
            return ["--self-signed"]
        now = datetime.datetime.now(datetime.UTC)
        since = now + _DAY if kind == "not yet valid" else now - 5 * _DAY
        until = now - _DAY if kind == "expired" else now + 5 * _DAY
        name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        if kind == "another's":
            name = x509.DNSName("elsewhere.example")
        key = ec.generate_private_key(ec.SECP256R1())
        made = (
            x509.CertificateBuilder()
            .subject_name(_name("a relay"))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(since)
            .not_valid_after(until)
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        certificate, private = self._directory / f"{kind}.crt", self._directory / f"{kind}.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return ["--cert", str(certificate), "--key", str(private)]


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
