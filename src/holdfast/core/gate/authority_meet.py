"""An effect has the authority that all of its contributors have: judged when it is about to happen,
by what each of them may do then.

A contributor that may not write in the session now (revoked, narrowed, expired) makes the effect
refused, whoever sets it off: else it could act through what it left behind. That an actor is not
the one who sets it off is no reason: being foreign is left to policies.

What the host did by itself, and the state with which the session began, have no contributor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast.core.access.authority import Authority
from holdfast.model.envelope import Right
from holdfast.model.errors import ActorRevoked, EnvelopeExpired, NotPermitted
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import HOST_ACTOR, SessionId

_DID = {
    Part.TRIGGER: "sets it off",
    Part.TYPED: "typed a part of it",
    Part.INPUT: "typed into the program that does it",
    Part.STATE: "set {what}, which it uses",
    Part.FILE: "wrote {what}, which it uses",
    Part.SHAPED: "wrote in the shell when nobody could see what it changed",
}


def check_contributors(
    contributors: Iterable[Contributor],
    authority: Authority,
    session: SessionId,
    labels: Collection[str],
    now: float,
) -> None:
    """Nothing, or the refusal: which contributor may not write, and what it has to do with it."""
    judged: set[str] = set()
    for each in contributors:
        if each.actor == HOST_ACTOR or each.actor in judged:
            continue
        judged.add(each.actor)
        try:
            authority.check(each.actor, Right.INPUT, session, labels, now)
        except (NotPermitted, ActorRevoked, EnvelopeExpired) as refusal:
            adopts = each.part in (Part.STATE, Part.FILE) and each.what
            raise type(refusal)(
                f"{each.name or authority.name(each.actor)} {did(each)}: {refusal.message}",
                hint=f"set it again another way, or take it on: `hold adopt NAME {each.what}`"
                if adopts
                else refusal.hint,
            ) from refusal


def did(contributor: Contributor) -> str:
    """How this actor had a part in the effect, for people."""
    text = _DID[contributor.part].format(what=contributor.what or "state of the shell")
    command = contributor.command
    return f"{text} (command {command})" if command else text
