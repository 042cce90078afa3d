"""One ssh connection: whose key it proved, its channels, and whether it takes what it is sent.

A key is the only way in. Which session is meant is the user name, and whether there is such a
session is nobody's business before the key is proved.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

import asyncssh

from holdfast.model.limits import (
    SSH_CHANNELS_MAX,
    SSH_KEYS_TRIED,
    SSH_LEAVE_S,
    SSH_SOCKET_BYTES,
)
from holdfast.ssh.channel import SshChannel

if TYPE_CHECKING:
    from holdfast.ssh.authorized import Authorized
    from holdfast.ssh.gateway import Gateway

log = logging.getLogger("ssh")

NOTICE = (
    "holdfast ssh gateway: end-to-end protection ends here. It can read what you see and type as "
    "you.\n"
    "C-\\ d detaches, and so does closing the connection; the session goes on.\n"
)


class Login(asyncssh.SSHServer):
    """From the first byte to the last."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.channels: set[SshChannel] = set()
        self.entry: Authorized | None = None  # whose key was proved
        self.address = "?"
        self.session = ""
        self.full = False
        self._conn: asyncssh.SSHServerConnection
        self._tried = 0
        self._greeted = False
        self._sent_away = ""  # why, once it is
        self._offered: Authorized | None = None
        self._offered_by: asyncio.Task[Any] | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        peer = conn.get_extra_info("peername")
        self.address = str(peer[0]) if peer else "?"
        if (sock := conn.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SSH_SOCKET_BYTES)
        # The library lets the transport's buffer grow to whatever window the client announces, and
        # with answers to all it asks. These two are what the transport calls; asyncssh's own do
        # nothing.
        conn.pause_writing = self._pause  # type: ignore[method-assign]
        conn.resume_writing = self._resume  # type: ignore[method-assign]
        if not self.gateway.admit(self):
            log.warning("%s: closed, too many are waiting to be let in", self.address)
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gateway.leave(self)
        who = f"{self.entry.acting} has left" if self.entry else "left without being let in"
        # The reason may be the client's own words: shown harmless.
        log.info("%s: %s%.200s", self.address, who, f" ({str(exc)!r})" if exc else "")

    def send_away(self, why: str) -> None:
        """Its clients leave as if by themselves, so that terminals are left in order; one that does
        not read is not waited for."""
        self._sent_away = why
        for channel in tuple(self.channels):
            channel.leave(why)
        if self.channels:
            asyncio.get_running_loop().call_later(SSH_LEAVE_S, self._cut)
        else:
            self._cut()

    def _cut(self) -> None:
        self._conn.disconnect(asyncssh.DISC_BY_APPLICATION, self._sent_away)

    def closed(self, channel: SshChannel) -> None:
        self.channels.discard(channel)
        if self._sent_away and not self.channels:
            self._cut()

    # -- the proof ----------------------------------------------------------------------------

    def begin_auth(self, username: str) -> bool:
        if not self._greeted:
            self._greeted = True
            self._conn.send_auth_banner(NOTICE)
        self._count()
        return True  # a proof is always asked for

    def public_key_auth_supported(self) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return False

    def kbdint_auth_supported(self) -> bool:
        return False

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Whether this key would do. Called when it is offered, and again when it is proved."""
        self._offered = None
        if not self._count():
            return False
        blob = key.export_public_key().split()[1].decode()
        self._offered = self.gateway.find(blob)
        self._offered_by = asyncio.current_task()
        return self._offered is not None

    def auth_completed(self) -> None:
        """The key looked at last was proved: nothing can come between the two, which run in one
        step of one task. If that ever changes, nobody is let in: an offered key is no proof."""
        if self._offered is None or self._offered_by is not asyncio.current_task():
            log.error("%s: the library says proved, but not which key", self.address)
            self._conn.abort()
            return
        if not self.gateway.prove(self):
            log.warning("%s: closed, too many are here", self.address)
            self._conn.disconnect(
                asyncssh.DISC_TOO_MANY_CONNECTIONS, "the gateway has as many as it may have"
            )
            return
        self.entry = self._offered
        self.session = str(self._conn.get_extra_info("username"))
        log.info("%s: %s with key %s", self.address, self.entry.acting, self.entry.fingerprint)

    def _count(self) -> bool:
        """Whether one more attempt is allowed."""
        self._tried += 1
        if self._tried > SSH_KEYS_TRIED:
            self._conn.disconnect(
                asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "too many keys were tried"
            )
            return False
        return True

    # -- what it may have -----------------------------------------------------------------------

    def session_requested(self) -> SshChannel | bool:
        if self.entry is None or self._sent_away:
            return False
        if len(self.channels) >= SSH_CHANNELS_MAX:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_RESOURCE_SHORTAGE, f"at most {SSH_CHANNELS_MAX} at once"
            )
        return SshChannel(self, self.entry)

    # -- what it takes --------------------------------------------------------------------------

    def _pause(self) -> None:
        """The client does not read. Nothing more is sent to it, and nothing is taken from it that
        would have to be answered."""
        self.full = True
        self._transport().pause_reading()
        self._all_listen()

    def _resume(self) -> None:
        self.full = False
        self._transport().resume_reading()
        self._all_listen()

    @property
    def rekeying(self) -> bool:
        """New keys are being agreed on. The library keeps what is written meanwhile, without bound
        and for as long as the client takes."""
        return not self._conn._kex_complete

    def _all_listen(self) -> None:
        for channel in tuple(self.channels):
            channel.listen()

    def _transport(self) -> asyncio.Transport:
        transport: asyncio.Transport = self._conn._transport  # type: ignore[assignment]
        return transport
