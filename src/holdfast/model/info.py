"""What the host tells about a session and about itself. These fields are the stable ones of
`--json`; docs/cli.md documents each."""

from __future__ import annotations

from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState


class CommandRecord(Record):
    """One command line as the session's own shell reported it."""

    seq: int
    text: str
    cwd: str
    began_at: float
    began_offset: int
    status: int | None = None  # None while it runs
    ended_at: float | None = None
    ended_offset: int | None = None
    actor: str = ""  # who pressed Enter, by name
    authors: tuple[str, ...] = ()  # everybody who typed at that prompt, by name


class LeaseInfo(Record):
    """How a re-homeable session's lease stands."""

    state: str  # held, fenced (frozen until it is held again), taken (by another host, for good)
    length_s: float
    left_s: float  # for so long it may go on without a renewal
    later_epoch: int = 0  # taken: the other's epoch
    why: str = ""  # fenced though the lease is held: what stands in the way


class Attendee(Record):
    """An operator that is attached now."""

    actor: str  # its id
    name: str
    client: str  # the program, as it calls itself
    observe: bool  # it only watches
    since: float


class SessionInfo(Record):
    """A session at one moment."""

    id: SessionId
    name: str
    state: SessionState
    level: Level
    epoch: int
    user: str
    argv: tuple[str, ...]
    cwd: str  # of the main process now, as the kernel says; the starting one when unreadable
    size: Size
    created_at: float
    pid: int  # the main process, in the host's numbering; 0 when ended
    operators: int  # attached now
    observers: int  # of these, those that only watch
    output_offset: int  # bytes printed in the whole life of the session
    held_from: int  # oldest output offset still held
    last_output_at: float | None = None
    title: str = ""
    waiting_line: str = ""  # the prompt text when state is input or secret
    shell: str = ""  # bash, zsh, fish when its commands are reported
    last_command: CommandRecord | None = None
    ending: Ending | None = None
    ended_at: float | None = None
    labels: tuple[str, ...] = ()
    holder: str = ""  # who has the turn, by name; "" when it is free
    waiting: tuple[str, ...] = ()  # who waits for it, by name, first come first
    lease: LeaseInfo | None = None  # of a re-homeable session; None: it is pinned to its host
    present: tuple[Attendee, ...] = ()  # of the operators, the first ATTENDEES_NAMED that came
    unrecorded: str = ""  # why its journal does not have all that happened; "" when it does


class BlameLine(Record):
    """One line of the scrollback and where it came from."""

    number: int
    text: str
    actor: str  # by name; "" when no command ran
    command: int | None  # its number; None when no command ran
    command_text: str
    at: float | None  # when that command began


class Judgement(Record):
    """What is said of a session's journal: is it whole, how far, and is it one history."""

    session: str
    verdict: str  # intact, torn_tail, damaged
    status: str  # continuous, forked, unverifiable, migrated
    records: int  # whole and linked, from the first on
    seals: int
    bytes: int  # of all segments
    trustworthy_through: int  # the last entry that every link before it vouches for
    signed_through: int  # the last one that the host's signature covers
    broken_at: int | None = None  # the first entry that is not as it was written
    problem: str = ""  # its kind: altered, missing, reordered, foreign, truncated ...
    detail: str = ""  # for people to read
    torn_bytes: int = 0  # written behind the last whole entry and never completed
    gap_from: int = 0  # unverifiable or forked: the first entry not to be relied upon
    gap_to: int = 0  # the last one known to be missing or altered; 0: not known
    point: int = 0  # the first entry of the latest incarnation; 0: there was none before it
    epoch: int = 0  # of the latest incarnation seen
    closed_by: str = ""  # ended or discontinued; "" while it can go on
    discontinued: bool = False  # by a signed statement, in the journal or beside it
    reason: str = ""  # of the discontinuity
    discontinued_after: int = 0  # the last trustworthy entry, by that statement
    statement: str = ""  # where it stands: entry, beside; invalid: beside, and not to be believed
    predecessor: str = ""  # the session this one says it follows
    predecessor_seq: int = 0  # and after which of its entries
    predecessor_agrees: bool | None = None  # its journal has that entry; None: it is not here


class Finding(Record):
    """One line of `hold doctor`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


class RelayState(Record):
    """One relay of a host."""

    address: str  # its URL, with #sha256:… where one is given; "": not known yet
    source: str  # config: of config.toml; set: by `hold host`; own: the one this host runs itself
    reached: bool
    said: str  # for people: connected, or why not


class HostInfo(Record):
    """A host and what it can do."""

    version: str
    daemon_pid: int
    keeper_pid: int
    started_at: float  # of this daemon
    restarts: int  # of the daemon since the keeper began
    user: str
    level: Level
    home: str
    sessions: int
    findings: tuple[Finding, ...]
