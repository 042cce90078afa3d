"""One operator's connections to ports of sessions, as they flow to it: a channel among its others,
from which it pulls (channels.py). Who may have one, and to where, is forwarding.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dial.carried_socket import CarriedSocket, Carrier
from holdfast.wire.frames import encode
from holdfast.wire.messages.forward import message_of

if TYPE_CHECKING:
    from holdfast.host.connection.output_channels import Piece
    from holdfast.host.session.live_session import LiveSession

NUMBER = 1 << 64  # of the channel among an operator's: above all that a message can name


class ForwardedConnection(CarriedSocket):
    """To a port of this session, for this actor."""

    def __init__(
        self, carrier: Carrier, number: int, live: LiveSession, actor: str, port: int
    ) -> None:
        super().__init__(carrier, number)
        self.live, self.actor, self.port = live, actor, port

    def may_read(self) -> bool:
        return self.live.lease_allows()  # else it is cut in this moment


class Connections(Carrier):
    """A Channel: all that one operator has open."""

    number, live = NUMBER, None
    open: dict[int, ForwardedConnection]  # type: ignore[assignment]

    def next_piece(self) -> Piece | None:
        said = self.next()
        if said is None:
            return None
        connection, word = said
        assert isinstance(connection, ForwardedConnection)
        return [encode(message_of(connection.live.spec.id, connection.number, word))]

    def finished(self) -> bool:
        return not self.open
