"""Ed25519 public keys that prove nothing.

A few points of the curve have an order of at most 8. If a key is one of them, a signature of zeros
is valid for one message in a handful: anybody could act under that key. The library that checks
signatures accepts such keys, so we refuse them. Without the sign bit there are seven encodings, two
of them not canonical.
"""

from __future__ import annotations

_SIGN = 0x80  # of the last byte
_SMALL_ORDER = frozenset(
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


def proves_nothing(key: bytes) -> bool:
    """Whether anybody can sign for this key."""
    return len(key) == 32 and key[:31] + bytes((key[31] & ~_SIGN,)) in _SMALL_ORDER
