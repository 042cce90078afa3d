"""How often an address may do what costs the relay something: a bucket per address, refilled with
time. Pure: the time comes in. An IPv6 network (/64) counts as one address, since whoever has one
has all of it."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict


class Guard:
    """Buckets of `burst` tokens that refill at `per_s`."""

    def __init__(self, burst: int, per_s: float, addresses_max: int) -> None:
        self._burst, self._per_s, self._max = float(burst), per_s, addresses_max
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, as of when

    def wait_s(self, address: str, now: float) -> float:
        """How long until a token is there; 0: there is one. Takes none."""
        return max(0.0, (1.0 - self._tokens(address, now)) / self._per_s)

    def take(self, address: str, now: float) -> float:
        """Take a token: 0, or how long to wait for one when there is none."""
        tokens = self._tokens(address, now)
        if tokens < 1.0:
            return (1.0 - tokens) / self._per_s
        self._buckets[address] = (tokens - 1.0, now)
        self._buckets.move_to_end(address)
        if len(self._buckets) > self._max:
            self._buckets.popitem(last=False)
        return 0.0

    def _tokens(self, address: str, now: float) -> float:
        tokens, then = self._buckets.get(address, (self._burst, now))
        return min(self._burst, tokens + max(0.0, now - then) * self._per_s)


def network_of(address: str) -> str:
    """What is counted as one."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
