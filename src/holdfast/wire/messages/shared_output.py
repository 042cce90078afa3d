"""Output that all readers of a session get from one sending (docs/channel.md, *Output*): how an
operator that came through a relay has a channel of its own go over to it."""

from __future__ import annotations

from holdfast.wire.messages.base import Answer, Request


class Share(Request):
    """This operator is subscribed to what the host sends to all of the session: bring the output
    of this channel that way from now on. Answered by Shared.

    `anew`: something was missed there; the channel begins again with a Resync."""

    tag = "share"
    session: str
    channel: int
    anew: bool = False


class Shared(Answer):
    """Output up to `offset` still comes on the channel, the rest by the broadcast. There a frame's
    data is 8 bytes of offset, big endian, and the output from there on."""

    tag = "shared"
    channel: int
    offset: int
