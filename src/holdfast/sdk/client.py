"""A host as a program sees it: one method per thing that can be asked.

    with Host() as host:
        info = host.run(["make"], name="build")
        host.send(info.id, "yes")

What happens when the host is lost is in `client_core`; here is how it is carried out by a thread
that blocks. Every `hold` verb is built on it, so it is light: no asyncio, no typing.
"""

from __future__ import annotations

import time

from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.errors import TimedOut
from holdfast.model.graph import Graph
from holdfast.model.info import HostInfo, SessionInfo
from holdfast.model.limits import RECONNECT_DEADLINE_S
from holdfast.model.size import Size
from holdfast.model.state import Level
from holdfast.sdk.client_core import client_machine
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.retry_policy import LOCAL, RELAY, ReconnectPolicy
from holdfast.sdk.connection import GREETING_TIMEOUT_S, Connection, new_operator, target_host
from holdfast.wire.messages import gate_approvals as gate
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self, TypeVar

    from holdfast.sdk.reach.machines import Machine
    from holdfast.wire.messages.checkpoints import ProgressEvent

    A = TypeVar("A", bound=m.Answer)
    Inbox = Callable[[m.Message], bool]  # whether a message is for its reader


class Host:
    """A blocking client of one host. What has no method of its own here is asked with `ask` and a
    message of `wire.messages`; what is waited for, with `io` and `client_core`."""

    def __init__(
        self,
        path: str | Machine | None = None,
        client: str = "python",
        on_progress: Callable[[ProgressEvent], object] | None = None,
    ) -> None:
        """`path`: of a host's socket, or a machine of `sdk.reach.machines`; None: as the
        environment says, which is usually this user's own host. `on_progress`: is told how far a
        checkpoint or restore is while it is waited for."""
        self.path = path or target_host()
        self.client = client
        self.operator = new_operator()
        self._seqs: dict[str, int] = {}
        self.last_channel = 0
        self._on_progress = on_progress
        self.connection = self._connected()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def reconnect(self, deadline_s: float = RECONNECT_DEADLINE_S) -> None:
        """Get back to a host whose daemon was replaced. The same operator as before."""
        self._dial(self._policy.replace(patience_s=deadline_s, stopped_is_final=False))

    def come_back(self) -> None:
        """The same, if the connection was lost; but a host that was stopped is given up at once."""
        if self.connection.lost:
            self._dial(self._policy)

    @property
    def _policy(self) -> ReconnectPolicy:
        return LOCAL if isinstance(self.path, str) else RELAY

    def _dial(self, policy: ReconnectPolicy) -> None:
        async def dial() -> Connection:
            return self._connected()

        self.connection.close()
        self.connection = finish(client_machine.reconnect(self.io(), dial, policy))

    def _connected(self) -> Connection:
        told = self._on_progress
        return Connection(self.path, self.operator, self.client, on_progress=told)

    @property
    def host_key(self) -> bytes:
        """The host's public key."""
        return self.connection.welcome.host_key

    def io(self, deadline: float | None = None) -> BlockingIo:
        """For the coroutines of `client_core`, run by `finish`; until a time.monotonic()."""
        return BlockingIo(self, deadline)

    # -- asking -------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str] = (),
        *,
        name: str = "",
        cwd: str = "",
        env: dict[str, str] | None = None,
        size: Size | None = None,
        user: str = "",
        level: Level | None = None,
        ring_bytes: int = 0,
        labels: Sequence[str] = (),
        predecessor: str = "",
        rehomeable: bool = False,
        with_keys: bool = False,
        gate: bool = True,
        workspace: str = "",
        checkpoint_every_s: float = 0.0,
        capture: Sequence[str] = (),
    ) -> SessionInfo:
        """Start a session. Not repeated when the connection is lost: it might start two."""
        request = m.Run(
            0,
            tuple(argv),
            name,
            cwd,
            env or {},
            size,
            user,
            level,
            ring_bytes,
            tuple(labels),
            predecessor,
            rehomeable,
            with_keys,
            gate,
            workspace,
            checkpoint_every_s,
            tuple(capture),
        )
        return self.ask(request, m.Shown, once=True).info

    def sessions(
        self, *, ended: bool = False, residency: bool = False, lost: bool = False
    ) -> tuple[SessionInfo, ...]:
        return self.ask(m.ListSessions(0, ended, residency, lost), m.Sessions).sessions

    def acknowledge(self, session: str = "") -> tuple[SessionInfo, ...]:
        """That it was lost; without a name, every lost session that this actor may end."""
        return self.ask(m.Acknowledge(0, session), m.Sessions).sessions

    def revive(self, session: str) -> m.Revived:
        """Start a session that follows a lost one. Not repeated when the connection is lost."""
        return self.ask(m.Revive(0, session), m.Revived, once=True)

    def show(self, session: str, *, exact: bool = False) -> SessionInfo:
        """`exact`: by name or whole id only, because it will be written to."""
        return self.ask(m.Show(0, session, exact), m.Shown).info

    def graph(self, session: str) -> Graph:
        return self.ask(m.GetGraph(0, session), m.GraphShown).graph

    def screen(self, session: str, *, scrollback: bool = False) -> m.ScreenShown:
        return self.ask(m.GetScreen(0, session, scrollback), m.ScreenShown)

    def host(self, *, residency: bool = False) -> HostInfo:
        return self.ask(m.GetHost(0, residency), m.HostShown).host

    def approvals(self, session: str = "") -> tuple[ApprovalInfo, ...]:
        return self.ask(gate.GetApprovals(0, session), gate.ApprovalsShown).approvals

    def approve(
        self, approval: str, note: str = "", seen: str = "", *, try_first: bool = False
    ) -> ApprovalInfo:
        """`seen`: the version that was read."""
        asked = gate.Approve(0, approval, note, try_first, seen)
        return self.ask(asked, gate.ApprovalShown, once=True).approval

    def deny(self, approval: str, note: str = "", seen: str = "") -> ApprovalInfo:
        asked = gate.Deny(0, approval, note, seen)
        return self.ask(asked, gate.ApprovalShown, once=True).approval

    def end(self, session: str) -> SessionInfo:
        """End it and wait until it has."""
        return self.ask(m.End(0, session), m.Shown).info

    def rename(self, session: str, name: str) -> SessionInfo:
        """By its id, so that asking again after a lost connection finds it."""
        found = self.show(session, exact=True)
        return self.ask(m.Rename(0, found.id, name), m.Shown).info

    def pin(self, session: str, pinned: bool = True) -> SessionInfo:
        """Whether it is kept from being reaped."""
        return self.ask(m.Pin(0, session, pinned), m.Shown).info

    def detach_terminals(self, session: str, *, others: bool = False) -> m.TerminalsDetached:
        request = m.DetachTerminals(0, session, others)
        return self.ask(request, m.TerminalsDetached)

    def resize(self, session: str, size: Size) -> None:
        self.ask(m.Resize(0, session, size), m.Done)

    def signal(self, session: str, number: int) -> None:
        self.ask(m.Signal(0, session, number), m.Done)

    def restart_daemon(self) -> None:
        """Raises TimedOut when the daemon greets and then hangs."""
        io = self.io(time.monotonic() + GREETING_TIMEOUT_S)
        finish(client_machine.ask(io, m.RestartDaemon(0), m.Done, once=True))

    def shutdown(self, *, end_sessions: bool = False, checkpoint: bool = False) -> m.HostStopped:
        """Stop the host; gives the names of the sessions that run on or are asleep."""
        return self.ask(m.Shutdown(0, end_sessions, checkpoint), m.HostStopped, once=True)

    def ask(self, request: m.Request, kind: type[A], *, once: bool = False) -> A:
        """Ask, and ask again when the connection is lost; `once`: what must not be done twice."""
        return finish(client_machine.ask(self.io(), request, kind, once=once))

    # -- input --------------------------------------------------------------------------------

    def send(self, session: str, text: str, *, enter: bool = True) -> m.Accepted:
        return self._offer(m.Submit(0, session, 0, text, enter))

    def keys(self, session: str, keys: Sequence[str]) -> m.Accepted:
        return self._offer(m.Keys(0, session, 0, tuple(keys)))

    def type_bytes(self, session: str, data: bytes) -> m.Accepted:
        return self._offer(m.Input(0, session, 0, data))

    def next_seq(self, session: str) -> int:
        self._seqs[session] = self._seqs.get(session, 0) + 1
        return self._seqs[session]

    def _offer(self, request: m.Submit | m.Keys | m.Input) -> m.Accepted:
        numbered = request.replace(seq=self.next_seq(request.session))
        return finish(client_machine.offer(self.io(), numbered))


