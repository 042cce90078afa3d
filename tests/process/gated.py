"""A session behind a real exec gate: real filter, keeper and answerer; the policy is the test's."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import TypeVar

from holdfast.adapters.halt import cgroup
from holdfast.host.gate.answerer_link import AnswererLink
from holdfast.host.gate.command_book import Approved
from holdfast.host.gate.exec_gate import ExecGate
from holdfast.host.session.parcel import SessionSpec
from holdfast.keeper import protocol
from holdfast.model.actor import ActorKind
from holdfast.model.errors import NotPermitted
from holdfast.model.gate import (
    ALLOWED,
    Contributor,
    EffectKind,
    Outcome,
    Part,
    ProposedEffect,
    Verdict,
)
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.state import Level
from process.launching import Running
from process.waiting import PATIENCE_S

T = TypeVar("T")
ANN, BOB = (ActorId.of_key(name.encode() * 8) for name in ("ann", "bob"))
NAMES = {ANN: "ann", BOB: "bob"}


class RulePolicy:
    """Judged by one function, for the kinds that it concerns."""

    def __init__(self) -> None:
        self.rule: Callable[[ProposedEffect], Verdict] | None = None
        self.kinds: tuple[EffectKind, ...] = (EffectKind.EXEC,)
        self.on = True
        self.seen: list[ProposedEffect] = []

    def in_force(self, session: str, labels: tuple[str, ...]) -> bool:
        return self.on

    def concerns(self, session: str, labels: tuple[str, ...], kind: EffectKind) -> bool:
        return self.on and self.rule is not None and kind in self.kinds

    def judge(self, effect: ProposedEffect) -> Verdict:
        self.seen.append(effect)
        return self.rule(effect) if self.rule is not None else ALLOWED


def refusing(*names: str) -> Callable[[ProposedEffect], Verdict]:
    """Programs, or files, by the last part of their path."""

    def rule(effect: ProposedEffect) -> Verdict:
        if effect.path.rsplit("/", 1)[-1] in names:
            return Verdict(Outcome.REFUSE, "the test says no", "session")
        return ALLOWED

    return rule


class HeldEffects:
    """What waits for approval."""

    def __init__(self) -> None:
        self.waiting: dict[str, Callable[[], None]] = {}
        self.answers: dict[str, tuple[ActorId, ...] | None] = {}
        self.dropped: list[str] = []

    def hold(
        self, key: str, effect: ProposedEffect, verdict: Verdict, decided: Callable[[], None]
    ) -> tuple[ActorId, ...] | None:
        if key not in self.answers:
            self.waiting[key] = decided
        return self.answers.get(key, ())

    def drop(self, key: str) -> None:
        self.waiting.pop(key, None)
        self.dropped.append(key)

    def decide(self, approvers: tuple[ActorId, ...] | None) -> None:
        for key, decided in list(self.waiting.items()):
            self.answers[key] = approvers
            del self.waiting[key]
            decided()


class GroupsAndFiles:
    """Who is behind a process, by its group, and who wrote which file: without a journal."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._read: dict[str, list[Contributor]] = {}
        self.line: Approved | None = None  # that started everything, and was approved
        self._files: dict[tuple[int, int], tuple[ActorId, ...]] = {}

    def of_group(self, membership: str) -> tuple[Contributor, ...]:
        actors = cgroup.actors_in(membership, self._directory) or (ANN,)
        first, *others = map(ActorId, actors)
        typed = [_contributor(each, Part.TYPED) for each in others]
        read = self._read.get(membership, [])
        return (_contributor(first, Part.TRIGGER), *typed, *read)

    def approved(self, membership: str) -> Approved | None:
        return self.line

    def of_file(self, device: int, inode: int, path: str) -> tuple[Contributor, ...]:
        actors = self._files.get((device, inode), ())
        return tuple(_contributor(each, Part.FILE, f"file:{path}") for each in actors)

    def of_state(self, key: str) -> tuple[Contributor, ...]:
        return ()

    def wrote(self, membership: str, device: int, inode: int, path: str, *, adds: bool) -> None:
        before = self._files.get((device, inode), ()) if adds else ()
        actors = [each.actor for each in self.of_group(membership)]
        self._files[device, inode] = tuple(dict.fromkeys((*actors, *before)))

    def read(self, membership: str, device: int, inode: int) -> None:
        own = {each.actor for each in self.of_group(membership)}
        for each in self.of_file(device, inode, "read"):
            if each.actor not in own:
                self._read.setdefault(membership, []).append(each)

    def learns(self, membership: str, of: str) -> None:
        behind = [each.replace(part=Part.INPUT) for each in self.of_group(of)]
        self._read.setdefault(membership, []).extend(behind)

    def another_command(self) -> None:
        """What was read before has nothing to do with it."""
        self._read.clear()

    def files(self) -> Iterable[tuple[str, int, int]]:
        return ()

    def everybody(self) -> tuple[Contributor, ...]:
        found = dict.fromkeys((ANN, *(actor for actor, _ in cgroup.parts(self._directory))))
        return tuple(_contributor(ActorId(each), Part.TYPED) for each in found)

    def close(self) -> None:
        pass


