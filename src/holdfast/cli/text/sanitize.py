"""Text that programs and actors chose, made harmless for the reader's terminal: nothing in it moves
a cursor, changes a colour or turns the direction of writing."""

from __future__ import annotations

_NAMED = {"\r": "\\r", "\n": "\\n", "\t": "\\t", "\x1b": "\\e", "\\": "\\\\", '"': '\\"'}


def sanitize(text: str, limit: int = 200) -> str:
    """On one line, each character that is not for reading as a dot."""
    return "".join(c if c.isprintable() else "·" for c in text[:limit])


def quoted(data: bytes, limit: int = 200) -> str:
    """Typed bytes in quotes, each key that is no letter by its escape: `"ls\\r"`."""
    text = data[: 4 * limit].decode(errors="replace")
    shown = "".join(_NAMED.get(c) or (c if c.isprintable() else _escape(c)) for c in text[:limit])
    cut = len(text) > limit or len(data) > 4 * limit
    return f'"{shown}"' + (f"… ({len(data)} bytes)" if cut else "")


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
