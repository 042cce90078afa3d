"""Where a host's own relay listens, as people write it: `0.0.0.0`, `192.168.1.5:7420`, `[::]`;
`off`: no relay; empty: on this machine only."""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument
from holdfast.model.record import Record

OFF = "off"
USUAL_PORT = 7420
_HINT = "like 0.0.0.0, 192.168.1.5:7420 or [::]:7420; or off"


class RelayListen(Record):
    """An address and a port."""

    address: str
    port: int = 0  # 0: the default one, or any free one

    @property
    def ip6(self) -> bool:
        return ":" in self.address

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.address.startswith("127.") or self.address == "::1"

    @property
    def everywhere(self) -> bool:
        """Whether it means every address of this machine."""
        return self.address in ("0.0.0.0", "::")

    @property
    def near(self) -> str:
        """The address at which this machine itself reaches it."""
        if not self.everywhere:
            return self.address
        return "::1" if self.ip6 else "127.0.0.1"


def listening(text: str) -> RelayListen | None:
    """None: no relay. Raises InvalidArgument."""
    import ipaddress  # only who starts a host needs it

    text = text.strip()
    if text == OFF:
        return None
    if not text:
        return RelayListen("127.0.0.1")
    address, port = text, ""
    if text.startswith("["):
        address, closed, port = text[1:].partition("]")
        wrong = not closed or (port != "" and not port.startswith(":"))
        port = "?" if wrong or port == ":" else port[1:]
    elif text.count(":") == 1:
        address, _, port = text.partition(":")
        port = port or "?"
    if port and not (port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise InvalidArgument(f"not an address and port: {text[:80]!r}", hint=_HINT)
    try:
        found = ipaddress.ip_address("127.0.0.1" if address == "localhost" else address)
    except ValueError:
        raise InvalidArgument(f"not an address to listen on: {text[:80]!r}", hint=_HINT) from None
    return RelayListen(str(found), int(port or 0))
