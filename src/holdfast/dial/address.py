"""A relay's address: `https://relay.example`, `http://127.0.0.1:7420`, and for a self-signed
certificate its fingerprint: `https://192.168.1.5:7420#sha256:0123…`."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from holdfast.model.errors import InvalidArgument
from holdfast.model.record import Record

_PORTS = {"https": 443, "http": 80}
_PIN = "sha256:"
_PIN_DIGITS = 64
_LOOPBACK = re.compile(r"127(\.\d{1,3}){3}")


class RelayAddress(Record):
    """Where a relay is."""

    scheme: str
    host: str
    port: int
    path: str = ""
    pin: str = ""  # SHA-256 of its certificate, in hexadecimal; "": verified as usual

    @property
    def name(self) -> str:
        """Host and port, as a host's proof names the relay."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address without the fingerprint."""
        usual = self.port == _PORTS[self.scheme]
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host if usual else self.name}{self.path}"

    @property
    def loopback(self) -> bool:
        """Whether it is a loopback address."""
        return self.host in ("localhost", "::1") or bool(_LOOPBACK.fullmatch(self.host))

    def websocket(self, path: str) -> str:
        secure = "wss" if self.scheme == "https" else "ws"
        return f"{secure}://{self.name}{self.path}{path}"

    def __str__(self) -> str:
        return f"{self.url}#{_PIN}{self.pin}" if self.pin else self.url


def relay_address(text: str) -> RelayAddress:
    """Parse an address as people write it."""
    hint = "like https://relay.example or http://127.0.0.1:7420"
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise InvalidArgument(f"not a relay address: {text[:80]!r} ({error})") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidArgument(f"not a relay address: {text[:80]!r}", hint=hint)
    if parts.username is not None or parts.query:
        raise InvalidArgument("a relay address must not have a user, password or query", hint=hint)
    pin = parts.fragment.removeprefix(_PIN).lower() if parts.fragment else ""
    if parts.fragment and (
        not parts.fragment.startswith(_PIN)
        or len(pin) != _PIN_DIGITS
        or not set(pin) <= set("0123456789abcdef")
    ):
        raise InvalidArgument(
            f"not a certificate fingerprint: {parts.fragment[:80]!r}",
            hint=f"{_PIN} and {_PIN_DIGITS} hexadecimal digits, as `hold relay` prints it",
        )
    port = port or _PORTS[parts.scheme]
    return RelayAddress(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), pin)
