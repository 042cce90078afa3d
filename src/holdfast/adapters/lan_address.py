"""The address by which other machines of the same network get to this one: that of the interface
through which packets leave. None is sent to find out."""

from __future__ import annotations

import socket

# Addresses for examples, which no packet ever reaches: the kernel only chooses the way there.
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def lan_address(*, ip6: bool = False) -> str:
    """ "": there is no way out of this machine."""
    family = socket.AF_INET6 if ip6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((_ELSEWHERE[family], 9))
            found: str = asking.getsockname()[0]
            return found
    except OSError:
        return ""
