"""Operators that keep doing one thing while the daemon is killed under them."""

from __future__ import annotations

import threading
from collections import Counter

from faults.hosting import FaultHost
from holdfast.model.errors import HoldfastError, HostDown, HostLost
from holdfast.model.info import SessionInfo
from holdfast.model.state import Level
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from process.waiting import until

_LOST = (HostLost, HostDown)


class Bystander(threading.Thread):
    """Repeats `act` until stopped, and comes back whenever the host is lost."""

    def __init__(self, host: FaultHost) -> None:
        super().__init__(daemon=True)
        self.host = host
        self.client = Host(path=host.socket)
        self.stop = threading.Event()
        self.seen_faults: list[str] = []
        self.done = 0

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                self.act()
                self.done += 1
            except _LOST:
                self.lost()
                self.client.reconnect()
            except HoldfastError as error:
                self.seen_faults.append(f"{error.code}: {error}")
        self.client.close()

    def act(self) -> None:
        raise NotImplementedError

    def lost(self) -> None:
        """The host was lost while acting."""

    def faults(self) -> list[str]:
        return self.seen_faults[:5] or ([] if self.done else ["it never got anything done"])


class Runner(Bystander):
    """Starts a session and ends it, in turn at each level."""

    def act(self) -> None:
        level = (Level.PLAIN, Level.CONTAINED)[self.done % 2]
        # It ignores a hang-up: left half started, it would stay for ever.
        info = self.client.run(
            ["/bin/sh", "-c", "trap '' HUP; sleep 1000; :"],
            level=level,
            env={"HOLDFAST_TEST_HOME": str(self.host.home), "PATH": "/usr/bin:/bin"},
        )
        self.end(info)

    def end(self, info: SessionInfo) -> None:
        self.client.signal(info.id, 9)
        shown = until("it ended", lambda: self._ended(info.id))
        if shown.ending is None or (shown.ending.signal, shown.ending.code) == (None, 0):
            self.seen_faults.append(f"killed, but its end is {shown.ending}")

    def _ended(self, session: str) -> SessionInfo | None:
        shown = self.client.show(session)
        return shown if shown.ending is not None else None

    def faults(self) -> list[str]:
        # A start whose answer was lost may be whole: then it is listed, and can be ended.
        with Host(path=self.host.socket) as client:
            for info in client.sessions():
                if "sleep 1000" in info.argv[-1]:
                    client.end(info.id)
        return super().faults()


class Attacher(Bystander):
    """Attaches with a view, gets its screen, leaves."""

    def __init__(self, host: FaultHost, session: str) -> None:
        super().__init__(host)
        self.session = session

    def act(self) -> None:
        connection = self.client.connection
        connection.ask(m.Attach(connection.next_id(), self.session, 3))
        while not isinstance(connection.receive(20), m.Resync):
            pass
        connection.ask(m.Detach(connection.next_id(), 3), 20)


class Executor(Bystander):
    """Runs numbered commands in a bash session; the file it appends to tells the truth."""

    def __init__(self, host: FaultHost) -> None:
        super().__init__(host)
        self.file = host.work / "executed"
        self.number = 0
        self.finished: list[int] = []
        self.session = self.client.run(["bash", "--norc"], name="executor").id

    def act(self) -> None:
        connection = self.client.connection
        self.number += 1
        command = f"echo {self.number} >> {self.file}"
        seq = self.client.next_seq(self.session)
        request = m.Exec(connection.next_id(), self.session, seq, command)
        try:
            answer = connection.ask(request, 20)
        except HoldfastError as error:
            if error.code == "session_busy":  # a command whose end nobody was told of runs still
                return
            raise
        while not isinstance(answer, m.ExecEnded):
            answer = connection.answer_to(request.id, 20)
        if answer.status == 0:
            self.finished.append(self.number)

    def faults(self) -> list[str]:
        counts = Counter(self.file.read_text().split())
        twice = [f"executed {count} times: {n}" for n, count in counts.items() if count > 1]
        lost = [f"said done, never ran: {n}" for n in self.finished if not counts[str(n)]]
        return [*super().faults(), *twice, *lost][:5]
