"""One connection to a host: connect, greet, ask, listen.

Messages are kept in the order they came; `answer_to` picks the answer it waits for, `receive` and
`take` give what is next. A lost connection raises HostLost; getting back is the caller's decision,
because only the caller knows what may be sent again.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections import deque

from holdfast.model.errors import (
    HoldfastError,
    HostDown,
    HostLost,
    InvalidArgument,
    NotPermitted,
    ProtocolViolation,
    TimedOut,
    from_code,
)
from holdfast.model.home import SYSTEM, Home, home_of
from holdfast.model.ids import OperatorId
from holdfast.model.limits import SNAPSHOT_MAX_BYTES
from holdfast.sdk import host_start
from holdfast.wire.frames import Decoder, encode
from holdfast.wire.messages.access import ActorShown, Claim
from holdfast.wire.messages.checkpoints import ProgressEvent
from holdfast.wire.messages.session import (
    PROTOCOL_VERSION,
    Answer,
    Failed,
    Hello,
    Message,
    Request,
    Welcome,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.sdk.identity import Identity
    from holdfast.sdk.reach.machines import Machine

_READ_BYTES = 96 << 10  # below malloc's limit for mapping fresh memory at each read
_greeted: set[str] = set()  # the sockets of hosts that have greeted this program
GREETING_TIMEOUT_S = 10.0  # a daemon that is being restarted answers well within this
_REPLACED_S = 0.02  # until a host whose daemon died is dialled again


def socket_path() -> str:
    """Where this user's host listens: their own, else the system's if it runs."""
    own: Home = home_of(os.environ, os.getuid())
    if "HOLDFAST_HOME" in os.environ or os.path.exists(own.socket):
        return own.socket
    return SYSTEM.socket if os.path.exists(SYSTEM.socket) else own.socket


def target_host() -> str | Machine:
    """The host this program means: the machine of HOLDFAST_ON, else the one here."""
    if not os.environ.get("HOLDFAST_ON"):
        return socket_path()
    from holdfast.sdk.reach import machines

    machine = machines.chosen()
    assert machine is not None
    return socket_path() if _is_here(machine) else machine


def _is_here(machine: Machine) -> bool:
    """Whether that machine is this one: then no relay is needed."""
    if machine.host != socket.gethostname() or not os.path.exists(socket_path()):
        return False
    try:
        local = Connection(socket_path(), new_operator(), "hold")
    except HoldfastError:
        return False
    local.close()
    return local.welcome.host_key == machine.key


def new_operator() -> OperatorId:
    return OperatorId(os.urandom(16).hex())


class Connection:
    """A greeted connection."""

    def __init__(
        self,
        path: str | Machine,
        operator: OperatorId,
        client: str,
        acting: Identity | None = None,
        on_progress: Callable[[ProgressEvent], object] | None = None,
    ) -> None:
        """`path`: of a host's socket; or another machine. `acting`: the actor to act as;
        None: as the environment says. `on_progress`: gets each `progress` as it is read; None: the
        host sends none."""
        self.operator = operator
        self._on_progress = on_progress
        self._received: deque[Message] = deque()
        self.decoder = Decoder(SNAPSHOT_MAX_BYTES, skips_unknown=True)  # goes to whoever reads on
        self.last_id = 0  # of the requests so far
        self.lost = False  # it cannot be used any longer
        deadline = time.monotonic() + GREETING_TIMEOUT_S
        while True:
            self.sock = _connect(path) if isinstance(path, str) else _dial(path, acting)
            try:
                self._greet(path, client, acting)
                return
            except BaseException as error:
                self.sock.close()
                # It was reached, but its daemon was replaced before it could greet.
                replaced = isinstance(error, HostLost) and isinstance(path, str)
                if not replaced or time.monotonic() >= deadline:
                    raise
            self.lost = False
            time.sleep(_REPLACED_S)

    def _greet(self, path: str | Machine, client: str, acting: Identity | None) -> None:
        # A host that refuses a connection closes it without reading; why is there to be read.
        with contextlib.suppress(HostLost):
            known = () if self._on_progress is None else (ProgressEvent.capability,)
            self.send(Hello((PROTOCOL_VERSION,), self.operator, client, known))
        self.welcome = self._greeting()
        if isinstance(path, str):
            _greeted.add(path)
        self.actor = self.welcome.actor  # the name of the actor that this connection acts as
        environ = os.environ.get
        acts = acting or environ("HOLDFAST_AS") or environ("HOLDFAST_GRANT")
        if acts and isinstance(path, str):
            self._claim(acting)

    def _claim(self, acting: Identity | None) -> None:
        """Act as another actor than the unix user's own."""
        from holdfast.sdk import identity

        acting, grant = acting or identity.chosen(), identity.grant()
        if acting is None:
            raise InvalidArgument(
                "HOLDFAST_GRANT is shown by the actor it was given to",
                hint="set HOLDFAST_AS to that actor, or unset HOLDFAST_GRANT",
            )
        proof = acting.claim(self.welcome.host_key, self.welcome.challenge, self.operator)
        claim = Claim(self.next_id(), acting.actor, proof, grant)
        shown = self.ask(claim, GREETING_TIMEOUT_S)
        self.actor = shown.actor.name if isinstance(shown, ActorShown) else ""

    def fileno(self) -> int:
        return self.sock.fileno()

    def next_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def send(self, message: Message) -> None:
        self.send_frame(encode(message))

    def send_frame(self, frame: bytes) -> None:
        try:
            self.sock.sendall(frame)
        except OSError as error:
            raise self._lost("the connection to the host was lost") from error

    def ask(self, request: Request, timeout: float | None = None) -> Answer:
        """Send and wait for the answer. A Failed is raised as the error it names."""
        self.send(request)
        return self.answer_to(request.id, timeout)

    def answer_to(self, request: int, timeout: float | None = None) -> Answer:
        """The next answer to a request already sent."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            for message in self._received:
                if isinstance(message, Answer) and message.id == request:
                    self._received.remove(message)
                    if isinstance(message, Failed):
                        raise from_code(message.code, message.message, message.hint, message.ending)
                    return message
            self._read(deadline)

    def receive(self, timeout: float | None = None) -> Message:
        """The next message of any kind."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            message = self.take()
            if message is not None:
                return message
            self._read(deadline)

    def take(self) -> Message | None:
        """A message that is here already."""
        return self._received.popleft() if self._received else None

    def read_available(self) -> None:
        """One read; `take` then gives what came. For callers that wait by themselves."""
        self.take_in(self.read())

    def read_output(self, channel: int) -> tuple[int, bytes] | None:
        """One read that may be just one Output of this channel: its offset and data. Otherwise
        None, and `take` gives what came. The shortest way from the host to a terminal."""
        data = self.read()
        fields = self.decoder.sole_fields(data)
        if fields is not None and fields.get("t") == "output" and fields.get("channel") == channel:
            offset, output = fields.get("offset"), fields.get("data")
            if type(offset) is int and type(output) is bytes:
                return offset, output
        self.take_in(data)
        return None

    def read(self) -> bytes:
        try:
            data = self.sock.recv(_READ_BYTES)
        except OSError as error:
            raise self._lost("the connection to the host was lost") from error
        if not data:
            raise self._lost("the host closed the connection")
        return data

    def _lost(self, why: str) -> HostLost:
        self.lost = True
        return HostLost(why)

    def take_in(self, data: bytes) -> None:
        """What somebody else read from the socket; `take` then gives it."""
        for message in self.decoder.feed(data):
            if isinstance(message, Failed) and message.id == 0:
                raise from_code(message.code, message.message, message.hint, message.ending)
            if isinstance(message, ProgressEvent) and self._on_progress is not None:
                self._on_progress(message)
            else:
                self._received.append(message)

    def close(self) -> None:
        self.sock.close()

    def _read(self, deadline: float | None) -> None:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise TimedOut("the host did not answer in time")
        self.read_available()

    def _greeting(self) -> Welcome:
        try:
            message = self.receive(GREETING_TIMEOUT_S)
        except TimedOut as error:
            raise HostDown(
                "a host listens but does not answer",
                hint="`hold doctor` names its log; `hold daemon restart` replaces its daemon, and "
                "sessions carry on",
            ) from error
        if not isinstance(message, Welcome):
            raise ProtocolViolation("the host did not greet")
        return message


