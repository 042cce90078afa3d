"""Key names, as people write them, to the bytes a terminal sends.

    a  7  %          a character stands for itself
    Enter Tab Esc Space Backspace Delete Up F5 PageDown ...
    C-c  ^C          control          M-x   meta (alt)        S-Tab  shift

Cursor and editing keys depend on the terminal's modes, which the program sets; the caller says
whether application cursor keys are on.
"""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument

_PLAIN = {
    "enter": b"\r",
    "return": b"\r",
    "tab": b"\t",
    "esc": b"\x1b",
    "escape": b"\x1b",
    "space": b" ",
    "backspace": b"\x7f",
    "bspace": b"\x7f",
}
_CURSOR = {"up": b"A", "down": b"B", "right": b"C", "left": b"D", "home": b"H", "end": b"F"}
_TILDE = {
    "insert": 2,
    "delete": 3,
    "pageup": 5,
    "pgup": 5,
    "pagedown": 6,
    "pgdn": 6,
    **dict(zip((f"f{n}" for n in range(5, 13)), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)),
}
_SS3 = {"f1": b"P", "f2": b"Q", "f3": b"R", "f4": b"S"}
_MODIFIERS = {"s": 1, "m": 2, "c": 4}  # xterm's bits; what is sent is 1 + their sum

NAMES = sorted({*_PLAIN, *_CURSOR, *_TILDE, *_SS3})


def key_bytes(name: str, *, application_cursor: bool = False) -> bytes:
    """What the terminal sends for one named key."""
    if name.startswith("^") and len(name) == 2:
        name = f"C-{name[1]}"
    modifiers = 0
    rest = name
    while len(rest) > 2 and rest[1] == "-" and rest[0].lower() in _MODIFIERS:
        modifiers |= _MODIFIERS[rest[0].lower()]
        rest = rest[2:]
    known = rest.lower()
    if known in _CURSOR or known in _TILDE or known in _SS3:
        return _function_key(known, modifiers, application_cursor)
    if known in _PLAIN:
        return _with_modifiers(_PLAIN[known], modifiers, known)
    if len(rest) == 1:
        return _with_modifiers(rest.encode(), modifiers, name)
    raise InvalidArgument(
        f"no key is called {name[:40]!r}",
        hint="a character, or one of " + " ".join(NAMES) + ", with C- M- S- before it",
    )


def _function_key(name: str, modifiers: int, application_cursor: bool) -> bytes:
    if name in _TILDE:
        suffix = b";%d~" % (1 + modifiers) if modifiers else b"~"
        return b"\x1b[%d" % _TILDE[name] + suffix
    final = _CURSOR.get(name) or _SS3[name]
    if modifiers:
        return b"\x1b[1;%d" % (1 + modifiers) + final
    return (b"\x1bO" if application_cursor or name in _SS3 else b"\x1b[") + final


def _with_modifiers(data: bytes, modifiers: int, name: str) -> bytes:
    if modifiers & _MODIFIERS["s"]:
        if data == b"\t":
            data = b"\x1b[Z"
        elif data.isalpha():
            data = data.upper()
    if modifiers & _MODIFIERS["c"]:
        data = _control(data, name)
    return b"\x1b" + data if modifiers & _MODIFIERS["m"] else data


def _control(data: bytes, name: str) -> bytes:
    if len(data) == 1:
        code = data.upper()[0]
        if 0x40 <= code <= 0x5F:
            return bytes([code & 0x1F])
        if data == b"?":
            return b"\x7f"
        if data == b" ":
            return b"\0"
    raise InvalidArgument(f"no terminal has a control key for {name[:40]!r}")


_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"


def pasted(text: bytes) -> bytes:
    """As one piece, for a program that knows pastes. What is in it cannot end it: whatever stands
    behind that would be taken for typed."""
    while _PASTE_ENDS in text:  # taking one out may make another
        text = text.replace(_PASTE_ENDS, b"")
    return _PASTE_BEGINS + text + _PASTE_ENDS
