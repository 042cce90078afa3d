"""Requests about the relays that this host uses and tickets for other hosts."""

from __future__ import annotations

import os
from collections.abc import Collection

from holdfast.core.access.authority import Authority
from holdfast.core.access.host_rules import MANAGES, check
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.reach.host_links import HostLinkService
from holdfast.host.reach.relay_list import RelayList
from holdfast.model.device import KEY_BYTES
from holdfast.model.envelope import Right
from holdfast.model.errors import InvalidArgument, NotPermitted
from holdfast.model.ids import SessionId
from holdfast.wire.messages import host_links as links
from holdfast.wire.messages import relays
from holdfast.wire.messages import session as m


class ReachRequests:
    """Handlers of one host."""

    def __init__(
        self,
        relay_list: RelayList,
        host_links: HostLinkService,
        authority: Authority,
        admitted: Collection[str],
    ) -> None:
        """`admitted`: keys of hosts, in hexadecimal, from which sessions may be brought here by
        whoever has the right to move them."""
        self._relay_list, self._links = relay_list, host_links
        self._authority, self._admitted = authority, admitted

    def set_relays(self, _: OperatorConnection, request: relays.SetRelays) -> m.Answer:
        self._relay_list.change(request.relays, request.leave)
        return relays.Relays(request.id, self._relay_list.states())

    def get_relays(self, _: OperatorConnection, request: relays.GetRelays) -> m.Answer:
        return relays.Relays(request.id, self._relay_list.states())

    def get_ticket(self, operator: OperatorConnection, request: links.GetTicket) -> m.Answer:
        """Whoever comes with it brings processes, so it takes the right to manage this host; or
        somebody who has that right has named the other host in the configuration."""
        if len(request.source) != KEY_BYTES:
            raise InvalidArgument(f"a host's key has {KEY_BYTES} bytes")
        try:
            session = SessionId(request.target)
        except ValueError as error:
            raise InvalidArgument(str(error)) from error
        actor = operator.actor
        if request.source.hex() in self._admitted:
            self._authority.check_everywhere(actor.id, Right.MOVE, now())
        else:
            try:
                check(MANAGES, self._authority, actor, operator.uid, os.getuid(), now())
            except NotPermitted as refusal:
                raise NotPermitted(
                    f"{actor.name} may not bring sessions to this host",
                    hint="it takes the role admin for all there, as root or as the user the host "
                    "runs as; or `admit_hosts` in its config.toml",
                ) from refusal
        ticket = self._links.give_ticket(session, request.source, actor.id)
        return links.TicketGiven(request.id, ticket.text(), ticket.name, ticket.host)
