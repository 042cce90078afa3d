"""Bytes as text that a URL and a header can carry: base64 with `-` and `_`, without `=`. One form
only: text that another text would decode to as well is refused."""

from __future__ import annotations

import binascii


def encoded(data: bytes) -> str:
    text = binascii.b2a_base64(data, newline=False).decode()
    return text.rstrip("=").replace("+", "-").replace("/", "_")


def decoded(text: str) -> bytes | None:
    """None when it is not such a text."""
    try:
        padded = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
        data = binascii.a2b_base64(padded, strict_mode=True)
    except ValueError:  # not ASCII, not base64, not so many characters
        return None
    # Written again: two characters have bits to spare, and '+' was none of the alphabet.
    return data if encoded(data) == text else None
