"""Each request, and what it does. One method per message; authority is checked by finding: a
session the asker may not see is not there."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.adapters import pty
from holdfast.core import events as ev
from holdfast.core.attachments import Seat
from holdfast.core.key_names import key_bytes, pasted
from holdfast.core.turn.machine import shown_text
from holdfast.host.access.requests import AdmissionRequests
from holdfast.host.clock import now
from holdfast.host.connection.authority_requests import AuthorityRequests
from holdfast.host.connection.output_channels import RawChannel, StoredChannel, ViewChannel
from holdfast.host.reach.requests import ReachRequests
from holdfast.host.session.exec_runs import ExecChannel, Execution, command_bytes
from holdfast.host.session.live_session import LiveSession
from holdfast.host.session.start import start
from holdfast.host.session_store import Stored
from holdfast.model.errors import (
    HoldfastError,
    InputUnknown,
    InvalidArgument,
    NotPermitted,
    ProtocolViolation,
    SessionEnded,
    SessionsLive,
    Unsupported,
)
from holdfast.model.ids import OperatorId
from holdfast.model.info import SessionInfo
from holdfast.wire.messages import session as m
from holdfast.wire.messages.shared_output import Share, Shared

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.daemon import Daemon

_Later = Awaitable[m.Answer | None]
_SIGNALS = range(1, 65)
_ALTERNATE_SCREEN, _BRACKETED_PASTE, _APPLICATION_CURSOR = 1049, 2004, 1  # DEC private modes


class Requests:
    """Answers for one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._by_tag: dict[str, Callable[[OperatorConnection, Any], m.Answer | _Later | None]] = {
            "run": self._run,
            "list": self._list,
            "show": self._show,
            "graph": self._graph,
            "screen": self._screen,
            "attach": self._attach,
            "detach": self._detach,
            "share": self._share,
            "input": self._input,
            "submit": self._submit,
            "keys": self._keys,
            "exec": self._exec,
            "resize": self._resize,
            "signal": self._signal,
            "watch": self._watch,
            "forward": daemon.forwarding.asked,
            "end": self._end,
            "host": self._host,
            "restart_daemon": self._restart,
            "shutdown": self._shutdown,
            **AuthorityRequests(daemon).by_tag,
            **AdmissionRequests(daemon).by_tag,
            **ReachRequests(daemon).by_tag,
        }

    def answer(self, operator: OperatorConnection, request: m.Request) -> m.Answer | _Later | None:
        """The answer, or what will become it, or None when a channel answers later."""
        method = self._by_tag.get(request.tag)
        if method is None:
            raise Unsupported(f"this host does not know {request.tag!r}")
        if request.tag != "claim":  # one whose own actor was revoked may still prove to be another
            self._daemon.actors.check_not_revoked(operator.actor)
        return method(operator, request)

    # -- sessions -----------------------------------------------------------------------------

    async def _run(self, operator: OperatorConnection, run: m.Run) -> m.Answer:
        self._daemon.actors.check_may_start(operator.actor)
        live = await start(self._daemon, operator.actor, run)
        return m.Shown(run.id, live.info())

    def _list(self, operator: OperatorConnection, request: m.ListSessions) -> m.Answer:
        registry = self._daemon.registry
        infos = [live.info() for live in registry.seen_live(operator.actor)]
        if request.ended:
            infos += [stored.info for stored in registry.seen_ended(operator.actor)]
        return m.Sessions(request.id, tuple(infos))

    def _show(self, operator: OperatorConnection, request: m.Show) -> m.Answer:
        found = self._daemon.registry.find(operator.actor, request.session)
        return m.Shown(request.id, found.info() if isinstance(found, LiveSession) else found.info)

    async def _graph(self, operator: OperatorConnection, request: m.GetGraph) -> m.Answer:
        live = self.live(operator, request.session)
        master = os.dup(live.fds.master)
        try:
            # A large tree takes tens of milliseconds to look at: not on the loop.
            return m.GraphShown(request.id, await asyncio.to_thread(live.graph, master))
        finally:
            os.close(master)

    def _screen(self, operator: OperatorConnection, request: m.GetScreen) -> m.Answer:
        found = self._daemon.registry.find(operator.actor, request.session)
        if isinstance(found, Stored):
            info, text = found.info, self._daemon.store.screen(found.info.id)
            return m.ScreenShown(request.id, text, 0, 0, info.size, info.title, info.output_offset)
        col, row = found.view.cursor()
        return m.ScreenShown(
            request.id,
            found.view.text(scrollback=request.scrollback),
            col,
            row,
            found.core.size,
            found.view.title,
            found.view.offset,
            found.view.mode(_ALTERNATE_SCREEN),
        )

    def _end(self, operator: OperatorConnection, request: m.End) -> Awaitable[m.Answer] | m.Answer:
        found = self._daemon.registry.find(operator.actor, request.session)
        if isinstance(found, Stored):
            raise SessionEnded(f"the session has ended already: {found.info.ending}")
        found.handle(ev.EndAsked(operator.actor.id, now()))

        async def ended() -> m.Answer:
            await found.ended_event.wait()
            buried = (
                found.tombstone_written.done()
            )  # a full disk has no room for it: then as it is known
            return m.Shown(
                request.id, found.tombstone_written.result().info if buried else found.info()
            )

        return ended()

    # -- channels -----------------------------------------------------------------------------

    def _attach(self, operator: OperatorConnection, attach: m.Attach) -> m.Answer | None:
        if attach.channel < 0 or attach.channel in operator.channels:
            raise InvalidArgument(f"channel {attach.channel} is in use or negative")
        found = self._daemon.registry.find(operator.actor, attach.session)
        if attach.raw and isinstance(found, Stored):
            self._attach_stored(operator, attach, found.info)
            return None
        live = self.live(operator, attach.session)
        if attach.since is not None and not 0 <= attach.since <= live.ring.head:
            raise InvalidArgument(
                f"offset {attach.since} is beyond the output, which ends at {live.ring.head}"
            )
        who = _identity(operator)
        if attach.size is not None:
            attach.size.checked()
        channel: RawChannel | ViewChannel
        if attach.raw:
            channel = RawChannel(live, attach.channel, attach.since)
        else:
            channel = ViewChannel(live, attach.channel, attach.since, scrollback=attach.scrollback)
        offset = channel.cursor if channel.cursor >= 0 else live.ring.head
        came_back = attach.size == live.core.size and not live.core.attachments.seats_of(who)
        actor = operator.actor.id
        seat = Seat(who, attach.channel, attach.observe, attach.raw, actor, time.time())
        # First: it may be refused, and the screen sent below must be one of this size.
        live.handle(ev.ChannelOpened(actor, now(), seat, None if attach.observe else attach.size))
        live.record_attach(operator, attach.observe, offset)
        # Queued before anything of the channel can be sent; sent with what follows.
        input_seq = live.custody.ledger.last_seq(who)
        operator.queue(m.Attached(attach.id, attach.channel, live.info(), offset, input_seq))
        self._daemon.join(operator, channel)
        if live.core.attachments.answerer == seat:
            operator.event(m.Answering(attach.channel, True))
        if came_back and not attach.observe and live.view.mode(_ALTERNATE_SCREEN):
            # Nudged, what dozed off repaints. Never in between: less drops a half typed search.
            live.handle(ev.RepaintAsked(actor, now()))
        operator.pump()
        return None

    def _attach_stored(
        self, operator: OperatorConnection, attach: m.Attach, info: SessionInfo
    ) -> None:
        if attach.since is not None and not 0 <= attach.since <= info.output_offset:
            raise InvalidArgument(
                f"offset {attach.since} is beyond the output, which ends at {info.output_offset}"
            )
        file = self._daemon.store.open_output(info.id)
        channel = StoredChannel(info, file, attach.channel, attach.since)
        operator.answer(m.Attached(attach.id, attach.channel, info, channel.cursor, 0))
        self._daemon.join(operator, channel)
        operator.pump()

    def _detach(self, operator: OperatorConnection, detach: m.Detach) -> m.Answer:
        channel = operator.channels.get(detach.channel)
        if channel is None:
            raise InvalidArgument(f"channel {detach.channel} is not open")
        self._daemon.leave(operator, channel)
        return m.Done(detach.id)

    def _share(self, operator: OperatorConnection, share: Share) -> m.Answer:
        live = self.live(operator, share.session)
        channel = operator.channels.get(share.channel)
        if operator.remote is None or not isinstance(channel, ViewChannel):
            raise InvalidArgument("only a view that came through a relay is read with others")
        if share.anew:
            channel.begin_anew()
            operator.pump()
        return Shared(share.id, share.channel, operator.remote.share(live, channel))

    def _watch(self, operator: OperatorConnection, watch: m.Watch) -> m.Answer:
        session = ""
        lives = self._daemon.registry.seen_live(operator.actor)
        if watch.session:
            found = self._daemon.registry.find(operator.actor, watch.session)
            if isinstance(found, Stored):
                info = found.info
                operator.event(
                    m.StateEvent(
                        info.id, info.name, info.state, info.ended_at or 0.0, "", info.ending
                    )
                )
                return m.Done(watch.id)
            session, lives = found.spec.id, [found]
        for live in lives:
            operator.event(self._daemon.state_event(live, live.watching.told()))
        self._daemon.watch(operator, session)
        return m.Done(watch.id)

    # -- input --------------------------------------------------------------------------------

    def _input(
        self, operator: OperatorConnection, request: m.Input
    ) -> m.Answer | Awaitable[m.Answer] | None:
        return self._offer(operator, request, request.data)

    def _submit(
        self, operator: OperatorConnection, request: m.Submit
    ) -> m.Answer | Awaitable[m.Answer] | None:
        data, live = request.text.encode(), self.live(operator, request.session)
        if request.secret and not pty.reads_secretly(live.fds.master):
            raise InvalidArgument(
                "no secret is asked for now: it would be shown on the screen, and recorded",
                hint="look what the session waits for; an answer that is no secret needs no care",
            )
        if len(data) > 1 and live.view.mode(_BRACKETED_PASTE):
            data = pasted(data)
        return self._offer(operator, request, data + (b"\r" if request.enter else b""))

    def _keys(
        self, operator: OperatorConnection, request: m.Keys
    ) -> m.Answer | Awaitable[m.Answer] | None:
        application = self.live(operator, request.session).view.mode(_APPLICATION_CURSOR)
        data = b"".join(key_bytes(name, application_cursor=application) for name in request.keys)
        return self._offer(operator, request, data)

    def _offer(
        self, operator: OperatorConnection, request: m.Input | m.Submit | m.Keys, data: bytes
    ) -> m.Answer | Awaitable[m.Answer] | None:
        live = self.live(operator, request.session)
        live.note_connection(operator)
        form = "paste" if isinstance(request, m.Submit) and not request.enter else request.tag
        offered = ev.InputOffered(
            operator.actor.id,
            now(),
            _identity(operator),
            request.seq,
            data,
            "keys" if form == "input" else form,
        )
        taken = live.handle(offered)
        if isinstance(taken, int):
            if isinstance(request, m.Input) and request.quiet and taken >= 0:
                operator.ack_later(request.id, request.seq, taken)
                live.output.look_for_echo(len(data))
                return None
            return _accepted(request.id, request.seq, live, taken)
        assert taken is not None
        waiting = taken

        async def accepted() -> m.Answer:
            try:
                return _accepted(request.id, request.seq, live, await asyncio.shield(waiting))
            except asyncio.CancelledError:
                if live.ending is not None:
                    raise SessionEnded("the session ended before it took the input") from None
                raise

        return accepted()

    def _exec(
        self, operator: OperatorConnection, request: m.Exec, asked: bool = False
    ) -> _Later | None:
        live = self.live(operator, request.session)
        if request.id < 0 or -1 - request.id in operator.channels:
            raise InvalidArgument(f"request {request.id} is in use or negative")
        who, actor = _identity(operator), operator.actor.id
        execution = live.commands.executions.find(actor, who, request)
        if execution is None and live.commands.typed.prompt_text_unknown and not asked:
            again = partial(self._exec, operator, request, asked=True)
            return live.commands.cleared_up(actor, who, request.seq, again)
        if execution is None:
            execution = self._begin_exec(live, operator, request)
        live.note_connection(operator)
        channel = ExecChannel(live, actor, -1 - request.id, request.id, execution)
        channel.wake = operator.pump
        self._daemon.join(operator, channel)
        operator.pump()
        return None

    def _begin_exec(
        self, live: LiveSession, operator: OperatorConnection, request: m.Exec
    ) -> Execution:
        """Type it, once. It is kept before: whoever asks again after a crash must find it."""
        if 0 < request.seq <= live.core.inputs.last(_identity(operator)):
            raise InputUnknown(
                "this command line was submitted before; what became of it is not kept any more",
                hint="look at the screen before you run it again",
            )
        live.commands.check_can_run()
        data = command_bytes(request.command, bracketed=live.view.mode(_BRACKETED_PASTE))
        live.output.drain()
        live.note_connection(operator)
        who, actor = _identity(operator), operator.actor.id
        execution = live.commands.executions.begin(actor, who, request, live.ring.head)
        live.save_parcel()
        try:
            intent = shown_text(request.intent)
            taken = live.handle(
                ev.InputOffered(actor, now(), who, request.seq, data, "exec", intent)
            )
            assert taken != -1, "seen to above"
        except HoldfastError:
            live.commands.executions.forget(execution)
            live.save_parcel()
            raise
        live.commands.exec_begins(execution)
        return execution

    def _resize(self, operator: OperatorConnection, request: m.Resize) -> m.Answer:
        live = self.live(operator, request.session)
        live.note_connection(operator)
        live.handle(
            ev.SizeAsked(
                operator.actor.id, now(), _identity(operator), request.size, request.channel
            )
        )
        return m.Done(request.id)

    def _signal(self, operator: OperatorConnection, request: m.Signal) -> m.Answer:
        if request.signal not in _SIGNALS:
            raise InvalidArgument(f"not a signal: {request.signal}")
        live = self.live(operator, request.session)
        live.note_connection(operator)
        live.handle(ev.SignalAsked(operator.actor.id, now(), _identity(operator), request.signal))
        return m.Done(request.id)

    # -- the host -----------------------------------------------------------------------------

    async def _host(self, operator: OperatorConnection, request: m.GetHost) -> m.Answer:
        return m.HostShown(request.id, await self._daemon.host_info())

    def _restart(self, operator: OperatorConnection, request: m.RestartDaemon) -> m.Answer:
        self._administer(operator)
        asyncio.get_running_loop().call_soon(self._daemon.stop)
        return m.Done(request.id)

    def _shutdown(
        self, operator: OperatorConnection, request: m.Shutdown
    ) -> m.Answer | Awaitable[m.Answer]:
        self._administer(operator)
        count = len(self._daemon.registry.live)
        if count and not request.end_sessions:
            raise SessionsLive(
                f"{count} session{'s live' if count > 1 else ' lives'} here",
                hint="end them first, or `hold down --end-sessions`",
            )

        async def down() -> m.Answer:
            await self._daemon.end_all_and_stop()
            return m.Done(request.id)

        return down()

    # -- common to several --------------------------------------------------------------------

    def live(self, operator: OperatorConnection, session: str) -> LiveSession:
        """The live session of this name, if the operator may know of it."""
        found = self._daemon.registry.find(operator.actor, session)
        if isinstance(found, Stored):
            raise SessionEnded(
                f"the session {found.info.name} has ended: {found.info.ending}",
                hint=f"`hold screen {found.info.id[:8]}` shows its last screen",
            )
        return found

    def _administer(self, operator: OperatorConnection) -> None:
        if operator.uid not in (0, self._daemon.uid):
            raise NotPermitted("only the user this host runs as may do that")
        self._daemon.actors.check_manages(operator.actor)


def _identity(operator: OperatorConnection) -> OperatorId:
    if operator.id is None:
        raise ProtocolViolation("the first message must be hello")
    return operator.id


def _accepted(request: int, seq: int, live: LiveSession, offset: int) -> m.Accepted:
    if offset < 0:
        return m.Accepted(request, seq, live.ring.head, repeated=True)
    return m.Accepted(request, seq, offset)
