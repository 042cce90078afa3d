"""Real sessions for tests, started by the real launcher, each with its real keeper."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
import uuid
from types import TracebackType
from typing import Self

from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch import syscalls
from holdfast.adapters.launch.client import Launcher, end
from holdfast.keeper import protocol
from holdfast.model.ids import SessionId
from holdfast.model.size import Size
from holdfast.model.spec import LaunchSpec
from holdfast.model.state import Ending, Level
from holdfast.ports.launch import Launched
from process.waiting import PATIENCE_S, read_until, wait_child

PATH = "/usr/local/bin:/usr/bin:/bin"


def spec(
    *argv: str,
    level: Level,
    cwd: str = "/",
    env: dict[str, str] | None = None,
    uid: int | None = None,
    gid: int | None = None,
    groups: tuple[int, ...] = (),
    hostname: str = "",
    gate: bool = False,
) -> LaunchSpec:
    return LaunchSpec(
        session=SessionId.of_key(os.urandom(32)),
        argv=argv,
        env={"PATH": PATH, "TERM": "xterm", "PS1": "$ ", "LC_ALL": "C", **(env or {})},
        cwd=cwd,
        uid=os.geteuid() if uid is None else uid,
        gid=os.getegid() if gid is None else gid,
        groups=groups,
        size=Size(100, 30),
        level=level,
        hostname=hostname,
        gate=gate,
    )


class Running:
    """One launched session and what a test does with it."""

    def __init__(self, launched: Launched) -> None:
        self.place = launched.place
        self.master = launched.master
        self.pidfd = launched.pidfd
        self.gate, self.gate_page = launched.gate, launched.gate_page
        self.keeper_pid = launched.keeper_pid
        self.keeper = socket.socket(fileno=launched.keeper)
        self.keeper.settimeout(PATIENCE_S)
        nowhere = protocol.RingPlace("master", "master", "master", 0, 1, 0)
        deposit = protocol.deposit(["master"], b"", nowhere, protocol.LEAVE_OUTPUT)
        protocol.send(self.keeper, deposit, [self.master])
        self.ended: Ending | None = None
        self._marks = 0

    def type(self, line: str) -> None:
        os.write(self.master, line.encode() + b"\n")

    def until(self, wanted: str) -> str:
        return read_until(self.master, wanted.encode()).decode(errors="replace")

    def ask(self, command: str) -> str:
        """What a shell at its prompt prints for a command. The marks are split by quotes where
        they are echoed, so only the printed ones match."""
        self._marks += 1
        begin, end = f"<{self._marks}:", f":{self._marks}>"
        self.type(f"echo '{begin[0]}''{begin[1:]}'; {command}; echo '{end[0]}''{end[1:]}'")
        seen = self.until(end)
        return seen.partition(begin)[2].partition(end)[0].replace("\r\n", "\n").strip()

    def finish(self) -> Ending:
        """Wait for the end, and for what its keeper says of it."""
        if self.ended is None:
            news = protocol.receive(self.keeper)
            while news is not None and news.kind == "G":  # nobody waited for that
                news = protocol.receive(self.keeper)
            assert news is not None and news.kind == "E" and news.status is not None
            self.ended = Ending(code=news.status.get("code"), signal=news.status.get("signal"))
        return self.ended

    def close(self) -> None:
        if self.ended is None:
            end(self.place)
            self.finish()
        protocol.send(self.keeper, protocol.RELEASE)
        assert protocol.receive(self.keeper) is None, "it exits, and says nothing more"
        self.keeper.close()
        os.close(self.master)
        os.close(self.pidfd)
        for fd in {self.gate, self.gate_page} - {-1}:
            os.close(fd)
        if self.place.cgroup:
            assert cgroup.kill(self.place.cgroup, PATIENCE_S)
            assert cgroup.remove(self.place.cgroup)


class Sessions:
    """A launcher under a subreaper, and everything it started, cleaned up at the end."""

    def __init__(self, level: Level, *, nofile: int = 0) -> None:
        syscalls.become_subreaper()
        self.level = level
        self.instance = f"test-{uuid.uuid4().hex[:8]}"
        self.running: list[Running] = []
        self._runner = asyncio.Runner()
        self.keepers = tempfile.mkdtemp(prefix="hf-", dir="/tmp")
        self._launcher = self._runner.run(_make(self.instance, self.keepers, nofile))

    def launch(
        self,
        *argv: str,
        inherit: dict[int, int] | None = None,
        cwd: str = "/",
        env: dict[str, str] | None = None,
        uid: int | None = None,
        gid: int | None = None,
        groups: tuple[int, ...] = (),
        hostname: str = "",
        gate: bool = False,
    ) -> Running:
        wanted = spec(
            *argv,
            level=self.level,
            cwd=cwd,
            env=env,
            uid=uid,
            gid=gid,
            groups=groups,
            hostname=hostname,
            gate=gate,
        )
        return self.adopt(self._runner.run(self._launcher.launch(wanted, inherit or {})))

    def launch_many(self, count: int, *argv: str) -> list[Running]:
        async def all_at_once() -> list[Launched]:
            asked = (self._launcher.launch(spec(*argv, level=self.level), {}) for _ in range(count))
            return list(await asyncio.gather(*asked))

        return [self.adopt(launched) for launched in self._runner.run(all_at_once())]

    def cancel_launch(self, *argv: str) -> None:
        """Ask for a session, and go away before it is there."""

        async def changed_mind() -> None:
            asked = asyncio.ensure_future(
                self._launcher.launch(spec(*argv, level=self.level), {}),
            )
            await asyncio.sleep(0)  # let it be asked for
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            # Queued behind it: when this one is there, the other has been dealt with.
            self.adopt(await self._launcher.launch(spec("true", level=self.level), {}))

        self._runner.run(changed_mind())

    def break_launch(self, *argv: str) -> None:
        """Kill the launcher in the middle of a launch: after it forked, before it answered. Gives
        only when its helper has been reaped here."""

        async def broken() -> None:
            asked = asyncio.ensure_future(
                self._launcher.launch(spec(*argv, level=self.level), {}),
            )
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            helper = wait_child(wait_child(os.getpid()))
            wait_child(helper)
            os.kill(self.launcher_pid(), signal.SIGKILL)
            try:
                await asked
            finally:
                os.waitpid(helper, 0)

        self._runner.run(broken())

    def adopt(self, launched: Launched) -> Running:
        self.running.append(Running(launched))
        return self.running[-1]

    def launcher_pid(self) -> int:
        process = self._launcher._process
        assert process is not None
        return process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in self.running:
            session.close()
        self._runner.run(self._launcher.close())
        self._runner.close()
        os.rmdir(self.keepers)  # every keeper has removed its socket
        home = cgroup.home(self.instance)
        if home is not None and os.path.isdir(home):
            left = cgroup.leftovers(home)
            cgroup.remove(home)
            assert left == [], "groups were left behind"


async def _make(instance: str, keepers: str, nofile: int) -> Launcher:
    return Launcher(instance, keepers, nofile=nofile)
