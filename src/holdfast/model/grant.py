"""Grants: envelopes that can be carried. A link gives the holder of a key certain rights, in a
reach, until a time, and is signed by an issuer that has at least as much. A chain is a row of
links, each issued by the holder of the one before; the first is issued by an authority that the
host trusts.

Here are the values, and the one rule between two links, which delegates and hosts both apply: a
later link is never wider. `core/access/grant_verifier.py` decides whether a chain is valid here and
now; `wire/grants.py` encodes it and says what is signed.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.device import KEY_BYTES, SIGNATURE_BYTES
from holdfast.model.envelope import Right, Scope, ScopeKind
from holdfast.model.errors import GrantInvalid, InvalidArgument
from holdfast.model.limits import (
    GRANT_LIFE_MAX_S,
    GRANT_LINKS_MAX,
    GRANT_RIGHTS_MAX,
    GRANT_STEPS_MAX,
)
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

ID_BYTES = 32  # of a link's id, a hash
SERIAL_BYTES = 16
_TIME_MAX = 1 << 40  # seconds since 1970; safe in every language
_RIGHT_CHARS = set("abcdefghijklmnopqrstuvwxyz.")
_RIGHT_MAX_CHARS = 32
_HEX = set("0123456789abcdef")
_KNOWN = {str.__str__(right): right for right in Right}


class StepKind(StrEnum):
    """What one step of a reach requires of a session."""

    HOST = "host"  # is on the host with this key, in hexadecimal
    LABEL = "label"  # has this label now
    SESSION = "session"  # has this id


class Reach(Record):
    """Where a grant applies: a path of steps, all of which a session must meet. Without steps:
    wherever its authority is trusted. As text: `all`, or steps such as `label:prod/session:ID`."""

    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "/".join(self.steps) or "all"

    @classmethod
    def parse(cls, text: str) -> Reach:
        return cls(() if text == "all" else tuple(text.split("/"))).checked()

    @classmethod
    def of_scope(cls, scope: Scope) -> Reach:
        """Where an envelope of that scope applies."""
        return cls(() if scope.kind is ScopeKind.ALL else (str(scope),))

    def covers(self, other: Reach) -> bool:
        """Whether this path is a prefix of the other. Steps are compared whole: x does not cover
        xy."""
        return other.steps[: len(self.steps)] == self.steps

    def within(self, *steps: str) -> Reach:
        """This reach with more steps."""
        return Reach((*self.steps, *steps)).checked()

    def is_met(self, host: bytes, session: str, labels: Collection[str]) -> bool:
        """Whether it reaches this session, on this host, with the labels it has now."""
        for step in self.steps:
            kind, _, name = step.partition(":")
            if kind == StepKind.LABEL:
                met = name in labels
            elif kind == StepKind.SESSION:
                met = name == session
            else:
                met = kind == StepKind.HOST and name == host.hex()
            if not met:
                return False
        return True

    def checked(self) -> Reach:
        if len(self.steps) > GRANT_STEPS_MAX:
            raise GrantInvalid(f"a reach has at most {GRANT_STEPS_MAX} steps")
        for step in self.steps:
            kind, colon, name = step.partition(":")
            if kind == StepKind.HOST and len(name) == 2 * KEY_BYTES and set(name) <= _HEX:
                continue
            if kind not in (StepKind.LABEL, StepKind.SESSION) or not colon:
                raise GrantInvalid(
                    f"not a step of a reach: {step[:80]!r}",
                    hint="write host:KEY, label:NAME or session:ID",
                )
            try:
                Scope(ScopeKind(kind), name).checked()
            except InvalidArgument as error:
                raise GrantInvalid(error.message) from error
        return self


class Grant(Record):
    """The content of one link."""

    issuer: bytes  # Ed25519 key it is signed with
    holder: bytes  # Ed25519 key that may use it and delegate a part of it
    parent: bytes  # id of the link before; empty in the first
    reach: Reach
    rights: tuple[str, ...]  # sorted, each once. Text, because newer versions may have more
    not_before: int  # seconds since 1970
    expires: int  # it grants nothing from then on
    serial: bytes  # random, so that no two grants have the same id
    inputs_per_s: float | None = None
    bytes_per_s: float | None = None
    delegations: int = 0  # links that may follow; 0: for its holder only

    def known_rights(self) -> frozenset[Right]:
        """Those this version knows. Others have no effect here, but can be delegated."""
        return frozenset(_KNOWN[right] for right in self.rights if right in _KNOWN)

    def checked(self) -> Grant:
        """This grant, if it is valid by itself."""
        self.reach.checked()
        sizes = (len(self.issuer), len(self.holder), len(self.serial))
        if sizes != (KEY_BYTES, KEY_BYTES, SERIAL_BYTES) or len(self.parent) not in (0, ID_BYTES):
            raise GrantInvalid("a key, the link before or the serial of a grant has a wrong size")
        if not 0 < len(self.rights) <= GRANT_RIGHTS_MAX:
            raise GrantInvalid(f"a grant has 1 to {GRANT_RIGHTS_MAX} rights")
        for right in self.rights:
            if not 0 < len(right) <= _RIGHT_MAX_CHARS or not set(right) <= _RIGHT_CHARS:
                raise GrantInvalid(f"not the name of a right: {right[:80]!r}")
        if not _is_sorted(self.rights):
            raise GrantInvalid("the rights of a grant are sorted, each once")
        if not 0 <= self.not_before < self.expires < _TIME_MAX:
            raise GrantInvalid("a grant must end after it begins")
        if self.expires - self.not_before > GRANT_LIFE_MAX_S:
            raise GrantInvalid(f"a grant lasts at most {GRANT_LIFE_MAX_S // 86400} days")
        for rate in (self.inputs_per_s, self.bytes_per_s):
            # Written so that not-a-number is refused as well.
            if rate is not None and not 0 < rate < float("inf"):
                raise GrantInvalid(f"not a rate: {rate}")
        if not 0 <= self.delegations < GRANT_LINKS_MAX:
            raise GrantInvalid(f"a chain has at most {GRANT_LINKS_MAX} links")
        return self


def widened(parent: Grant, child: Grant) -> str:
    """How the child allows more than its parent; "" when it does not."""
    if parent.delegations < 1:
        return "it may not be delegated"
    if child.delegations >= parent.delegations:
        return "it may be delegated more often"
    if not set(child.rights) <= set(parent.rights):
        return "it has more rights"
    if not parent.reach.covers(child.reach):
        return "it reaches further"
    if child.expires > parent.expires:
        return "it lasts longer"
    for own, most in (
        (child.inputs_per_s, parent.inputs_per_s),
        (child.bytes_per_s, parent.bytes_per_s),
    ):
        if most is not None and (own is None or own > most):
            return "it may write faster"
    return ""


class GrantLink(Record):
    """A signed grant. Only `wire/grants.py` makes one, so that its parts agree."""

    grant: Grant
    text: bytes  # the grant as it was encoded and signed
    signature: bytes  # by the issuer
    id: bytes  # hash of the text: signing it again makes the same link


class GrantChain(Record):
    """Links in order, the authority's first."""

    links: tuple[GrantLink, ...]

    @property
    def last(self) -> Grant:
        return self.links[-1].grant


