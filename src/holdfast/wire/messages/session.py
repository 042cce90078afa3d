"""Every message of the protocol, one Record each; `tag` names it on the wire.

An operator sends requests, each with an `id` of its choosing; the host answers each exactly once
with the same `id` (a `Failed` or the answer named in the docstring). Output, resyncs and events
come unasked on channels the operator opened. Everything may be repeated harmlessly: inputs carry
a sequence number per operator and session, output carries its offset.
"""

from __future__ import annotations

from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.graph import Graph
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.info import HostInfo, IdleSession, PrunedSession, SessionInfo
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState
from holdfast.wire.messages.base import PROTOCOL_VERSION as PROTOCOL_VERSION
from holdfast.wire.messages.base import Answer as Answer
from holdfast.wire.messages.base import Message as Message
from holdfast.wire.messages.base import Request as Request

# -- opening ----------------------------------------------------------------------------------


class Hello(Message, tag="hello"):
    """First message of an operator. Answered by Welcome, or by `failed` with id 0 and the end of
    the connection."""

    versions: tuple[int, ...]  # protocol versions this operator speaks
    # 32 hex digits chosen at random by the client and kept across its reconnects; inputs are
    # counted under it
    operator: OperatorId
    client: str = ""  # kind of client, for people to read; cut to 64 characters
    # names of messages added since version 1 began that the operator understands: `progress`
    capabilities: tuple[str, ...] = ()


class Welcome(Message, tag="welcome"):
    """First message of the host."""

    version: int  # the version both now speak
    host: str  # the host's name, for people
    # process id of the daemon; a change after a reconnect means the daemon was replaced
    daemon_pid: int
    # names of optional features the host offers; none are defined in version 1
    capabilities: tuple[str, ...] = ()
    # the host's Ed25519 public key, 32 bytes, which signs its journals; empty from a host that has
    # none
    host_key: bytes = b""
    challenge: bytes = b""  # 32 random bytes made for this connection, for `claim`
    actor: str = ""  # name of the actor this connection acts as until it claims another


# -- requests ---------------------------------------------------------------------------------


class Run(Request, tag="run"):
    """Start a session. Answered by Shown. Not to be repeated after a lost connection: it might
    start two."""

    argv: tuple[str, ...] = ()  # program and arguments; empty is the user's shell
    # a name, unique among the user's live sessions; empty lets the host make one from the program
    name: str = ""
    cwd: str = ""  # absolute working directory; empty is the user's home
    # environment of the session; the host adds its own variables and leaves out those of the
    # client's terminal
    env: dict[str, str] = {}  # noqa: RUF012 - Records never mutate a default
    size: Size | None = None  # first size of the terminal; null is 80x24
    user: str = ""  # unix user to run as; empty is the asker. Only root may name another
    # level to start it at, `level_unavailable` if the host cannot; null is the highest it has
    level: Level | None = None
    ring_bytes: int = 0  # bytes of output to hold; 0 is the host's setting
    labels: tuple[str, ...] = ()  # labels, for envelopes; each a name like those of sessions
    # an ended or discontinued session that this one follows; its journal is named in this one's
    # first entry
    predecessor: str = ""
    # another host may take it over when this one cannot renew its lease; `level_unavailable` below
    # `contained`, `coordination_down` when no lease can be acquired
    rehomeable: bool = False
    # at level `contained`: the session sees the key files of its user and the host's state, which
    # are hidden otherwise. Needs `grant` for all, and is refused from inside a session
    with_keys: bool = False
    # at level `contained`: under the system call filter of the exec gate, without which policies
    # do not reach what its programs execute and write. False: io_uring, typing into the terminal
    # by TIOCSTI and debugging the session's own shell work inside
    gate: bool = True
    # absolute path: the directory that policies of the gate call the session's workspace; empty is
    # its working directory
    workspace: str = ""
    # seconds between checkpoints that the host makes by itself, at least `CHECKPOINT_EVERY_MIN_S`;
    # 0: none. `level_unavailable` below `movable`
    checkpoint_every_s: float = 0.0
    # absolute paths of directories that are captured with each checkpoint, besides `workspace`
    # where that is given
    capture: tuple[str, ...] = ()


