"""A session is judged before it is started. What it would run is judged both as a command line and
as a program, so that a rule about either holds, and nobody gets around a policy by starting another
session instead of entering a line.

A start is never held: there is no session yet in which it could wait and be looked at. Whoever may
start one can start a shell and enter the same line there, where it waits.

Not judged here: what is typed later (session_gate.py), and what its programs do (exec_gate.py).
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import shutil
from functools import partial

from holdfast.core.access.authority import Authority
from holdfast.core.access.policy_rules import check_may_start
from holdfast.core.gate.authority_meet import check_contributors, refused_by_authority
from holdfast.core.gate.verdicts import refusal_text, strictest
from holdfast.host.gate.judge import Judge
from holdfast.host.gate.judged_entry import judged_entry
from holdfast.journal.entries import JudgedEntry
from holdfast.model.actor import Actor
from holdfast.model.errors import GateRefused
from holdfast.model.gate import Contributor, EffectKind, Outcome, Part, ProposedEffect, Verdict
from holdfast.model.home import is_within
from holdfast.model.ids import SessionId
from holdfast.model.record import Record

log = logging.getLogger(__name__)

# What a shell runs by itself, before anybody has entered a line; of a prompt, what is substituted.
_RUN_BY_SHELLS = ("BASH_ENV", "ENV", "PROMPT_COMMAND")
_PROMPTS = ("PS0", "PS1", "PS2", "PS4")


class ProposedStart(Record):
    """A session that somebody wants to start."""

    session: SessionId
    name: str
    labels: tuple[str, ...]
    level: str
    epoch: int
    argv: tuple[str, ...]
    cwd: str
    workspace: str
    env: dict[str, str]
    gated: bool  # under the filter of the exec gate, if its level has one


async def judge_start(
    judge: Judge, authority: Authority, actor: Actor, start: ProposedStart, now: float
) -> JudgedEntry | None:
    """What the session's journal says of it; None: no policy applies. Raises GateRefused, and
    NotPermitted for what would take the session out of a policy's reach."""
    if not judge.policy.in_force(start.session, start.labels):
        return None
    check_may_start(
        authority,
        actor,
        start.session,
        start.labels,
        now,
        gated=start.gated,
        stays_inside=await asyncio.to_thread(_stays_inside, start),
    )
    program = await asyncio.to_thread(_program, start)
    effect = _effect(actor, start, program)
    verdict = await _verdict(judge, authority, effect, now)
    if verdict.outcome is Outcome.ALLOW:
        return judged_entry(effect, verdict)
    log.warning(
        "%s (%s) did not get to start %s: %s, by %s: %s",
        *(actor.name, actor.id, judged_entry(effect, verdict).text),
        *(verdict.outcome, verdict.policy or "no rule", verdict.reason),
    )
    if verdict.outcome is Outcome.HOLD:
        raise GateRefused(
            refusal_text(
                verdict, "the policy holds it, and the start of a session cannot wait for approval"
            ),
            hint="start a shell and enter it there, where it waits",
        )
    raise GateRefused(refusal_text(verdict, "the policy refuses to start it"))


async def _verdict(
    judge: Judge, authority: Authority, effect: ProposedEffect, now: float
) -> Verdict:
    check = partial(
        check_contributors,
        authority=authority,
        session=effect.session,
        labels=effect.labels,
        now=now,
    )
    refusal = refused_by_authority(check, effect.contributors)
    if refusal is not None:
        return refusal
    as_line = effect.replace(kind=EffectKind.LINE)
    return strictest([await judge.judge(each) for each in (as_line, effect)])


def _stays_inside(start: ProposedStart) -> bool:
    return is_within(os.path.realpath(start.workspace), os.path.realpath(start.cwd))


def _program(start: ProposedStart) -> str:
    """The file that would run."""
    found = shutil.which(start.argv[0], path=start.env.get("PATH", os.defpath))
    return os.path.realpath(found) if found else start.argv[0]


def _effect(actor: Actor, start: ProposedStart, program: str) -> ProposedEffect:
    runs = [name for name in _RUN_BY_SHELLS if name in start.env]
    runs += [name for name in _PROMPTS if re.search(r"\$\(|`", start.env.get(name, ""))]
    sets = [f"{name}={shlex.quote(start.env[name])}" for name in runs]
    return ProposedEffect(
        start.session,
        start.name,
        start.labels,
        start.level,
        start.epoch,
        EffectKind.EXEC,
        actor.id,
        (Contributor(actor.id, actor.name, actor.kind, Part.TRIGGER),),
        text=" ".join((*sets, shlex.join(start.argv))),
        argv=start.argv,
        path=program,
        cwd=start.cwd,
        workspace=start.workspace,
        environment=tuple(f"{name}={value}" for name, value in start.env.items()),
    )
