"""Words as bash, zsh and fish print them for reading again, with the quoting undone.

Only what their builtins print (`declare -p`, `alias -p`, `trap -p`, `set -x`): no expansions, no
comments, no operators. Deliberately without errors: what is not understood is taken literally.
"""

from __future__ import annotations

import re

_SHELL = re.compile(
    rb"""(?P<gap>[ \t]+) | (?P<end>\n)
    | \$'(?P<ansi>(?:[^'\\]|\\.)*)' | '(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)"
    | \\(?P<escaped>.) | (?P<plain>[^\s'"\\$]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = re.compile(rb"\\([\\\"$`])|\\\n", re.DOTALL)
_ANSI = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.)|(.))",
    re.DOTALL,
)
_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n",
    b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip


def shell_statements(text: bytes) -> list[list[bytes]]:
    """Each line's words, of what bash or zsh printed; a quoted newline ends no line."""
    statements: list[list[bytes]] = []
    words: list[bytes] = []
    word: bytes | None = None
    for found in _SHELL.finditer(text + b"\n"):
        kind, value = found.lastgroup, found[found.lastgroup or 0]
        if kind in ("gap", "end"):
            if word is not None:
                words.append(word)
            word = None
            if kind == "end" and words:
                statements.append(words)
                words = []
        else:
            word = (word or b"") + _unquoted(kind, value)
    return statements


def _unquoted(kind: str | None, value: bytes) -> bytes:
    if kind == "double":
        return _IN_DOUBLE.sub(lambda found: found[1] or b"", value)
    return _ANSI.sub(_ansi, value) if kind == "ansi" else value


def _ansi(found: re.Match[bytes]) -> bytes:
    octal, byte, short, long, control, letter = found.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 255])
    if byte is not None:
        return bytes([int(byte, 16)])
    if short is not None or long is not None:
        code = int(short or long or b"0", 16)
        return chr(code).encode(errors="replace") if code < 0x110000 else b"?"
    if control is not None:
        return bytes([control[0] & 31])
    return _LETTERS.get(letter, letter)


_FISH = re.compile(
    rb"""(?P<gap>[ ]+) | '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)"
    | (?P<bare>(?:[^\s'"\\]|\\(?:[0-7]{1,3}|[xX][0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}
        |U[0-9a-fA-F]{1,8}|c.|.))+) | (?P<plain>.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_FISH_QUOTES = re.compile(rb"\\([\\'\"$])", re.DOTALL)


def fish_words(line: bytes) -> list[bytes]:
    """The words of one line that fish printed; at least one, be it empty."""
    words: list[bytes] = []
    word: bytes | None = None
    for found in _FISH.finditer(line):
        kind, value = found.lastgroup, found[found.lastgroup or 0]
        if kind == "gap":
            if word is not None:
                words.append(word)
            word = None
        elif kind in ("single", "double"):
            word = (word or b"") + _IN_FISH_QUOTES.sub(rb"\1", value)
        elif kind == "bare":
            word = (word or b"") + _ANSI.sub(_ansi, value.replace(rb"\X", rb"\x"))
        else:
            word = (word or b"") + value
    return [*words, word] if word is not None else words or [b""]