class ListSessions(Request, tag="list"):
    """The sessions the asker may see. Answered by Sessions."""

    ended: bool = False  # also list the recently ended sessions
    residency: bool = False  # also say what each costs, which takes the host a moment
    lost: bool = False  # also list the lost sessions that nobody has acknowledged


class Show(Request, tag="show"):
    """One session. Answered by Shown."""

    session: str
    # only by its name or whole id: for a client that will write to the session it is shown
    exact: bool = False


class GetGraph(Request, tag="graph"):
    """The live graph. Answered by GraphShown."""

    session: str


class GetScreen(Request, tag="screen"):
    """The screen as text. Answered by ScreenShown."""

    # a name, an id, or 6 or more characters of an id; an ended session shows its last screen
    session: str
    scrollback: bool = False  # also the lines above the screen


class Attach(Request, tag="attach"):
    """Open a channel of output. Answered by Attached, which comes before anything else on the
    channel."""

    session: str
    # number of the new channel, not negative, chosen by the operator and not in use on this
    # connection
    channel: int
    # this channel only watches: it never sets the size and its terminal never answers queries
    observe: bool = False
    # every byte and no screens: a reader that fell behind gets `gap` instead of `resync`
    raw: bool = False
    # output offset to resume from; null is a `resync` first (raw: from now on)
    since: int | None = None
    # size of this operator's terminal, which becomes the canonical size unless `observe` or another
    # actor holds the turn
    size: Size | None = None
    # the first `resync` brings the lines above the screen too; later ones never do, the terminal
    # has them
    scrollback: bool = True
    # `detach_terminals` may close this channel: its client understands `dismissed` with code
    # `detached`
    detachable: bool = False


class Detach(Request, tag="detach"):
    """Close a channel. Answered by Done; nothing more comes on it after that."""

    channel: int  # the channel to close


class Input(Request, tag="input"):
    """Bytes for the terminal. Answered by Accepted; quiet ones together: within 50 ms an
    `accepted` for the latest stands for all quiet ones before it. A refusal is answered at once
    in any case."""

    session: str
    seq: int  # number of this input, see *Input*
    data: bytes  # bytes as a terminal would send them
    quiet: bool = False  # answer this one together with others


class Submit(Request, tag="submit"):
    """Text for the terminal, as one piece. Answered by Accepted."""

    session: str
    seq: int  # number of this input, see *Input*
    # text, sent as one bracketed paste when the program asked for that (mode 2004) and it is longer
    # than one byte
    text: str
    enter: bool = True  # whether a carriage return follows
    # refused with `invalid_argument` unless a program reads a line without echo at this moment: a
    # secret that nobody asks for would be shown and recorded
    secret: bool = False


class Keys(Request, tag="keys"):
    """Named keys for the terminal. Answered by Accepted."""

    session: str
    seq: int  # number of this input, see *Input*
    # key names: a character for itself, `Enter`, `Tab`, `Esc`, `Up`, `F5`, `C-c`, `M-x`, `S-Tab`,
    # ...; translated by the terminal's modes at that moment
    keys: tuple[str, ...]


class Exec(Request, tag="exec"):
    """Run one command line in the session's own shell; see *Commands with a result*. Answered by
    ExecBegan, any number of `exec_output`, and `exec_ended` or `failed`, all with this id; and by
    `exec_held` before them if a policy holds it. `exec_began` is left out when the shell itself
    refused the line."""

    session: str
    seq: int  # number of this input, see *Input*
    # one command line, not blank; empty with a `key`: join the command of that key, run nothing
    command: str
    # names this command: the same key again runs nothing and joins the first; at most
    # `EXEC_KEY_MAX_CHARS`
    key: str = ""
    # what it is for, for people to read in the journal; cut to `TURN_TEXT_MAX_CHARS`
    intent: str = ""


