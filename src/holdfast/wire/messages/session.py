"""Every message of the protocol, one Record each; `tag` names it on the wire.

An operator sends requests, each with an `id` of its choosing; the host answers each exactly once
with the same `id` (a `Failed` or the answer named in the docstring). Output, resyncs and events
come unasked on channels the operator opened. Everything may be repeated harmlessly: inputs carry
a sequence number per operator and session, output carries its offset.
"""

from __future__ import annotations

from holdfast.model.graph import Graph
from holdfast.model.ids import OperatorId, SessionId
from holdfast.model.info import HostInfo, SessionInfo
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState
from holdfast.wire.messages.base import PROTOCOL_VERSION as PROTOCOL_VERSION
from holdfast.wire.messages.base import Answer as Answer
from holdfast.wire.messages.base import Message as Message
from holdfast.wire.messages.base import Request as Request
from holdfast.wire.messages.exec import Exec as Exec
from holdfast.wire.messages.exec import ExecBegan as ExecBegan
from holdfast.wire.messages.exec import ExecEnded as ExecEnded
from holdfast.wire.messages.exec import ExecOutput as ExecOutput

# -- opening ----------------------------------------------------------------------------------


class Hello(Message):
    """First message of an operator. Answered by Welcome."""

    tag = "hello"
    versions: tuple[int, ...]
    operator: OperatorId
    client: str = ""  # what kind of client this is, for people to read
    capabilities: tuple[str, ...] = ()


class Welcome(Message):
    """First message of the host."""

    tag = "welcome"
    version: int
    host: str
    daemon_pid: int
    capabilities: tuple[str, ...] = ()
    host_key: bytes = b""  # the host's public key, which signs its journals
    challenge: bytes = b""  # random; to be signed by who claims to be another actor
    actor: str = ""  # who the asker is, by the kernel's word for its unix user


# -- requests ---------------------------------------------------------------------------------


class Run(Request):
    """Start a session. Answered by Shown. An empty argv is the user's login shell."""

    tag = "run"
    argv: tuple[str, ...] = ()
    name: str = ""
    cwd: str = ""
    env: dict[str, str] = {}  # noqa: RUF012 - Records never mutate a default
    size: Size | None = None
    user: str = ""
    level: Level | None = None
    ring_bytes: int = 0
    labels: tuple[str, ...] = ()
    predecessor: str = ""  # an ended or discontinued session that this one follows
    rehomeable: bool = False  # may be moved by the lapse of a lease, which it then depends on


class ListSessions(Request):
    """Live sessions the asker may see, or the recently ended too. Answered by Sessions."""

    tag = "list"
    ended: bool = False


class Show(Request):
    """One session. `session` here and below: a name, an id, or a unique prefix of an id. Answered
    by Shown."""

    tag = "show"
    session: str


class GetGraph(Request):
    """The live graph. Answered by GraphShown."""

    tag = "graph"
    session: str


class GetScreen(Request):
    """The screen as text. Answered by ScreenShown."""

    tag = "screen"
    session: str
    scrollback: bool = False


class Attach(Request):
    """Open a channel: output from `since` (an offset) on, or a Resync and what follows it.

    `raw` never resyncs with a screen: a reader that fell behind gets a Gap instead (for `tail`).
    `size` sets the canonical size, unless `observe`. `scrollback`: the first Resync brings the
    lines above the screen too; later ones never do, the terminal has them. Answered by Attached."""

    tag = "attach"
    session: str
    channel: int
    observe: bool = False
    raw: bool = False
    since: int | None = None
    size: Size | None = None
    scrollback: bool = True


class Detach(Request):
    """Close a channel. Answered by Done."""

    tag = "detach"
    channel: int


class Input(Request):
    """Bytes for the terminal, as typed. Answered by Accepted.

    `quiet` ones are answered together: within 50 ms an Accepted for the latest stands for all
    quiet ones before it. A refusal is answered at once, by Failed, in any case."""

    tag = "input"
    session: str
    seq: int
    data: bytes
    quiet: bool = False


class Submit(Request):
    """Text for the terminal, pasted as one piece, with Enter if asked. Answered by Accepted."""

    tag = "submit"
    session: str
    seq: int
    text: str
    enter: bool = True
    secret: bool = False  # typed only where a program reads without echo


