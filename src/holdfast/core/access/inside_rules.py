"""What a connection from inside a session may do (A11): at most what each actor behind it may do
itself, whatever it claims to be.

The actor that a connection acts as is judged as ever (host_rules, the session machine). Here the
*others* behind it are judged for the same request: one row per request tag says which rights they
need, in the session that it names, or everywhere when it names none. Requests that give other
actors something (`grant`, `revoke`, `make_invite`) are judged by their handlers as well, for each
actor behind.

Requests that change who may do what, or take a session from others, are *sensitive*. Programs of
one unix user in one session can reach each other's memory and files, so from inside such a request
needs the rights of everybody that wrote in the session, not only those of its command's actor. At
level plain nobody can tell who is behind a process: there everybody that wrote is, and what is
sensitive is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.model.actor import Actor
from holdfast.model.envelope import Right
from holdfast.model.errors import NotPermitted
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.inside import Inside

_OUTSIDE = "run it in a terminal that is not in a session of this host"

_NOTHING: tuple[Right, ...] = ()
_SEES = (Right.OBSERVE,)
_WRITES = (Right.OBSERVE, Right.INPUT, Right.TURN_REQUEST)
_GRANTS = (Right.GRANT,)

NEEDS: dict[str, tuple[Right, ...]] = {
    # In the session named.
    "show": _SEES,
    "graph": _SEES,
    "can_move": _SEES,
    "screen": _SEES,
    "attach": _SEES,  # to write: `rights_needed`
    "share": _SEES,
    "watch": _SEES,
    "rename": (Right.END,),
    "pin": (Right.INPUT,),
    "detach_terminals": _SEES,  # of others: the session machine
    "end": (Right.END,),
    "revive": (Right.END, Right.INPUT),  # and `input` everywhere: its handler
    "acknowledge": (Right.END,),  # also of those that it does not name
    "move": (Right.CHECKPOINT, Right.END),
    "checkpoint": (Right.CHECKPOINT,),  # to end it with that: the session machine
    "checkpoints": _SEES,
    "input": _WRITES,
    "submit": _WRITES,
    "keys": _WRITES,
    "exec": _WRITES,
    "action": _WRITES,
    "resize": (Right.RESIZE, Right.TURN_REQUEST),
    "signal": (Right.SIGNAL, Right.TURN_REQUEST),
    "forward": (Right.OBSERVE, Right.INPUT),
    "turn": _SEES,
    "request_turn": _WRITES,
    "withdraw_turn": _SEES,
    "grant_turn": (Right.TURN_GRANT,),
    "yield_turn": _SEES,
    "hand_off_turn": (Right.TURN_GRANT,),
    "revoke_turn": (Right.SEIZE,),
    "set_turn_policy": _GRANTS,
    "set_blind": _WRITES,
    "seize": (Right.SEIZE,),  # with a halt: `rights_needed`
    "halt": (Right.HALT,),
    "resume": (Right.HALT,),
    "catch_up": _SEES,
    "journal": _SEES,
    "verify": _SEES,
    "prove": _SEES,
    "certificate": _SEES,
    "blame": _SEES,
    "why": _SEES,
    "adopt": _WRITES,
    "trace": _SEES,
    "list_envelopes": _SEES,
    "approvals": _SEES,
    "policy_show": _SEES,
    "policy_check": _SEES,
    "policy_explain": _SEES,
    "policy_set": _GRANTS,
    "policy_off": _GRANTS,
    # Everywhere.
    "restore": (Right.CHECKPOINT,),
    "delete_checkpoint": (Right.CHECKPOINT,),
    "approve": (Right.APPROVE,),
    "deny": (Right.APPROVE,),
    "run": (Right.INPUT,),
    "list": _NOTHING,  # leaves out what one of them may not observe
    "detach": _NOTHING,
    "claim": _NOTHING,
    "add_actor": _GRANTS,
    "revoke_actor": _GRANTS,
    "score": _NOTHING,
    "list_actors": _NOTHING,
    "show_actor": _NOTHING,
    "grant": _NOTHING,  # each must be able to give it: its handler
    "revoke": _NOTHING,  # the same
    "make_invite": _NOTHING,  # the same
    "list_invites": _NOTHING,
    "revoke_invite": _GRANTS,
    "list_devices": _NOTHING,
    "revoke_device": _GRANTS,
    "see_invite": _NOTHING,
    "join": _NOTHING,
    "host": _NOTHING,
    "set_relays": _GRANTS,
    "get_relays": _GRANTS,
    "get_ticket": _GRANTS,
    "can_take": _GRANTS,
    "metrics": _GRANTS,
    "prune": _GRANTS,
    "reap": _GRANTS,
    "restart_daemon": _GRANTS,
    "shutdown": (Right.GRANT, Right.END),
}

SENSITIVE = frozenset(
    (
        "end", "checkpoint", "move", "restore", "delete_checkpoint", "seize", "revoke_turn",
        "set_turn_policy", "resume", "add_actor", "revoke_actor",
        "grant", "revoke", "make_invite", "revoke_invite", "revoke_device", "set_relays", "prune",
        "restart_daemon", "shutdown", "policy_set", "policy_off", "adopt", "approve", "deny",
        "revive", "reap",
    )
)  # fmt: skip


# Requests that write in a session.
WRITES = frozenset(("input", "submit", "keys", "exec", "action", "signal"))


def hands_on(inside: Inside, session: SessionId) -> tuple[ActorId, ...]:
    """Who has a part in what a program inside one session writes in another, or in one that it
    starts. Whoever wrote in the first may have made it do so, and so counts as a writer of the
    second: else what is sensitive would be asked for from there."""
    if session == inside.session:
        return ()
    return tuple(dict.fromkeys((*inside.actors, *inside.writers)))


def rights_needed(tag: str, *, writes: bool = False, halts: bool = False) -> tuple[Right, ...]:
    """`writes`, `halts`: an attach that is not only to observe, a seizure with a halt."""
    return (*NEEDS[tag], *((Right.INPUT,) if writes else ()), *((Right.HALT,) if halts else ()))


def set_off_by(inside: Inside) -> ActorId | None:
    """The actor that set the process off; None when it may have been one of several."""
    return inside.actors[0] if inside.told or len(inside.actors) == 1 else None


def acts_as(own: Actor, first: Actor | None) -> Actor:
    """As whom a connection from inside acts until it claims another. `own`: of its unix user;
    `first`: the actor that set the process off, if it is known.

    As that actor, so that what it does is recorded as its own. But root's actor that typed into
    another user's session does not lend itself to that user's programs: these act as their
    user."""
    if first is None or (first.uid == 0 and own.uid != 0):
        return own
    return first


def others_behind(inside: Inside | None, actor: ActorId, *, sensitive: bool) -> list[ActorId]:
    """The actors, besides the one it acts as, that a connection's requests are judged for."""
    if inside is None:
        return []
    behind = (*inside.actors, *inside.writers) if sensitive else inside.actors
    return [each for each in dict.fromkeys(behind) if each != actor]