def _contributor(actor: ActorId, part: Part, what: str = "") -> Contributor:
    kind = ActorKind.AGENT if actor == ANN else ActorKind.HUMAN
    return Contributor(actor, NAMES[actor], kind, part, what)


class Gated:
    """As a daemon has it. Inside of a running loop."""

    def __init__(self, running: Running, policy: RulePolicy, run: str) -> None:
        self.running, self.policy, self.run = running, policy, run
        self.revoked: set[str] = set()
        self.recorded: list[tuple[ProposedEffect, Verdict]] = []
        self.held = HeldEffects()
        self.behind = GroupsAndFiles(running.place.cgroup)
        self.begin()

    def begin(self) -> None:
        """Also another daemon's beginning, after `die`."""
        self.link = AnswererLink(self.run)
        self.gate = ExecGate(
            _spec(self.running),
            self.running.gate,
            self.running.gate_page,
            self,
            self.link,
            self.policy,
            self.behind,
            check_rights=self._check,
            epoch=lambda: 1,
            turn_holder=lambda: "",
            record=lambda effect, verdict: self.recorded.append((effect, verdict)),
            judge=self._judge,
            spawn=asyncio.ensure_future,
            approvals=self.held,
        )
        self.gate.start()

    def replace_daemon(self) -> None:
        """It dies, and another one finds the gate as it was."""
        process = self.link._process
        self.link.close()
        self.gate.close(keep=True)
        self.begin()
        if self.link._process is None:
            self.link._process = process

    def kill_answerer(self) -> None:
        assert self.link._process is not None
        self.link._process.kill()

    def end(self) -> None:
        self.gate.close(keep=False)
        self.link.close()
        if self.link._process is not None:
            self.link._process.kill()
            self.link._process.wait()

    def leave_gate(self) -> None:
        """As the daemon's link to the keeper: asks, and hears."""
        protocol.send(self.running.keeper, protocol.GATE)
        loop = asyncio.get_running_loop()

        def heard() -> None:
            news = protocol.receive(self.running.keeper)
            assert news is not None and news.kind == "G"
            loop.remove_reader(self.running.keeper)
            self.gate.keeper_left()

        loop.add_reader(self.running.keeper, heard)

    def writes(self, *actors: str) -> None:
        """These write now: what the shell starts is theirs."""
        place = self.running.place
        leaf = cgroup.leaf(place.cgroup, actors[0], actors[1:])
        self.gate.new_contributor()
        cgroup.enter(leaf, place.shell_pid)

    def set_rule(self, rule: Callable[[ProposedEffect], Verdict] | None) -> None:
        self.policy.rule = rule
        self.gate.changed()

    def revoke(self, actor: str) -> None:
        self.revoked.add(actor)
        self.gate.changed()

    async def _judge(self, effect: ProposedEffect) -> Verdict:
        return self.policy.judge(effect)

    async def ask(self, command: str) -> str:
        """What the shell prints for it."""
        return await asyncio.to_thread(self.running.ask, command)

    async def until(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not what():
                await asyncio.sleep(0.005)

    def _check(self, contributors: Iterable[Contributor]) -> None:
        for each in contributors:
            if each.actor in self.revoked:
                raise NotPermitted(f"{each.name} may not write here")


def _spec(running: Running) -> SessionSpec:
    return SessionSpec(
        id=SessionId.of_key(b"gated"),
        name="gated",
        uid=os.getuid(),
        user="root",
        argv=("sh",),
        cwd="/",
        level=Level.CONTAINED,
        epoch=1,
        created_at=0.0,
        place=running.place,
        shell="",
        is_shell=True,
        nonce="",
        created_by=ANN,
    )


def run_directory() -> str:
    return tempfile.mkdtemp(prefix="hf-gate-", dir="/tmp")
