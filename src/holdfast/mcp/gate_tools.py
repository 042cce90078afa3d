"""Tools about the gate: what waits for approval, what an action did, and the record that is made of
actions."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from holdfast.mcp import answers
from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.bounding import CELL_MAX_CHARS, FirstRow, one_line, rows_from, rows_of
from holdfast.mcp.read_tools import SessionName
from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.limits import SCORE_DAYS, TURN_TEXT_MAX_CHARS
from holdfast.model.measured import ActionTrace, Effects

ApprovalId = Annotated[
    str, Field(description="from list_approvals, or `held` of an answer", min_length=1)
]
Note = Annotated[
    str, Field(description="why; for people, and recorded", max_length=TURN_TEXT_MAX_CHARS)
]
_CHANGES = 20  # since it was asked, in one answer


class GateLooks:
    """The public methods are the tools that only read, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def list_approvals(self, first: FirstRow = 0) -> answers.ApprovalsAnswer:
        """List what policies hold until enough others approve, in the sessions you may see, with
        what was decided lately. Nobody decides about what it had a part in; your own line that
        waits can be taken back with keys ["C-c"]."""
        page = rows_from(map(_approval, await self._desk.approvals()), first)
        return {"approvals": page.rows, **page.behind}

    async def trace(
        self,
        session: SessionName,
        action: Annotated[
            str,
            Field(
                description="its id (`measured.action`), its key, or its command's number",
                min_length=1,
                max_length=300,
            ),
        ],
        first: FirstRow = 0,
    ) -> answers.TraceAnswer:
        """All about one structured action, from the record: what was declared, what the policy
        decided, how it ended, what it did, what was missing and what was not declared, its score,
        and each step."""
        found = await (await self._desk.session(session)).trace(action, wait=False)
        page = rows_from(_rows(found), first)
        judged = found.score
        shown: answers.TraceAnswer = {
            "action": found.id,
            "actor": found.actor,
            "intent": one_line(found.declared.intent),
            "command": one_line(found.declared.line or " ".join(found.declared.words)),
            "state": found.state,
            "decision": found.decision.outcome,
            "decision_reason": one_line(found.decision.reason),
            "status": found.status,
            "directory": one_line(found.cwd, CELL_MAX_CHARS),
            "seconds": found.seconds,
            "retried_after": list(found.retries),
            "error": one_line(f"{found.message} ({found.code})") if found.code else "",
            "not_measured": [] if found.effects is None else list(found.effects.partial),
            "missing": rows_of("missing", page.rows),
            "undeclared": rows_of("undeclared", page.rows),
            "effects": rows_of("effect", page.rows),
            "steps": rows_of("step", page.rows),
            "score": None if judged is None else judged.score,
            "success": None if judged is None else judged.success,
            "side_effects": None if judged is None else judged.side_effects,
        }
        if found.output_from is not None:
            shown["output_begins"] = found.output_from
        return {**shown, **page.behind}

    async def score(
        self,
        actor: Annotated[str, Field(description="by name; empty is yourself")] = "",
        days: Annotated[int, Field(ge=1, le=SCORE_DAYS)] = 30,
        first: FirstRow = 0,
    ) -> answers.ScoreAnswer:
        """An actor's record over time, which policies may judge by: how its structured actions
        went. `recent` is the mean of its last actions."""
        found = await (await self._desk.hold()).score(actor, days=days)
        by_day: list[answers.ScoreDayRow] = [
            {"day": each.day, "totals": each.totals.pack()} for each in found.days
        ]
        page = rows_from(by_day, first)
        shown: answers.ScoreAnswer = {
            "actor": found.name,
            "score": found.score,
            "recent": found.recent,
            "recent_actions": found.recent_count,
            "totals": found.totals.pack(),
            "days": page.rows,
        }
        return {**shown, **page.behind}


class GateDecisions:
    """The public methods are the tools that decide, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def approve(self, id: ApprovalId, note: Note = "") -> answers.ApprovalAnswer:
        """Approve what a policy holds: needs the right `approve` in its session, and no part in it.
        Read its `text` exactly, who had a part in it, and what changed since. It is judged once
        more before it happens; `status` stays pending while more must approve."""
        await self._desk.check_approval(id)
        return {"approval": _approval(await (await self._desk.hold()).approve(id, note))}

    async def deny(self, id: ApprovalId, note: Note) -> answers.ApprovalAnswer:
        """Refuse for good what a policy holds, and say why: whoever asked is told. Needs the same
        right as approve."""
        await self._desk.check_approval(id)
        return {"approval": _approval(await (await self._desk.hold()).deny(id, note))}


def _approval(held: ApprovalInfo) -> answers.ApprovalRow:
    return {
        "id": held.id,
        "session": held.name,
        "status": held.status,
        "kind": held.kind,
        "text": one_line(held.text),
        "actor": held.actor,
        "contributors": list(dict.fromkeys(each.name for each in held.contributors)),
        "reason": one_line(held.reason),
        "needs": held.quorum,
        "approvers": list(held.approvers),
        "approved_by": list(held.approved_by),
        "changed_since": [one_line(each, CELL_MAX_CHARS) for each in held.changed[:_CHANGES]],
        "expires_in_s": round(max(0.0, held.expires_at - time.time())),
    }


def _rows(trace: ActionTrace) -> list[tuple[str, Any]]:
    """The rows of a trace, each with its kind."""
    found: list[tuple[str, Any]] = []
    found += (("missing", f"{each.kind}: {each.what}") for each in trace.missing)
    found += (("undeclared", f"{each.kind}: {each.what}") for each in trace.unexpected)
    if trace.effects is not None:
        found += (("effect", text) for text in _effects(trace.effects))
    cut = [(kind, one_line(text, CELL_MAX_CHARS)) for kind, text in found]
    steps = (
        {"seq": each.seq, "what": each.what, "text": one_line(each.text, CELL_MAX_CHARS)}
        for each in trace.steps
    )
    return [*cut, *(("step", step) for step in steps)]


def _effects(effects: Effects) -> Iterable[str]:
    files = effects.files
    yield from (f"file_created: {path}" for path in files.created)
    yield from (f"file_changed: {path}" for path in files.changed)
    yield from (f"file_deleted: {path}" for path in files.deleted)
    yield from (f"process: {each.command} (pid {each.pid})" for each in effects.processes)
    yield from (f"port_opened: {port}" for port in effects.ports.opened)
    yield from (f"port_closed: {port}" for port in effects.ports.closed)
    yield from (f"env: {each}" for each in effects.env)
    yield from (f"cwd: {each}" for each in filter(None, (effects.cwd,)))
    yield from (f"peer: {each}" for each in effects.peers)
    if effects.left_out:
        yield f"{effects.left_out} more, which are counted and not named"
