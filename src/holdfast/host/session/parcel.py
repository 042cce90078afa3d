"""What the keeper holds of a session, so that a new daemon can carry it on: a small state blob and
descriptors. What changes with every byte is not here but in the session's shared memory
(adapters/session_memory). Names of fields are a format: an old daemon's deposit has them."""

from __future__ import annotations

import msgpack

from holdfast.adapters.session_memory.layout import DATA_AT, HEAD_AT
from holdfast.core.session import SavedGate
from holdfast.core.turn.machine import SavedTurn
from holdfast.host.session.command_leaves import SavedLeaves
from holdfast.host.session.lease_runner import SavedLeaseRun
from holdfast.host.session.state_since import SavedSince
from holdfast.keeper.protocol import RingPlace
from holdfast.model.checkpoint import Waking
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.info import CommandRecord
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.spec import Place
from holdfast.model.state import Level
from holdfast.ports.halt import Stopped


class SessionSpec(Record):
    """What does not change while an incarnation lives."""

    id: SessionId
    name: str
    uid: int
    user: str
    argv: tuple[str, ...]
    cwd: str
    level: Level
    epoch: int
    created_at: float
    place: Place
    shell: str  # bash, zsh, fish when it reports its commands, else ""
    is_shell: bool  # the main program is an interactive shell, reporting or not
    nonce: str
    labels: tuple[str, ...] = ()
    born_as: str = ""  # the identity its processes were started under, when that is another
    created_by: str = ""  # id of the actor that started it; empty when an earlier version did
    exact_line_key: bytes = b""  # typed in front of an exec; its shell has it from its start
    gate_keys: bool = False  # its shell has those of the gate, too
    checkpoint_every_s: float = 0.0  # seconds between checkpoints that nobody asks for; 0: none
    workspace: str = ""  # what policies call so; empty when an earlier version started it: its cwd
    capture: tuple[str, ...] = ()  # directories that are captured with its checkpoints

    @property
    def process_tag(self) -> SessionId:
        """What its processes have in their environment, and the name of its cgroup and FIFO."""
        return SessionId(self.born_as) if self.born_as else self.id


class SavedHalt(Record):
    """A halt in force: what has to be known to end it."""

    confirmed: bool  # the kernel said that everything has stopped
    stopped: tuple[Stopped, ...] = ()  # at level plain: the processes to continue
    standing: tuple[Stopped, ...] | None = None  # and those that had stopped before it


class SavedExec(Record):
    """One command line that somebody waits for, or may ask for again."""

    name: str  # by which it is known again (exec_runs.py)
    keyed: bool  # its asker gave it a key of its own
    operator: OperatorId  # who typed it, and as which input
    seq: int
    digest: str  # of the command line: another one is another act
    offset: int  # of the output when it was typed
    began: float  # by CLOCK_MONOTONIC, which outlives the daemon
    command: int | None = None  # the shell's number for it, when it began
    parsed: bool = True  # the shell understood the line
    journal_seq: int = 0  # of the record that it began
    seconds: float | None = None  # how long it took; None while it is not over
    status: int | None = None
    cwd: str = ""
    end_offset: int | None = None  # of the output when its end was reported
    failure: tuple[str, ...] = ()  # code, message and hint, when it came to no end
    action: str = ""  # id of the structured action that it carries out; measured when it is over
    measured: bool = False  # and that was recorded


class NestedShell(Record):
    """A shell that reports and was started in another one that does."""

    below: int  # the command line that started it
    pid: int  # as it sees itself
    kind: str


class StateBlob(Record):
    """The state blob in the keeper's custody."""

    spec: SessionSpec
    size: Size
    commands: tuple[CommandRecord, ...] = ()
    layer_seq: int = 0
    last_output_at: float | None = None
    turn: SavedTurn | None = None
    halt: SavedHalt | None = None  # while it is halted
    lease: SavedLeaseRun | None = None  # of a re-homeable session
    executions: tuple[SavedExec, ...] = ()
    leaves: SavedLeaves | None = None  # at level contained: which command each group is of
    provenance_to: int = 0  # the prompt up to which the file of the shell's originators is complete
    gate: SavedGate | None = None  # while something waits there
    since: SavedSince | None = None  # since when it is halted or fenced
    pinned: bool = False  # it is not reaped
    used_at: float | None = None  # when an actor last did something with it; None: not known
    asleep_in: str = ""  # the checkpoint with which the tree is being ended; empty: it is not
    waking: Waking = Waking()  # and what brings it back from there
    # who moved it here: an actor of this host, and what it was at the host before
    came_as: dict[str, str] = {}  # noqa: RUF012 (a record is frozen)
    shells: tuple[NestedShell, ...] = ()  # that report below the session's own, the outermost first

    def blob(self) -> bytes:
        data: bytes = msgpack.packb(self.pack())
        return data

    @classmethod
    def of_blob(cls, blob: bytes) -> StateBlob:
        return cls.unpack(msgpack.unpackb(blob))


class SessionFds(Record):
    """What is in custody, by name. `bell` is the shell's report FIFO; `gate` answers the session's
    system call filter, `gate_page` is its memory: -1 when there is none."""

    master: int
    pidfd: int
    ring: int
    output: int
    input: int
    bell: int = -1
    gate: int = -1
    gate_page: int = -1

    def named(self) -> dict[str, int]:
        return {name: fd for name, fd in self.pack().items() if fd >= 0}

    def ring_place(self, capacity: int) -> RingPlace:
        """Where the keeper puts output while no daemon runs."""
        return RingPlace("master", "ring", "output", DATA_AT, capacity, HEAD_AT)
