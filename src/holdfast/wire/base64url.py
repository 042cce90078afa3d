"""Bytes as text that a URL and a header can carry: base64 with `-` and `_`, without `=`. One form
only: a text is refused if another text decodes to the same bytes."""

from __future__ import annotations

import binascii


def encoded(data: bytes) -> str:
    text = binascii.b2a_base64(data, newline=False).decode()
    return text.rstrip("=").replace("+", "-").replace("/", "_")


def decoded(text: str) -> bytes | None:
    """None when the text is not valid."""
    try:
        padded = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
        data = binascii.a2b_base64(padded, strict_mode=True)
    except ValueError:  # not ASCII, not base64, or of an impossible length
        return None
    # Encoded again to compare: the last character may have spare bits, and '+' is not allowed.
    return data if encoded(data) == text else None