class Resize(Request, tag="resize"):
    """Set the canonical size, or report the size of a terminal. Answered by Done."""

    session: str
    size: Size  # the new size
    # the channel whose terminal has this size now; it becomes the canonical size if its actor holds
    # the turn or nobody does. null sets the canonical size, which is a write
    channel: int | None = None


class Signal(Request, tag="signal"):
    """A signal for the foreground process group. Answered by Done."""

    session: str
    signal: int  # signal number, 1 to 64


class Watch(Request, tag="watch"):
    """Events of a session from now on, the present state first. Answered by Done."""

    # a name, an id, or 6 or more characters of an id; empty is all sessions the asker may see, also
    # those that begin later
    session: str = ""


class End(Request, tag="end"):
    """End a session: hang up, then kill what remains after 3 s. Answered by Shown when it has
    ended."""

    session: str


class Rename(Request, tag="rename"):
    """Give a live session another name; its id stays. Needs the right to end it, for whoever
    addresses it by its name does not find it by that one again. Watchers and those attached get a
    `state` with the new name. Answered by Shown."""

    session: str
    name: str  # as in `run`: unique among the user's live sessions; not empty


class DetachTerminals(Request, tag="detach_terminals"):
    """Detach the terminals that are attached to a session: those of the asker's own actor, and with
    the right to seize everybody's. Only channels opened as `detachable` are closed, with a
    `dismissed`. Answered by TerminalsDetached; `not_permitted` when all of them belong to others
    and the right is missing."""

    session: str
    # all but one: the asker's own terminal, or if it is not attached the one that was used last
    others: bool = False


class Pin(Request, tag="pin"):
    """Keep a live session from being reaped, however long nobody uses it; or let it be reaped
    again. Needs the right to write. Answered by Shown."""

    session: str
    pinned: bool = True  # false: it may be reaped again


class Acknowledge(Request, tag="acknowledge"):
    """Acknowledge that a session was lost: it is no longer listed unasked, and may be pruned. Needs
    the right to end it. Answered by Sessions with what is acknowledged now; of a session that was
    acknowledged before, who did it first stays."""

    # a name or an id; empty is every lost session that the asker may end
    session: str = ""


class Revive(Request, tag="revive"):
    """Start a session that follows a lost one: the same command, name, labels, level, workspace,
    policies and envelopes, in the directory and with the environment that the lost one's shell had
    at its last prompt. No process comes back, and no command line is run. Needs the right to end
    the lost one, which is acknowledged by it. Answered by Revived. Not to be repeated after a lost
    connection: `show` says whether the lost one has a successor."""

    session: str  # the lost one, by name or id


class GetHost(Request, tag="host"):
    """What this host is and can do. Answered by HostShown."""

    residency: bool = False  # also say what its sessions cost, which takes the host a moment


class GetMetrics(Request, tag="metrics"):
    """Numbers of the host for Prometheus. Answered by MetricsShown."""


class MetricsShown(Answer, tag="metrics_shown"):
    text: str  # in the text form of Prometheus, version 0.0.4


class Prune(Request, tag="prune"):
    """Remove ended sessions from disk as the retention settings say. Each leaves a signed statement
    of what it was. Answered by Pruned."""

    dry_run: bool = False  # remove nothing; say what would be


class Pruned(Answer, tag="pruned"):
    sessions: tuple[PrunedSession, ...]  # oldest first


class Reap(Request, tag="reap"):
    """Evict or end the live sessions that nobody has used for longer than their level's threshold,
    as the host does by itself after a warning. Answered by Reaped."""

    dry_run: bool = False  # touch nothing; say what would become of which


class Reaped(Answer, tag="reaped"):
    sessions: tuple[IdleSession, ...]  # used longest ago first


class RestartDaemon(Request, tag="restart_daemon"):
    """Replace the daemon by a new one; sessions carry on. Answered by Done; then the connection
    ends."""


class Shutdown(Request, tag="shutdown"):
    """Stop daemon, supervisor and relay. Sessions run on; the host's next start carries them on.
    Answered by HostStopped; then the connection ends."""

    end_sessions: bool = False  # first end every session that the asking actor may end
    # first checkpoint every movable session and end it with that: it is asleep, and the host's next
    # start restores it
    checkpoint: bool = False


