"""What the host reports about a session and about itself. These are the stable fields of `--json`;
docs/cli.md documents each."""

from __future__ import annotations

from holdfast.model.discontinuity import DiscontinuityCause
from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState


class CommandRecord(Record):
    """One command line as the session's own shell reported it."""

    seq: int  # the shell's number for it, rising
    text: str  # the line, as typed; `(typed blind, not kept)` in place of one typed in a blind turn
    cwd: str  # working directory it began in
    began_at: float  # seconds since 1970
    began_offset: int  # output offset at its begin
    status: int | None = None  # exit status; null while it runs
    ended_at: float | None = None  # seconds since 1970; null while it runs
    ended_offset: int | None = None  # output offset at its end; null while it runs
    actor: str = ""  # who pressed Enter, by name; empty when nobody did
    authors: tuple[str, ...] = ()  # everybody who typed at that prompt, by name, the latest last


class LeaseInfo(Record):
    """The lease of a re-homeable session. While it is not `held`, the session is frozen, and
    everything that acts on it, `attach` included, fails with `fenced`; `halt` and `end` do not."""

    # `held`; `fenced` until the host holds it again, in a new epoch; `taken` by another host, for
    # good
    state: str
    length_s: float  # its length in seconds
    left_s: float  # seconds for which the session may go on without another renewal
    later_epoch: int = 0  # `taken`: the other host's epoch
    why: str = ""  # what keeps it `fenced` although the lease is held


class Residency(Record):
    """What a session costs, or all live ones together, as the kernel counts it."""

    # of its cgroup, with the files it keeps in memory; without one, the resident memory of its
    # processes, where pages that several share are counted for each
    memory_bytes: int = 0
    processes: int = 0  # its processes
    descriptors: int = 0  # descriptors that they have open
    disk_bytes: int = 0  # its directory: journal, and what was held of its output when it ended


class InFlightInput(Record):
    """An input that was recorded shortly before a session was lost."""

    seq: int  # number of its record in the journal
    at: float  # seconds since 1970
    actor: str  # who sent it, by name
    # as it was typed, cut to `IN_FLIGHT_TEXT_CHARS`; empty when it was secret
    text: str
    bytes: int  # its size; of a secret input this is all that is recorded


class InFlight(Record):
    """What was under way when a session was lost, as far as its journal has it. Nothing of it is
    known to have completed, or to have taken effect at all."""

    command: CommandRecord | None = None  # the command that ran; null when none did
    inputs: tuple[InFlightInput, ...] = ()  # the last inputs, the latest last
    # text typed after the last command and not submitted, cut to `IN_FLIGHT_TEXT_CHARS`
    unsubmitted: str = ""
    unsubmitted_by: tuple[str, ...] = ()  # who typed it, by name, the latest last


class HeldLine(Record):
    """What waited for approval when a session was lost. It was not done."""

    id: str  # the approval's id
    text: str  # exactly what would have been done
    actor: str  # who set it off, by name


class Attendee(Record):
    """An operator that is attached now."""

    actor: str  # id of its actor
    name: str  # that actor's name
    client: str  # the program, as it calls itself
    observe: bool  # it only watches
    since: float  # seconds since 1970


class LastKnown(Record):
    """A lost session as its host last wrote it down, some seconds before. The output and the screen
    of that moment are those of `hold tail` and `hold screen`."""

    at: float  # when that was, seconds since 1970
    state: SessionState  # what it did then
    cwd: str  # working directory of its main process
    # names of exported variables that its shell had set, changed or removed since its start
    environment: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()  # its shell's jobs at its last prompt: `running sleep 100`
    held: tuple[HeldLine, ...] = ()  # what waited for approval
    present: tuple[Attendee, ...] = ()  # who was attached, first come first
    holder: str = ""  # who had the turn, by name; empty when it was free


class MigrationInfo(Record):
    """The latest move of a session, at one of its two hosts."""

    # `snapshot`, `transfer`, `restore`, `replay`, `cutover` or `complete`; empty when it is over
    phase: str
    state: str  # where this end is, in its own words (docs/migration.md)
    leaves: bool  # it leaves this host; else it comes
    host: str  # the other host
    reason: str = ""  # why it was rolled back; empty when it was not


