"""Who may set a policy of the gate, to whose sessions one for a label applies, who sees it, and
what nobody starts without the right to change it.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.core.access import host_rules
from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope, Right, Scope
from holdfast.model.errors import NotPermitted
from holdfast.model.grant import Reach
from holdfast.model.ids import SessionId


def check_for_session(
    authority: Authority, actor: Actor, session: SessionId, labels: tuple[str, ...], now: float
) -> None:
    """That the actor may set the policy of this session."""
    authority.check(actor.id, Right.GRANT, session, labels, now)


def check_for_label(
    authority: Authority, actor: Actor, label: Scope, now: float, live: Collection[Live]
) -> None:
    """That the actor may set the policy for a label: it needs `grant` throughout the label."""
    nothing = Envelope(actor.id, label, (), granted_by=actor.id)
    authority.check_may_give(nothing, Reach.of_scope(label), now=now, live=live)


def check_for_host(authority: Authority, actor: Actor, uid: int, host_uid: int, now: float) -> None:
    """That the actor may set the policy of the whole host, or its floor."""
    host_rules.check(host_rules.HOST_POLICY, authority, actor, uid, host_uid, now)


def label_reaches(set_by_uid: int, session_uid: int | None, host_uid: int) -> bool:
    """A policy for a label applies to the sessions of the unix user who set it; root's, and that of
    the host's own user, to all. `session_uid`: None if it is not known, and then it applies."""
    return set_by_uid in (0, host_uid) or session_uid in (None, set_by_uid)


def may_see_label_policy(asker: Actor, set_by_uid: int) -> bool:
    """That of the host anybody sees, that of a session whoever sees the session."""
    return asker.may_touch(set_by_uid)


def check_may_start(
    authority: Authority,
    actor: Actor,
    session: SessionId,
    labels: tuple[str, ...],
    now: float,
    *,
    gated: bool,
    stays_inside: bool,
) -> None:
    """Where a policy applies, an actor that may not change it starts no session that the policy
    would not reach. `gated`: under the exec gate; `stays_inside`: the workspace is in the working
    directory."""
    if Right.GRANT in authority.rights(actor.id, session, labels, now):
        return
    if not gated:
        raise NotPermitted(
            "a policy applies, so a session without the exec gate needs the right to grant",
            hint="start it without --gate off",
        )
    if not stays_inside:
        raise NotPermitted(
            "a policy applies, so a workspace outside of the working directory needs the right to "
            "grant",
            hint="start it in that directory, or without --workspace",
        )
