"""A session: what can be asked of it and done to it.

Made by `Hold.session` and `Hold.run`. It is a handle, not the session: losing or forgetting it
changes nothing about what runs.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import signal as signals
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.model.action import Action, ActionRetry
from holdfast.model.errors import (
    GateHeld,
    GateRefused,
    HoldfastError,
    HostLost,
    InputUnknown,
    InvalidArgument,
    SessionBusy,
    SessionEnded,
    TimedOut,
    session_over,
)
from holdfast.model.graph import Process
from holdfast.model.info import BlameLine, SessionInfo
from holdfast.model.measured import ActionTrace
from holdfast.model.movability import Movability
from holdfast.model.restore import RestoreReport
from holdfast.model.shell_line import below_shell, joined
from holdfast.model.size import Size
from holdfast.model.state import Ending, SessionState
from holdfast.model.turn_info import Handoff, Receipt
from holdfast.model.why import WhoIsBehind
from holdfast.sdk import events as ev
from holdfast.sdk.aio.command_file import CommandFile, needs_file
from holdfast.sdk.aio.command_run import Running, run_at_prompt, when_over
from holdfast.sdk.aio.driver import AsyncHostClient
from holdfast.sdk.aio.turn import BLOCK_HOLD_S, HeldTurns, Turn
from holdfast.sdk.aio.values import (
    ActionResult,
    Checkpoint,
    Cursor,
    LiveGraph,
    Piece,
    Refusal,
    Result,
    Screen,
    TurnState,
    WantedState,
)
from holdfast.sdk.aio.watch import EventStream
from holdfast.sdk.client_core import client_machine, text_wait
from holdfast.sdk.client_core.action_retry import Attempts
from holdfast.sdk.client_core.event_reader import wait_for_state
from holdfast.sdk.client_core.output_reader import OutputReader
from holdfast.sdk.client_core.retry_policy import PORT_FIRST_S, PORT_MAX_S
from holdfast.sdk.reach import machines
from holdfast.wire.messages import checkpoints, gate_actions, gate_provenance, preflight
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

if TYPE_CHECKING:
    from holdfast.journal.entries import Entry
    from holdfast.sdk.aio.port_forward import PortForward

T = TypeVar("T")
_BUSY_S = 0.2  # before a busy shell is tried again: it may be at its prompt and yet refuse


class Session:
    """A handle on one session, by its id."""

    def __init__(self, link: AsyncHostClient, info: SessionInfo) -> None:
        self._link = link
        self._inputs = link.inputs(info.id)
        self._held_turns = HeldTurns(self)  # the blocks in which this handle holds the turn
        self.id = info.id
        self.name = info.name
        self.found = info  # how it was when this handle was made
        self.restored: RestoreReport | None = None  # what was restored, if `Hold.restore` made it

    def __repr__(self) -> str:
        return f"<Session {self.name} {self.id[:8]}>"

    async def info(self) -> SessionInfo:
        """What it is and does now; of an ended session what its tombstone says."""
        return (await self._link.ask(m.Show(0, self.id), m.Shown)).info

    # -- commands -------------------------------------------------------------------------------

    async def submit(
        self,
        command: str,
        *,
        key: str = "",
        intent: str = "",
        timeout: float | None = None,
        raises: bool = True,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        wait_prompt: float = 0.0,
    ) -> Result:
        """Run one command line in the session's own shell, which must be at its prompt, and wait
        for its end.

        `key`: names this act. The same key again, by the same actor, also from another program or
        after a crash, never runs anything twice: it gives the result of the first time, and waits
        for it if it still runs. Without one, this call alone is safe against lost connections.

        `intent`: what it is for, for people who read the journal.

        `timeout`: seconds to wait. TimedOut says that the command goes on.

        A command that ends its own shell (`exit 3`) has that shell's status. If the session ends
        otherwise while it runs, that raises SessionEnded or SessionLost; what it printed is the
        error's `output_bytes`, which is None of a command that did not begin.

        `raises=False`: what the host refuses is given as `Result.refused` instead of an error, and
        what still waits for approval after `timeout` as `Result.held`.

        `cwd`, `env`: for this command only: it runs in a shell below the session's own, so that
        directory, variables and options of that one stay as they are.

        `wait_prompt`: seconds to wait for the prompt if something else runs there.

        One that is longer than an input may be (64 KiB) goes by a file in the directory for
        temporary files, which the shell sources; that works where the host is on this machine."""
        try:
            running = await self.start(
                command, key=key, intent=intent, cwd=cwd, env=env, wait_prompt=wait_prompt
            )
        except InputUnknown:
            raise
        except HoldfastError as error:
            if raises or isinstance(error, HostLost):
                raise
            why = Refusal(error.code, error.message, error.hint, error.retryable)
            return Result(command, None, b"", 0.0, 0, refused=why)
        try:
            return await running.result(timeout)
        except GateRefused as error:
            if raises:
                raise
            why = Refusal(error.code, error.message, error.hint, error.retryable)
            return Result(command, None, b"", 0.0, 0, refused=why)
        except TimedOut as error:
            if raises or running.held is None:
                raise
            why = Refusal(GateHeld.code, error.message, error.hint, retryable=True)
            return Result(command, None, b"", 0.0, 0, held=why)
        finally:
            running.forget()

    async def start(
        self,
        command: str,
        *,
        key: str = "",
        intent: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        wait_prompt: float = 0.0,
    ) -> Running:
        """Begin one command line, as `submit`, and give a handle on it as soon as the shell has
        begun it, or a policy holds it (`Running.held`). Its output can be read as it comes."""
        if not command:
            raise InvalidArgument("the command line is empty", hint="give one to run")
        fish = self.found.shell == "fish"
        if cwd or env:
            command = below_shell(command, cwd, env or {}, fish=fish)
        if not needs_file(command, is_here=self._link.is_here):
            return await self._start(command, key, intent, wait_prompt)
        return await self._by_file(
            command, lambda line: self._start(command, key, intent, wait_prompt, line)
        )

    async def _by_file(self, command: str, begin: Callable[[str], Awaitable[Running]]) -> Running:
        """Begin the line that sources the command from a file, which does not stay."""
        file = CommandFile(command, self.found.user, fish=self.found.shell == "fish")
        try:
            running = await begin(file.line)
        except InputUnknown:  # it may be read yet, and goes then
            raise
        except BaseException:
            file.remove()
            raise
        when_over(running, file.remove)
        return running

    async def _start(
        self, command: str, key: str, intent: str, wait_prompt: float, line: str = ""
    ) -> Running:
        until = asyncio.get_running_loop().time() + wait_prompt
        while True:
            try:
                async with self._held_turns.writing():
                    return await run_at_prompt(
                        self,
                        lambda: Running(
                            self._link, self._inputs, self, command, key, intent, line=line
                        ),
                    )
            except SessionBusy:
                left = until - asyncio.get_running_loop().time()
                if left <= 0:
                    raise
            with suppress(TimedOut):  # the next refusal says what is the matter
                await self.wait_for(state=SessionState.PROMPT, timeout=left)
            await asyncio.sleep(min(left, _BUSY_S))

    async def running(self, key: str) -> Running:
        """A handle on the command that this actor began under a key, also by another program, and
        also when it has ended; nothing is run. Raises InvalidArgument if the host knows none."""
        if not key:
            raise InvalidArgument("a key is needed", hint="give submit or start one")
        running = Running(self._link, self._inputs, self, "", key, "")
        try:
            await running.begun()
        except asyncio.CancelledError:
            running.forget()
            raise
        return running

    # -- structured actions ---------------------------------------------------------------------

    async def act(
        self,
        command: str | Sequence[str],
        *,
        intent: str,
        expect: Mapping[str, Any] | None = None,
        key: str = "",
        retry: Mapping[str, Any] | None = None,
        cwd: str = "",
        timeout: float | None = None,
    ) -> ActionResult:
        """Carry out a structured action: run one command line and measure what it does, against
        what it is expected to do. The fields are those of docs/action-schema.json, and the host
        checks them before anything runs.

        `command`: a line for the session's own shell, or words that are quoted for it. One of more
        than 16,384 characters goes by a file, as with `submit`; the record then names the file.

        `expect`: `status`, `files` (globs), `ports`, `processes`, `env`, `cwd`. Everything else
        that is found afterwards counts as an undeclared effect.

        `key`: as in `submit`. The same key again gives the trace of the first time.

        `retry`: `times` and `backoff_s`, for a turn that is held or a shell that is busy.

        `timeout`: seconds to wait for the end of the command. TimedOut says that it goes on; its
        trace can be asked for later, by its key."""
        running = await self.begin_act(
            command, intent=intent, expect=expect, key=key, retry=retry, cwd=cwd
        )
        try:
            result = await running.result(timeout)
        finally:
            running.forget()
        return ActionResult(await self.trace(running.action_id), result.output_bytes)

    async def begin_act(
        self,
        command: str | Sequence[str],
        *,
        intent: str,
        expect: Mapping[str, Any] | None = None,
        key: str = "",
        retry: Mapping[str, Any] | None = None,
        cwd: str = "",
    ) -> Running:
        """Begin an action, as `act`, and give a handle on its command as soon as the shell has
        begun it. Its `action_id` is for `trace`."""
        form: dict[str, Any] = {
            "intent": intent,
            "command": command if isinstance(command, str) else list(command),
        }
        said = {"expect": expect, "key": key, "retry": retry, "cwd": cwd}
        form |= {name: value for name, value in said.items() if value}
        fish, of_action = self.found.shell == "fish", isinstance(command, str)
        line = command if isinstance(command, str) else joined(command, fish=fish)
        if not needs_file(line, is_here=self._link.is_here, of_action=of_action):
            return await self._begin_act(form, str(command), key, intent)
        return await self._by_file(
            line,
            lambda source: self._begin_act({**form, "command": source}, str(command), key, intent),
        )

    async def _begin_act(
        self, form: Mapping[str, Any], command: str, key: str, intent: str
    ) -> Running:
        attempts = Attempts(_retry_of(form))
        running: Running | None = None

        def begin() -> Running:
            nonlocal running
            running = Running(
                *(self._link, self._inputs, self, command, key, intent),
                action=json.dumps(form),
                retried=tuple(attempts.codes),
            )
            return running

        while True:
            try:
                async with self._held_turns.writing():
                    return await run_at_prompt(self, begin)
            except HoldfastError as refusal:
                taken = running is not None and bool(running.action_id)
                pause = attempts.after(refusal, taken=taken)
            await asyncio.sleep(pause)

    async def trace(self, action: str, *, wait: bool = True) -> ActionTrace:
        """Everything about one action: by its id, its key, or the shell's number for its command.
        `wait`: until it has ended and is measured."""
        request = gate_actions.GetTrace(0, self.id, action, wait)
        return (await self._link.ask(request, gate_actions.TraceShown)).trace

    # -- input ----------------------------------------------------------------------------------

    async def type(self, text: str, *, enter: bool = False, secret: bool = False) -> int:
        """Type text, pasted as one piece where the program knows pastes. Gives the output offset
        at which it was taken: what is printed in answer comes behind it. A `secret` is refused
        unless the program reads it without echo: it would be shown, and recorded."""
        return await self._offer(m.Submit(0, self.id, 0, text, enter, secret))

    async def type_bytes(self, data: bytes) -> int:
        """Type bytes as they are."""
        return await self._offer(m.Input(0, self.id, 0, data))

    async def keys(self, *keys: str) -> int:
        """Press named keys: "C-c", "Up", "Enter", "F5", "M-x", or characters."""
        return await self._offer(m.Keys(0, self.id, 0, keys))

    async def signal(self, number: int | str) -> None:
        """Send a signal, as signal.SIGINT or "INT", to the foreground process group."""
        await self._write(m.Signal(0, self.id, _signal_number(number)), once=True)

    async def resize(self, size: Size | tuple[int, int] | str) -> None:
        """Set the canonical size: (columns, rows), "120x40" or a Size."""
        await self._write(m.Resize(0, self.id, size_of(size)))

    # -- looking --------------------------------------------------------------------------------

    async def screen(self, *, scrollback: bool = False) -> Screen:
        """The screen as text; with `scrollback` also the lines above it that are still held."""
        shown = await self._link.ask(m.GetScreen(0, self.id, scrollback), m.ScreenShown)
        cursor = Cursor(shown.cursor_col, shown.cursor_row)
        return Screen(shown.text, cursor, shown.size, shown.title, shown.offset, shown.alternate)

    async def output(self, since: int | None = None) -> AsyncGenerator[Piece, None]:
        """Every byte it prints, from an offset on (of a Screen, a Piece, or 0), or from now on;
        until it ends. Goes on by itself after a lost connection, without a hole or a repeat; what
        is no longer held shows as `Piece.gap`."""
        reader = OutputReader(self._link, self.id, since, observe=False)
        try:
            gap = 0  # told with the piece behind it, or at the end
            while isinstance(piece := await reader.next(), Piece):
                gap += piece.gap
                if piece.data:
                    yield piece.replace(gap=gap)
                    gap = 0
            if gap:
                yield Piece(reader.offset, b"", gap)
        finally:
            reader.close()

    def events(self) -> AsyncGenerator[ev.Event, None]:
        """What happens to it (see `holdfast.events`), its present state first; until it ends."""
        return EventStream(self._link, self.id).events()

    async def graph(self) -> LiveGraph:
        """Processes, terminal, files and sockets, as the kernel has them now."""
        graph = (await self._link.ask(m.GetGraph(0, self.id), m.GraphShown)).graph
        return LiveGraph(*(getattr(graph, field) for field in type(graph)._fields))

    @overload
    async def wait_for(
        self, *, state: WantedState | Iterable[WantedState], timeout: float | None = None
    ) -> SessionState: ...
    @overload
    async def wait_for(
        self, *, text: str | re.Pattern[str], since: int | None = None, timeout: float | None = None
    ) -> str: ...
    @overload
    async def wait_for(self, *, port: int, timeout: float | None = None) -> Process: ...
    @overload
    async def wait_for(self, *, ended: bool, timeout: float | None = None) -> Ending: ...

    async def wait_for(
        self,
        *,
        state: WantedState | Iterable[WantedState] = (),
        text: str | re.Pattern[str] = "",
        port: int = 0,
        ended: bool = False,
        since: int | None = None,
        timeout: float | None = None,
    ) -> SessionState | str | Process | Ending:
        """Wait for one thing and give it back: a state or one of several ("prompt", "input",
        "secret", ...); a text on the screen or printed later (a regular expression in RE2's
        syntax, by lines; a compiled one of `re` is used as it is, and may block; with `since` only
        in the output from there on); a process that listens on a port; its end.

        Raises TimedOut after `timeout` seconds, and SessionEnded when it ends before that
        (SessionLost, which is one, when it was lost)."""
        if [bool(state), bool(text), bool(port), ended].count(True) != 1:
            raise InvalidArgument("wait for one of state, text, port, ended=True")
        if text:
            wanted = text_wait.pattern(text) if isinstance(text, str) else text
            found = text_wait.wait_for_text(self._link, self.id, wanted, since, observe=False)
            said = text if isinstance(text, str) else text.pattern
            return await _within(found, timeout, f"{said!r} in {self.name}")
        if port:
            listening = _listener(self, port)
            what = f"a process of {self.name} that listens on {port}"
            return await _within(listening, timeout, what)
        states = frozenset({SessionState.ENDED}) if ended else _states(state)
        what = "the end" if ended else f"the state {' or '.join(sorted(states))}"
        told = wait_for_state(self._link, self.id, states)
        event = await _within(told, timeout, f"{what} of {self.name}")
        if event.state not in states:
            raise session_over(self.name, event.ending, how="ended before that")
        return event.ending if ended and event.ending is not None else event.state

    # -- the turn -------------------------------------------------------------------------------

    def turn(
        self, message: str = "", timeout: float | None = None, *, hold_for: float = BLOCK_HOLD_S
    ) -> Turn:
        """Hold the turn while a block runs: `async with session.turn(): ...`. It is asked for with
        the message and waited for, at most so many seconds, and given back at the end. No pause
        takes it away meanwhile: it is held for `hold_for` seconds, and that is renewed in the
        background. A longer time (at most 3600) is for a program that stops its event loop; 0
        leaves it to the session's policy."""
        return Turn(self, self._link, self._held_turns, message, timeout, hold_for)

    async def rename(self, name: str) -> None:
        """Give it another name; its id stays, and so does every handle. Programs that run there
        keep the name they were started with in HOLDFAST_NAME."""
        shown = await self._link.ask(m.Rename(0, self.id, name), m.Shown)
        self.name = shown.info.name

    async def detach_terminals(self, *, others: bool = False) -> int:
        """Detach the terminals that are attached to it: your actor's own, and with the right to
        seize everybody's; `others`: all but the one used last. Gives how many were."""
        request = m.DetachTerminals(0, self.id, others)
        return (await self._link.ask(request, m.TerminalsDetached)).detached

    async def turn_state(self) -> TurnState:
        """Who holds the turn, and who waits for it."""
        return await self._turn(turn_messages.GetTurn(0, self.id))

    async def request_turn(self, message: str = "", *, hold_for: float = 0.0) -> TurnState:
        """Ask for the turn and come back at once: it may be yours then, or you wait for it. No
        pause takes it away for `hold_for` seconds (at most 3600), counted from when you have it."""
        return await self._turn(turn_messages.RequestTurn(0, self.id, message, hold_for))

    async def withdraw_turn(self) -> TurnState:
        """Wait for the turn no longer."""
        return await self._turn(turn_messages.WithdrawTurn(0, self.id))

    async def yield_turn(self) -> TurnState:
        """Give the turn up; the session's policy says who is next."""
        with self._held_turns.giving():
            return await self._turn(turn_messages.YieldTurn(0, self.id))

    async def hand_off(self, to: str, message: str = "") -> TurnState:
        """Give the turn to this actor, waiting for it or not."""
        with self._held_turns.giving():
            return await self._turn(turn_messages.HandOffTurn(0, self.id, to, message))

    async def grant_turn(self, to: str = "") -> TurnState:
        """Give the turn to one who waits for it; "" is the first of them."""
        with self._held_turns.giving():
            return await self._turn(turn_messages.GrantTurn(0, self.id, to))

    async def seize(self, *, halt: bool = False, only_actor: str = "", reason: str = "") -> Receipt:
        """Take the turn now, whoever holds it; with `halt` freeze everything in the session too,
        or with `only_actor` what that actor started."""
        request = turn_messages.Seize(0, self.id, halt, only_actor, reason)
        return (await self._link.ask(request, turn_messages.Halted)).receipt

    async def halt(self, *, only_actor: str = "", reason: str = "") -> Receipt:
        """Freeze everything in the session, or what one actor started in it."""
        request = turn_messages.Halt(0, self.id, only_actor, reason)
        return (await self._link.ask(request, turn_messages.Halted)).receipt

    async def resume(self) -> None:
        """Resume a halted session."""
        await self._link.ask(turn_messages.Resume(0, self.id), m.Done)

    # -- what was recorded ----------------------------------------------------------------------

    async def catch_up(self, since: int | None = None) -> Handoff:
        """What happened since your actor last looked, or since a journal record. An answer that is
        lost with the connection is asked for again: nothing of it is missed."""
        request = turn_messages.CatchUp(0, self.id, since, secrets.token_hex(8))
        return (await self._link.ask(request, turn_messages.CaughtUp)).handoff

    async def journal(self, since: int = 1, actor: str = "") -> AsyncGenerator[Entry, None]:
        """The entries recorded until now, from this sequence on; of one actor only, by name or
        id."""
        from holdfast.journal.encoding import decode

        more = True
        while more:
            shown = await self._link.ask(
                journal_messages.GetJournal(0, self.id, since), journal_messages.JournalShown
            )
            more = shown.more and bool(shown.records)
            for record in shown.records:
                entry = decode(record)
                since = entry.seq + 1
                if not actor or actor in (entry.actor, shown.names.get(entry.actor)):
                    yield entry

    async def blame(self, first: int = 1, last: int | None = None) -> tuple[BlameLine, ...]:
        """Lines of the scrollback with the command and actor that made each."""
        lines: list[BlameLine] = []
        while last is None or first <= last:
            blamed = await self._link.ask(
                journal_messages.Blame(0, self.id, first, last), journal_messages.Blamed
            )
            lines += blamed.lines
            first += len(blamed.lines)
            if not blamed.lines or first > blamed.total:
                break
        return tuple(lines)

    async def why(self, target: str) -> WhoIsBehind:
        """Who is behind something of the session: `var:PATH`, `alias:ls`, `cwd`, `pid:4711`,
        `port:8080`, `file:/tmp/x`, `line:12` of the scrollback, `command:3` ..."""
        request = gate_provenance.AskWhy(0, self.id, target)
        return (await self._link.ask(request, gate_provenance.WhyShown)).why

    async def adopt(self, target: str) -> WhoIsBehind:
        """Answer for it from now on, in place of those who are behind it."""
        request = gate_provenance.Adopt(0, self.id, target)
        return (await self._link.ask(request, gate_provenance.WhyShown)).why

    def forward(
        self, port: int, *, local: int | None = None, address: str = "127.0.0.1"
    ) -> PortForward:
        """Forward a port of the session's programs to this machine while a block runs:
        `async with session.forward(3000) as forward: ...`, where `forward.url` is the address here.
        `local`: at this port here; 0 is any; None: the same, or any if that one is taken. Whoever
        reaches `address` acts as you. A lost host is looked for again, and connections wait."""
        from holdfast.sdk.aio.port_forward import PortForward

        if not (0 < port < 1 << 16 and 0 <= (local or 0) < 1 << 16):
            raise InvalidArgument(
                f"not a port: {port if not 0 < port < 1 << 16 else local}",
                hint="give a number from 1 to 65535",
            )
        return PortForward(self._link.forwarder(self.id), port, local, address)

    # -- continuity -----------------------------------------------------------------------------

    async def checkpoint(self, note: str = "", *, end: bool = False) -> Checkpoint:
        """Write its processes to disk, with memory, files, terminal and pending input, and come
        back when that is safely stored. It is frozen for a moment (`frozen_ms`) and runs on;
        with `end` it does not run on: it is asleep until `Hold.restore`. If it cannot be done,
        CheckpointFailed says why, and the session runs on. Needs level movable, or a program that
        offers its own state, and the right `checkpoint`. Not repeated when the connection is
        lost: `Hold.checkpoints` says whether it was made."""
        request = checkpoints.MakeCheckpoint(0, self.id, end, note)
        return (await self._link.ask(request, checkpoints.CheckpointMade, once=True)).checkpoint

    async def can_move(self, to: str = "") -> Movability:
        """Whether it could be checkpointed and moved now: for each process what stands in the way
        or would be lost, why, and what would make it movable; with an estimate of how long it would
        be frozen. Nothing is touched. `to`: also whether this other host could take it, a machine
        you have joined or the path of a socket: its kernel, CRIU and the programs in use."""
        asked = preflight.CanMove(0, self.id, files=bool(to))
        found = (await self._link.ask(asked, preflight.CanMoveShown)).movability
        if not to:
            return found
        there = AsyncHostClient(machines.destination(to), "python", None)
        try:
            taking = await there.ask(preflight.CanTake(0, found.needs), preflight.CanTakeShown)
        finally:
            await there.close()
        target = taking.target.named(to)
        judged = preflight.CanMove(0, self.id, target=target)
        return (await self._link.ask(judged, preflight.CanMoveShown)).movability

    async def pin(self) -> None:
        """Keep it from being reaped, however long nobody uses it. `info().pinned` says so."""
        await self._link.ask(m.Pin(0, self.id, True), m.Shown)

    async def unpin(self) -> None:
        """Let it be reaped again when it is idle."""
        await self._link.ask(m.Pin(0, self.id, False), m.Shown)

    async def end(self) -> Ending:
        """End the session: hang up, then kill what remains. Gives its true ending."""
        try:
            ending = (await self._link.ask(m.End(0, self.id), m.Shown)).info.ending
        except SessionEnded:
            ending = (await self.info()).ending
        assert ending is not None
        return ending

    # -- common to several ----------------------------------------------------------------------

    async def _turn(self, request: m.Request) -> TurnState:
        shown = await self._link.ask(request, turn_messages.TurnShown)
        return TurnState(shown.turn, shown.yours)

    async def _offer(self, request: m.Submit | m.Input | m.Keys) -> int:
        async with self._held_turns.writing(), self._inputs.next() as seq:
            return (await client_machine.offer(self._link, request.replace(seq=seq))).offset

    async def _write(self, request: m.Request, *, once: bool = False) -> None:
        """A write that is no input: it is not numbered, so `once` is never sent twice."""
        async with self._held_turns.writing():
            try:
                await self._link.ask(request, m.Done, once=once)
            except HostLost as error:
                if not once:
                    raise
                raise InputUnknown(
                    "the host was lost before it said whether it was done", hint="look first"
                ) from error


