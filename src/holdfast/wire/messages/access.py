"""Messages about who may do what: actors and envelopes."""

from __future__ import annotations

from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope
from holdfast.wire.messages.base import Answer, Request


class Claim(Request):
    """Act as this actor from now on; see *Who you are*. The first request of its connection.
    Answered by ActorShown."""

    tag = "claim"
    actor: str  # name or id of the actor; with a `grant`, its id
    signature: bytes  # by the actor's key, 64 bytes
    grant: bytes = b""  # a chain of grants that ends with this actor's key


class AddActor(Request):
    """Make an actor known to this host, under the asker's unix user. It may do nothing yet.
    Answered by ActorShown."""

    tag = "add_actor"
    # unique among this user's actors; letters, digits, `.`, `_`, `-`, at most 64, a letter or digit
    # first
    name: str
    kind: str  # `human`, `agent`, `service` or `device`
    key: bytes  # its Ed25519 public key, 32 bytes. The private one never leaves the client
    display: str = ""  # name to show, printable; empty is the name
    # one of the colours of `Actor`; empty lets the host choose, the same for a key on every host
    colour: str = ""


class ListActors(Request):
    """The actors of the asker's unix user; to root all. Answered by Actors."""

    tag = "list_actors"


class ShowActor(Request):
    """One actor and its envelopes. Answered by ActorShown."""

    tag = "show_actor"
    actor: str = ""  # name or id; empty is the asker's own


class RevokeActor(Request):
    """Revoke this actor's access, at once and for ever; its key is never accepted again. Answered
    by ActorShown."""

    tag = "revoke_actor"
    actor: str  # name or id


class ActorShown(Answer):
    tag = "actor_shown"
    actor: Actor  # the actor
    # its envelopes, expired ones too; only in answer to `show_actor`
    envelopes: tuple[Envelope, ...] = ()


class Actors(Answer):
    tag = "actors"
    actors: tuple[Actor, ...]  # revoked ones too


class GrantEnvelope(Request):
    """Set what one actor may do in one scope, replacing what was set there before. Answered by
    Envelopes with the new one."""

    tag = "grant"
    actor: str  # name or id
    # `all`, `label:NAME`, or a session: its name, its id, a unique beginning of it, or `session:`
    # and one of these
    scope: str
    rights: tuple[str, ...]  # rights and roles, mixed; empty is "nothing here"
    # seconds since 1970 from which it grants nothing; null is never
    expires_at: float | None = None
    inputs_per_s: float | None = None  # inputs a second, above 0; null is no limit
    bytes_per_s: float | None = None  # bytes of input a second, above 0; null is no limit


class RevokeEnvelope(Request):
    """Leave one actor no rights in one scope; in `all`, none anywhere. Answered by Envelopes with
    the empty one."""

    tag = "revoke"
    actor: str  # name or id
    scope: str  # as in `grant`


class ListEnvelopes(Request):
    """Envelopes of the actors the asker sees. Answered by Envelopes."""

    tag = "list_envelopes"
    session: str = ""  # only those whose scope includes this session; empty is all


class Envelopes(Answer):
    tag = "envelopes"
    envelopes: tuple[Envelope, ...]  # the envelopes
    names: dict[str, str]  # names of the actors the asker sees, by id