# -- answers ----------------------------------------------------------------------------------


class Done(Answer, tag="done"):
    """The request was carried out."""


class HostStopped(Answer, tag="host_stopped"):
    """The host stops now."""

    kept: tuple[str, ...]  # names of the sessions that run on
    # with `checkpoint`: names of those that are asleep
    asleep: tuple[str, ...] = ()
    # with `checkpoint`: why others are not, by name
    failed: dict[str, str] = {}  # noqa: RUF012 - Records never mutate a default


class Failed(Answer, tag="failed"):
    """The request was refused and changed nothing. With `id` 0 the connection is of no more use and
    is closed."""

    code: str  # stable name of the error, listed in errors.md
    message: str  # what happened, for people
    hint: str = ""  # what to do next, for people; may be empty
    retryable: bool = False  # the same request may succeed later
    # with `session_lost`: why, for programs, and its successor, which is another session
    ending: Ending | None = None


class Shown(Answer, tag="shown"):
    info: SessionInfo  # the session now; for `end`, with its true ending


class Revived(Answer, tag="revived"):
    info: SessionInfo  # the new session
    predecessor: SessionId  # id of the lost one
    left_behind: tuple[str, ...]  # what did not come back, for people
    # the command line that its shell was running, which was not run again; empty when none was
    running: str = ""


class TerminalsDetached(Answer, tag="terminals_detached"):
    detached: int  # how many operators were detached
    left: int  # how many operators with a terminal are attached now


class Sessions(Answer, tag="sessions"):
    # live sessions, then (if asked) lost ones, then ended ones, newest first
    sessions: tuple[SessionInfo, ...]


class GraphShown(Answer, tag="graph_shown"):
    graph: Graph  # the live graph at one moment


class ScreenShown(Answer, tag="screen_shown"):
    text: str  # lines joined by newlines, without attributes
    cursor_col: int  # column of the cursor, from 0
    cursor_row: int  # row of the cursor on the screen, from 0
    size: Size  # canonical size
    title: str  # title the program set
    offset: int  # output offset the screen is true at
    alternate: bool = False  # a full-screen program has the screen


class Attached(Answer, tag="attached"):
    """A channel is open."""

    channel: int  # the channel now open
    info: SessionInfo  # the session at that moment
    offset: int  # where output starts; when a `resync` comes first it carries its own
    input_seq: int  # last input of this operator the session took; 0 when none is remembered


class Accepted(Answer, tag="accepted"):
    """The input is in the session's custody: in order, exactly once, and not lost if the daemon
    dies now."""

    seq: int  # the input's number
    offset: int  # output offset at the moment it was taken
    repeated: bool = False  # it had been taken before and was not typed again
    # id of the approval that the rest of it waits for, from its first Enter on; see `approvals`
    held: str = ""


class ExecBegan(Answer, tag="exec_began"):
    seq: int  # the shell's own number for this command line
    journal_seq: int = 0  # number of the journal's record that says it began
    offset: int = 0  # output offset at which the line was typed


class ExecHeld(Answer, tag="exec_held"):
    """A policy holds the command line: it has not begun, and goes on when enough have approved."""

    approval: ApprovalInfo  # what is asked, and of whom


class ExecOutput(Answer, tag="exec_output"):
    data: bytes  # the next bytes the command printed, without the shell's marks
    # output offset of the first byte; a client that joins again can tell what it has already
    offset: int = 0


class ExecEnded(Answer, tag="exec_ended"):
    status: int  # exit status as the shell reports it; says nothing where no exec_began came
    cwd: str  # the shell's working directory afterwards
    seconds: float  # how long it took, as the host saw it
    lost_bytes: int = 0  # output that rolled off before it could be sent


class HostShown(Answer, tag="host_shown"):
    host: HostInfo  # the host now


# -- unasked ----------------------------------------------------------------------------------


class Output(Message, tag="output"):
    """Bytes the session printed."""

    channel: int  # which channel
    offset: int  # offset of the first byte of `data`
    data: bytes  # bytes the session printed, unchanged


