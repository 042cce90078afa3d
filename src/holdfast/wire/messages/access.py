"""Messages about who may do what: actors and envelopes."""

from __future__ import annotations

from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope
from holdfast.wire.messages.base import Answer, Request


class Claim(Request):
    """Act as this actor from now on. The signature is by the actor's key over the challenge of
    Welcome (see docs/protocol.md). Before anything else is asked. Answered by ActorShown."""

    tag = "claim"
    actor: str
    signature: bytes
    grant: bytes = b""  # a chain whose last holder is the actor, which the host need not know then


class AddActor(Request):
    """Make an actor known to this host. Answered by ActorShown."""

    tag = "add_actor"
    name: str
    kind: str
    key: bytes
    display: str = ""
    colour: str = ""


class ListActors(Request):
    """The actors of the asker's unix user. Answered by Actors."""

    tag = "list_actors"


class ShowActor(Request):
    """One actor with its envelopes; an empty name is the asker's own. Answered by ActorShown."""

    tag = "show_actor"
    actor: str = ""


class RevokeActor(Request):
    """This actor may do nothing any more, at once and for ever. Answered by ActorShown."""

    tag = "revoke_actor"
    actor: str


class ActorShown(Answer):
    tag = "actor_shown"
    actor: Actor
    envelopes: tuple[Envelope, ...] = ()


class Actors(Answer):
    tag = "actors"
    actors: tuple[Actor, ...]


class GrantEnvelope(Request):
    """Set what one actor may do in one scope, in place of what it might there before. `scope` is
    `all`, `label:NAME`, or a session's name or id. Answered by Envelopes."""

    tag = "grant"
    actor: str
    scope: str
    rights: tuple[str, ...]
    expires_at: float | None = None
    inputs_per_s: float | None = None
    bytes_per_s: float | None = None


class RevokeEnvelope(Request):
    """Leave this actor no rights in one scope; in `all`, none anywhere. Answered by Envelopes."""

    tag = "revoke"
    actor: str
    scope: str


class ListEnvelopes(Request):
    """The envelopes that count in one session, or all. Answered by Envelopes."""

    tag = "list_envelopes"
    session: str = ""


class Envelopes(Answer):
    tag = "envelopes"
    envelopes: tuple[Envelope, ...]
    names: dict[str, str]  # of the actors in them, by id
