"""Requests about the host's relays. Who manages the host says where it can be reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.wire.messages import relays
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.daemon import Daemon


class ReachRequests:
    """Answers for one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.by_tag: dict[str, Callable[[OperatorConnection, Any], Any]] = {
            "set_relays": self._set_relays,
            "get_relays": self._get_relays,
        }

    def _set_relays(self, operator: OperatorConnection, request: relays.SetRelays) -> m.Answer:
        self._daemon.actors.check_manages(operator.actor)
        self._daemon.relaying.change(request.relays, request.leave)
        return relays.Relays(request.id, self._daemon.relaying.states())

    def _get_relays(self, operator: OperatorConnection, request: relays.GetRelays) -> m.Answer:
        self._daemon.actors.check_manages(operator.actor)
        return relays.Relays(request.id, self._daemon.relaying.states())
