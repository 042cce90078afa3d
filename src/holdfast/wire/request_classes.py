"""Requests through a channel: which must be signed as inputs, and which are about a session.

Whoever only looks is known by the channel. What changes anything is signed by the actor, one by
one, so that nobody between the actor and the host's record of it can have made it up. Both ends go
by this table; a request that is not in it counts as one that changes something.
"""

from __future__ import annotations

from typing import Any

import msgpack

from holdfast.model.errors import ProtocolViolation

# Nothing is different after these, but who looks.
_LOOKING = frozenset(
    (
        "hello", "list", "show", "graph", "screen", "attach", "detach", "watch", "host",
        "list_actors", "show_actor", "list_envelopes", "turn", "catch_up", "journal", "verify",
        "prove", "blame", "list_invites", "list_devices", "join", "share",
        "get_relays",
    )
)  # fmt: skip
# Of a connection whose opening was signed. The channel proves that they come from the same device,
# in order and whole. A signature is evidence for the journal, which has the opening and not these.
_CARRIED = frozenset(("forward_data", "forward_room", "forward_end", "forward_closed"))
# Of a connection on the same machine: a channel has proven more than they could.
_LOCAL = frozenset(("claim",))
_pack = msgpack.Packer(use_bin_type=True).pack


def fields_of(body: bytes) -> dict[str, Any]:
    """A message as the map it is. The receiver checks the rest of it."""
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


def goes_by_session(tag: str) -> bool:
    """Whether it goes through the channel of the session it is about, if it is about one: what
    changes something, and what brings output or is carried for a connection. The rest is asked of
    the host, which also knows the sessions that have ended."""
    return must_be_signed(tag) or tag in _CARRIED or tag in ("attach", "watch", "share")


def is_local(tag: str) -> bool:
    return tag in _LOCAL


def session_named(fields: dict[str, Any]) -> str:
    """The session it is about, as it is named there; "" when it is about none, or about all."""
    named = fields.get("session")
    return named if type(named) is str else ""
