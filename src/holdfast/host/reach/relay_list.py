"""Which relays this host uses: those of config.toml, those set by `hold host` since, and its own.
relay_presence.py connects to them.

    STATE/relays.json     those set by `hold host`
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from holdfast.dial.address import RelayAddress, relay_address
from holdfast.host import json_file
from holdfast.host.reach.own_relay import OWN, OwnRelay
from holdfast.host.reach.relay_presence import RelayPresence
from holdfast.host.session_store import storage_failed
from holdfast.model.errors import InvalidArgument, LimitReached, StorageFailed
from holdfast.model.info import Finding, RelayState
from holdfast.model.limits import HOST_RELAYS_MAX
from holdfast.model.record import Record

log = logging.getLogger(__name__)

CONFIG, SET = "config", "set"


class _Kept(Record):
    relays: tuple[str, ...] = ()


class RelayList:
    """Of one host."""

    def __init__(
        self,
        state: str,
        presence: RelayPresence,
        run_relay: Callable[[str, list[int], list[str]], None],
        configured: tuple[str, ...],
        own: str,
        metrics_token: str,
        metrics_socket: str,
    ) -> None:
        self._presence = presence
        self._path = f"{state}/relays.json"
        self._configured = tuple(relay_address(each) for each in configured)
        self._set = self._read()
        self.own = OwnRelay(state, run_relay, own, metrics_token, metrics_socket, self._found_own)

    def start(self) -> None:
        for address in (*self._configured, *self._set):
            self._presence.dial(address)
        self.own.start()

    def change(self, add: tuple[str, ...], leave: tuple[str, ...]) -> None:
        """On disk, then done at once."""
        added = [relay_address(each) for each in add]
        left = [self._to_leave(relay_address(each)) for each in leave]
        named = {each.url for each in (*added, *left)}
        kept = [each for each in self._set if each.url not in named]
        known = {each.url: each for each in self._configured}
        for address in added:
            if known.setdefault(address.url, address) != address:
                raise InvalidArgument(f"{address.url} is known with another fingerprint")
        kept += [each for each in dict.fromkeys(added) if each not in self._configured]
        if len(kept) > HOST_RELAYS_MAX:
            raise LimitReached(f"a host is at no more than {HOST_RELAYS_MAX} relays")
        self._write(kept)
        gone = [each for each in self._set if each not in kept]
        self._set = tuple(kept)
        for address in gone:
            if address != self.own.address:
                self._presence.leave(address)
        for address in added:
            self._presence.dial(address)

    def _to_leave(self, address: RelayAddress) -> RelayAddress:
        """By its URL; a fingerprint need not be said again."""
        if any(each.url == address.url for each in self._set):
            return address
        if any(each.url == address.url for each in self._configured):
            raise InvalidArgument(
                f"{address.url} is in config.toml",
                hint="remove it there, then `hold daemon restart`",
            )
        if self.own.address is not None and self.own.address.url == address.url:
            raise InvalidArgument(
                f"{address.url} is the relay that this host runs itself",
                hint='relay = "off" in config.toml, then `hold daemon restart`',
            )
        raise InvalidArgument(f"this host is not at {address.url}", hint="`hold host` lists them")

    def _found_own(self, was: RelayAddress | None, now: RelayAddress) -> None:
        if was is not None and was != now and was not in (*self._configured, *self._set):
            self._presence.leave(was)
        self._presence.dial(now)

    # -- for others -----------------------------------------------------------------------------

    def states(self) -> tuple[RelayState, ...]:
        reached = self._presence.states()
        sources = dict.fromkeys(self._configured, CONFIG)
        for address, source in (*((each, SET) for each in self._set), (self.own.address, OWN)):
            if address is not None:
                sources.setdefault(address, source)
        known = [
            RelayState(str(self._for_others(address)), source, *reached[address])
            for address, source in sources.items()
            if address in reached
        ]
        return (*known, *self.own.absent())

    def shared(self) -> tuple[str, ...]:
        """As others are to dial them, the best first. What only this machine can dial is told only
        when there is nothing else."""
        reached = self._presence.states()
        own = self.own.address
        found = sorted(
            dict.fromkeys((*self._configured, *self._set, *([own] if own else []))),
            key=lambda each: not reached.get(each, (False, ""))[0],
        )
        public = [self._for_others(each) for each in found]
        wide = [each for each in public if not each.loopback]
        return tuple(str(each) for each in wide or public)

    def _for_others(self, address: RelayAddress) -> RelayAddress:
        return (self.own.shared() or address) if address == self.own.address else address

    def findings(self) -> list[Finding]:
        """For `hold doctor`."""
        return [
            Finding(
                "relay", each.reached, f"{each.address.partition('#')[0] or 'own'}: {each.said}"
            )
            for each in self.states()
        ]

    # -- disk -----------------------------------------------------------------------------------

    def _read(self) -> tuple[RelayAddress, ...]:
        """What cannot be read stops no host: its sessions matter more."""
        try:
            kept = json_file.read(self._path, _Kept, without="what `hold host` set is lost")
            return tuple(relay_address(each) for each in kept.relays) if kept is not None else ()
        except (StorageFailed, InvalidArgument) as error:
            log.error("%s", error.message)
            return ()

    def _write(self, kept: list[RelayAddress]) -> None:
        try:
            json_file.write(self._path, _Kept(tuple(str(each) for each in kept)))
        except OSError as error:
            raise storage_failed(error) from error
