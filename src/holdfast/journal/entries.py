"""What can be recorded. A new kind of entry is a new `Body` subclass with a tag, nothing else; each
field has a one-line comment, because records outlive the program that wrote them.

Not here: encoding (encoding.py), when to record (host), links (chain.py).
"""

from __future__ import annotations

from holdfast.model.discontinuity import DiscontinuityCause
from holdfast.model.gate import Contributor
from holdfast.model.measured import ActionScore, Deviation, Effects
from holdfast.model.record import Record
from holdfast.model.restore import PeerReset, RestorePhase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

HOST = ""  # the actor of what the host does by itself
BY_TAG: dict[str, type[Body]] = {}  # every kind of entry this version knows


class Body(Record):
    """What happened. `tag` is its name in the journal. `lifecycle` entries are sealed at once;
    after one that is in MAY_FOLLOW only the entries listed there may follow."""

    tag: ClassVar[str] = ""
    lifecycle: ClassVar[bool] = False

    def __init_subclass__(cls, *, tag: str = "", lifecycle: bool = False) -> None:
        cls.tag, cls.lifecycle = tag, lifecycle
        if tag:
            BY_TAG[tag] = cls


class UnknownEntry(Body):
    """An entry of a kind this version does not know, or in a form it does not know."""

    kind: str
    packed: bytes  # the body as stored in the journal


# -- the life of a session --------------------------------------------------------------------


class Began(Body, tag="began", lifecycle=True):
    """Which session this is, and which host writes its journal from here on: the first entry, and
    the first one of each other host that the session came to."""

    session: str
    session_key: bytes  # public; the id is derived from it
    host_key: bytes  # public; it signs the seals
    binding: bytes  # the session key's signature over session and host key
    name: str
    argv: tuple[str, ...]
    level: str
    user: str
    labels: tuple[str, ...] = ()
    predecessor: str = ""  # the discontinued session this one follows
    predecessor_seq: int = 0  # how far that one's journal is trustworthy
    predecessor_hash: bytes = b""  # and the hash of its entry there
    cols: int = 0  # of the terminal at the beginning; 0: not recorded
    rows: int = 0


class CarriedOn(Body, tag="carried_on", lifecycle=True):
    """A new daemon took over; the incarnation is the same."""

    daemon_pid: int
    holder: str = ""  # the turn holder, as it was saved


class TailCut(Body, tag="tail_cut", lifecycle=True):
    """A torn tail was cut at opening: so many bytes of incomplete records."""

    size: int


class EndAskedEntry(Body, tag="end_asked", lifecycle=True):
    """The actor asked for the session to end."""


class EndedEntry(Body, tag="ended", lifecycle=True):
    """The main process ended: by exit `code`, by `signal`, or `lost` says how it was lost."""

    code: int | None = None
    signal: int | None = None
    lost: str | None = None


class Discontinued(Body, tag="discontinued", lifecycle=True):
    """The journal ends here for good, although the session did not end (N9)."""

    reason: str
    last_seq: int  # the last trustworthy entry
    last_hash: bytes  # and its hash
    cause: DiscontinuityCause | None = None  # the reason for programs; None: an older version's


class SealEntry(Body, tag="sealed"):
    """The host vouches for all records from `from_seq` up to this one."""

    from_seq: int
    digest: bytes  # SHA-256 over those records as they are framed on disk
    signature: bytes  # by the host key, over this entry with the signature left empty


# -- operators --------------------------------------------------------------------------------


class AttachedEntry(Body, tag="attached"):
    """An operator attached."""

    operator: str
    client: str  # kind of client, for people to read
    observe: bool
    offset: int  # of the output at that moment
    gap_s: float = 0.0  # how long it had been away
    pid: int = 0  # the main process, in the host's numbering; 0: not recorded
    held: int = 0  # bytes of output that were held
    rolled_off: int = 0  # bytes of output that were no longer


class DetachedEntry(Body, tag="detached"):
    """An operator detached."""

    operator: str


class DetachedByEntry(Body, tag="detached_by"):
    """The actor detached this operator's terminal; its `detached` follows."""

    operator: str


