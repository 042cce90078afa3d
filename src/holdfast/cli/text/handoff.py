"""What happened in a session since somebody last had its turn, or last looked, for people to read.

Every line is safe for a terminal: what programs and other actors wrote is made harmless."""

from __future__ import annotations

import time
from collections.abc import Iterator

from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, clock, counted
from holdfast.model.change_text import text as change_text
from holdfast.model.info import CommandRecord
from holdfast.model.turn_info import Handoff, TurnMove


def lines(handoff: Handoff, now: float) -> Iterator[str]:
    """The whole of it; a section that would be empty is left out."""
    yield _since(handoff, now)
    if handoff.halted:
        yield "HALTED: everything in it is frozen; `hold resume` resumes it"
    yield f"directory: {sanitize(handoff.cwd)}"
    if handoff.unsubmitted or not handoff.unsubmitted_known:
        by = ", ".join(map(sanitize, handoff.unsubmitted_by)) or "somebody"
        text = sanitize(handoff.unsubmitted)
        if not handoff.unsubmitted_known:
            text = "not known; the shell did not say, or was not asked"
        yield f"at the prompt, not submitted, typed by {by}: {text}"
    yield from _section("commands", [_command(each) for each in handoff.commands])
    if handoff.commands_left_out:
        yield f"  and {handoff.commands_left_out} before these"
    yield from _section("turn", [_move(each) for each in handoff.moves])
    yield from _section("changed in the shell", [change_text(each) for each in handoff.changes])
    if not handoff.changes_known:
        yield "what changed in the shell: not known, there is no earlier look to compare with"
    elif not handoff.changes:
        yield "changed in the shell: nothing"
    yield from _section("background jobs", [sanitize(job) for job in handoff.jobs])
    if handoff.refused:
        yield f"refused: {counted(handoff.refused, 'request')}"
    if handoff.blind_bytes:
        yield f"typed blind: {counted(handoff.blind_bytes, 'byte')}, kept nowhere"


def _since(handoff: Handoff, now: float) -> str:
    records = f"journal records {handoff.since_seq + 1} to {handoff.through_seq}"
    if handoff.through_seq <= handoff.since_seq:
        records = "no new journal record"
    if handoff.since_at is None:
        return f"from the beginning: {records}"
    return f"since {clock(handoff.since_at)}, {ago(now - handoff.since_at)} ago: {records}"


def _section(title: str, found: list[str]) -> Iterator[str]:
    if found:
        yield f"{title}:"
        yield from (f"  {line}" for line in found)


def _command(command: CommandRecord) -> str:
    others = [sanitize(name) for name in command.authors if name != command.actor]
    by = sanitize(command.actor) or "the host"
    if others:
        by += f" with {', '.join(others)}"
    return f"{_time(command.began_at)}  {by}  {sanitize(command.text)}  ({_status(command)})"


def _status(command: CommandRecord) -> str:
    if command.status is None or command.ended_at is None:
        return "no end reported"
    return f"status {command.status}, {command.ended_at - command.began_at:.1f} s"


def _move(move: TurnMove) -> str:
    before, holder = sanitize(move.before) or "nobody", sanitize(move.holder) or "nobody"
    reason = f": {sanitize(move.reason)}" if move.reason else ""
    return f"{_time(move.at)}  {before} -> {holder} ({move.step}{reason})"


def _time(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
