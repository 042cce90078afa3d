"""One host as another one reaches it, for the sake of one session: to move it there, or to bring a
checkpoint of it.

The source dials and the target answers, never the other way round: the source has a *ticket*, which
somebody who may let sessions in there fetched from the target. A ticket serves one session of one
source, and for that one it can be dialled again for as long as the target has something of the
session that is not settled: links break, and daemons die.

Everything on a link is encrypted from host to host, and each knows the other by its key. What is
sent arrives in order and at most once; that it was sent does not mean that it arrived.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.model.checkpoint import CheckpointId
from holdfast.model.ids import ActorId, SessionId

Progress = Callable[[int, int], None]  # bytes done, of how many


class HostLink(Protocol):
    """To the other host. Whatever it raises is a HoldfastError; `HostLost`: the link is gone."""

    @property
    def peer(self) -> bytes:
        """The other host's public key, which it has proven."""

    @property
    def peer_name(self) -> str:
        """What people call it: the name of its machine."""

    @property
    def session(self) -> SessionId:
        """What the ticket is used for."""

    @property
    def admitted_by(self) -> tuple[ActorId, ActorId]:
        """Of one person: its actor at the source, which asked for the move, and its actor at the
        target, which fetched the ticket."""

    @property
    def brought(self) -> CheckpointId | None:
        """At the target: a checkpoint that came whole over this link, and was not here before."""

    async def send(self, message: bytes) -> None:
        """At most HOST_MESSAGE_BYTES. Waits while the other does not read."""

    async def receive(self) -> bytes | None:
        """The next message; None: the link is gone, or was closed."""

    async def send_checkpoint(self, id: CheckpointId, progress: Progress | None = None) -> None:
        """At the source: the chunks that the other host lacks, and the session's key, sealed for
        it. When it returns, the other has all of it on disk, digests checked, and the checkpoint
        in its book: `ImageStore.load` of this id works there. What else there is of the session
        (journal, launch) is sent by whoever needs it there, with `send`."""

    async def close(self) -> None: ...


Serve = Callable[[HostLink], Awaitable[None]]  # one link, until it is over


class HostLinks(Protocol):
    """Of one host."""

    async def dial(self, ticket: str, session: SessionId, asked_by: ActorId, what: str) -> HostLink:
        """To the host that gave the ticket, about this session. `what`: which service of it, as
        "move". Raises HostLost, which may pass, and what says that the ticket is no good, which
        will not."""

    def serve(self, what: str, serve: Serve) -> None:
        """Every link that is dialled for `what` from now on, after the ticket was accepted."""
