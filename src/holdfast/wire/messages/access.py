"""Messages about who may do what: actors and envelopes."""

from __future__ import annotations

from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope
from holdfast.model.ids import OperatorId
from holdfast.wire.messages.base import Answer, Request

_CLAIM = b"holdfast claim v1\0"


class Claim(Request, tag="claim"):
    """Act as this actor from now on; see *Who you are*. The first request of its connection.
    Answered by ActorShown."""

    actor: str  # name or id of the actor; with a `grant`, its id
    signature: bytes  # by the actor's key, 64 bytes
    grant: bytes = b""  # a chain of grants that ends with this actor's key


def claim_text(host_key: bytes, challenge: bytes, operator: OperatorId) -> bytes:
    """What is signed in a claim: a challenge made for this connection, the host's key and the
    operator's id. So the signature is useless anywhere else and at any other time."""
    return _CLAIM + host_key + challenge + bytes.fromhex(operator)


class AddActor(Request, tag="add_actor"):
    """Make an actor known to this host, under the asker's unix user. It may do nothing yet.
    Answered by ActorShown."""

    # unique among this user's actors; letters, digits, `.`, `_`, `-`, at most 64, a letter or digit
    # first
    name: str
    kind: str  # `human`, `agent`, `service` or `device`
    key: bytes  # its Ed25519 public key, 32 bytes. The private one never leaves the client
    display: str = ""  # name to show, printable; empty is the name
    # one of the colours of `Actor`; empty lets the host choose, the same for a key on every host
    colour: str = ""


class ListActors(Request, tag="list_actors"):
    """The actors of the asker's unix user; to root all. Answered by Actors."""


class ShowActor(Request, tag="show_actor"):
    """One actor and its envelopes. Answered by ActorShown."""

    actor: str = ""  # name or id; empty is the asker's own


class RevokeActor(Request, tag="revoke_actor"):
    """Revoke this actor's access, at once and forever; its key is never accepted again. Answered
    by ActorShown."""

    actor: str  # name or id


class ActorShown(Answer, tag="actor_shown"):
    actor: Actor  # the actor
    # its envelopes, expired ones too; only in answer to `show_actor`
    envelopes: tuple[Envelope, ...] = ()
    # of a revocation: why it is not on disk yet. It is in force, and lost if the daemon dies before
    # the disk takes it; empty when it is on disk
    unrecorded: str = ""


class Actors(Answer, tag="actors"):
    actors: tuple[Actor, ...]  # revoked ones too


class GrantEnvelope(Request, tag="grant"):
    """Set what one actor may do in one scope, replacing what was set there before. Answered by
    Envelopes with the new one."""

    actor: str  # name or id
    # `all`, `label:NAME`, or a session: its name or whole id, or `session:` and one of these
    scope: str
    rights: tuple[str, ...]  # rights and roles, mixed; empty is "nothing here"
    # seconds since 1970 from which it grants nothing; null is never
    expires_at: float | None = None
    inputs_per_s: float | None = None  # inputs a second, above 0; null is no limit
    bytes_per_s: float | None = None  # bytes of input a second, above 0; null is no limit
    # seconds from when the host takes it, by the host's own clock; in place of `expires_at`, which
    # counts only for a host that does not know this field; null is `expires_at`
    lasts_s: float | None = None


class RevokeEnvelope(Request, tag="revoke"):
    """Leave one actor no rights in one scope; in `all`, none anywhere. Answered by Envelopes with
    the empty one."""

    actor: str  # name or id
    scope: str  # as in `grant`


class ListEnvelopes(Request, tag="list_envelopes"):
    """Envelopes of the actors the asker sees. Answered by Envelopes."""

    session: str = ""  # only those whose scope includes this session; empty is all


class Envelopes(Answer, tag="envelopes"):
    envelopes: tuple[Envelope, ...]  # the envelopes
    names: dict[str, str]  # names of the actors the asker sees, by id
    unrecorded: str = ""  # as in `actor_shown`
    # the host's time, by which envelopes expire, seconds since 1970; 0: not told
    now: float = 0.0
