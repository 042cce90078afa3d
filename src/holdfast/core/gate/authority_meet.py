"""An effect has the authority that all of its contributors have: judged when it is about to happen,
by what each of them may do then.

If any contributor may not write in the session now (revoked, narrowed, expired), the effect is
refused, whoever triggers it: otherwise that actor could act through what it left behind. That a
contributor is somebody other than the trigger is no reason to refuse; policies decide about that.

What the host did by itself, and the state with which the session began, have no contributor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from holdfast.core.access.authority import Authority
from holdfast.model.envelope import Right
from holdfast.model.errors import ActorRevoked, EnvelopeExpired, HoldfastError, NotPermitted
from holdfast.model.gate import Contributor, Outcome, Part, Verdict
from holdfast.model.ids import HOST_ACTOR, SessionId

AUTHORITY = "authority"  # in place of a policy, when a contributor's right is missing


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
                f"{each.name or authority.name(each.actor)} {each.did}: {refusal.message}",
                hint=f"set it again another way, or take it on: `hold adopt NAME {each.what}`"
                if adopts
                else refusal.hint,
            ) from refusal


def refused_by_authority(
    check: Callable[[Iterable[Contributor]], None], contributors: Iterable[Contributor]
) -> Verdict | None:
    """Asked before any policy: the refusal, if one of them may not write now. `check` raises."""
    try:
        check(contributors)
    except HoldfastError as refusal:
        return Verdict(Outcome.REFUSE, refusal.message, policy=AUTHORITY)
    return None
