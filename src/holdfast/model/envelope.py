"""Envelopes: an actor's rights in one scope. `core/access/authority.py` combines several of them;
here are only the values and their text forms."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.actor import check_name
from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Right(StrEnum):
    """One thing that an actor may do in a session."""

    # see that the session exists, its screen, output, state and journal
    OBSERVE = "observe"
    INPUT = "input"  # write, while holding the turn; at scope `all`: start sessions
    SIGNAL = "signal"  # send a signal, while holding the turn
    RESIZE = "resize"  # set the canonical size, while holding the turn
    TURN_REQUEST = "turn.request"  # take a free turn, or wait for one
    TURN_GRANT = "turn.grant"  # give the turn to somebody, while holding it
    SEIZE = "seize"  # take the turn without being given it, or take it from its holder
    HALT = "halt"  # freeze the tree, and resume it
    APPROVE = "approve"  # approve or deny what a policy holds
    FORK = "fork"  # reserved for forking a session; nothing asks for it yet
    CHECKPOINT = "checkpoint"  # checkpoint the session, and restore it
    MOVE = "move"  # reserved for moving a session; nothing asks for it yet
    GRANT = "grant"  # change envelopes, within one's own
    END = "end"  # end the session


ROLES: dict[str, frozenset[Right]] = {
    "read": frozenset({Right.OBSERVE}),
    "approve": frozenset({Right.OBSERVE, Right.APPROVE}),
    "execute": frozenset(
        {
            Right.OBSERVE,
            Right.INPUT,
            Right.SIGNAL,
            Right.RESIZE,
            Right.TURN_REQUEST,
            Right.TURN_GRANT,
        }
    ),
    "admin": frozenset(Right),
}


def rights_of(words: Iterable[str]) -> tuple[Right, ...]:
    """All rights of these roles and rights, sorted, each once."""
    found: set[Right] = set()
    for word in words:
        if word in ROLES:
            found |= ROLES[word]
            continue
        try:
            found.add(Right(word))
        except ValueError:
            raise InvalidArgument(
                f"not a right or role: {word[:40]!r}",
                hint=f"roles: {', '.join(ROLES)}; rights: {', '.join(Right)}",
            ) from None
    return tuple(sorted(found))


class ScopeKind(StrEnum):
    """How wide a scope is; in a session the narrowest matching envelope applies."""

    ALL = "all"
    LABEL = "label"
    SESSION = "session"


class Scope(Record):
    """Where an envelope applies."""

    kind: ScopeKind = ScopeKind.ALL  # `all`, `label` or `session`
    name: str = ""  # the label, or the session's id; empty for `all`

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else f"{self.kind}"

    @classmethod
    def parse(cls, text: str) -> Scope:
        word, colon, name = text.partition(":")
        if word not in list(ScopeKind) or bool(colon) is (word == ScopeKind.ALL):
            raise InvalidArgument(
                f"not a scope: {text[:80]!r}", hint="write all, label:NAME or session:ID"
            )
        return cls(ScopeKind(word), name).checked()

    @classmethod
    def session(cls, session: SessionId) -> Scope:
        return cls(ScopeKind.SESSION, str.__str__(session))

    @classmethod
    def label(cls, label: str) -> Scope:
        return cls(ScopeKind.LABEL, label)

    def checked(self) -> Scope:
        if self.kind is ScopeKind.LABEL:
            check_name(self.name, "label")
        elif self.kind is ScopeKind.SESSION:
            try:
                SessionId(self.name)
            except ValueError as error:
                raise InvalidArgument(str(error)) from error
        elif self.name:
            raise InvalidArgument(f"the scope 'all' has no name: {self.name[:40]!r}")
        return self


ALL = Scope()


class Envelope(Record):
    """What one actor may do in one scope. No rights is a statement too: nothing here, even if a
    wider scope would allow more."""

    actor: ActorId  # id of the actor
    scope: Scope  # where it applies
    rights: tuple[Right, ...]  # sorted, each once; empty is "nothing here"
    # seconds since 1970 from which it grants nothing; null is never
    expires_at: float | None = None
    inputs_per_s: float | None = None  # inputs a second; null is no limit
    bytes_per_s: float | None = None  # bytes of input a second; null is no limit
    granted_by: str = ""  # id of the actor that granted it; empty is the host
    granted_at: float = 0.0  # seconds since 1970
    # of one without rights: seconds since 1970 until which its actor could observe there, so that
    # it may hear that this was revoked; null: it never could, or an older version took it away
    seen_until: float | None = None

    @property
    def role(self) -> str:
        """The name of the role with exactly these rights, or ""."""
        held = frozenset(self.rights)
        return next((name for name, rights in ROLES.items() if rights == held), "")

    def is_within(self, before: Envelope) -> bool:
        """Whether it gives its actor nothing beyond the one that it replaces."""
        if (self.actor, self.scope) != (before.actor, before.scope):
            return False
        if not self.rights:
            return True
        narrower = (
            _at_most(self.expires_at, before.expires_at),
            _at_most(self.inputs_per_s, before.inputs_per_s),
            _at_most(self.bytes_per_s, before.bytes_per_s),
        )
        return set(self.rights) <= set(before.rights) and all(narrower)

    def checked(self) -> Envelope:
        """This envelope in its normal form, if it is valid."""
        self.scope.checked()
        for rate in (self.inputs_per_s, self.bytes_per_s):
            # Written so that not-a-number is refused as well.
            if rate is not None and not 0 < rate < float("inf"):
                raise InvalidArgument(
                    f"not a rate: {rate}", hint="a number above 0; to allow nothing, give no right"
                )
        if self.expires_at is not None and not 0 <= self.expires_at < float("inf"):
            raise InvalidArgument(f"not a time: {self.expires_at}")
        return self.replace(rights=tuple(sorted(set(self.rights))))


def _at_most(asked: float | None, before: float | None) -> bool:
    """None is no limit."""
    return before is None or (asked is not None and asked <= before)
