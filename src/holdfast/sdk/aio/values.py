"""What calls of the SDK give back, where the model has no value for it already."""

from __future__ import annotations

from typing import Literal

from holdfast.model.checkpoint import CheckpointInfo
from holdfast.model.graph import Graph, Process
from holdfast.model.measured import ActionTrace
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import SessionState
from holdfast.model.turn_info import TurnInfo
from holdfast.sdk.client_core.output_reader import Piece as Piece
from holdfast.sdk.plain_text import plain

StateName = Literal[
    "working", "prompt", "input", "secret", "stopped", "halted", "ended", "asleep", "lost"
]

# To a program there is one kind of checkpoint: the host's own records of it stay with the host.
Checkpoint = CheckpointInfo

# What is waited for: a state, by its name or as the enum's member.
WantedState = StateName | SessionState


class Refusal(Record):
    """Why something was not done. Nothing of it was typed."""

    code: str  # one of docs/errors.md
    message: str
    hint: str = ""  # what to do next
    retryable: bool = False  # the same may succeed later


class Result(Record):
    """What became of one command line."""

    command: str
    status: int | None  # as the shell has it in $?; None when it did not run
    output_bytes: bytes  # as the program wrote it, escape sequences included
    duration_s: float
    seq: int  # journal sequence of the record that says it began; 0 when it did not
    cwd: str = ""  # where the shell was afterwards
    lost_bytes: int = 0  # of the output, at its beginning: rolled off, or more than is kept
    refused: Refusal | None = None
    held: Refusal | None = None  # it waits for approval still: it did not run yet

    @property
    def output(self) -> str:
        """The output as text: no escape sequences, lines end with a newline."""
        return plain(self.output_bytes)

    @property
    def ok(self) -> bool:
        """Whether it ran and ended with status 0."""
        return self.status == 0


class ActionResult(Record):
    """What became of one structured action."""

    trace: ActionTrace  # what was asked, decided, done and measured
    output_bytes: bytes  # as the program wrote it, escape sequences included

    @property
    def id(self) -> str:
        """Names the action: `Session.trace` shows it again."""
        return self.trace.id

    @property
    def output(self) -> str:
        """The output as text: no escape sequences, lines end with a newline."""
        return plain(self.output_bytes)

    @property
    def status(self) -> int | None:
        """Exit status; None when it is not known."""
        return self.trace.status

    @property
    def ok(self) -> bool:
        """Whether its status and everything else that it declared were met."""
        return self.trace.score is not None and self.trace.score.success is True

    @property
    def score(self) -> float | None:
        """From 0 to 1; None when its effects are not known."""
        return self.trace.score.score if self.trace.score is not None else None


class TurnState(Record):
    """The turn at one moment, and whether it is the asker's."""

    turn: TurnInfo
    yours: bool

    @property
    def holder(self) -> str:
        """Who holds it, by name; "" when nobody does."""
        return self.turn.holder_name


class HostPeer(Record):
    """The host at the other end, as it introduced itself."""

    name: str
    key: bytes  # it signs the journals of its sessions
    daemon_pid: int
    actor: str  # the actor this program acts as there, by name


class Cursor(Record):
    """Where the cursor is, from 0."""

    col: int
    row: int


class Screen(Record):
    """A session's screen as text, at one moment."""

    text: str
    cursor: Cursor
    size: Size
    title: str
    offset: int  # of the output that is on it: what is printed later begins there
    alternate: bool = False  # a full-screen program has it

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self.text.split("\n"))


class LiveGraph(Graph):
    """The live graph, with the question that is asked most."""

    def listening(self, port: int) -> Process | None:
        """The process of this session that listens on this TCP port; None when none does. Of
        several that share the socket, the one that has it from the others: the nearest to the
        root."""
        found = [each for each in self.processes if _listens(each, port)]
        return min(found, key=self._depth) if found else None

    def ports(self) -> dict[int, Process]:
        """Every TCP port a process of this session listens on."""
        numbers = {
            _port(socket.local)
            for process in self.processes
            for socket in process.sockets
            if socket.state == "listen" and socket.kind == "tcp"
        }
        return {number: who for number in sorted(numbers) if (who := self.listening(number))}

    def _depth(self, process: Process) -> int:
        parents = {each.pid: each.ppid for each in self.processes}
        depth, pid = 0, process.pid
        while pid in parents and depth <= len(parents):
            pid, depth = parents[pid], depth + 1
        return depth


def _listens(process: Process, port: int) -> bool:
    return any(
        socket.state == "listen" and socket.kind == "tcp" and _port(socket.local) == port
        for socket in process.sockets
    )


def _port(address: str) -> int:
    text = address.rpartition(":")[2]
    return int(text) if text.isdecimal() else -1
