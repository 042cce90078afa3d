"""Whether a host can be reached from other machines: the state of its relays."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.dial.address import relay_address
from holdfast.model.info import RelayState
from holdfast.sdk.client import Host
from holdfast.wire.invites import parse_link
from holdfast.wire.messages import relays as reach

Relays = tuple[RelayState, ...]

CANNOT_START = "cannot be started"  # how the supervisor begins to say so
_LOOK_S = 0.05
_PATIENCE_S = 2.0  # one that is being started, or was lost a moment ago, fails a few times


def relays(host: Host) -> Relays:
    return host.ask(reach.GetRelays(0), reach.Relays).relays


def settled(host: Host, within_s: float) -> Relays:
    """Its relays, once each is reached or has been failing for a while."""
    began = time.monotonic()

    def enough(found: Relays) -> bool:
        tried = time.monotonic() - began > _PATIENCE_S
        return all(each.reached or (tried and _failed(each)) for each in found)

    return _await(host, enough, within_s)


def wait_until_reached(host: Host, within_s: float) -> Relays:
    """Its relays, once one of them is reached: its own, if it runs one."""

    def enough(found: Relays) -> bool:
        own = [each for each in found if each.source == "own"]
        return not found or any(each.reached for each in own or found)

    return _await(host, enough, within_s)


def own_started(host: Host, within_s: float) -> Relays:
    """The relay that it runs itself, once that is reached or cannot be started."""

    def enough(found: Relays) -> bool:
        own = [each for each in found if each.source == "own"]
        return all(each.reached or each.said.startswith(CANNOT_START) for each in own)

    return tuple(each for each in _await(host, enough, within_s) if each.source == "own")


def only_here(link: str) -> bool:
    """Whether the relay of this invite's link is one that only its own machine can dial."""
    return relay_address(parse_link(link).relay).loopback


def _await(host: Host, enough: Callable[[Relays], bool], within_s: float) -> Relays:
    deadline = time.monotonic() + within_s
    while not enough(found := relays(host)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)  # a relay answers when it likes; the host tells what it knows now
    return found


def _failed(relay: RelayState) -> bool:
    return bool(relay.address) and relay.said != "not connected yet"