class Renamed(Body, tag="renamed", lifecycle=True):
    """The session has another name; its id is the same."""

    before: str
    name: str


class PinnedEntry(Body, tag="pinned"):
    """The actor had the session kept from being reaped, or no longer."""

    pinned: bool


class ReapWarnedEntry(Body, tag="reap_warned"):
    """Nobody uses the session; the host's policy will do something about it."""

    action: str  # `evict` or `end`
    why: str  # for people
    idle_since: float
    at: float  # when


class ReapedEntry(Body, tag="reaped", lifecycle=True):
    """The host's policy, or whoever asked it to, has the idle session evicted or ended. What came
    of it follows."""

    action: str  # `evict` or `end`
    why: str  # for people
    idle_since: float


class RevivedEntry(Body, tag="revived", lifecycle=True):
    """The actor had this session started to follow a lost one (`began.predecessor`), with what was
    on disk of that one."""

    predecessor: str
    cwd: str  # it began there
    environment: bool  # it began with the environment of that one's last prompt, not of its start
    policies: int = 0  # policies for that session alone that count here now
    envelopes: int = 0  # envelopes for that session alone that count here now
    left_behind: tuple[str, ...] = ()  # what did not come back, for people


class InputEntry(Body, tag="input"):
    """Bytes for the terminal. One entry may hold several inputs of one operator, in order."""

    operator: str
    seq: int  # the operator's own number of the first input in here
    last_seq: int  # and of the last
    form: str  # keys, paste, submit, exec, answer
    data: bytes
    offset: int  # of the output at that moment


class BlindInput(Body, tag="blind_input"):
    """Secret keystrokes: how many, and nothing else."""

    operator: str
    seq: int
    last_seq: int
    size: int


class Voided(Body, tag="voided"):
    """Inputs recorded before, which never reached the terminal: the daemon died in between."""

    operator: str
    seq: int
    last_seq: int


class RefusedEntry(Body, tag="refused"):
    """A refused request of an operator; repeated ones are one entry."""

    operator: str
    what: str  # the kind of request
    code: str  # of the error it got
    count: int = 1
    size: int = 0  # bytes refused in all


class Unrecorded(Body, tag="unrecorded"):
    """What the actor did while it could not be recorded: so many entries of one kind that were
    never written."""

    what: str  # the kind of entry
    count: int
    since: float  # when the first of them would have been


class Resized(Body, tag="resized"):
    """The canonical size changed."""

    cols: int
    rows: int
    offset: int | None = None  # of the output at that moment


class Signalled(Body, tag="signalled"):
    """A signal for the foreground process group."""

    signal: int


class ForwardedEntry(Body, tag="forwarded"):
    """Connections to a port of the session's programs were opened: one, or so many since the entry
    before it of this actor and port."""

    operator: str  # of the first of them
    port: int
    process: str  # the name of the process that listened there
    count: int = 1


# -- the gate -----------------------------------------------------------------------------------


class JudgedEntry(Body, tag="judged"):
    """A policy judged what the actor is about to do. One that is allowed has its effect next."""

    kind: str  # of the effect: `line`, `input`, `signal`, ...
    text: str  # exactly what the shell was about to take; empty when it is not known, or secret
    outcome: str  # `allow`, `refuse` or `hold`
    reason: str  # the policy's own words
    policy: str  # where the rule is
    contributors: tuple[Contributor, ...] = ()  # who had a part in it, the actor first
    text_known: bool = True
    approved_by: tuple[str, ...] = ()  # actors who had approved this very effect
    # of a program, or of a file that is opened: its arguments (the first 4,000 characters, whole
    # words), and its path
    argv: tuple[str, ...] = ()
    path: str = ""
    cwd: str = ""  # where it would happen; empty when it was not recorded


class ApprovalAskedEntry(Body, tag="approval_asked"):
    """What was judged last is held until enough others approve."""

    id: str
    kind: str
    text: str
    quorum: int  # so many must approve
    approvers: tuple[str, ...]  # names or kinds; empty: everybody with the right
    expires_at: float


class ApprovedEntry(Body, tag="approved"):
    """The actor approved it."""

    id: str
    note: str
    saw: str  # what was shown to the actor when it decided, as JSON
    enough: bool  # with it as many have as must


