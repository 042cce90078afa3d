"""Words as bash makes them: quotes removed, braces expanded. A word is read as characters, each
with whether it was quoted: a quoted brace or star means nothing."""

from __future__ import annotations

import re

from holdfast.model.command_line import HOLE, Word

Chars = list[tuple[str, bool]]

# More words than this are not made of one: `{1..9}{1..9}{1..9}` is a thousand. It is a hole then.
_WORDS_MAX = 256

_ANSI_C = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})"
    r"|U(?P<big>[0-9a-fA-F]{1,8})|c(?P<control>.)|(?P<plain>.))",
    re.DOTALL,
)
_ANSI_C_PLAIN = {
    "a": "\a", "b": "\b", "e": "\033", "E": "\033", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def read_string(text: str) -> Chars:
    """Unquoted text: a backslash quotes what follows."""
    found: Chars = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            if text[at] != "\n":
                found.append((text[at], True))
        else:
            found.append((text[at], False))
        at += 1
    return found


def unescape_ansi_c(text: str) -> str:
    """The inside of $'...'."""

    def one(match: re.Match[str]) -> str:
        if (digits := match["octal"]) is not None:
            return _char(int(digits, 8) & 0xFF)
        if (digits := match["hex"] or match["u"] or match["big"]) is not None:
            return _char(int(digits, 16))
        if (control := match["control"]) is not None:
            return _char(ord(control) & 0x1F)
        plain = match["plain"]
        return _ANSI_C_PLAIN.get(plain, f"\\{plain}")

    return _ANSI_C.sub(one, text)


def _char(code: int) -> str:
    """Bytes above 127 are part of some encoding: what they become is not known here. Bash ends the
    string at a NUL, so that is not known either."""
    return chr(code) if 0 < code < 0x80 else HOLE


def words_of(chars: Chars, *, splits: bool = True) -> list[Word]:
    """`splits`: whether braces are expanded, as in words of commands; not in assignments."""
    if not splits:
        return [_word(chars)]
    expanded = expand_braces(chars)
    if expanded is None:
        return [Word(HOLE)]
    return [_word(each) for each in expanded]


def _word(chars: Chars) -> Word:
    text = "".join(char for char, _ in chars)
    glob = any(char in "*?[" and not quoted for char, quoted in chars)
    tilde = bool(chars) and chars[0] == ("~", False)
    return Word(text, glob, tilde)


def expand_braces(chars: Chars) -> list[Chars] | None:
    """As bash does it, left to right; None when that gives too many words."""
    opening = next(
        (at for at in range(len(chars)) if chars[at] == ("{", False) and _group(chars, at)), None
    )
    if opening is None:
        return [chars]
    group = _group(chars, opening)
    assert group is not None
    parts, end = group
    before, rests = chars[:opening], expand_braces(chars[end + 1 :])
    if rests is None:
        return None
    found: list[Chars] = []
    for part in parts:
        inner = expand_braces(part)
        if inner is None:
            return None
        found.extend([*before, *each, *rest] for each in inner for rest in rests)
        if len(found) > _WORDS_MAX:
            return None
    return found


def _group(chars: Chars, opening: int) -> tuple[list[Chars], int] | None:
    """The parts of a brace group and where it ends; None if it is none: no comma, no range."""
    depth = 0
    part: Chars = []
    parts: list[Chars] = []
    for at in range(opening + 1, len(chars)):
        here = chars[at]
        if here == ("{", False):
            depth += 1
        elif here == ("}", False):
            if depth == 0:
                parts.append(part)
                if len(parts) > 1:
                    return parts, at
                counted = _range(part)
                return (counted, at) if counted is not None else None
            depth -= 1
        elif here == (",", False) and depth == 0:
            parts.append(part)
            part = []
            continue
        part.append(here)
    return None


def _range(part: Chars) -> list[Chars] | None:
    """`1..3`, `a..e`, `1..9..2`."""
    if any(quoted for _, quoted in part):
        return None
    text = "".join(char for char, _ in part)
    found = re.fullmatch(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?", text)
    if found is None:
        return None
    first, last, step = found.groups()
    if first.lstrip("-").isdigit() != last.lstrip("-").isdigit():
        return None
    if not first.lstrip("-").isdigit():
        begin, end, show = ord(first), ord(last), chr
    else:
        begin, end, show = int(first), int(last), str
    pace = abs(int(step or 1)) or 1
    if abs(end - begin) // pace >= _WORDS_MAX:
        return [[(HOLE, True)]]
    counted = range(begin, end + (1 if end >= begin else -1), pace if end >= begin else -pace)
    return [[(char, False) for char in show(each)] for each in counted]