def _retry_of(form: Mapping[str, Any]) -> ActionRetry:
    """Of a form that the host may have refused, and not for its retries."""
    try:
        return Action.parsed(form).retry
    except InvalidArgument:
        return ActionRetry()


def size_of(size: Size | tuple[int, int] | str) -> Size:
    if isinstance(size, str):
        return Size.parse(size)
    return size if isinstance(size, Size) else Size(*size).checked()


def _signal_number(number: int | str) -> int:
    if isinstance(number, int):
        return int(number)
    name = number.upper()
    try:
        return signals.Signals[name if name.startswith("SIG") else f"SIG{name}"]
    except KeyError:
        raise InvalidArgument(f"no signal is called {number[:40]!r}") from None


def _states(state: str | Iterable[str]) -> frozenset[SessionState]:
    try:
        return frozenset(map(SessionState, (state,) if isinstance(state, str) else state))
    except ValueError:
        raise InvalidArgument(
            f"no such state: {state!r}", hint=f"one of {', '.join(SessionState)}"
        ) from None


async def _within(work: Awaitable[T], timeout: float | None, what: str) -> T:
    """Raises TimedOut; whatever ran goes on."""
    try:
        return await asyncio.wait_for(work, timeout)
    except TimeoutError:
        raise TimedOut(
            f"{what} did not come within {timeout:g} s", hint="its state and screen tell why"
        ) from None


async def _listener(session: Session, number: int) -> Process:
    """The kernel has no event for it, so the graph is looked at, less and less often."""
    pause = PORT_FIRST_S
    while True:
        found = (await session.graph()).listening(number)
        if found is not None:
            return found
        await asyncio.sleep(pause)
        pause = min(PORT_MAX_S, pause * 1.5)
