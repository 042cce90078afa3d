"""A host as a program sees it: one method per thing that can be asked.

    with Host() as host:
        info = host.run(["make"], name="build")
        host.send(info.id, "yes")

Inputs are numbered and sent once. When the connection is lost before the host acknowledged one, the
client comes back, asks what was taken, and either knows or says so with InputUnknown; it never
guesses and never types twice.
"""

from __future__ import annotations

import time

from holdfast.model.errors import HoldfastError, HostLost, InputUnknown
from holdfast.model.graph import Graph
from holdfast.model.info import HostInfo, SessionInfo
from holdfast.model.limits import RECONNECT_DEADLINE_S
from holdfast.model.size import Size
from holdfast.model.state import Level
from holdfast.sdk.connection import AWAY, NOT_SENT, Connection, new_operator, place
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self, TypeVar

    from holdfast.sdk.reach.machines import Machine

    A = TypeVar("A", bound=m.Answer)

_RETRY_S = 0.02
_REDIAL_S = 0.3  # of a relay, which others dial too


class Host:
    """A blocking client of one host. What has no method of its own here is asked with `ask` and a
    message of `wire.messages` or `wire.authority`."""

    def __init__(self, path: str | Machine | None = None, client: str = "python") -> None:
        """`path`: of a host's socket, or a machine of `sdk.machines`; None: as the environment
        says, which is usually this user's own host."""
        self.path = path or place()
        self.client = client
        self.operator = new_operator()
        self._seqs: dict[str, int] = {}
        self.connection = Connection(self.path, self.operator, client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def reconnect(self, deadline_s: float = RECONNECT_DEADLINE_S) -> None:
        """Get back to a host whose daemon was replaced. The same operator as before."""
        self.connection.close()
        deadline = time.monotonic() + deadline_s
        while True:
            try:
                self.connection = Connection(self.path, self.operator, self.client)
                return
            except AWAY:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_RETRY_S if isinstance(self.path, str) else _REDIAL_S)

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
    ) -> SessionInfo:
        """Start a session. Not repeated when the connection is lost: it might start two."""
        connection = self.connection
        request = m.Run(
            connection.next_id(),
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
        )
        return self._expect(connection.ask(request), m.Shown).info

    def sessions(self, *, ended: bool = False) -> tuple[SessionInfo, ...]:
        return self.ask(m.ListSessions(0, ended), m.Sessions).sessions

    def show(self, session: str) -> SessionInfo:
        return self.ask(m.Show(0, session), m.Shown).info

    def graph(self, session: str) -> Graph:
        return self.ask(m.GetGraph(0, session), m.GraphShown).graph

    def screen(self, session: str, *, scrollback: bool = False) -> m.ScreenShown:
        return self.ask(m.GetScreen(0, session, scrollback), m.ScreenShown)

    def host(self) -> HostInfo:
        return self.ask(m.GetHost(0), m.HostShown).host

    def end(self, session: str) -> SessionInfo:
        """End it and wait until it has."""
        return self.ask(m.End(0, session), m.Shown).info

    def resize(self, session: str, size: Size) -> None:
        self.ask(m.Resize(0, session, size), m.Done)

    def signal(self, session: str, number: int) -> None:
        self.ask(m.Signal(0, session, number), m.Done)

    def watch(self, session: str = "") -> None:
        """From now on `connection.receive` gives StateEvents, the present state first."""
        self.ask(m.Watch(0, session), m.Done)

    def restart_daemon(self) -> None:
        self._expect(self.connection.ask(m.RestartDaemon(self.connection.next_id())), m.Done)

    def shutdown(self, *, end_sessions: bool = False) -> None:
        request = m.Shutdown(self.connection.next_id(), end_sessions)
        self._expect(self.connection.ask(request), m.Done)

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
        seq, sent = self.next_seq(request.session), False
        for _ in range(2):
            request = request.replace(id=self.connection.next_id(), seq=seq)
            try:
                return self._expect(self.connection.ask(request), m.Accepted)
            except NOT_SENT:
                if not sent:
                    raise
            except HostLost:
                sent = True
            # The number makes sending it again harmless: if it was taken, we are told so.
            self._come_back()
        raise InputUnknown(
            "the host was lost twice before it said whether it took the input",
            hint="look at the screen before you type it again",
        )

    def _come_back(self) -> None:
        try:
            self.reconnect()
        except HoldfastError as error:  # also when we are not let in again: it may be typed
            raise InputUnknown(
                "the host was lost before it said whether it took the input",
                hint="look at the screen before you type it again",
            ) from error

    # -- answers ------------------------------------------------------------------------------

    def ask(self, request: m.Request, kind: type[A]) -> A:
        """Ask something that may be asked twice: once more if the daemon is replaced meanwhile."""
        for attempt in range(2):
            try:
                numbered = request.replace(id=self.connection.next_id())
                return self._expect(self.connection.ask(numbered), kind)
            except HostLost:
                if attempt:
                    raise
                self.reconnect()
        raise AssertionError("unreachable")

    def _expect(self, answer: m.Answer, kind: type[A]) -> A:
        if not isinstance(answer, kind):
            raise HostLost(f"the host answered {answer.tag} instead of {kind.tag}")
        return answer