class Revocations(Record):
    """What an authority has revoked: always the whole list, with a version that rises."""

    issuer: bytes  # Ed25519 key of the authority
    version: int
    issued_at: int  # seconds since 1970
    links: tuple[bytes, ...]  # ids of links, sorted; everything delegated from them is revoked too
    keys: tuple[bytes, ...]  # keys of devices, sorted; all they hold or delegated is revoked
    text: bytes = b""  # as it was encoded and signed
    signature: bytes = b""

    def checked(self) -> Revocations:
        if len(self.issuer) != KEY_BYTES or self.version < 1 or not 0 <= self.issued_at < _TIME_MAX:
            raise GrantInvalid("not a list of revocations")
        for items, size in ((self.links, ID_BYTES), (self.keys, KEY_BYTES)):
            if any(len(each) != size for each in items):
                raise GrantInvalid("a revoked link or key has a wrong size")
            if not _is_sorted(items):
                raise GrantInvalid("revoked links and keys are sorted, each once")
        return self


def _is_sorted(items: tuple[Any, ...]) -> bool:
    """And each once."""
    return tuple(sorted(set(items))) == items


def check_signature_size(signature: bytes) -> bytes:
    if len(signature) != SIGNATURE_BYTES:
        raise GrantInvalid("a signature has a wrong size")
    return signature
