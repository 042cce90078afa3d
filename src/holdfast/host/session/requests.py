"""Requests to start, list, show, attach to and end sessions. The request table has found the
session that a request names; what is done to it is an event that the session machine judges."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from holdfast.core import events as ev
from holdfast.core.attachments import Seat
from holdfast.core.session import SessionMachine
from holdfast.host.clock import now
from holdfast.host.connection.from_inside import note_writers
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.connection.operators import Operators
from holdfast.host.connection.output_channels import (
    OutputSource,
    RawChannel,
    StoredChannel,
    ViewChannel,
)
from holdfast.host.gate.session_gate import SessionGate
from holdfast.host.gate.why import AskedSession
from holdfast.host.lost_sessions import LostSessions
from holdfast.host.reach.relay_presence import AnnouncedSession
from holdfast.host.residency import ResidencyMeter
from holdfast.host.revival import Revival
from holdfast.host.session.input_custody import InputCustody
from holdfast.host.session.parcel import SessionFds
from holdfast.host.session.state_watch import StateWatch
from holdfast.host.session_registry import has_ended
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.actor import Actor
from holdfast.model.errors import InvalidArgument, session_over
from holdfast.model.gate import EffectKind
from holdfast.model.graph import Graph
from holdfast.model.info import SessionInfo
from holdfast.model.state import SessionState
from holdfast.wire.messages import session as m
from holdfast.wire.messages.shared_output import Share, Shared

ALTERNATE_SCREEN = 1049  # DEC private mode


class SessionTarget(OutputSource, AnnouncedSession, AskedSession, Protocol):
    """A live session, as far as it is shown, attached to, watched and ended."""

    core: SessionMachine
    fds: SessionFds
    custody: InputCustody
    gate: SessionGate
    watching: StateWatch

    def info(self) -> SessionInfo: ...

    def graph(self, master: int) -> Graph: ...

    def state_event(self, state: SessionState) -> m.StateEvent: ...

    def handle(self, event: ev.SessionEvent) -> object: ...


Found = SessionTarget | Stored


class SeenSessions(Protocol):
    """The sessions that an actor may see."""

    def seen_live(self, actor: Actor) -> Sequence[SessionTarget]: ...

    def seen_ended(self, actor: Actor) -> Sequence[Stored]: ...

    def seen_lost(self, actor: Actor) -> Sequence[Stored]: ...

    def reserve(self, uid: int, name: str, program: str) -> str: ...

    def settle(self, uid: int, name: str) -> None: ...


class SessionRequests:
    """Handlers of one host."""

    def __init__(
        self,
        registry: SeenSessions,
        store: SessionStore,
        meter: ResidencyMeter,
        audience: Operators,
        start: Callable[[Actor, m.Run], Awaitable[SessionTarget]],
        lost: LostSessions,
        annotated: Callable[[AskedSession, Graph], Graph],
        revival: Revival,
    ) -> None:
        """`annotated`: the live graph with who is behind each process."""
        self._registry, self._store, self._audience = registry, store, audience
        self._meter, self._start, self._lost = meter, start, lost
        self._annotated, self._revival = annotated, revival

    async def run(self, operator: OperatorConnection, run: m.Run) -> m.Answer:
        live = await self._start(operator.actor, run)
        note_writers(operator.inside, live)
        return m.Shown(run.id, live.info())

    def list(
        self, operator: OperatorConnection, request: m.ListSessions
    ) -> m.Answer | Awaitable[m.Answer]:
        seen = self._seen_live(operator)
        infos = [live.info() for live in seen]
        if request.lost or request.ended:
            over = self._registry.seen_lost(operator.actor) if request.lost else []
            over = [*over, *(self._registry.seen_ended(operator.actor) if request.ended else [])]
            others = self._audience.others_may_see
            seen_over = [stored for stored in over if others(operator, stored)]
            infos += {stored.info.id: stored.info for stored in seen_over}.values()
        if not request.residency:
            return m.Sessions(request.id, tuple(infos))
        places = {live.spec.id: live.spec.place for live in seen}

        async def measured() -> m.Answer:
            used = await self._meter.of((info.id, places.get(info.id)) for info in infos)
            pairs = zip(infos, used, strict=True)
            return m.Sessions(request.id, tuple(info.replace(residency=one) for info, one in pairs))

        return measured()

    def _seen_live(self, operator: OperatorConnection) -> Sequence[SessionTarget]:
        seen = self._registry.seen_live(operator.actor)
        return [live for live in seen if self._audience.others_may_see(operator, live)]

    async def show(self, _: OperatorConnection, request: m.Show, found: Found) -> m.Answer:
        info = found.info if isinstance(found, Stored) else found.info()
        place = None if isinstance(found, Stored) else found.spec.place
        (used,) = await self._meter.of([(info.id, place)])
        return m.Shown(request.id, info.replace(residency=used))

    async def graph(
        self, _: OperatorConnection, request: m.GetGraph, live: SessionTarget
    ) -> m.Answer:
        master = os.dup(live.fds.master)
        try:
            # A large tree takes tens of milliseconds to look at: not on the loop.
            graph = await asyncio.to_thread(live.graph, master)
        finally:
            os.close(master)
        return m.GraphShown(request.id, self._annotated(live, graph))

    def screen(self, _: OperatorConnection, request: m.GetScreen, found: Found) -> m.Answer:
        if isinstance(found, Stored):
            info, text = found.info, self._store.screen(found.info.id)
            return m.ScreenShown(request.id, text, 0, 0, info.size, info.title, info.output_offset)
        col, row = found.view.cursor()
        return m.ScreenShown(
            request.id,
            found.view.text(scrollback=request.scrollback),
            col,
            row,
            found.size,
            found.view.title,
            found.view.offset,
            found.view.mode(ALTERNATE_SCREEN),
        )

    def end(
        self, operator: OperatorConnection, request: m.End, found: Found
    ) -> m.Answer | Awaitable[m.Answer]:
        if isinstance(found, Stored):
            if found.is_asleep:
                return m.Shown(request.id, self._lost.give_up(operator.actor, found).info)
            raise session_over("the session", found.info.ending, how="has ended already")
        actor = operator.actor.id
        if not found.gate.in_force:
            found.handle(ev.EndAsked(actor, now()))
            return self._ended(request, found)

        async def judged() -> m.Answer:
            passed = await found.gate.check(EffectKind.END, actor, "")
            found.handle(ev.EndAsked(actor, now(), passed))
            return await self._ended(request, found)

        return judged()

    def _ended(self, request: m.End, found: SessionTarget) -> Awaitable[m.Answer]:
        async def ended() -> m.Answer:
            await asyncio.shield(found.closing.ended)
            written = found.closing.tombstone
            # A full disk has no room for a tombstone: then as it is known.
            return m.Shown(request.id, written.result().info if written.done() else found.info())

        return ended()

    def rename(
        self, operator: OperatorConnection, request: m.Rename, live: SessionTarget
    ) -> m.Answer:
        uid = live.spec.uid
        if not request.name:
            raise InvalidArgument("a name is not empty")
        if request.name != live.spec.name:
            self._registry.reserve(uid, request.name, "")
            try:
                live.handle(ev.RenameAsked(operator.actor.id, now(), request.name))
            finally:
                self._registry.settle(uid, request.name)
        return m.Shown(request.id, live.info())

    def pin(self, operator: OperatorConnection, request: m.Pin, live: SessionTarget) -> m.Answer:
        live.handle(ev.PinAsked(operator.actor.id, now(), request.pinned))
        return m.Shown(request.id, live.info())

    def detach_terminals(
        self, operator: OperatorConnection, request: m.DetachTerminals, live: SessionTarget
    ) -> m.Answer:
        def terminals() -> int:
            return len({seat.operator for seat in live.core.attachments.terminals()})

        before, who = terminals(), operator.identity
        live.handle(ev.DetachAsked(operator.actor.id, now(), who, request.others))
        left = terminals()
        return m.TerminalsDetached(request.id, before - left, left)

    def acknowledge(
        self, operator: OperatorConnection, request: m.Acknowledge, found: Found | None
    ) -> m.Answer:
        if found is None:
            seen = self._registry.seen_lost(operator.actor)
            done = self._lost.acknowledge_all(operator.actor, seen)
        elif isinstance(found, Stored) and found.is_lost:
            done = (self._lost.acknowledge(operator.actor, found),)
        else:
            raise InvalidArgument("the session was not lost", hint="`hold ls` shows lost sessions")
        return m.Sessions(request.id, tuple(stored.info for stored in done))

    async def revive(
        self, operator: OperatorConnection, request: m.Revive, found: Found
    ) -> m.Answer:
        if not isinstance(found, Stored):
            raise InvalidArgument(
                f"{found.spec.name} lives", hint=f"`hold attach {found.spec.name}` joins it"
            )
        revived = await self._revival.revive(operator.actor, operator.inside, found)
        old = found.info.id
        return m.Revived(request.id, revived.info, old, revived.left_behind, revived.running)

    # -- channels -----------------------------------------------------------------------------

    def attach(self, operator: OperatorConnection, attach: m.Attach, found: Found) -> None:
        if attach.channel < 0 or attach.channel in operator.channels:
            raise InvalidArgument(f"channel {attach.channel} is in use or negative")
        if isinstance(found, Stored):
            if not attach.raw:
                raise has_ended(found)
            if found.is_lost and (attach.since or 0) > found.info.output_offset:
                raise has_ended(found)  # what a reader that comes back has read is not held
            self._attach_stored(operator, attach, found.info)
            return
        live = found
        _check_since(attach, live.ring.head)
        who = operator.identity
        if attach.size is not None:
            attach.size.checked()
        channel: RawChannel | ViewChannel
        if attach.raw:
            channel = RawChannel(live, attach.channel, attach.since)
        else:
            channel = ViewChannel(live, attach.channel, attach.since, scrollback=attach.scrollback)
        offset = channel.cursor if channel.cursor >= 0 else live.ring.head
        actor = operator.actor.id
        detachable = attach.detachable and not attach.raw
        seat = Seat(who, attach.channel, attach.observe, attach.raw, actor, time.time(), detachable)
        # First: it may be refused, and the screen sent below must be one of this size.
        live.handle(ev.ChannelOpened(actor, now(), seat, None if attach.observe else attach.size))
        live.presence.record_attach(operator, attach.observe, offset)
        # Queued before anything of the channel can be sent; sent with what follows.
        live.presence.recognise(operator)
        input_seq = live.custody.ledger.last_seq(who)
        operator.queue(m.Attached(attach.id, attach.channel, live.info(), offset, input_seq))
        self._audience.open_channel(operator, channel)
        if live.core.attachments.answerer == seat:
            operator.event(m.Answering(attach.channel, True))
        operator.pump()

    def _attach_stored(
        self, operator: OperatorConnection, attach: m.Attach, info: SessionInfo
    ) -> None:
        _check_since(attach, info.output_offset)
        file = self._store.open_output(info.id)
        channel = StoredChannel(info, file, attach.channel, attach.since)
        operator.answer(m.Attached(attach.id, attach.channel, info, channel.cursor, 0))
        self._audience.open_channel(operator, channel)
        operator.pump()

    def detach(self, operator: OperatorConnection, detach: m.Detach) -> m.Answer:
        channel = operator.channels.get(detach.channel)
        if channel is None:
            raise InvalidArgument(f"channel {detach.channel} is not open")
        self._audience.close_channel(operator, channel)
        return m.Done(detach.id)

    def share(self, operator: OperatorConnection, share: Share, live: SessionTarget) -> m.Answer:
        channel = operator.channels.get(share.channel)
        if operator.remote is None or not isinstance(channel, ViewChannel):
            raise InvalidArgument("only a view through a relay can share its output with others")
        if share.anew:
            channel.begin_anew()
            operator.pump()
        return Shared(share.id, share.channel, operator.remote.share(live, channel))

    def watch(self, operator: OperatorConnection, watch: m.Watch, found: Found | None) -> m.Answer:
        if isinstance(found, Stored):
            info = found.info
            ended = (info.id, info.name, info.state, info.ended_at or 0.0, "", info.ending)
            operator.event(m.StateEvent(*ended))
            return m.Done(watch.id)
        lives = self._seen_live(operator) if found is None else [found]
        for live in lives:
            operator.event(live.state_event(live.watching.current_state()))
        self._audience.watch(operator, "" if found is None else found.spec.id)
        return m.Done(watch.id)


def _check_since(attach: m.Attach, head: int) -> None:
    if attach.since is not None and not 0 <= attach.since <= head:
        raise InvalidArgument(f"offset {attach.since} is beyond the output, which ends at {head}")
