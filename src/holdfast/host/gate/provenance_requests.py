"""Requests for who is behind something of a session, and to answer for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast.host.access.actor_book import ActorBook
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.gate.why import AskedSession, WhyQuestion, target_of
from holdfast.host.session import blame
from holdfast.host.session.blame import Gathered
from holdfast.host.session.journal_requests import RecordedSession
from holdfast.host.session_store import SessionStore
from holdfast.model.envelope import Right
from holdfast.model.errors import InvalidArgument
from holdfast.model.graph import Graph
from holdfast.wire.messages import gate_provenance as p
from holdfast.wire.messages import session as m


class LiveTarget(AskedSession, RecordedSession, Protocol):
    """A live session."""


class ProvenanceRequests:
    """Handlers of one host."""

    def __init__(
        self,
        store: SessionStore,
        actors: ActorBook,
        gather: Callable[[RecordedSession], Gathered],
    ) -> None:
        """`gather`: what blame reads of a session."""
        self._store, self._actors, self._gather = store, actors, gather

    async def why(self, _: OperatorConnection, request: p.AskWhy, live: LiveTarget) -> m.Answer:
        return p.WhyShown(request.id, await self.asked(live).answer(target_of(request.target)))

    async def adopt(
        self, operator: OperatorConnection, request: p.Adopt, live: LiveTarget
    ) -> m.Answer:
        target, actor = target_of(request.target), operator.actor.id
        asked = self.asked(live)
        found = await asked.find(target)
        spec = live.spec  # judged now: finding may have taken a moment
        self._actors.authority.check(actor, Right.INPUT, spec.id, spec.labels, now())
        if target.kind == "state":
            live.provenance.adopt_key(target.text, actor)
        elif target.kind == "file":
            live.provenance.adopt_file(*asked.file(target), target.name, actor)
        elif found.origin is not None and found.origin.command:
            command = await asked.command(found.origin.command)
            live.provenance.adopt_command(command, actor)
        else:
            raise InvalidArgument(f"no one command is behind {target.text}, so nobody can adopt it")
        return p.WhyShown(request.id, await self.asked(live).answer(target))

    def annotated(self, live: AskedSession, graph: Graph) -> Graph:
        """The live graph, with who is behind each process."""
        directory = self._store.directory(live.spec.id)
        return WhyQuestion(live, directory, self._actors.name, list).annotated(graph)

    def asked(self, live: LiveTarget) -> WhyQuestion:
        return WhyQuestion(
            live,
            self._store.directory(live.spec.id),
            self._actors.name,
            lambda: blame.lines(self._gather(live)),
        )
