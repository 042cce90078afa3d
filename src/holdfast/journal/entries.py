"""What can be recorded. A new kind of entry is a new `Body` subclass with a tag, nothing else; each
field has a one-line comment, because records outlive the program that wrote them.

Not here: encoding (encoding.py), when to record (host), links (chain.py).
"""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

HOST = ""  # the actor of what the host does by itself


class Body(Record):
    """What happened. `tag` is its name in the journal. `lifecycle` entries are sealed at once;
    after one that is in MAY_FOLLOW only the entries listed there may follow."""

    tag: ClassVar[str] = ""
    lifecycle: ClassVar[bool] = False


class UnknownEntry(Body):
    """An entry of a kind this version does not know, or in a form it does not know."""

    kind: str
    packed: bytes  # the body as stored in the journal


# -- the life of a session --------------------------------------------------------------------


class Began(Body):
    """The first entry: which session this is, and which host writes its journal."""

    tag = "began"
    lifecycle = True
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


class CarriedOn(Body):
    """A new daemon took over; the incarnation is the same."""

    tag = "carried_on"
    lifecycle = True
    daemon_pid: int
    holder: str = ""  # the turn holder, as it was saved


class TailCut(Body):
    """A torn tail was cut at opening: so many bytes of incomplete records."""

    tag = "tail_cut"
    lifecycle = True
    size: int


class EndAskedEntry(Body):
    """The actor asked for the session to end."""

    tag = "end_asked"
    lifecycle = True


class EndedEntry(Body):
    """The main process ended: by exit `code`, by `signal`, or `lost` says how it was lost."""

    tag = "ended"
    lifecycle = True
    code: int | None = None
    signal: int | None = None
    lost: str | None = None


class Discontinued(Body):
    """The journal ends here for good, although the session did not end (N9)."""

    tag = "discontinued"
    lifecycle = True
    reason: str
    last_seq: int  # the last trustworthy entry
    last_hash: bytes  # and its hash


class SealEntry(Body):
    """The host vouches for all records from `from_seq` up to this one."""

    tag = "sealed"
    from_seq: int
    digest: bytes  # SHA-256 over those records as they are framed on disk
    signature: bytes  # by the host key, over this entry with the signature left empty


# -- operators --------------------------------------------------------------------------------


class AttachedEntry(Body):
    """An operator attached."""

    tag = "attached"
    operator: str
    client: str  # kind of client, for people to read
    observe: bool
    offset: int  # of the output at that moment
    gap_s: float = 0.0  # how long it had been away


class DetachedEntry(Body):
    """An operator detached."""

    tag = "detached"
    operator: str


class InputEntry(Body):
    """Bytes for the terminal. One entry may hold several inputs of one operator, in order."""

    tag = "input"
    operator: str
    seq: int  # the operator's own number of the first input in here
    last_seq: int  # and of the last
    form: str  # keys, paste, submit, exec, answer
    data: bytes
    offset: int  # of the output at that moment


class BlindInput(Body):
    """Secret keystrokes: how many, and nothing else."""

    tag = "blind_input"
    operator: str
    seq: int
    last_seq: int
    size: int


class Voided(Body):
    """Inputs recorded before, which never reached the terminal: the daemon died in between."""

    tag = "voided"
    operator: str
    seq: int
    last_seq: int


class RefusedEntry(Body):
    """A refused request of an operator; repeated ones are one entry."""

    tag = "refused"
    operator: str
    what: str  # the kind of request
    code: str  # of the error it got
    count: int = 1
    size: int = 0  # bytes refused in all


class Unrecorded(Body):
    """What the actor did while it could not be recorded: so many entries of one kind that were
    never written."""

    tag = "unrecorded"
    what: str  # the kind of entry
    count: int
    since: float  # when the first of them would have been


class Resized(Body):
    """The canonical size changed."""

    tag = "resized"
    cols: int
    rows: int
    offset: int | None = None  # of the output at that moment


class Signalled(Body):
    """A signal for the foreground process group."""

    tag = "signalled"
    signal: int


class ForwardedEntry(Body):
    """Connections to a port of the session's programs were opened: one, or so many since the entry
    before it of this actor and port."""

    tag = "forwarded"
    operator: str  # of the first of them
    port: int
    process: str  # the name of the process that listened there
    count: int = 1


# -- commands ---------------------------------------------------------------------------------


class Intended(Body):
    """The actor's own statement of what its next command line is for; not verified."""

    tag = "intended"
    text: str


class CommandBegan(Body):
    """The session's shell began a command."""

    tag = "command_began"
    number: int
    text: str
    cwd: str
    offset: int  # where its output begins
    authors: tuple[str, ...]  # actors whose input the command line was made of


class CommandEnded(Body):
    """The session's shell reported how it ended."""

    tag = "command_ended"
    number: int
    status: int
    cwd: str
    offset: int  # where its output ends


# -- authority --------------------------------------------------------------------------------


class TurnAsked(Body):
    """The actor asked for the turn."""

    tag = "turn_asked"


class TurnWithdrawn(Body):
    """The actor stopped waiting for the turn."""

    tag = "turn_withdrawn"
    subject: str


class PolicySet(Body):
    """The turn policy from now on."""

    tag = "policy_set"
    policy: str


class TurnMoved(Body):
    """The turn changed hands; an empty holder is nobody."""

    tag = "turn_moved"
    step: str  # how: request, grant, yield, hand off, revoke, expire, seize, leave
    before: str
    holder: str
    reason: str = ""


class BlindTurn(Body):
    """A blind turn begins or ends: keystrokes are secret in it."""

    tag = "blind_turn"
    on: bool


class EnvelopeSet(Body):
    """The subject's rights from now on."""

    tag = "envelope_set"
    subject: str
    scope: str
    rights: tuple[str, ...]
    expires_at: float | None = None
    inputs_per_s: float | None = None  # None: no limit, or not recorded
    bytes_per_s: float | None = None


class ActorRevokedEntry(Body):
    """The subject may do nothing any more."""

    tag = "actor_revoked"
    subject: str


class HaltAskedEntry(Body):
    """Somebody asked for a halt; what the kernel says follows as Halted."""

    tag = "halt_asked"
    scope: str  # the session, or whose commands
    reason: str = ""


class HaltedEntry(Body):
    """The tree, or a part, was stopped."""

    tag = "halted"
    lifecycle = True
    scope: str  # the session, or whose commands
    tasks: int  # how many were stopped
    seconds: float  # how long it took until they were
    frozen: bool  # proven by the kernel


class ResumedEntry(Body):
    """The tree runs again."""

    tag = "resumed"
    lifecycle = True


# -- leases -----------------------------------------------------------------------------------


class Leased(Body):
    """The host holds the session's lease in this entry's epoch: a re-homeable session begins, or
    one that was fenced goes on."""

    tag = "leased"
    lifecycle = True
    length_s: float
    before: int = 0  # the epoch that ended; 0: it begins
    reason: str = ""  # of a force, on the word of this entry's actor; "": it was not forced


class FencedEntry(Body):
    """The host does not hold it any more: the tree is stopped, nothing is taken or shown."""

    tag = "fenced"
    lifecycle = True
    cause: str  # lapse, refused, ousted; or taken: for good, by another host
    later_epoch: int = 0  # taken: which
    later_owner: str = ""  # and by whom


def _leaves(kind: type[Body]) -> list[type[Body]]:
    own = [kind] if kind.tag else []
    return own + [leaf for sub in kind.__subclasses__() for leaf in _leaves(sub)]


BY_TAG = {kind.tag: kind for kind in _leaves(Body)}

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
