"""Tools that take a session to disk and bring it back. The host decides whether this agent may."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Annotated, TypeVar

from pydantic import Field

from holdfast.mcp import answers
from holdfast.mcp.agent_desk import WAIT_MAX_S, AgentDesk
from holdfast.mcp.bounding import CELL_MAX_CHARS, FirstRow, one_line, rows_from
from holdfast.mcp.read_tools import SessionName
from holdfast.model.errors import NoSuchCheckpoint, TimedOut
from holdfast.model.limits import CHECKPOINT_NOTE_MAX_CHARS
from holdfast.model.movability import Movability, MoveFinding, MoveVerdict, ProcessMovability
from holdfast.model.restore import PeerReset

T = TypeVar("T")


class ContinuityLooks:
    """The public methods are the tools that only read, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def can_move(self, session: SessionName, first: FirstRow = 0) -> answers.CanMoveAnswer:
        """Ask whether a session could be checkpointed now: what stands in the way, or would be lost
        by it, in which process, why, and what to do about it; and for how long it would be
        frozen. Nothing is touched."""
        found = await (await self._desk.session(session)).can_move()
        page = rows_from(_findings(found), first)
        shown: answers.CanMoveAnswer = {
            "movable": found.movable,
            "level": found.level.value,
            "findings": page.rows,
            "processes": len(found.processes),
            "frozen_ms": round(found.estimate.frozen_ms),
            "bytes": found.estimate.bytes,
        }
        return {**shown, **page.behind}


class ContinuityTools:
    """The public methods are the tools that act, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def checkpoint(
        self,
        session: SessionName,
        note: Annotated[
            str,
            Field(
                description="what it is for; people see it", max_length=CHECKPOINT_NOTE_MAX_CHARS
            ),
        ] = "",
        end: Annotated[
            bool, Field(description="do not run on: it is asleep until it is restored")
        ] = False,
    ) -> answers.CheckpointAnswer:
        """Write a session's processes to disk as they are, so that it can be restored from there:
        before something risky, or with `end` to put it away. It is frozen for a moment, then
        runs on. If that fails it runs on too. Needs the right `checkpoint`; `end` needs the right
        to end it too. A restore does not undo what happened outside of the session's memory."""
        found = await self._desk.session(session)
        made = await _in_time(found.checkpoint(note, end=end), "it is not stored yet")
        return {
            "checkpoint": made.id,
            "session": found.name,
            "state": (await found.info()).state.value,
            "kind": made.kind.value,
            "frozen_ms": round(made.frozen_ms),
            "bytes": made.bytes,
        }

    async def restore(
        self,
        session: SessionName,
        checkpoint: Annotated[
            str, Field(description="its id; empty is the latest of the session", max_length=100)
        ] = "",
    ) -> answers.RestoreAnswer:
        """Bring back a session that is asleep, or that was lost and has a checkpoint: the same id
        and processes, in the next epoch. Connections to programs outside were reset, and what came
        after the checkpoint is not part of it: the answer says what. Needs the right `checkpoint`.
        observe it before you act."""
        found, hold = await self._desk.session(session), await self._desk.hold()
        known = [each.id for each in await hold.checkpoints(found.id)] if checkpoint else []
        if checkpoint and checkpoint not in known:
            raise NoSuchCheckpoint(
                f"{found.name} has no checkpoint {checkpoint[:40]!r}",
                hint="call it without `checkpoint`: the latest is restored",
            )
        back = await _in_time(hold.restore(checkpoint or found.id), "it is not restored yet")
        self._desk.forget_screen(back)
        report = back.restored
        assert report is not None
        page = rows_from(map(_reset, report.reset))
        return {
            "session": back.name,
            "id": back.id,
            "state": back.found.state.value,
            "epoch": report.epoch,
            "checkpoint": report.checkpoint,
            "kind": report.kind.value,
            "inputs_lost": report.inputs_lost,
            "resets": page.rows,
            "left_out": page.left_out,
        }


async def _in_time(work: Awaitable[T], otherwise: str) -> T:
    """Its result. The host goes on with it even if nobody waits, so it is not to be repeated."""
    try:
        return await asyncio.wait_for(work, WAIT_MAX_S)
    except TimeoutError:
        raise TimedOut(
            f"{otherwise}, after {WAIT_MAX_S:g} s; the host goes on",
            hint="do not repeat it: observe the session later, its state says whether it is done",
        ) from None


def _findings(found: Movability) -> list[answers.FindingRow]:
    """The worst first."""
    every = [_finding(each) for each in found.findings]
    every += [_finding(each, owner) for owner in found.processes for each in owner.findings]
    worst = [verdict.value for verdict in reversed(MoveVerdict)]
    return sorted(every, key=lambda row: worst.index(row["verdict"]))


def _finding(finding: MoveFinding, owner: ProcessMovability | None = None) -> answers.FindingRow:
    row: answers.FindingRow = {
        "what": one_line(finding.what, CELL_MAX_CHARS),
        "verdict": finding.verdict.value,
        "why": one_line(finding.why, CELL_MAX_CHARS),
        "remedy": one_line(finding.remedy, CELL_MAX_CHARS),
    }
    if owner is not None:
        row["pid"] = owner.pid
        row["command"] = one_line(owner.command, CELL_MAX_CHARS)
    return row


def _reset(each: PeerReset) -> answers.ResetRow:
    return {
        "process": one_line(each.process, CELL_MAX_CHARS),
        "pid": each.pid,
        "local": one_line(each.local, CELL_MAX_CHARS),
        "peer": one_line(each.peer, CELL_MAX_CHARS),
    }
