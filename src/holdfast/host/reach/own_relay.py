"""The relay that this host runs itself, so that a link works with nothing else set up. The
supervisor starts it and restarts it; here are its options, and the address it then has.

On loopback it has no TLS: nobody is in between. Elsewhere it has a certificate of its own, whose
fingerprint goes into links. A host of root has it give up root where that can be
(relay/privileges.py). Its port is kept, so that links stay good:

    STATE/relay.json      the port
    STATE/relay.sqlite    the relay's registry
    STATE/relay/          its certificate
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from hashlib import sha256

from holdfast.adapters.lan_address import lan_address
from holdfast.dial.address import RelayAddress, relay_address
from holdfast.host import json_file
from holdfast.model.errors import StorageFailed
from holdfast.model.info import RelayState
from holdfast.model.listening import USUAL_PORT, listening
from holdfast.model.record import Record

log = logging.getLogger(__name__)

OWN = "own"
_STARTING = "it is being started"
_LESSER = "nobody"  # every system has it


class _Kept(Record):
    port: int = 0


class OwnRelay:
    """Of one host."""

    def __init__(
        self,
        state: str,
        run_relay: Callable[[str, list[int], list[str]], None],
        setting: str,
        metrics_token: str,
        metrics_socket: str,
        found: Callable[[RelayAddress | None, RelayAddress], None],
    ) -> None:
        """`run_relay`: has the supervisor run it, by address, ports and options. `found` gets the
        address that it had before, and its address now."""
        self._state, self._run_relay, self._found = state, run_relay, found
        self._listening = listening(setting)
        self._metrics_token, self._metrics_socket = metrics_token, metrics_socket
        self._path = f"{state}/relay.json"
        self.address: RelayAddress | None = None  # as this host dials it
        self._said = _STARTING

    def start(self) -> None:
        """Each daemon asks the supervisor, which starts one, or leaves the one it has."""
        place = self._listening
        if place is None:
            self._run_relay("", [], [])
            return
        ports = [place.port] if place.port else [*self._kept_port(), USUAL_PORT, 0]
        words = ["--registry", f"{self._state}/relay.sqlite"]
        if place.loopback:
            words += ["--view-port", "0"]
        else:  # a browser runs no workers behind a certificate that it does not know
            words.append("--self-signed")
        if self._metrics_token:  # its hash: everybody can read the process list
            words += ["--metrics-token-hash", sha256(self._metrics_token.encode()).hexdigest()]
            words += ["--host-metrics", self._metrics_socket]
        if os.getuid() == 0:
            words += ["--user", _LESSER]
        self._run_relay(place.address, ports, words)

    def heard(self, url: str, pin: str, why: str) -> None:
        """From the supervisor: where it is now, or why it is not there."""
        if self._listening is None:
            return
        if not url:
            self._said = why
            return
        found = relay_address(f"{url}#{pin}" if pin else url)
        was, self.address = self.address, found.replace(host=self._listening.near)
        self._said = ""
        self._keep_port(found.port)
        self._found(was, self.address)

    def shared(self) -> RelayAddress | None:
        """As others are to dial it: in a network, by the address this machine has there now."""
        if self.address is None or self._listening is None or not self._listening.everywhere:
            return self.address
        found = lan_address(ip6=self._listening.ip6)
        return self.address.replace(host=found) if found else self.address

    def absent(self) -> list[RelayState]:
        """What there is to say before it was there to be dialled."""
        if self._listening is None or self.address is not None:
            return []
        return [RelayState("", OWN, False, self._said)]

    def _kept_port(self) -> list[int]:
        try:
            kept = json_file.read(self._path, _Kept, without="links may name another port")
        except StorageFailed as error:
            log.error("%s", error.message)
            return []
        return [kept.port] if kept is not None and kept.port else []

    def _keep_port(self, port: int) -> None:
        if self._kept_port() != [port]:
            try:
                json_file.write(self._path, _Kept(port))
            except OSError as error:
                log.error("the relay's port is not kept: %s", error)
