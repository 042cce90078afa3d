"""The API of the SDK for programs without async: the same names, each call waits.

    from holdfast import blocking

    with blocking.connect() as hold:
        print(hold.session("build").submit("make test").status)

Written by scripts/api-reference from the async classes (`sdk/aio`); do not edit. Every call runs in
the connection's own thread, so objects of one connection may be used from several threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from holdfast.model.graph import Process
from holdfast.model.info import BlameLine, HostInfo, SessionInfo
from holdfast.model.limits import RECONNECT_DEADLINE_S
from holdfast.model.size import Size
from holdfast.model.state import Ending, SessionState
from holdfast.model.turn_info import Handoff, Receipt
from holdfast.sdk import events as ev
from holdfast.sdk.aio import command_run as _command_run
from holdfast.sdk.aio import hold as _hold
from holdfast.sdk.aio import session as _session
from holdfast.sdk.aio import turn as _turn
from holdfast.sdk.aio.values import HostPeer, LiveGraph, Piece, Result, Screen, TurnState
from holdfast.sdk.loop_thread import LoopThread

if TYPE_CHECKING:
    from holdfast.journal.entries import Entry


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

    async def connected() -> _hold.Hold:
        return await _hold.connect(address, actor=actor, client=client, patience=patience)

    try:
        return Hold(thread, thread.wait(connected()))
    except BaseException:
        thread.close()
        raise


class Hold:
    """A host in reach. Made by `connect`."""

    def __init__(self, thread: LoopThread, of: _hold.Hold) -> None:
        self._thread, self._of = thread, of

    def __repr__(self) -> str:
        return repr(self._of)

    @property
    def host(self) -> HostPeer:
        return self._of.host

    def session(self, name: str) -> Session:
        """A session by name, by id, or by a unique beginning of its id. Raises NoSuchSession."""
        return Session(self._thread, self._thread.wait(self._of.session(name)))

    def sessions(self, *, ended: bool = False) -> tuple[SessionInfo, ...]:
        """The live sessions you may see; with `ended` also those that ended recently."""
        return self._thread.wait(self._of.sessions(ended=ended))

    def run(
        self,
        argv: Sequence[str] = (),
        *,
        name: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        size: Size | tuple[int, int] | str | None = None,
        labels: Sequence[str] = (),
        rehomeable: bool = False,
        level: str | None = None,
        user: str = "",
        predecessor: str = "",
    ) -> Session:
        """Start a session; an empty `argv` is your login shell. `env` is all of its environment;
        None: this program's own, when the host is on this machine. Not repeated when the
        connection is lost: it might start two, so HostLost says to look first."""
        return Session(
            self._thread,
            self._thread.wait(
                self._of.run(
                    argv,
                    name=name,
                    cwd=cwd,
                    env=env,
                    size=size,
                    labels=labels,
                    rehomeable=rehomeable,
                    level=level,
                    user=user,
                    predecessor=predecessor,
                )
            ),
        )

    def events(self, session: str = "") -> Generator[ev.Event, None, None]:
        """What happens to all sessions you may see, or to the one of this id: see
        `holdfast.events`. The present state of each comes first."""
        return self._thread.each(self._of.events(session))

    def host_info(self) -> HostInfo:
        """What the host is and can do."""
        return self._thread.wait(self._of.host_info())

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


class Session:
    """A handle on one session, by its id."""

    def __init__(self, thread: LoopThread, of: _session.Session) -> None:
        self._thread, self._of = thread, of

    def __repr__(self) -> str:
        return repr(self._of)

    @property
    def id(self) -> str:
        return self._of.id

    @property
    def name(self) -> str:
        return self._of.name

    @property
    def found(self) -> SessionInfo:
        return self._of.found

    def info(self) -> SessionInfo:
        """What it is and does now; of an ended session what its tombstone says."""
        return self._thread.wait(self._of.info())

    def submit(
        self,
        command: str,
        *,
        key: str = "",
        intent: str = "",
        timeout: float | None = None,
        raises: bool = True,
    ) -> Result:
        """Run one command line in the session's own shell, which must be at its prompt, and wait
        for its end."""
        return self._thread.wait(
            self._of.submit(command, key=key, intent=intent, timeout=timeout, raises=raises)
        )

    def start(self, command: str, *, key: str = "", intent: str = "") -> Running:
        """Begin one command line, as `submit`, and give a handle on it as soon as the shell has
        begun it. Its output can be read as it comes."""
        return Running(
            self._thread, self._thread.wait(self._of.start(command, key=key, intent=intent))
        )

    def type(self, text: str, *, enter: bool = False, secret: bool = False) -> int:
        """Type text, pasted as one piece where the program knows pastes. Gives the output offset
        at which it was taken: what is printed in answer comes behind it. A `secret` is refused
        unless the program reads it without echo: it would be shown, and recorded."""
        return self._thread.wait(self._of.type(text, enter=enter, secret=secret))

    def type_bytes(self, data: bytes) -> int:
        """Type bytes as they are."""
        return self._thread.wait(self._of.type_bytes(data))

    def keys(self, *keys: str) -> int:
        """Press named keys: "C-c", "Up", "Enter", "F5", "M-x", or characters."""
        return self._thread.wait(self._of.keys(*keys))

    def signal(self, number: int | str) -> None:
        """Send a signal, as signal.SIGINT or "INT", to the foreground process group."""
        return self._thread.wait(self._of.signal(number))

    def resize(self, size: Size | tuple[int, int] | str) -> None:
        """Set the canonical size: (columns, rows), "120x40" or a Size."""
        return self._thread.wait(self._of.resize(size))

    def screen(self, *, scrollback: bool = False) -> Screen:
        """The screen as text; with `scrollback` also the lines above it that are still held."""
        return self._thread.wait(self._of.screen(scrollback=scrollback))

    def output(self, since: int | None = None) -> Generator[Piece, None, None]:
        """Every byte it prints, from an offset on (of a Screen, a Piece, or 0), or from now on;
        until it ends. Goes on by itself after a lost connection, without a hole or a repeat; what
        is no longer held shows as `Piece.gap`."""
        return self._thread.each(self._of.output(since))

    def events(self) -> Generator[ev.Event, None, None]:
        """What happens to it (see `holdfast.events`), its present state first; until it ends."""
        return self._thread.each(self._of.events())

    def graph(self) -> LiveGraph:
        """Processes, terminal, files and sockets, as the kernel has them now."""
        return self._thread.wait(self._of.graph())

    @overload
    def wait_for(
        self, *, state: str | Iterable[str], timeout: float | None = None
    ) -> SessionState: ...

    @overload
    def wait_for(
        self, *, text: str | re.Pattern[str], since: int | None = None, timeout: float | None = None
    ) -> str: ...

    @overload
    def wait_for(self, *, port: int, timeout: float | None = None) -> Process: ...

    @overload
    def wait_for(self, *, ended: bool, timeout: float | None = None) -> Ending: ...

    def wait_for(
        self,
        *,
        state: str | Iterable[str] = (),
        text: str | re.Pattern[str] = "",
        port: int = 0,
        ended: bool = False,
        since: int | None = None,
        timeout: float | None = None,
    ) -> SessionState | str | Process | Ending:
        """Wait for one thing and give it back: a state or one of several ("prompt", "input",
        "secret", ...); a text on the screen or printed later (a regular expression, by lines; with
        `since` only in the output from there on); a process that listens on a port; its end."""
        wait_for: Callable[..., Coroutine[Any, Any, Any]] = self._of.wait_for
        work = wait_for(
            state=state, text=text, port=port, ended=ended, since=since, timeout=timeout
        )
        found: SessionState | str | Process | Ending = self._thread.wait(work)
        return found

    def turn(self, message: str = "", timeout: float | None = None) -> Turn:
        """Hold the turn while a block runs: `async with session.turn(): ...`. It is asked for with
        the message and waited for, at most so many seconds, and given back at the end."""
        return Turn(self._thread, self._of.turn(message, timeout))

    def turn_state(self) -> TurnState:
        """Who holds the turn, and who waits for it."""
        return self._thread.wait(self._of.turn_state())

    def request_turn(self, message: str = "") -> TurnState:
        """Ask for the turn and come back at once: it may be yours then, or you wait for it."""
        return self._thread.wait(self._of.request_turn(message))

    def withdraw_turn(self) -> TurnState:
        """Wait for the turn no longer."""
        return self._thread.wait(self._of.withdraw_turn())

    def yield_turn(self) -> TurnState:
        """Give the turn up; the session's policy says who is next."""
        return self._thread.wait(self._of.yield_turn())

    def hand_off(self, to: str, message: str = "") -> TurnState:
        """Give the turn to this actor, waiting for it or not."""
        return self._thread.wait(self._of.hand_off(to, message))

    def grant_turn(self, to: str = "") -> TurnState:
        """Give the turn to one who waits for it; "" is the first of them."""
        return self._thread.wait(self._of.grant_turn(to))

    def seize(self, *, halt: bool = False, only_actor: str = "", reason: str = "") -> Receipt:
        """Take the turn now, whoever holds it; with `halt` freeze everything in the session too,
        or with `only_actor` what that actor started."""
        return self._thread.wait(self._of.seize(halt=halt, only_actor=only_actor, reason=reason))

    def halt(self, *, only_actor: str = "", reason: str = "") -> Receipt:
        """Freeze everything in the session, or what one actor started in it."""
        return self._thread.wait(self._of.halt(only_actor=only_actor, reason=reason))

    def resume(self) -> None:
        """Let a halted session run on."""
        return self._thread.wait(self._of.resume())

    def catch_up(self, since: int | None = None) -> Handoff:
        """What happened since your actor last looked, or since a journal record. An answer that is
        lost with the connection is asked for again: nothing of it is missed."""
        return self._thread.wait(self._of.catch_up(since))

    def journal(self, since: int = 1, actor: str = "") -> Generator[Entry, None, None]:
        """The entries recorded until now, from this sequence on; of one actor only, by name or
        id."""
        return self._thread.each(self._of.journal(since, actor))

    def blame(self, first: int = 1, last: int | None = None) -> tuple[BlameLine, ...]:
        """Lines of the scrollback with the command and actor that made each."""
        return self._thread.wait(self._of.blame(first, last))

    def end(self) -> Ending:
        """End the session: hang up, then kill what remains. Gives its true ending."""
        return self._thread.wait(self._of.end())


