"""The operator's own commands among the keys: a prefix, C-\\ unless chosen otherwise, and a key.

Finds them; what they do is the client's matter. A prefix at the end of what was typed waits for the
next key, however long that takes. A key that is no command is dropped with the prefix: sent on,
C-\\ would have the terminal kill the program (SIGQUIT). A backslash after the prefix types the
prefix itself."""

from __future__ import annotations

import os
import re
from enum import StrEnum

from holdfast.model.errors import InvalidArgument

CHOSEN_BY = "HOLDFAST_PREFIX"
PREFIX = 0x1C  # C-\ : no program of note uses it, and no text contains it
# Each within 80 columns, with a space on either side.
HELP = "d detach D others n/p/w go t turn a ask g give y yield s seize S halt u resume"
UNKNOWN = "not a key of ours: d detach, n/p/w go, t turn, s seize, u resume, ? all"


def chosen(option: str | None) -> int:
    """The prefix as the command line says, else the environment, else C-\\."""
    word = option or os.environ.get(CHOSEN_BY)
    if not word:
        return PREFIX
    match = re.fullmatch(r"(?:C-|\^)([a-zA-Z\\\]^_])", word)
    code = ord(match[1].upper()) & 0x1F if match else 0
    if code in (0, 0x09, 0x0A, 0x0D):  # Tab and the two Enters
        raise InvalidArgument(
            f"{word!r} cannot be the prefix key",
            hint="one of C-a to C-z but C-i, C-j and C-m, or C-\\, C-], C-^, C-_",
        )
    return code


def key_name(prefix: int) -> str:
    """As people write it."""
    letter = chr(prefix | 0x40)
    return f"C-{letter.lower()}"


class PrefixCommand(StrEnum):
    DETACH = "detach"
    DETACH_OTHERS = "detach the other terminals"
    NEXT = "go to the next session"
    PREVIOUS = "go to the one before"
    CHOOSE = "list the sessions and choose one"
    REPAINT = "repaint"
    HELP = "help"
    UNKNOWN = "unknown"
    TURN = "turn"
    ASK = "ask"
    GRANT = "grant"
    YIELD = "yield"
    SEIZE = "seize"
    HALT = "seize and halt"
    RESUME = "resume"


_KEYS = {
    b"d": PrefixCommand.DETACH,
    b"\x04": PrefixCommand.DETACH,
    b"D": PrefixCommand.DETACH_OTHERS,
    b"n": PrefixCommand.NEXT,
    b"p": PrefixCommand.PREVIOUS,
    b"w": PrefixCommand.CHOOSE,
    b"r": PrefixCommand.REPAINT,
    b"R": PrefixCommand.REPAINT,
    b"\x12": PrefixCommand.REPAINT,
    b"?": PrefixCommand.HELP,
    b"t": PrefixCommand.TURN,
    b"a": PrefixCommand.ASK,
    b"g": PrefixCommand.GRANT,
    b"y": PrefixCommand.YIELD,
    b"s": PrefixCommand.SEIZE,
    b"S": PrefixCommand.HALT,
    b"u": PrefixCommand.RESUME,
}
# One key, as terminals send it: an arrow or a function key, Alt with a key, a character of UTF-8.
_ONE_KEY = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b[^\x1b]|[\xc0-\xff][\x80-\xbf]*|.", re.DOTALL
)


# What is typed behind one of these is not for this session.
SWITCHES = (PrefixCommand.NEXT, PrefixCommand.PREVIOUS, PrefixCommand.CHOOSE)


def one_by_one(data: bytes) -> list[bytes]:
    """The keys in what was typed."""
    return [key[0] for key in _ONE_KEY.finditer(data)]


class PrefixKeys:
    """Whether a prefix waits for its key, and what was typed behind a key that goes to another
    session, is all there is to remember."""

    def __init__(self, prefix: int = PREFIX) -> None:
        self.prefix = prefix
        self.waiting = False
        self.behind = b""

    def take(self, data: bytes) -> tuple[bytes, list[PrefixCommand]]:
        """What is left for the session, and the commands, in their order. Nothing counts after the
        one to detach; what comes after one that goes to another session is in `behind`."""
        self.behind = b""
        kept, commands, at = bytearray(), [], 0
        while at < len(data):
            if self.waiting:
                self.waiting = False
                key = _ONE_KEY.match(data, at)
                assert key is not None  # any byte is one
                at = key.end()
                commands.append(self._command(key[0], kept))
                if commands[-1] is PrefixCommand.DETACH:
                    break
                if commands[-1] in SWITCHES:
                    self.behind = data[at:]
                    break
                continue
            if data[at] == self.prefix:
                self.waiting = True
                commands.append(PrefixCommand.HELP)
            else:
                kept.append(data[at])
            at += 1
        return bytes(kept), commands

    def _command(self, key: bytes, kept: bytearray) -> PrefixCommand:
        if key == b"\\":
            kept.append(self.prefix)
            return PrefixCommand.REPAINT
        return _KEYS.get(key, PrefixCommand.UNKNOWN)
