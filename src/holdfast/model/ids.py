"""Identities. Each has its own type, so that one cannot be mistaken for another."""

from __future__ import annotations

# Crockford's base 32 in lower case: no i, l, o, u, so an id can be read over a phone.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LETTERS = frozenset(_ALPHABET)
_ID_LENGTH = 26  # 130 bits of the digest: no collisions, and prefixes stay short


def _of_key(domain: bytes, public_key: bytes) -> str:
    """The id of a key. The domain gives a key that is used twice two different ids."""
    import hashlib  # here: it takes 4 ms, and only a host makes ids

    number = int.from_bytes(hashlib.sha256(domain + public_key).digest())
    digits = []
    for _ in range(_ID_LENGTH):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def _is_id(text: str) -> bool:
    return len(text) == _ID_LENGTH and _LETTERS.issuperset(text)


class SessionId(str):
    """A session's identity, derived from its public key; it never changes and is never reused."""

    __slots__ = ()

    def __new__(cls, text: str) -> SessionId:
        if not _is_id(text):
            raise ValueError(f"not a session id: {text[:40]!r}")
        return super().__new__(cls, text)

    @classmethod
    def of_key(cls, public_key: bytes) -> SessionId:
        return cls(_of_key(b"holdfast session\0", public_key))


class ActorId(str):
    """An actor's identity, derived from its public key: whoever can sign with it is this actor."""

    __slots__ = ()

    def __new__(cls, text: str) -> ActorId:
        if not _is_id(text):
            raise ValueError(f"not an actor id: {text[:40]!r}")
        return super().__new__(cls, text)

    @classmethod
    def of_key(cls, public_key: bytes) -> ActorId:
        return cls(_of_key(b"holdfast actor\0", public_key))


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