class DeniedEntry(Body, tag="denied"):
    """The actor denied it."""

    id: str
    note: str
    saw: str


class ApprovalOverEntry(Body, tag="approval_over"):
    """Nobody decided: it `expired`, or was `withdrawn`."""

    id: str
    how: str


# -- commands ---------------------------------------------------------------------------------


class Intended(Body, tag="intended"):
    """The actor's own statement of what its next command line is for; not verified."""

    text: str


class ActionEntry(Body, tag="action"):
    """The actor's next command line is a structured action: what it declared, before it is typed.
    What came of it follows as ActionMeasured."""

    action: str  # id of the action
    operator: str
    seq: int  # the operator's own number of the input that types it
    declared: str  # the action in its JSON form, see action-schema.json
    retried: tuple[str, ...] = ()  # codes of the refusals after which it was tried again


class ActionMeasured(Body, tag="action_measured"):
    """What an action did, as the host measured it, against what it declared."""

    action: str  # id of the action
    number: int  # the shell's number for its command; 0: it began none that is known
    status: int | None  # exit status; None: not known
    seconds: float | None  # how long the command took; None: not known
    latency_s: float  # from the request until it was measured
    score: ActionScore
    effects: Effects | None = None  # None: not measured
    missing: tuple[Deviation, ...] = ()  # declared, and not found
    unexpected: tuple[Deviation, ...] = ()  # found, and not declared
    code: str = ""  # of the error, when it came to no end
    message: str = ""  # what that error says, or why nothing was measured


class CommandBegan(Body, tag="command_began"):
    """The session's shell began a command."""

    number: int
    text: str
    cwd: str
    offset: int  # where its output begins
    authors: tuple[str, ...]  # actors whose input the command line was made of
    # everybody behind it: the actors above, and those behind the state that it used
    originators: tuple[str, ...] = ()
    # that state, of the latest few: `KEY@COMMAND`, as `var:PATH@3`, and which command had set it
    uses: tuple[str, ...] = ()


class CommandEnded(Body, tag="command_ended"):
    """The session's shell reported how it ended."""

    number: int
    status: int
    cwd: str
    offset: int  # where its output ends


class ShapedEntry(Body, tag="shaped"):
    """The shell's state was another at the prompt behind this command: what changed, names only."""

    number: int  # the command; the last one, when several ran since the state was seen
    keys: tuple[str, ...]  # `var:NAME`, `alias:NAME`, `func:NAME`, `cwd` ...; of many the first 64
    left_out: int = 0  # how many more
    originators: tuple[str, ...] = ()  # everybody that may have changed it


class AdoptedEntry(Body, tag="adopted"):
    """The actor answers from now on for what others were behind."""

    target: str  # `var:NAME`, `file:PATH`, `command:N` ...
    before: tuple[str, ...] = ()  # who was behind it until now


# -- authority --------------------------------------------------------------------------------


class TurnAsked(Body, tag="turn_asked"):
    """The actor asked for the turn."""


class TurnWithdrawn(Body, tag="turn_withdrawn"):
    """The actor stopped waiting for the turn."""

    subject: str


class PolicySet(Body, tag="policy_set"):
    """The turn policy from now on."""

    policy: str


class GatePolicySet(Body, tag="gate_policy_set"):
    """A policy of the gate that applies here: in force from now on, in place of the one that the
    same scope had."""

    scope: str  # host, label:NAME or session:ID
    digest: str  # SHA-256 of its text in hexadecimal; empty: that scope has none from now on
    source: str  # what it was set from: a file's name, or starter:NAME
    floor: bool = False  # the host's floor, which no narrower policy widens


class TurnMoved(Body, tag="turn_moved"):
    """The turn changed hands; an empty holder is nobody."""

    step: str  # how: request, grant, yield, hand off, revoke, expire, seize, leave
    before: str
    holder: str
    reason: str = ""


class BlindTurn(Body, tag="blind_turn"):
    """A blind turn begins or ends: keystrokes are secret in it."""

    on: bool