class SessionInfo(Record):
    """A session at one moment."""

    # its identity: 26 digits of Crockford's base 32 in lower case, derived from its public key
    id: SessionId
    name: str  # its name
    state: SessionState  # what it does
    level: Level  # level it was started at
    epoch: int  # number of this incarnation; only rises
    user: str  # unix user it runs as
    argv: tuple[str, ...]  # what was asked to run
    # working directory of the main process now, as the kernel says; the first one when unreadable
    cwd: str
    size: Size  # canonical size
    created_at: float  # seconds since 1970
    pid: int  # main process in the host's numbering; 0 when ended
    operators: int  # attached now
    observers: int  # of these, those that only watch
    output_offset: int  # bytes printed in its whole life
    held_from: int  # oldest output offset still held
    last_output_at: float | None = None  # seconds since 1970; null when this daemon saw none
    title: str = ""  # title the program set
    waiting_line: str = ""  # prompt text when state is `input` or `secret`
    shell: str = ""  # `bash`, `zsh` or `fish` when its commands are reported
    last_command: CommandRecord | None = None  # the latest reported command
    ending: Ending | None = None  # how it ended; null while it lives
    ended_at: float | None = None  # seconds since 1970; null while it lives
    labels: tuple[str, ...] = ()  # its labels
    holder: str = ""  # who has the turn, by name; empty when it is free
    waiting: tuple[str, ...] = ()  # who waits for it, by name, first come first
    lease: LeaseInfo | None = None  # of a re-homeable session; null: it is pinned to its host
    present: tuple[Attendee, ...] = ()  # who is attached, first come first; of many the first 64
    # why its journal does not have everything that happened; empty when it has
    unrecorded: str = ""
    keeper_pid: int = 0  # process id of its keeper, whose death ends it; 0 when ended
    # when journal and output of the ended session were removed from disk, seconds since 1970; null
    # while they are there
    pruned_at: float | None = None
    # of a lost session: what was under way; null of any other, and when its journal is unreadable
    in_flight: InFlight | None = None
    # when somebody acknowledged that it was lost, seconds since 1970; null while nobody has
    acknowledged_at: float | None = None
    acknowledged_by: str = ""  # who did, by name
    # what it costs now; null unless it was asked for: by `show`, and by `list` with `residency`
    residency: Residency | None = None
    # the directory that policies of the gate call its workspace; empty of what ended long ago
    workspace: str = ""
    # a full-screen program (an editor, a pager, `top`) reads keys: `state` is `input`, but it is in
    # use and asks nothing
    full_screen: bool = False
    # why policies of the gate judge only its lines, and not what its programs execute and write;
    # empty when they judge that too, and of what has ended
    ungated: str = ""
    # who counts as having shaped the shell, by name, because it waits at a prompt that it did not
    # report; empty while it reports
    shaped_by: tuple[str, ...] = ()
    # id of the approval that a line waits for, see `hold approvals`; empty when none does
    held: str = ""
    # since when it is halted, fenced or stopped, seconds since 1970; null in other states, which
    # `last_command` and `last_output_at` date, and where nobody saw it begin
    state_since: float | None = None
    pinned: bool = False  # `hold pin`: it is not reaped, however long nobody uses it
    # of a session that was lost with its host: how it last was; null when nothing was written down
    last_known: LastKnown | None = None
    # how many trees of it there are: `pre-migration`, `transferring`, `dual-active`, `post-cutover`
    # or `settled` (docs/migration.md)
    superposition: str = "pre-migration"
    migration: MigrationInfo | None = None  # its latest move since this daemon began; null: none


class PrunedSession(Record):
    """An ended session that was removed from disk, or would be."""

    id: SessionId  # its id
    name: str  # its name
    ended_at: float  # seconds since 1970
    bytes: int  # what that frees
    why: str  # `age`: it ended longer ago than `retention_days`; `size`: all use too much together


class IdleSession(Record):
    """A live session that nobody has used for longer than its level's threshold."""

    id: SessionId  # its id
    name: str  # its name
    level: Level  # its level
    idle_since: float  # seconds since 1970
    # what becomes of it: `evict` (checkpointed, then asleep), `end`, or `keep`: nothing, `why` says
    # what would have to change
    action: str
    why: str  # for people; of one that could not be reaped the reason of that
    reaped: bool  # it was evicted or ended by this request