class Running:
    """One command line. Made by `Session.start`."""

    def __init__(self, thread: LoopThread, of: _command_run.Running) -> None:
        self._thread, self._of = thread, of

    def __repr__(self) -> str:
        return repr(self._of)

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
    def output_offset(self) -> int | None:
        return self._of.output_offset

    @property
    def done(self) -> bool:
        """Whether its end is known here."""
        return self._of.done

    def result(self, timeout: float | None = None) -> Result:
        """Its end. Raises TimedOut after that many seconds; the command goes on then, and so does
        this handle."""
        return self._thread.wait(self._of.result(timeout))

    def output(self) -> Generator[Piece, None, None]:
        """What it prints, from its beginning on, as it comes; until it ends."""
        return self._thread.each(self._of.output())

    def printed(self) -> str:
        """What came of its output so far, as text."""
        return self._of.printed()

    def forget(self) -> None:
        """Follow it no longer. The command goes on in the session; its key still names it."""
        return self._of.forget()


class Turn:
    """Holding a session's turn. `lost` is set when it was taken away."""

    def __init__(self, thread: LoopThread, of: _turn.Turn) -> None:
        self._thread, self._of = thread, of

    def __repr__(self) -> str:
        return repr(self._of)

    @property
    def lost_to(self) -> str:
        return self._of.lost_to

    @property
    def reason(self) -> str:
        return self._of.reason

    @property
    def lost(self) -> bool:
        """Whether it was taken away."""
        return self._of.lost.is_set()

    def __enter__(self) -> Self:
        self._thread.wait(self._of.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._thread.wait(self._of.__aexit__(kind, error, None))
