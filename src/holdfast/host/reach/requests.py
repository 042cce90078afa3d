"""Requests about the relays that this host uses."""

from __future__ import annotations

from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.reach.relay_list import RelayList
from holdfast.wire.messages import relays
from holdfast.wire.messages import session as m


class ReachRequests:
    """Handlers of one host."""

    def __init__(self, relay_list: RelayList) -> None:
        self._relay_list = relay_list

    def set_relays(self, _: OperatorConnection, request: relays.SetRelays) -> m.Answer:
        self._relay_list.change(request.relays, request.leave)
        return relays.Relays(request.id, self._relay_list.states())

    def get_relays(self, _: OperatorConnection, request: relays.GetRelays) -> m.Answer:
        return relays.Relays(request.id, self._relay_list.states())
