"""Requests about whether a session could be moved: facts are gathered in a thread, and judged in
core.continuity.movability."""

from __future__ import annotations

import asyncio
import os
import platform
from typing import Protocol

from holdfast.adapters.proc import headroom, move_facts
from holdfast.adapters.proc.terminal import identity
from holdfast.core.continuity.movability import for_target, judge, lacking
from holdfast.host import levels
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.continuity.workspace_files import plan
from holdfast.model.graph import Graph
from holdfast.model.home import Home
from holdfast.model.movability import HostAbility, Movability, MoveTarget
from holdfast.model.spec import Place
from holdfast.model.state import Level
from holdfast.wire.messages import preflight as m


class PlacedSpec(Protocol):
    """Where a session runs, and at which level."""

    @property
    def place(self) -> Place: ...

    @property
    def level(self) -> Level: ...

    @property
    def capture(self) -> tuple[str, ...]:
        """Directories that its checkpoints have."""
        ...


class TerminalFds(Protocol):
    @property
    def master(self) -> int: ...


class MovableSession(Protocol):
    """A live session, as far as it is looked at here."""

    @property
    def spec(self) -> PlacedSpec: ...

    @property
    def fds(self) -> TerminalFds: ...

    def graph(self, master: int) -> Graph: ...


class PreflightRequests:
    """Handlers of one host."""

    def __init__(self, home: Home, capture_max_bytes: int, labels: tuple[str, ...]) -> None:
        """`labels`: this host's."""
        self._home, self._capture_max, self._labels = home, capture_max_bytes, labels

    async def can_move(
        self, _: OperatorConnection, request: m.CanMove, live: MovableSession
    ) -> m.CanMoveShown:
        master = os.dup(live.fds.master)
        try:
            found = await asyncio.to_thread(_look, live, master, files=request.files)
        finally:
            os.close(master)
        if live.spec.level.reaches(Level.MOVABLE):
            files = await asyncio.to_thread(
                plan, live.spec.place, live.spec.capture, self._home, self._capture_max
            )
            found = found.replace(capture=files)
        if request.target is not None:
            found = for_target(found, request.target)
        return m.CanMoveShown(request.id, found)

    async def can_take(self, _: OperatorConnection, request: m.CanTake) -> m.CanTakeShown:
        return await asyncio.to_thread(_compare, request, self._labels)


def _look(live: MovableSession, master: int, *, files: bool) -> Movability:
    place = live.spec.place
    try:
        tty = identity(place, master)
    except OSError:  # the terminal is gone
        tty = None
    facts = move_facts.gather(live.graph(master), place.pid, tty)
    needs = move_facts.needed_files(each.process.pid for each in facts) if files else ()
    ability = HostAbility(live.spec.level, os.geteuid() == 0, levels.criu_version())
    found = judge(facts, ability, needs)
    return found.replace(isa=platform.machine(), kernel=platform.release())


def _compare(request: m.CanTake, labels: tuple[str, ...]) -> m.CanTakeShown:
    found = (lacking(each, move_facts.file_at("", each.path)) for each in request.files)
    target = MoveTarget(
        "",
        platform.machine(),
        platform.release(),
        levels.criu_version(),
        tuple(each for each in found if each is not None),
        labels,
        headroom.machine_bytes(),
    )
    return m.CanTakeShown(request.id, target)