class Resync(Message, tag="resync"):
    """The whole view. Sent at attach, and to a reader that fell behind what is held. Replaces
    everything shown before."""

    channel: int  # which channel
    offset: int  # the view is true at this offset; output goes on from here
    size: Size  # canonical size the view is painted for
    skipped: int  # bytes printed that this channel was never sent
    # terminal output that paints the whole view: modes, both screens, cursor, title, and at first
    # the scrollback
    data: bytes


class Gap(Message, tag="gap"):
    """Only on raw channels: bytes are missing."""

    channel: int  # which channel
    offset: int  # output goes on from here
    skipped: int  # bytes before `offset` that are no longer held


class Closed(Message, tag="closed"):
    """The last message of a channel: the session ended and all its output was sent."""

    channel: int  # which channel; its number is free again
    ending: Ending  # how the session ended


class Dismissed(Message, tag="dismissed"):
    """The last message of a channel: its actor may no longer watch, or write, here, the host lost
    the session's lease, or somebody detached it. Nothing more comes on it."""

    channel: int  # which channel; its number is free again
    # `fenced` when the host lost the session's lease; `detached` when an actor asked for that;
    # empty when the actor's rights changed
    code: str = ""
    by: str = ""  # with `detached`: name of the actor that did it


class Answering(Message, tag="answering"):
    """Whether this channel's terminal answers a program's queries (cursor position, device
    attributes, colours). Each must be answered once: the terminal that the turn's holder used last
    answers, the others must not pass their terminal's answers on. With the turn free, or its holder
    not attached, the host answers."""

    channel: int  # which channel
    answers: bool  # whether this channel's terminal answers a program's queries from now on


class StateEvent(Message, tag="state"):
    """A watched session's state, at first and at each change, also of `shaped_by`. After a
    `rename` those who are attached get one too."""

    session: SessionId  # id of the session
    name: str  # its name
    state: SessionState  # what it does now
    at: float  # when that was seen, seconds since 1970
    waiting_line: str = ""  # the line the cursor is on, when a program waits there
    ending: Ending | None = None  # how it ended, if it did
    full_screen: bool = False  # with `input`: a full-screen program is in use and asks nothing
    # who counts as having shaped the shell, by name, because it waits at a prompt that it did not
    # report; empty while it reports
    shaped_by: tuple[str, ...] = ()


class ReapEvent(Message, tag="reap_notice"):
    """Nobody uses a session, and its host is about to do something about it: sent to those who
    watch it. Whoever attaches, writes to it or pins it keeps it."""

    session: SessionId  # id of the session
    name: str  # its name
    step: str  # `warned`, or `reaping`: it happens now
    action: str  # `evict` (checkpointed, then asleep) or `end`
    why: str  # for people
    at: float  # when this was sent, seconds since 1970
    due_at: float  # when it happens, seconds since 1970


class RehomedEvent(Message, tag="rehomed"):
    """A session lives again in a new epoch, on this host: sent to those who watch it. Its output
    goes on at the offset of its checkpoint; attach again."""

    session: SessionId  # id of the session
    name: str  # its name
    at: float  # when this was sent, seconds since 1970
    epoch_before: int  # the epoch that ended
    epoch: int  # the epoch that began
    kind: str  # what of it goes on: `memory` or `application`
    checkpoint: str  # id of the checkpoint
    bytes: int  # size of the checkpoint
    restore_ms: float  # how long the restore took
    downtime_s: float  # since the moment that the checkpoint is of
    resets: int  # connections to peers outside of the session that were reset
    inputs_lost: int  # recorded inputs that are newer than the checkpoint


class OperatorEvent(Message, tag="operators"):
    """Sent to operators that are attached or watch: somebody attached or detached, or the size
    changed."""

    session: SessionId  # id of the session
    operators: int  # how many are attached
    observers: int  # of these, how many only watch
    size: Size  # canonical size


class EventsDropped(Message, tag="dropped"):
    """Events were left out because this operator does not read fast enough; query again what
    matters."""

    count: int  # how many events were left out
