"""Actors: authenticated identities, each with its own key.

An actor's rights are in its envelopes (`envelope.py`). Whether it is attached is not known here.
Nothing in this module reads, makes or checks a key: it only carries the public half.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import ActorId
from holdfast.model.limits import ACTOR_DISPLAY_MAX_CHARS, NAME_MAX_CHARS
from holdfast.model.record import Record

_LETTERS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_KEY_BYTES = 32  # an Ed25519 public key


class ActorKind(StrEnum):
    """What is behind the key. It gives no right by itself: rights come from envelopes."""

    HUMAN = "human"
    AGENT = "agent"
    SERVICE = "service"
    DEVICE = "device"


class Colour(StrEnum):
    """The eight colours every terminal has."""

    BLACK = "black"
    RED = "red"
    GREEN = "green"
    YELLOW = "yellow"
    BLUE = "blue"
    MAGENTA = "magenta"
    CYAN = "cyan"
    WHITE = "white"


# Black and white are the background of most terminals, so they are used only on request.
_GIVEN = tuple(colour for colour in Colour if colour not in (Colour.BLACK, Colour.WHITE))


class Actor(Record):
    """An actor as a host knows it."""

    # its identity: 26 digits of base 32, derived from its public key; the same on every host
    id: ActorId
    name: str  # its name on this host, for people and commands
    kind: ActorKind  # what is behind the key; gives no right by itself
    key: bytes  # its Ed25519 public key, 32 bytes
    display: str  # name to show
    colour: Colour  # one of the eight colours every terminal has
    uid: int  # unix user it belongs to
    local: bool  # that user's own actor, known by the socket's peer; the host holds its key
    created_at: float  # seconds since 1970
    revoked_at: float | None = None  # seconds since 1970; null when it is not
    # id of the actor that revoked it; empty when nobody did, or it was not recorded
    revoked_by: str = ""

    @classmethod
    def of(
        cls,
        key: bytes,
        name: str,
        kind: str,
        *,
        uid: int,
        created_at: float,
        display: str = "",
        colour: str = "",
        local: bool = False,
    ) -> Actor:
        """An actor from user input, with defaults for what is left out."""
        actor = ActorId.of_key(key)
        if kind not in list(ActorKind):
            raise InvalidArgument(
                f"not a kind of actor: {kind[:40]!r}", hint=f"one of {', '.join(ActorKind)}"
            )
        if colour and colour not in list(Colour):
            raise InvalidArgument(f"not a colour: {colour[:40]!r}", hint=", ".join(Colour))
        return cls(
            id=actor,
            name=name,
            kind=ActorKind(kind),
            key=key,
            display=display or name,
            colour=Colour(colour) if colour else default_colour(actor),
            uid=uid,
            local=local,
            created_at=created_at,
        ).checked()

    def checked(self) -> Actor:
        """This actor, if it is valid."""
        check_name(self.name, "actor")
        if len(self.key) != _KEY_BYTES:
            raise InvalidArgument(f"an actor's key has {_KEY_BYTES} bytes, not {len(self.key)}")
        if ActorId.of_key(self.key) != self.id:
            raise InvalidArgument(f"the id of actor {self.name!r} is not derived from its key")
        # Printable, because it is written into other people's terminals.
        if len(self.display) > ACTOR_DISPLAY_MAX_CHARS or not self.display.isprintable():
            raise InvalidArgument(
                f"not a display name: {self.display[:80]!r}",
                hint=f"at most {ACTOR_DISPLAY_MAX_CHARS} printable characters",
            )
        if self.uid < 0:
            raise InvalidArgument(f"not a unix user: {self.uid}")
        return self

    def may_touch(self, uid: int) -> bool:
        """Whether it may access sessions of this unix user at all."""
        return self.uid in (uid, 0)


def default_colour(actor: ActorId) -> Colour:
    """The same on every host, so that people recognise the actor."""
    return _GIVEN[sum(actor.encode()) % len(_GIVEN)]


def check_name(text: str, what: str) -> str:
    """Actor names and labels follow the rule for session names."""
    if (
        not 0 < len(text) <= NAME_MAX_CHARS
        or text[0] not in _LETTERS
        or not set(text) <= _LETTERS | set("._-")
    ):
        raise InvalidArgument(
            f"not a name for {'an' if what[0] in 'aeiou' else 'a'} {what}: {text[:80]!r}",
            hint=f"letters, digits, '.', '_', '-'; at most {NAME_MAX_CHARS}",
        )
    return text