class EnvelopeSet(Body, tag="envelope_set"):
    """The subject's rights from now on."""

    subject: str
    scope: str
    rights: tuple[str, ...]
    expires_at: float | None = None
    inputs_per_s: float | None = None  # None: no limit, or not recorded
    bytes_per_s: float | None = None


class ActorRevokedEntry(Body, tag="actor_revoked"):
    """The subject's access was revoked."""

    subject: str


class HaltAskedEntry(Body, tag="halt_asked"):
    """Somebody asked for a halt; what the kernel says follows as Halted."""

    scope: str  # the session, or whose commands
    reason: str = ""


class HaltedEntry(Body, tag="halted", lifecycle=True):
    """The tree, or a part, was stopped."""

    scope: str  # the session, or whose commands
    tasks: int  # how many were stopped
    seconds: float  # how long it took until they were
    frozen: bool  # proven by the kernel
    caught: tuple[int, ...] = ()  # pids that had left the session's cgroup and were moved back
    running: tuple[int, ...] = ()  # pids that could not be stopped in time


class ResumedEntry(Body, tag="resumed", lifecycle=True):
    """The tree runs again."""


# -- leases -----------------------------------------------------------------------------------


class Leased(Body, tag="leased", lifecycle=True):
    """The host holds the session's lease in this entry's epoch: a re-homeable session begins, is
    restored, or was fenced and goes on."""

    length_s: float
    before: int = 0  # the epoch that ended; 0: it begins
    reason: str = ""  # of a force, on the word of this entry's actor; "": it was not forced


class FencedEntry(Body, tag="fenced", lifecycle=True):
    """The host lost the lease: the tree is stopped, nothing is taken or shown."""

    cause: str  # lapse, refused, ousted; or taken: for good, by another host
    later_epoch: int = 0  # taken: which
    later_owner: str = ""  # and by whom


# -- checkpoints ------------------------------------------------------------------------------


class CheckpointedEntry(Body, tag="checkpointed", lifecycle=True):
    """The actor had the session checkpointed: everything up to `journal_seq` is part of it."""

    id: str  # of the checkpoint
    journal_seq: int
    size: int  # bytes of all that is in it
    frozen_ms: float  # how long the session stood still; 0: not known yet
    note: str = ""
    ended: bool = False  # the session is ended with it, and asleep


class CheckpointFailedEntry(Body, tag="checkpoint_failed"):
    """A checkpoint that the actor asked for was not made; the session ran on."""

    reason: str


class RestoredEntry(Body, tag="restored", lifecycle=True):
    """The actor had the session restored: the first entry of a new epoch. No phase of a restore
    executes anything of the journal."""

    checkpoint: str  # id
    kind: str  # what goes on: `memory`
    before: int  # the epoch that ended
    journal_seq: int  # up to this entry the session is what the journal says
    inputs_lost: int  # inputs recorded after that one: they are not part of what was restored
    phases: tuple[RestorePhase, ...]  # what was done, and what each took
    size: int  # bytes of the checkpoint
    reset: tuple[PeerReset, ...] = ()  # connections to peers outside: the first 64
    resets: int = 0  # how many there were
    files_put_back: int = 0  # captured files that became again what they were
    files_kept_in: tuple[str, ...] = ()  # where what was there instead is kept
    # what the actor attested; the host that had it is dead: it was handed to that one. "": nothing
    attested: str = ""


class MoveFailedEntry(Body, tag="move_failed", lifecycle=True):
    """The actor had the session moved to another host, which came to nothing: it goes on here, as
    before."""

    to: str  # what people call that host
    reason: str


# What may be recorded after the session ended: the leaving, and what comes to light late. After a
# discontinuity nothing but its seal may (lineage.py).
MAY_FOLLOW = {
    EndedEntry.tag: frozenset(
        {"detached", "refused", "voided", "command_ended", "turn_moved", "sealed"}
    ),
    Discontinued.tag: frozenset({"sealed"}),
}


class Entry(Record):
    """One thing that happened."""

    seq: int  # 1, 2, 3 ... without a gap
    at: float  # seconds since 1970, by the host's clock; seq, not this, is the order
    epoch: int
    actor: str
    actor_seq: int  # rises by one with each entry of this actor in this session
    body: Body
    parent: bytes  # hash of the record before; of the session's id for the first
