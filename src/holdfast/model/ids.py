"""Identities. Each has its own type, so that one cannot be mistaken for another."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

# Crockford's base 32 in lower case: no i, l, o, u, so an id can be read over a phone.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LETTERS = frozenset(_ALPHABET)
_ID_LENGTH = 26  # 130 bits of the digest: no collisions, and prefixes stay short


class _KeyId(str):
    """The domain gives a key that is used twice two different ids."""

    __slots__ = ()
    _what: str
    _domain: bytes

    def __new__(cls, text: str) -> Self:
        if len(text) != _ID_LENGTH or not _LETTERS.issuperset(text):
            raise ValueError(f"not {cls._what}: {text[:40]!r}")
        return super().__new__(cls, text)

    @classmethod
    def of_key(cls, public_key: bytes) -> Self:
        import hashlib  # here: it takes 4 ms, and only a host makes ids

        number = int.from_bytes(hashlib.sha256(cls._domain + public_key).digest())
        digits = []
        for _ in range(_ID_LENGTH):
            number, digit = divmod(number, 32)
            digits.append(_ALPHABET[digit])
        return cls("".join(digits))


class SessionId(_KeyId):
    """A session's identity, derived from its public key; it never changes and is never reused."""

    __slots__ = ()
    _what, _domain = "a session id", b"holdfast session\0"


class ActorId(_KeyId):
    """An actor's identity, derived from its public key: whoever can sign with it is this actor."""

    __slots__ = ()
    _what, _domain = "an actor id", b"holdfast actor\0"


# The actor of what the host does by itself. It has no envelope and is not an ActorId: no key and no
# message from outside can claim it.
HOST_ACTOR = ""


class OperatorId(str):
    """A client's random name, kept across reconnects, so that its inputs can be numbered."""

    __slots__ = ()

    def __new__(cls, text: str) -> OperatorId:
        if len(text) != 32 or not set(text) <= set("0123456789abcdef"):
            raise ValueError(f"not an operator id: {text[:40]!r}")
        return super().__new__(cls, text)


# What the layer itself types (the emulator's answers) is an input like any other, by this operator.
HOST_OPERATOR = OperatorId("0" * 32)

# What a gate has cut off an input goes into custody in pieces, numbered by this operator.
GATE_OPERATOR = OperatorId("0" * 31 + "1")