class BlameLine(Record):
    """One line of the scrollback and where it came from."""

    number: int  # from 1, the oldest line held
    text: str  # the line
    actor: str  # who pressed Enter for its command, by name; empty when no command ran
    command: int | None  # the command's number; null when no command ran
    command_text: str  # its command line
    at: float | None  # when the command began, seconds since 1970; null when no command ran
    trigger: str = ""  # the same as `actor`
    originators: tuple[str, ...] = ()  # everybody behind the command, by name, that one first


class Judgement(Record):
    """What is known of a session's journal."""

    session: str  # id of the session
    # `intact`, `torn_tail` (the last record is incomplete, as after a loss of power), `damaged`, or
    # `pruned` (it was removed from disk; what is told of it is what the host signed then)
    verdict: str
    # the history in one word: `continuous`, `forked` (the host signed two), `unverifiable`
    # (something is missing or altered) or `migrated` (unbroken, over more than one host)
    status: str
    records: int  # number of the last record that is whole and linked
    seals: int  # seals that hold
    bytes: int  # size of all segments read
    trustworthy_through: int  # up to this record every link is right
    signed_through: int  # up to this record nobody without the host's key can have changed anything
    # first record that is not as it was written; null when there is none
    broken_at: int | None = None
    # what is wrong at the first broken place, as in journal.md: `altered`, `missing`, `reordered`,
    # `foreign`, `truncated`, `bad_signature`, `headless`, `forked` or `extended`; empty when
    # nothing is
    problem: str = ""
    detail: str = ""  # for people
    torn_bytes: int = 0  # with `torn_tail`: bytes after the last whole record
    gap_from: int = 0  # with `unverifiable` or `forked`: the first record that cannot be relied on
    gap_to: int = 0  # the last one known to be missing or altered; 0 when the end is not known
    point: int = 0  # the first record of the latest incarnation; 0 when there was none before it
    epoch: int = 0  # of the latest incarnation seen
    closed_by: str = ""  # `ended` or `discontinued`; empty while the journal can go on
    # a signed statement, in the journal or beside it, says that the history ends here for good
    discontinued: bool = False
    reason: str = ""  # of the discontinuity, for people
    cause: DiscontinuityCause | None = None  # the same for programs; null when there is none
    discontinued_after: int = 0  # the last trustworthy record, by that statement
    # where that statement is: `entry`, `beside`, or `invalid` for one beside that cannot be
    # believed; empty when there is none
    statement: str = ""
    predecessor: str = ""  # id of the session this one says it follows
    predecessor_seq: int = 0  # the record of that session after which it begins
    # that session's journal has the record named; null when it is not on this host
    predecessor_agrees: bool | None = None


class Finding(Record):
    """One thing a host found out about itself."""

    name: str  # what was looked at
    ok: bool  # whether it is as it should be
    detail: str  # what was found
    remedy: str = ""  # command or action that would help; may be empty


class RelayState(Record):
    """One relay of a host, which is connected to all of them at once."""

    # its URL as others dial it, with `#sha256:…` where a fingerprint is given; empty: not known yet
    address: str
    # `config`: of config.toml; `set`: by `set_relays`; `own`: the one the host runs itself
    source: str
    reached: bool  # whether the host is there now
    said: str  # for people: `connected`, or why not


class HostInfo(Record):
    """A host and what it can do."""

    version: str  # version of the program
    daemon_pid: int  # process id of the daemon
    supervisor_pid: int | None  # process id of the supervisor; null: it was lost a moment ago
    relay_pid: int | None  # process id of its own relay; null: it runs none
    started_at: float  # when this daemon started, seconds since 1970
    restarts: int  # how often the supervisor restarted the daemon
    user: str  # unix user it runs as
    level: Level  # highest level it gives
    home: str  # its state directory
    sessions: int  # live sessions
    findings: tuple[Finding, ...]  # what it found out about itself
    # what all live sessions cost together; null unless it was asked for
    residency: Residency | None = None