def _dial(machine: Machine, acting: Identity | None) -> socket.socket:
    from holdfast.sdk.reach import remote_host  # slow to import: only remote clients pay

    return remote_host.connect(machine, acting)


def _connect(path: str) -> socket.socket:
    deadline = time.monotonic() + GREETING_TIMEOUT_S
    while True:
        try:
            sock = _connected(path)
        except OSError as error:
            # A host that was stopped while this program used it (its socket is gone) stays stopped.
            # One that listened and went before it greeted was not used: its daemon did not start.
            died = isinstance(error, ConnectionRefusedError)
            stopped = isinstance(error, FileNotFoundError)
            may_start = died or (stopped and path not in _greeted)
            if may_start and time.monotonic() < deadline and host_start.starter(path):
                time.sleep(_REPLACED_S)  # another may have started it, and be at it still
                continue
            raise _unreached(path, error) from error
        return sock


def _unreached(path: str, error: OSError) -> HoldfastError:
    if isinstance(error, PermissionError):
        return NotPermitted(
            f"a host is at {path}, but this user may not reach it",
            hint="start your own with `hold up -d` and no HOLDFAST_HOME",
        )
    why = f"cannot reach the host at {path}: {error.strerror}"
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        why = "no host is running here"
    return HostDown(why, hint="start one with `hold up -d`")


def _connected(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock
