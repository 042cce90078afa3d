"""Requests through a channel: which must be signed like inputs, and which are about a session.

The channel identifies an actor that only reads. A request that changes something is signed by the
actor, so that nobody else can have forged it. Both ends use this table; a request that is not in it
counts as one that changes something.
"""

from __future__ import annotations

from typing import Any

import msgpack

from holdfast.model.errors import ProtocolViolation

# These change nothing.
_LOOKING = frozenset(
    (
        "hello", "list", "show", "graph", "screen", "attach", "detach", "watch", "host",
        "list_actors", "show_actor", "list_envelopes", "turn", "catch_up", "journal", "verify",
        "prove", "blame", "list_invites", "list_devices", "see_invite", "join", "why",
        "share", "get_relays", "policy_show", "policy_check", "policy_explain", "trace", "score",
        "approvals", "checkpoints", "can_move", "can_take", "certificate",
    )
)  # fmt: skip
# Data of a forwarded connection whose opening was signed. The channel proves that they come from
# the same device, complete and in order. A signature is evidence for the journal, which records the
# opening and not these.
_CARRIED = frozenset(("forward_data", "forward_room", "forward_end", "forward_closed"))
# Only for connections on the same machine: a channel has already proved the actor.
_LOCAL = frozenset(("claim",))
_pack = msgpack.Packer(use_bin_type=True).pack


def fields_of(body: bytes) -> dict[str, Any]:
    """A message as a map. The receiver checks the rest of it."""
    try:
        fields = msgpack.unpackb(body)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise ProtocolViolation(f"not a message: {error}") from None
    if type(fields) is not dict or type(fields.get("t")) is not str:
        raise ProtocolViolation("not a message")
    return fields


def body_of(fields: dict[str, Any]) -> bytes:
    body: bytes = _pack(fields)
    return body


def must_be_signed(tag: str) -> bool:
    return tag not in _LOOKING and tag not in _CARRIED


def may_name_by_prefix(tag: str, *, observe: bool = False, exact: bool = False) -> bool:
    """Whether this request may name its session by the first characters of an id. One that writes
    may not: a mistyped name must not become another session. `observe`, `exact`: its fields."""
    if tag == "attach":
        return observe
    return tag in _LOOKING and not exact


def goes_by_session(tag: str) -> bool:
    """Whether it goes through the channel of its session, if it names one: requests that change
    something, bring output or carry a forwarded connection. The rest goes through the host's
    channel, because the host also knows sessions that have ended."""
    return must_be_signed(tag) or tag in _CARRIED or tag in ("attach", "watch", "share")


def is_local(tag: str) -> bool:
    return tag in _LOCAL


def session_named(fields: dict[str, Any]) -> str:
    """The session it names; "" when it names none."""
    named = fields.get("session")
    return named if type(named) is str else ""