class Keys(Request):
    """Named keys, translated by the terminal's current modes. Answered by Accepted."""

    tag = "keys"
    session: str
    seq: int
    keys: tuple[str, ...]


class Resize(Request):
    """Set the canonical size. Answered by Done. With `channel`: that channel's terminal has this
    size now; it becomes the canonical one when its actor holds the turn."""

    tag = "resize"
    session: str
    size: Size
    channel: int | None = None


class Signal(Request):
    """A signal for the foreground process group. Answered by Done."""

    tag = "signal"
    session: str
    signal: int


class Watch(Request):
    """Events of one session, or of all that may be seen; the present state comes first as an
    event. Answered by Done."""

    tag = "watch"
    session: str = ""


class End(Request):
    """End a session: hang up, then kill what remains. Answered by Shown with its true ending."""

    tag = "end"
    session: str


class GetHost(Request):
    """What this host is and can do. Answered by HostShown."""

    tag = "host"


class RestartDaemon(Request):
    """Replace the daemon by a fresh one; sessions carry on. Answered by Done, then the
    connection ends."""

    tag = "restart_daemon"


class Shutdown(Request):
    """Stop keeper and daemon; refused while sessions live unless they are to be ended. Answered by
    Done."""

    tag = "shutdown"
    end_sessions: bool = False


# -- answers ----------------------------------------------------------------------------------


class Done(Answer):
    tag = "done"


class Failed(Answer):
    """Why not. `code` is stable; `hint` says what to do next."""

    tag = "failed"
    code: str
    message: str
    hint: str = ""
    retryable: bool = False


class Shown(Answer):
    tag = "shown"
    info: SessionInfo


class Sessions(Answer):
    tag = "sessions"
    sessions: tuple[SessionInfo, ...]


class GraphShown(Answer):
    tag = "graph_shown"
    graph: Graph


class ScreenShown(Answer):
    tag = "screen_shown"
    text: str
    cursor_col: int
    cursor_row: int
    size: Size
    title: str
    offset: int
    alternate: bool = False  # a full-screen program has the screen


class Attached(Answer):
    """A channel is open. Output starts at `offset`; when a Resync comes first, it says so itself.

    `input_seq` is the last input of this operator the session took: what a client that comes back
    needs to send the rest, and only the rest."""

    tag = "attached"
    channel: int
    info: SessionInfo
    offset: int
    input_seq: int


class Accepted(Answer):
    """The input is in the session's custody, in order, exactly once. `repeated`: it already was."""

    tag = "accepted"
    seq: int
    offset: int  # output offset at that moment
    repeated: bool = False


class HostShown(Answer):
    tag = "host_shown"
    host: HostInfo


# -- unasked ----------------------------------------------------------------------------------


class Output(Message):
    """Bytes the session printed, from `offset` on."""

    tag = "output"
    channel: int
    offset: int
    data: bytes


class Resync(Message):
    """The whole view as terminal text, true at `offset`: sent at attach, and to a reader that
    fell behind what is held. `skipped` bytes were printed and never sent to this channel."""

    tag = "resync"
    channel: int
    offset: int
    size: Size
    skipped: int
    data: bytes


class Gap(Message):
    """On a raw channel: bytes before `offset` are no longer held."""

    tag = "gap"
    channel: int
    offset: int
    skipped: int


class Closed(Message):
    """A channel is closed by the host: the session ended, all its output was sent."""

    tag = "closed"
    channel: int
    ending: Ending


class Dismissed(Message):
    """A channel is closed by the host: its actor may not watch, or not write, here any more."""

    tag = "dismissed"
    channel: int
    code: str = ""  # fenced: the host lost the session's lease


class Answering(Message):
    """Whether this channel's terminal is the one that answers a program's queries from now on."""

    tag = "answering"
    channel: int
    answers: bool


class StateEvent(Message):
    """A session's state, now and at each change."""

    tag = "state"
    session: SessionId
    name: str
    state: SessionState
    at: float
    waiting_line: str = ""
    ending: Ending | None = None


class OperatorEvent(Message):
    """Somebody came or went, or the canonical size changed."""

    tag = "operators"
    session: SessionId
    operators: int
    observers: int
    size: Size


class EventsDropped(Message):
    """Events were left out because this operator does not read fast enough."""

    tag = "dropped"
    count: int