class BlockingIo:
    """The ClientIo that blocks. One operation at a time: what comes meanwhile for nobody is
    dropped, except answers to other requests while one is waited for."""

    patience_s = RECONNECT_DEADLINE_S

    def __init__(self, host: Host, deadline: float | None) -> None:
        self._host, self._deadline = host, deadline

    def now(self) -> float:
        return time.monotonic()

    def _left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    async def sleep(self, seconds: float) -> None:
        left = self._left()
        if left is not None and left <= seconds:
            time.sleep(left)
            raise TimedOut("the host did not answer in time")
        time.sleep(seconds)

    async def connect(self) -> None:
        self._host.come_back()

    async def exchange(self, request: m.Request) -> m.Answer:
        connection = self._host.connection
        return connection.ask(request.replace(id=connection.next_id()), self._left())

    async def send(self, request: m.Request) -> Inbox:
        connection = self._host.connection
        number = connection.next_id()
        connection.send(request.replace(id=number))
        return lambda message: isinstance(message, m.Answer) and message.id == number

    async def attach(self, request: m.Attach) -> tuple[m.Attached, Inbox]:
        number = self._host.last_channel = self._host.last_channel + 1
        answer = await self.exchange(request.replace(channel=number))
        attached = client_machine.expect(answer, m.Attached)
        return attached, lambda message: getattr(message, "channel", -1) == number

    async def watch(self, session: str) -> Inbox:
        await self.exchange(m.Watch(0, session))
        return lambda message: not isinstance(message, m.Answer)

    async def next(self, inbox: Inbox, pause_s: float | None = None) -> m.Message | None:
        paused = None if pause_s is None else time.monotonic() + pause_s
        while True:
            left = self._left()
            if paused is not None and (left is None or paused < time.monotonic() + left):
                left = max(0.0, paused - time.monotonic())
            try:
                message = self._host.connection.receive(left)
            except TimedOut:
                if paused is not None and time.monotonic() >= paused:
                    return None
                raise
            if inbox(message):
                return message

    def release(self, inbox: Inbox) -> None:
        """Nothing is kept for it here; the host notices when this program leaves."""
