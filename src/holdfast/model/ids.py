"""Identities. Each is a type of its own, so that one cannot be passed for another."""

from __future__ import annotations

# Crockford's base 32 in lower case: no i, l, o, u, so an id can be read over a phone.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH = 26  # 130 bits of the digest: no two keys meet, and prefixes stay short


class SessionId(str):
    """A session's identity, derived from its public key; never changes and never comes back."""

    __slots__ = ()

    def __new__(cls, text: str) -> SessionId:
        if len(text) != _ID_LENGTH or not set(text) <= set(_ALPHABET):
            raise ValueError(f"not a session id: {text[:40]!r}")
        return super().__new__(cls, text)

    @classmethod
    def of_key(cls, public_key: bytes) -> SessionId:
        import hashlib  # here: it takes 4 ms, and only a host makes ids

        number = int.from_bytes(hashlib.sha256(b"holdfast session\0" + public_key).digest())
        digits = []
        for _ in range(_ID_LENGTH):
            number, digit = divmod(number, 32)
            digits.append(_ALPHABET[digit])
        return cls("".join(digits))


class OperatorId(str):
    """One client's random name, kept across its reconnects, so that its inputs can be counted."""

    __slots__ = ()

    def __new__(cls, text: str) -> OperatorId:
        if len(text) != 32 or not set(text) <= set("0123456789abcdef"):
            raise ValueError(f"not an operator id: {text[:40]!r}")
        return super().__new__(cls, text)


# What the layer itself types (the emulator's answers) is an input like any other, by this operator.
LAYER = OperatorId("0" * 32)
