"""The source's end of a channel to another host: dialled over a socket of this machine or through a
relay. Loads what dialling needs."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.dial.address import relay_address
from holdfast.dial.relay_link import RelayLink
from holdfast.dial.secure_channel import DeviceKeys, RecordStream, RemoteChannel, dial
from holdfast.host.reach.host_link import LinkEnd
from holdfast.host.reach.local_stream import LocalStream
from holdfast.model.errors import HoldfastError
from holdfast.wire.epochs import EpochFloor
from holdfast.wire.host_link import LinkTicket, ticket_prologue, ticket_psk
from holdfast.wire.record_layer import OpenedRecord
from holdfast.wire.stream_opening import HOST_EPOCH, Opening, host_channel


class DialledChannel:
    """What a LinkEnd needs of a channel."""

    def __init__(self, channel: RemoteChannel, link: LinkEnd, hang_up: Callable[[], None]) -> None:
        self._channel, self._link, self._hang_up = channel, link, hang_up
        channel.on_said = self._on_said

    @property
    def has_room(self) -> bool:
        return self._channel.stream.has_room

    def send(self, body: bytes) -> None:
        self._channel.send(body, signed=False)

    def close(self) -> None:
        self._channel.close()
        self._hang_up()

    def _on_said(self, said: OpenedRecord) -> None:
        try:
            self._link.said(said.body)
        except HoldfastError as error:
            self._channel.close(error)


async def dial_channel(way: str, ticket: LinkTicket, seed: bytes, link: LinkEnd) -> DialledChannel:
    """`way`: the path of a socket, or the URL of a relay. Raises what prevents it."""
    relay: RelayLink | None = None
    stream: RecordStream
    if way.startswith("/"):
        stream = await LocalStream.open(way, ticket.device, link.room)
    else:
        relay = RelayLink(relay_address(way))
        try:
            await relay.start()
            stream = await relay.open(ticket.host, None)
        except BaseException:
            relay.close()
            raise
        relay.on_room = link.room

    def hang_up() -> None:
        """After the last words (secure_channel lets them go out first)."""
        if relay is not None:
            relay.close_soon()

    def over(_: HoldfastError) -> None:
        hang_up()
        link.ended()

    own = host_channel(ticket.host)
    try:
        channel = await dial(
            stream, Opening(ticket=ticket.id), own, DeviceKeys(seed), EpochFloor(HOST_EPOCH), over,
            psk=ticket_psk(ticket.secret), before=ticket_prologue(ticket.id, ticket.host),
        )  # fmt: skip
    except BaseException:
        stream.close()
        hang_up()
        raise
    return DialledChannel(channel, link, hang_up)
