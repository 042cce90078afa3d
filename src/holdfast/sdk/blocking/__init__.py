"""The API of the SDK for programs without async: the same names, each call waits.

    from holdfast import blocking

    with blocking.connect() as hold:
        print(hold.session("build").submit("make test").status)

Every call runs in the connection's own thread, so objects of one connection may be used from
several threads. What each call does is said once, at the async one (`sdk/aio`, docs/sdk.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, overload

from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.graph import Process
from holdfast.model.info import SessionInfo
from holdfast.model.limits import RECONNECT_DEADLINE_S
from holdfast.model.restore import RestoreReport
from holdfast.model.state import Ending, SessionState
from holdfast.sdk.aio import command_run, hold, port_forward, session, turn
from holdfast.sdk.aio.values import HostPeer, Piece, WantedState
from holdfast.sdk.blocking.face import Face, LoopThread, iterates, waits, waits_for


def connect(
    address: str | None = None,
    *,
    actor: str | None = None,
    client: str = "python",
    patience: float = RECONNECT_DEADLINE_S,
) -> Hold:
    """A host, reached: `with blocking.connect() as hold:`, or without `with` and `hold.close()`
    later. As `holdfast.connect`."""
    thread = LoopThread()

    async def connected() -> hold.Hold:
        return await hold.connect(address, actor=actor, client=client, patience=patience)

    try:
        return Hold(thread, thread.wait(connected()))
    except BaseException:
        thread.close()
        raise


class Turn(Face[turn.Turn]):
    """Holding a session's turn. `lost` is true when it was taken away."""

    @property
    def lost(self) -> bool:
        """Whether it was taken away."""
        return self._of.lost.is_set()

    @property
    def lost_to(self) -> str:
        return self._of.lost_to

    @property
    def reason(self) -> str:
        return self._of.reason

    def __enter__(self) -> Self:
        self._thread.wait(self._of.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._thread.wait(self._of.__aexit__(kind, error, None))


class PortForward(Face[port_forward.PortForward]):
    """A port that is forwarded. Made by `Session.forward`."""

    wait = waits(port_forward.PortForward.wait)

    @property
    def address(self) -> str:
        return self._of.address

    @property
    def port(self) -> int:
        return self._of.port

    @property
    def refused(self) -> str:
        return self._of.refused

    @property
    def url(self) -> str:
        """The address here as that of a web page."""
        return self._of.url

    def __enter__(self) -> Self:
        self._thread.wait(self._of.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._thread.wait(self._of.__aexit__(kind, error, None))


class Running(Face[command_run.Running]):
    """One command line. Made by `Session.start`."""

    result = waits(command_run.Running.result)
    output = iterates(command_run.Running.output)
    interrupt = waits(command_run.Running.interrupt)
    kill = waits(command_run.Running.kill)

    @property
    def command(self) -> str:
        return self._of.command

    @property
    def key(self) -> str:
        return self._of.key

    @property
    def seq(self) -> int:
        return self._of.seq

    @property
    def action_id(self) -> str:
        return self._of.action_id

    @property
    def output_offset(self) -> int | None:
        return self._of.output_offset

    @property
    def held(self) -> ApprovalInfo | None:
        """What it waits for, if a policy holds it; None once it has begun."""
        return self._of.held

    @property
    def done(self) -> bool:
        """Whether its end is known here."""
        return self._of.done

    def printed(self) -> str:
        """What came of its output so far, as text."""
        return self._of.printed()

    def printed_bytes(self) -> bytes:
        """The same as the program wrote it."""
        return self._of.printed_bytes()

    def printed_since(self, offset: int) -> list[Piece]:
        """What came of it from an offset of the session's output on."""
        return self._of.printed_since(offset)

    @property
    def printed_from(self) -> int | None:
        """The session's output offset of the first byte that came; None: nothing has yet."""
        return self._of.printed_from

    def forget(self) -> None:
        """Follow it no longer. The command goes on in the session; its key still names it."""
        self._thread.call(self._of.forget)


class Session(Face[session.Session]):
    """A handle on one session, by its id."""

    info = waits(session.Session.info)
    submit = waits(session.Session.submit)
    start = waits_for(Running, session.Session.start)
    running = waits_for(Running, session.Session.running)
    act = waits(session.Session.act)
    begin_act = waits_for(Running, session.Session.begin_act)
    trace = waits(session.Session.trace)
    type = waits(session.Session.type)
    type_bytes = waits(session.Session.type_bytes)
    keys = waits(session.Session.keys)
    signal = waits(session.Session.signal)
    resize = waits(session.Session.resize)
    screen = waits(session.Session.screen)
    output = iterates(session.Session.output)
    events = iterates(session.Session.events)
    graph = waits(session.Session.graph)
    rename = waits(session.Session.rename)
    detach_terminals = waits(session.Session.detach_terminals)
    turn_state = waits(session.Session.turn_state)
    request_turn = waits(session.Session.request_turn)
    withdraw_turn = waits(session.Session.withdraw_turn)
    yield_turn = waits(session.Session.yield_turn)
    hand_off = waits(session.Session.hand_off)
    grant_turn = waits(session.Session.grant_turn)
    seize = waits(session.Session.seize)
    halt = waits(session.Session.halt)
    resume = waits(session.Session.resume)
    catch_up = waits(session.Session.catch_up)
    journal = iterates(session.Session.journal)
    blame = waits(session.Session.blame)
    why = waits(session.Session.why)
    adopt = waits(session.Session.adopt)
    checkpoint = waits(session.Session.checkpoint)
    can_move = waits(session.Session.can_move)
    pin = waits(session.Session.pin)
    unpin = waits(session.Session.unpin)
    end = waits(session.Session.end)

    @property
    def id(self) -> str:
        return self._of.id

    @property
    def name(self) -> str:
        return self._of.name

    @property
    def found(self) -> SessionInfo:
        return self._of.found

    @property
    def restored(self) -> RestoreReport | None:
        """What was restored, if `Hold.restore` made this handle."""
        return self._of.restored

    def turn(
        self,
        message: str = "",
        timeout: float | None = None,
        *,
        hold_for: float = turn.BLOCK_HOLD_S,
    ) -> Turn:
        """Hold the turn while a block runs: `with session.turn(): ...`. It is asked for with the
        message and waited for, at most so many seconds, and given back at the end. No pause takes
        it away meanwhile."""
        return Turn(self._thread, self._of.turn(message, timeout, hold_for=hold_for))

    def forward(
        self, port: int, *, local: int | None = None, address: str = "127.0.0.1"
    ) -> PortForward:
        """Forward a port of the session's programs to this machine while a block runs:
        `with session.forward(3000) as forward: ...`, where `forward.url` is the address here."""
        return PortForward(self._thread, self._of.forward(port, local=local, address=address))

    # An overloaded method: its signatures cannot be carried over.
    @overload
    def wait_for(
        self, *, state: WantedState | Iterable[WantedState], timeout: float | None = None
    ) -> SessionState: ...
    @overload
    def wait_for(
        self, *, text: str | re.Pattern[str], since: int | None = None, timeout: float | None = None
    ) -> str: ...
    @overload
    def wait_for(self, *, port: int, timeout: float | None = None) -> Process: ...
    @overload
    def wait_for(self, *, ended: bool, timeout: float | None = None) -> Ending: ...
    def wait_for(self, **wanted: Any) -> SessionState | str | Process | Ending:
        """Wait for one thing and give it back: a state or one of several ("prompt", "input",
        "secret", ...); a text on the screen or printed later (a regular expression in RE2's
        syntax, by lines; with `since` only in the output from there on); a process that listens on
        a port; its end."""
        found: SessionState | str | Process | Ending
        found = self._thread.wait(self._of.wait_for(**wanted))
        return found


class Hold(Face[hold.Hold]):
    """A host in reach. Made by `connect`."""

    session = waits_for(Session, hold.Hold.session)
    sessions = waits(hold.Hold.sessions)
    acknowledge = waits(hold.Hold.acknowledge)
    revive = waits_for(Session, hold.Hold.revive)
    checkpoints = waits(hold.Hold.checkpoints)
    restore = waits_for(Session, hold.Hold.restore)
    approvals = waits(hold.Hold.approvals)
    approve = waits(hold.Hold.approve)
    deny = waits(hold.Hold.deny)
    run = waits_for(Session, hold.Hold.run)
    events = iterates(hold.Hold.events)
    host_info = waits(hold.Hold.host_info)
    score = waits(hold.Hold.score)

    def wait_any(
        self,
        sessions: Iterable[Session],
        *,
        state: WantedState | Iterable[WantedState] = (),
        text: str = "",
        ended: bool = False,
        timeout: float | None = None,
    ) -> tuple[Session, SessionState | str | Process | Ending]:
        """Wait for one of several sessions, as `Session.wait_for` does for one; gives the first,
        and what was found."""
        faces = {each._of: each for each in sessions}
        first, found = self._thread.wait(
            self._of.wait_any(faces, state=state, text=text, ended=ended, timeout=timeout)
        )
        return faces[first], found

    @property
    def host(self) -> HostPeer:
        return self._of.host

    @property
    def is_here(self) -> bool:
        """Whether the host is on this machine."""
        return self._of.is_here

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave. Sessions carry on."""
        try:
            self._thread.wait(self._of.close())
        finally:
            self._thread.close()
