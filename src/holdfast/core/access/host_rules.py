"""What each request needs before its handler runs: one row per request tag.

A row says which right the actor needs for all (`right`), what the request is about (`scope`), and
what counts besides envelopes (`host_user`, `even_revoked`). A request about a session needs the
right to observe it: to everybody else it does not exist (visibility.py). What is then *done* to a
session is an event, and the session machine judges that (core.session).

`all` means the sessions of the actor's unix user; of root's actors, every session. A request that
changes the host itself changes it for every user, so its row says `host_user` as well.

Some requests name something with rules of its own: an envelope, an invite, a device. The functions
below the table judge these, each with the rule that its row mentions.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto

from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope, Right
from holdfast.model.errors import ActorRevoked, NotPermitted
from holdfast.model.grant import Reach
from holdfast.model.invite import Invite
from holdfast.model.record import Record


class About(Enum):
    """What a request is about."""

    HOST = auto()  # the host, or something that is no session
    LIVE = auto()  # a session that runs
    KNOWN = auto()  # a session that runs or has ended
    ANY = auto()  # the same, or every session when it names none


class Rule(Record):
    """What an actor needs for one request."""

    scope: About
    right: Right | None = None  # needed for all: the actor's sessions, also those to come
    # Host-wide: connection and actor must both be of root, or of the user the host runs as. Through
    # a relay the actor's unix user counts alone: that of whoever invited it.
    host_user: bool = False
    even_revoked: bool = False  # an actor that was revoked may ask this too


_LIVE, _KNOWN, _ANY = Rule(About.LIVE), Rule(About.KNOWN), Rule(About.ANY)
_EVERYONE = Rule(About.HOST)
_OWN_ACTORS = Rule(About.HOST, Right.GRANT)  # those of the asker's unix user
_HOST_WIDE = Rule(About.HOST, Right.GRANT, host_user=True)

RULES: dict[str, Rule] = {
    # Sessions. `list` and `watch` without a name leave out what the actor may not observe.
    "run": Rule(About.HOST, Right.INPUT),  # as which unix user: check_may_run_as
    "list": _EVERYONE,
    "show": _KNOWN,
    "graph": _LIVE,
    "can_move": _LIVE,
    "screen": _KNOWN,
    "attach": _KNOWN,
    "detach": _EVERYONE,  # a channel of its own
    "share": _LIVE,
    "watch": _ANY,
    "rename": _LIVE,
    "pin": _LIVE,
    "detach_terminals": _LIVE,
    "end": _KNOWN,
    # And the right to end it there: as a session is started, and as its loss is acknowledged.
    "revive": Rule(About.KNOWN, Right.INPUT),
    "acknowledge": _ANY,  # and the right to end it; without a name, those it may end
    "move": _LIVE,  # and the rights `checkpoint` and `end` there
    "checkpoint": _LIVE,  # and the right `checkpoint` there; to end it with that, `end`
    "checkpoints": _ANY,
    "delete_checkpoint": _EVERYONE,  # the same right as for `restore`
    "restore": _EVERYONE,  # the right `checkpoint` in the session that the checkpoint is of
    # Ways in.
    "input": _LIVE,
    "submit": _LIVE,
    "keys": _LIVE,
    "exec": _LIVE,
    "action": _LIVE,
    "resize": _LIVE,
    "signal": _LIVE,
    "forward": _LIVE,
    # Turn and halt.
    "turn": _LIVE,
    "request_turn": _LIVE,
    "withdraw_turn": _LIVE,
    "grant_turn": _LIVE,
    "yield_turn": _LIVE,
    "hand_off_turn": _LIVE,
    "revoke_turn": _LIVE,
    "set_turn_policy": _LIVE,
    "set_blind": _LIVE,
    "seize": _LIVE,
    "halt": _LIVE,
    "resume": _LIVE,
    # Records.
    "catch_up": _LIVE,
    "journal": _KNOWN,
    "verify": _KNOWN,
    "prove": _KNOWN,
    "certificate": _KNOWN,
    "blame": _KNOWN,
    # The gate.
    "why": _LIVE,
    "adopt": _LIVE,  # and the right `input` there: its handler
    "trace": _KNOWN,
    "score": _EVERYONE,  # of its own unix user's actors: ActorBook.find
    # What a policy holds: in the session that it is about, the session machine judges who decides.
    "approvals": _ANY,
    "approve": _EVERYONE,
    "deny": _EVERYONE,
    # Actors and envelopes. Lists show what belongs to the asker's unix user, to root everything.
    # A claim is proven by a signature; an actor that was revoked may prove to be another.
    "claim": Rule(About.HOST, even_revoked=True),
    "add_actor": _OWN_ACTORS,
    "revoke_actor": _OWN_ACTORS,  # and the right to take everything from that actor: Authority
    "list_actors": _EVERYONE,
    "show_actor": _EVERYONE,
    "grant": _EVERYONE,  # within what the asker has throughout the scope: Authority.set
    "revoke": _EVERYONE,  # the same: Authority.revoke
    "list_envelopes": _ANY,
    # Policies of the gate.
    "policy_show": _ANY,
    "policy_check": _ANY,
    "policy_explain": _KNOWN,
    "policy_set": _ANY,  # `grant` throughout the scope: policy_rules.py
    "policy_off": _ANY,  # the same
    # Invites and devices.
    "make_invite": _EVERYONE,  # within what the asker has throughout the reach: check_may_give
    "list_invites": _EVERYONE,  # may_see_invite
    "revoke_invite": _EVERYONE,  # may_see_invite
    "list_devices": _EVERYONE,
    "revoke_device": _EVERYONE,  # its own, may_take_back, or the link it handed on itself
    "see_invite": _EVERYONE,  # as `join`
    "join": _EVERYONE,  # refused here: only the stream of an invite takes it
    # The host. Guests through a relay may ask what it is, too.
    "host": _EVERYONE,
    "set_relays": _HOST_WIDE,
    "get_relays": _HOST_WIDE,
    # MANAGES, or the right `move` for all if the configuration names the other host: its handler.
    "get_ticket": _EVERYONE,
    "can_take": _HOST_WIDE,  # it tells of any file which version is here
    "metrics": _HOST_WIDE,  # it counts the sessions of every user
    "prune": _HOST_WIDE,
    "reap": _HOST_WIDE,
    "restart_daemon": _HOST_WIDE,
    "shutdown": _HOST_WIDE,
}

MANAGES = _HOST_WIDE
HOST_POLICY = _HOST_WIDE  # a policy of the gate for the whole host, and its floor

_REFUSALS = {
    Right.INPUT: ("may not start sessions", "`hold grant {} execute --all` lets it"),
    Right.GRANT: ("may not manage this host", "it needs the role admin for all"),
}


def check(
    rule: Rule, authority: Authority, actor: Actor, uid: int, host_uid: int, now: float
) -> None:
    """Nothing, or the refusal. `uid`: the unix user of the connection, which may be another than
    the one of the actor it acts as."""
    if not rule.even_revoked:
        check_not_revoked(authority, actor)
    if rule.host_user and not {uid, actor.uid} <= {0, host_uid}:
        raise NotPermitted(
            "only root and the user this host runs as may do that",
            hint="a host of your own: set HOLDFAST_HOME to a directory of yours, then `hold up`",
        )
    if rule.right is None:
        return
    try:
        authority.check_everywhere(actor.id, rule.right, now)
    except NotPermitted as refusal:
        what, hint = _REFUSALS[rule.right]
        raise NotPermitted(f"{actor.name} {what}", hint=hint.format(actor.name)) from refusal


def check_not_revoked(authority: Authority, actor: Actor) -> None:
    """At each request: what a connection knows of its actor is from when it came."""
    current = authority.actor(actor.id)
    if current is None or current.revoked_at is not None:
        raise ActorRevoked(f"actor {actor.name} was revoked")


def check_may_run_as(actor: Actor, uid: int, name: str, host_uid: int) -> None:
    """Whether the actor may start a session as this unix user, on a host of that one."""
    if not actor.may_touch(uid):
        raise NotPermitted(f"only root may start a session as {name}")
    if host_uid not in (0, uid):
        raise NotPermitted(
            f"this host runs as uid {host_uid} and cannot become {name}",
            hint="a host started by root can",
        )


def check_may_show_keys(authority: Authority, actor: Actor, now: float) -> None:
    """Whether the actor may start a session that sees key files: whoever writes there can then act
    as those actors."""
    try:
        authority.check_everywhere(actor.id, Right.GRANT, now)
    except NotPermitted as refusal:
        raise NotPermitted(
            f"{actor.name} may not start a session that sees keys",
            hint="it needs the role admin for all",
        ) from refusal


def may_take_back(
    authority: Authority, asker: Actor, reach: Reach, now: float, live: Collection[Live]
) -> bool:
    """Whether the asker may leave others nothing, throughout that reach."""
    nothing = Envelope(asker.id, ALL, (), granted_by=asker.id)
    try:
        authority.check_may_give(nothing, reach, now=now, live=live)
    except (NotPermitted, ActorRevoked):
        return False
    return True


def may_see_invite(
    authority: Authority, asker: Actor, invite: Invite, now: float, live: Collection[Live]
) -> bool:
    """Only if the asker made it or may take it back: an actor that knows the id could use the
    invite up by guessing codes."""
    if not asker.may_touch(invite.uid):
        return False
    if invite.created_by == asker.id:
        return True
    return may_take_back(authority, asker, invite.reach, now, live)