def check_told(tag: str, inside: Inside) -> None:
    """Where nobody can tell who is behind a process, it changes nobody's authority."""
    if tag in SENSITIVE and not inside.told:
        raise NotPermitted(
            f"{tag.replace('_', ' ')} is refused from inside a session of level plain: nobody can "
            "tell which actor is behind it",
            hint=_OUTSIDE,
        )


def refuse_keys() -> NoReturn:
    """A session that sees keys is not started from one."""
    raise NotPermitted("a session that sees keys is not started from inside one", hint=_OUTSIDE)


def check_others(
    tag: str,
    rights: Sequence[Right],
    authority: Authority,
    acting: Actor,
    others: Sequence[ActorId],
    session: Live | None,
    now: float,
    size: int | None = None,
) -> None:
    """Each of the others may do it too, in that session, or everywhere. `size` of an input counts
    against the rates of each."""
    uid = acting.uid if session is None else session[2]
    for each in others:
        try:
            known = authority.actor(each)
            if known is None or not known.may_touch(uid):
                raise NotPermitted(f"{authority.name(each)} has no access to sessions of uid {uid}")
            if session is None:
                for right in rights:
                    authority.check_everywhere(each, right, now)
            else:
                for right in (Right.OBSERVE, *rights):
                    authority.check(each, right, session[0], session[1], now)
                if size is not None:
                    authority.charge(each, session[0], session[1], size, now)
        except NotPermitted as refusal:
            raise from_inside(tag, refusal) from refusal


def from_inside(tag: str, refusal: NotPermitted) -> NotPermitted:
    """The refusal of an actor behind, as the one that asks has to understand it."""
    who = "an actor that wrote in this session" if tag in SENSITIVE else "an actor behind this"
    return type(refusal)(f"from inside a session, {who} is judged too: {refusal}", hint=_OUTSIDE)
