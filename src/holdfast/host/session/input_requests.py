"""Requests that reach the terminal: each row becomes one event, and the session machine judges it.

    input, submit, keys   InputOffered
    exec                  InputOffered, with the execution remembered before it
    resize                SizeAsked
    signal                SignalAsked

A `forward` is the same for a port (connection.forwarding).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters import pty
from holdfast.core import events as ev
from holdfast.core.key_names import key_bytes, pasted
from holdfast.core.turn.machine import shown_text
from holdfast.host.clock import now
from holdfast.host.connection.exec_channel import ExecChannel, ExecSource
from holdfast.host.connection.output_channels import OutputChannel
from holdfast.host.session.exec_runs import Execution, command_bytes
from holdfast.model.action import DeclaredAction
from holdfast.model.errors import HoldfastError, InputUnknown, InvalidArgument, session_over
from holdfast.model.gate import EffectKind
from holdfast.model.ids import OperatorId
from holdfast.model.state import signal_name
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.core.session import SessionMachine
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.gate.session_gate import SessionGate
    from holdfast.host.session.output import OutputPump
    from holdfast.host.session.parcel import SessionFds
    from holdfast.host.session.shell_commands import ShellCommands

_SIGNALS = range(1, 65)
_BRACKETED_PASTE, _APPLICATION_CURSOR = 2004, 1  # DEC private modes
_Later = Awaitable[m.Answer | None]


class InputTarget(ExecSource, Protocol):
    """A live session, as far as something can be typed into it."""

    core: SessionMachine
    fds: SessionFds
    output: OutputPump
    commands: ShellCommands
    gate: SessionGate

    def handle(self, event: ev.SessionEvent) -> int | asyncio.Future[int] | None: ...

    def save_parcel(self) -> None: ...

    def held_by(self, operator: OperatorId, seq: int) -> str: ...


class OpenChannel(Protocol):
    def __call__(self, operator: OperatorConnection, channel: OutputChannel) -> None: ...


class InputRequests:
    """Handlers of one host."""

    def __init__(self, open_channel: OpenChannel) -> None:
        self._open_channel = open_channel

    def input(
        self, operator: OperatorConnection, request: m.Input, live: InputTarget
    ) -> m.Answer | Awaitable[m.Answer] | None:
        return self._offer(operator, request, live, request.data)

    def submit(
        self, operator: OperatorConnection, request: m.Submit, live: InputTarget
    ) -> m.Answer | Awaitable[m.Answer] | None:
        data = request.text.encode()
        if request.secret and not pty.reads_secretly(pty.local_modes(live.fds.master)):
            raise InvalidArgument(
                "no secret is asked for now: it would be shown on the screen and recorded",
                hint="look at what the session waits for; send it without --secret if it is none",
            )
        if len(data) > 1 and live.view.mode(_BRACKETED_PASTE):
            data = pasted(data)
        return self._offer(operator, request, live, data + (b"\r" if request.enter else b""))

    def keys(
        self, operator: OperatorConnection, request: m.Keys, live: InputTarget
    ) -> m.Answer | Awaitable[m.Answer] | None:
        application = live.view.mode(_APPLICATION_CURSOR)
        data = b"".join(key_bytes(name, application_cursor=application) for name in request.keys)
        return self._offer(operator, request, live, data)

    def _offer(
        self,
        operator: OperatorConnection,
        request: m.Input | m.Submit | m.Keys,
        live: InputTarget,
        data: bytes,
    ) -> m.Answer | Awaitable[m.Answer] | None:
        live.presence.note_connection(operator)
        form = "paste" if isinstance(request, m.Submit) and not request.enter else request.tag
        offered = ev.InputOffered(
            operator.actor.id,
            now(),
            operator.identity,
            request.seq,
            data,
            "keys" if form == "input" else form,
        )
        taken = live.handle(offered)
        if isinstance(taken, int):
            if isinstance(request, m.Input) and request.quiet and taken >= 0:
                operator.ack_later(request.id, request.seq, taken)
                return None
            return _accepted(request.id, operator.identity, request.seq, live, taken)
        assert taken is not None
        waiting, who = taken, operator.identity

        async def accepted() -> m.Answer:
            try:
                offset = await asyncio.shield(waiting)
                return _accepted(request.id, who, request.seq, live, offset)
            except asyncio.CancelledError:
                if live.ending is not None:
                    how = "ended before it took the input"
                    raise session_over("the session", live.ending, how=how) from None
                raise

        return accepted()

    def exec(
        self,
        operator: OperatorConnection,
        request: m.Exec,
        live: InputTarget,
        asked: bool = False,
    ) -> _Later | None:
        check_channel_free(operator, request.id)
        who, actor = operator.identity, operator.actor.id
        execution = live.commands.executions.find(actor, who, request)
        if execution is None and live.commands.typed.prompt_may_have_text and not asked:
            again = partial(self.exec, operator, request, live, asked=True)
            return live.commands.after_prompt_check(actor, who, request.seq, again)
        if execution is None:
            execution = self.begin_exec(live, operator, request)
        self.follow_exec(operator, request.id, live, execution)
        return None

    def follow_exec(
        self,
        operator: OperatorConnection,
        request: int,
        live: InputTarget,
        execution: Execution,
        *first: m.Answer,
    ) -> None:
        """Its beginning, output and end go to this operator, behind the answers in `first`."""
        live.presence.note_connection(operator)
        actor = operator.actor.id
        channel = ExecChannel(live, actor, -1 - request, request, execution, *first)
        channel.wake = operator.pump
        self._open_channel(operator, channel)
        operator.pump()

    def begin_exec(
        self,
        live: InputTarget,
        operator: OperatorConnection,
        request: m.Exec,
        action: DeclaredAction | None = None,
    ) -> Execution:
        """Type it, once. It is saved before: whoever asks again after a crash must find it.
        `action`: the structured action of which it is the command line."""
        if live.core.inputs.is_behind(operator.identity, request.seq):
            raise InputUnknown(
                "this command line was submitted before; its outcome is no longer kept",
                hint="look at the screen before you run it again",
            )
        live.core.check_not_halted(operator.actor.id)  # which is why its shell is at no prompt
        live.commands.check_can_run()
        data = command_bytes(
            request.command,
            bracketed=live.view.mode(_BRACKETED_PASTE),
            shell=live.commands.shells.kind,
            exact=live.commands.shells.exact_line_key,
        )
        live.output.drain()
        live.presence.note_connection(operator)
        who, actor = operator.identity, operator.actor.id
        execution = live.commands.executions.begin(
            actor, who, request, live.ring.head, action.id if action is not None else ""
        )
        live.save_parcel()
        try:
            intent = shown_text(request.intent)
            taken = live.handle(
                ev.InputOffered(actor, now(), who, request.seq, data, "exec", intent, action)
            )
            assert taken != -1, "seen to above"
        except HoldfastError:
            live.commands.executions.forget(execution)
            live.save_parcel()
            raise
        live.commands.exec_begins(execution)
        return execution

    def resize(
        self, operator: OperatorConnection, request: m.Resize, live: InputTarget
    ) -> m.Answer | Awaitable[m.Answer]:
        """With a channel it needs no right of its own: the operator says how large its terminal is,
        which counts only while its actor holds the turn, or nobody does; and whoever has a seat
        with a size was let in to write. Without one it sets the size outright: RESIZE."""
        live.presence.note_connection(operator)
        who, actor = operator.identity, operator.actor.id

        def resize(passed: ev.Passed | None) -> m.Answer:
            live.handle(ev.SizeAsked(actor, now(), who, request.size, request.channel, passed))
            return m.Done(request.id)

        if not live.gate.resize_is_judged:
            return resize(None)

        async def judged() -> m.Answer:
            return resize(await live.gate.check_resize(actor))

        return judged()

    def signal(
        self, operator: OperatorConnection, request: m.Signal, live: InputTarget
    ) -> m.Answer | Awaitable[m.Answer]:
        if request.signal not in _SIGNALS:
            raise InvalidArgument(f"not a signal: {request.signal}")
        live.presence.note_connection(operator)
        who, actor = operator.identity, operator.actor.id

        def send(passed: ev.Passed | None) -> m.Answer:
            live.handle(ev.SignalAsked(actor, now(), who, request.signal, passed))
            return m.Done(request.id)

        if not live.gate.in_force:
            return send(None)

        async def judged() -> m.Answer:
            signal = signal_name(request.signal)
            return send(await live.gate.check(EffectKind.SIGNAL, actor, signal))

        return judged()


def check_channel_free(operator: OperatorConnection, request: int) -> None:
    if request < 0 or -1 - request in operator.channels:
        raise InvalidArgument(f"request {request} is in use or negative")


def _accepted(
    request: int, operator: OperatorId, seq: int, live: InputTarget, offset: int
) -> m.Accepted:
    held = live.held_by(operator, seq)
    if offset < 0:
        return m.Accepted(request, seq, live.ring.head, repeated=True, held=held)
    return m.Accepted(request, seq, offset, held=held)
