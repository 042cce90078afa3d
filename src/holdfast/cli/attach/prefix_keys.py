"""The operator's own commands among the keys: C-\\ and one more.

Finds them; what they do is the client's matter. A prefix at the end of what was typed waits for the
next key, however long that takes."""

from __future__ import annotations

from enum import StrEnum

PREFIX = 0x1C  # C-\ : no program of note uses it, and no text contains it
HINT = "C-\\ d detaches"
# Within 80 columns. The prefix twice, or with a backslash, types it.
HELP = "d detach, t turn, a ask, g grant, y yield, s seize, S +halt, u resume, r draw"


class PrefixCommand(StrEnum):
    DETACH = "detach"
    REPAINT = "repaint"
    HELP = "help"
    TURN = "turn"
    ASK = "ask"
    GRANT = "grant"
    YIELD = "yield"
    SEIZE = "seize"
    HALT = "seize and halt"
    RESUME = "resume"


_KEYS = {
    b"d": PrefixCommand.DETACH,
    b"D": PrefixCommand.DETACH,
    b"\x04": PrefixCommand.DETACH,
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


class PrefixKeys:
    """Whether a prefix waits for its key is all there is to remember."""

    def __init__(self) -> None:
        self.waiting = False

    def take(self, data: bytes) -> tuple[bytes, list[PrefixCommand]]:
        """What is left for the session, and the commands, in their order. Nothing counts after the
        one to detach."""
        kept, commands = bytearray(), []
        for byte in data:
            if self.waiting:
                self.waiting = False
                commands.append(self._command(byte, kept))
                if commands[-1] is PrefixCommand.DETACH:
                    break
            elif byte == PREFIX:
                self.waiting = True
                commands.append(PrefixCommand.HELP)
            else:
                kept.append(byte)
        return bytes(kept), commands

    def _command(self, byte: int, kept: bytearray) -> PrefixCommand:
        command = _KEYS.get(bytes((byte,)))
        if command is not None:
            return command
        if byte in (PREFIX, ord("\\")):
            kept.append(PREFIX)
        else:
            kept += bytes((PREFIX, byte))  # not a command of ours: it was meant for the program
        return PrefixCommand.REPAINT
