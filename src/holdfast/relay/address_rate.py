"""Rate limits per address: a token bucket for each. Pure: the caller passes the time. An IPv6
network (/64) counts as one address, since one client usually has all of it."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict


class AddressRate:
    """Buckets of `burst` tokens that refill at `per_s`."""

    def __init__(self, burst: int, per_s: float, addresses_max: int) -> None:
        self._burst, self._per_s, self._max = float(burst), per_s, addresses_max
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, as of when

    def wait_s(self, address: str, now: float) -> float:
        """Seconds until there is a token; 0: there is one. Takes none."""
        return max(0.0, (1.0 - self._tokens(address, now)) / self._per_s)

    def take(self, address: str, now: float) -> float:
        """Take a token and return 0, or the seconds to wait for one."""
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
    """The network that counts as one address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
