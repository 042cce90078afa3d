"""What two hosts say to each other while one hands a session over: over a link (wire/host_link.py),
one msgpack map each."""

from __future__ import annotations

import msgpack

from holdfast.host.session_store import Stored
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.errors import HoldfastError, HostLost, ProtocolViolation, from_code
from holdfast.model.info import SessionInfo
from holdfast.model.record import Malformed
from holdfast.model.restore import RestoreReport
from holdfast.ports.host_link import HostLink
from holdfast.wire.messages.base import Message

SERVICE = "restore"  # what a source dials for


class Offer(Message, tag="offer"):
    """The source has this session, and brings this checkpoint of it."""

    stored: Stored
    checkpoint: str
    handed: bool  # it was given to the target already; what came of that is not known here
    files: RestoreFiles  # what becomes of captured files that differ from those there


class Wanted(Message, tag="wanted"):
    """The target takes it, and has nothing of it yet."""


class SessionFile(Message, tag="file"):
    """A piece of one of its files."""

    path: str
    offset: int
    data: bytes


class AllSent(Message, tag="whole"):
    """Everything was sent."""


class Ready(Message, tag="ready"):
    """The target has all it needs on its own disk."""


class Yours(Message, tag="yours"):
    """From now on it is the target's."""


class RestoredThere(Message, tag="done"):
    """It lives at the target."""

    info: SessionInfo
    report: RestoreReport


class GaveBack(Message, tag="gave_back"):
    """It could not be restored, and nothing of it is left at the target."""

    code: str
    message: str
    hint: str = ""

    def error(self) -> HoldfastError:
        return from_code(self.code, self.message, self.hint)


class NotTaken(GaveBack, tag="failed"):
    """The target does not take it; or it has it, and could not restore it now."""


_BY_TAG: dict[str, type[Message]] = {
    each.tag: each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, Message) and each.tag
}


async def say(link: HostLink, message: Message) -> None:
    await link.send(bytes(msgpack.packb({"t": message.tag, **message.pack()})))


async def hear(link: HostLink) -> Message:
    """Raises HostLost when nothing more comes, and ProtocolViolation."""
    said = await link.receive()
    if said is None:
        raise HostLost(
            f"the link to {link.peer_name} is gone",
            hint="ask again: it goes on where it was",
        )
    try:
        data = msgpack.unpackb(said, strict_map_key=False)
        kind = _BY_TAG[data["t"]]
        return kind.unpack(data, kind.tag)
    except (ValueError, KeyError, TypeError, Malformed, msgpack.UnpackException) as error:
        raise ProtocolViolation(f"not a message of a handover: {error}") from error


def failed(error: HoldfastError) -> NotTaken:
    return NotTaken(error.code, error.message, error.hint)
