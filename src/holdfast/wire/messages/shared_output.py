"""Output that all readers of a session get from one sending (docs/channel.md, *Output*): how an
operator that came through a relay has a channel of its own go over to it."""

from __future__ import annotations

from holdfast.wire.messages.base import Answer, Request


class Share(Request, tag="share"):
    """Only on the channel of a session (see channel.md): this operator is subscribed at its relay
    to what the host sends to all readers of the session, and wants the output of this channel to
    come that way. Answered by Shared."""

    session: str  # the session of the channel
    channel: int  # a channel that was attached without `raw`
    anew: bool = False  # something was missed there: the channel begins again with a `resync`


class Shared(Answer, tag="shared"):
    """Output up to `offset` still comes on the channel, everything after it by the broadcast. The
    data of such a frame is 8 bytes of offset, big endian, and the output from there on. At the end
    of the session an empty `output` comes on the channel before `closed`: it says how far the
    output goes."""

    channel: int  # the channel
    offset: int  # output from here on comes by the broadcast
