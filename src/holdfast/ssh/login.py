"""One ssh connection: its authenticated key, its channels, and its flow control.

Only public keys can log in. The user name is the session; whether it exists is not revealed before
the key is proved.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

import asyncssh

from holdfast.model.limits import SSH_CHANNELS_MAX, SSH_KEYS_TRIED, SSH_LEAVE_S, SSH_SOCKET_BYTES
from holdfast.ssh.channel import SshChannel

if TYPE_CHECKING:
    from holdfast.ssh.authorized import Authorized
    from holdfast.ssh.gateway import Gateway

log = logging.getLogger("ssh")

NOTICE = (
    "holdfast ssh gateway: end-to-end encryption ends here. It can read what you see and type as "
    "you.\n"
    "C-\\ d detaches, and so does closing the connection; the session continues.\n"
)


class Login(asyncssh.SSHServer):
    """One connection, from its first byte to its last."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.channels: set[SshChannel] = set()
        self.entry: Authorized | None = None  # of the authenticated key
        self.address = "?"
        self.session = ""
        self.full = False
        self._conn: asyncssh.SSHServerConnection
        self._tried = 0
        self._greeted = False
        self._disconnected = ""  # the reason, once it is disconnected
        self._offered: Authorized | None = None
        self._offered_by: asyncio.Task[Any] | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        peer = conn.get_extra_info("peername")
        self.address = str(peer[0]) if peer else "?"
        if (sock := conn.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SSH_SOCKET_BYTES)
        # asyncssh lets the transport's buffer grow to any window the client announces, and with the
        # answers to its requests. The transport calls these two; asyncssh's own do nothing.
        conn.pause_writing = self._pause  # type: ignore[method-assign]
        conn.resume_writing = self._resume  # type: ignore[method-assign]
        if not self.gateway.admit(self):
            log.warning("%s: closed, too many unauthenticated connections", self.address)
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gateway.leave(self)
        who = (
            f"{self.entry.acting} disconnected"
            if self.entry
            else "disconnected before authentication"
        )
        # The client may have chosen the reason: repr makes it safe to print.
        log.info("%s: %s%.200s", self.address, who, f" ({str(exc)!r})" if exc else "")

    def disconnect(self, why: str) -> None:
        """Disconnect. Its children detach by themselves, so that terminals are restored; a client
        that does not read is not waited for."""
        self._disconnected = why
        for channel in tuple(self.channels):
            channel.leave(why)
        if self.channels:
            asyncio.get_running_loop().call_later(SSH_LEAVE_S, self._cut)
        else:
            self._cut()

    def _cut(self) -> None:
        self._conn.disconnect(asyncssh.DISC_BY_APPLICATION, self._disconnected)

    def closed(self, channel: SshChannel) -> None:
        self.channels.discard(channel)
        if self._disconnected and not self.channels:
            self._cut()

    # -- the proof ----------------------------------------------------------------------------

    def begin_auth(self, username: str) -> bool:
        if not self._greeted:
            self._greeted = True
            self._conn.send_auth_banner(NOTICE)
        self._count()
        return True  # authentication is always required

    def public_key_auth_supported(self) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return False

    def kbdint_auth_supported(self) -> bool:
        return False

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Whether this key is authorized. Called when it is offered, and again when it is
        proved."""
        self._offered = None
        if not self._count():
            return False
        blob = key.export_public_key().split()[1].decode()
        self._offered = self.gateway.find(blob)
        self._offered_by = asyncio.current_task()
        return self._offered is not None

    def auth_completed(self) -> None:
        """The key that was validated last was proved: both calls run in one step of one task. If
        that ever changes, the login is refused: an offered key is no proof."""
        if self._offered is None or self._offered_by is not asyncio.current_task():
            log.error("%s: asyncssh reports success without a key", self.address)
            self._conn.abort()
            return
        if not self.gateway.prove(self):
            log.warning("%s: closed, too many connections", self.address)
            self._conn.disconnect(
                asyncssh.DISC_TOO_MANY_CONNECTIONS, "the gateway has too many connections"
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
        if self.entry is None or self._disconnected:
            return False
        if len(self.channels) >= SSH_CHANNELS_MAX:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_RESOURCE_SHORTAGE, f"at most {SSH_CHANNELS_MAX} channels at once"
            )
        return SshChannel(self, self.entry)

    # -- what it takes --------------------------------------------------------------------------

    def _pause(self) -> None:
        """The client does not read: send nothing more, and read nothing that would need an
        answer."""
        self.full = True
        self._transport().pause_reading()
        self._all_listen()

    def _resume(self) -> None:
        self.full = False
        self._transport().resume_reading()
        self._all_listen()

    @property
    def rekeying(self) -> bool:
        """Whether a rekey is in progress. asyncssh buffers what is written meanwhile, without
        limit, for as long as the client takes."""
        return not self._conn._kex_complete

    def _all_listen(self) -> None:
        for channel in tuple(self.channels):
            channel.listen()

    def _transport(self) -> asyncio.Transport:
        transport: asyncio.Transport = self._conn._transport  # type: ignore[assignment]
        return transport
