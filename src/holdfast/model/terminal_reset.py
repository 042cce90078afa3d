"""Escape sequences that undo what a program may have set in an operator's terminal, for painting a
session's screen and for detaching. Harmless where nothing was set.

They do not clear the screen, erase scrollback or query the terminal. The title, palette colours and
132 columns stay as they are."""

from __future__ import annotations

PEN = b"\x1b[0m\x1b]8;;\x1b\\\x0f\x1b(B\x1b)B\x1b*B\x1b+B" + b'\x1b[0"q'
KEYS = b"\x1b[<99u\x1b[>4;0m"  # the kitty stack of the screen shown, and modifyOtherKeys
# Private modes that are off in a terminal nobody has changed. 2031, 2033 and 2048 have a terminal
# report by itself: left on, its reports are typed into the operator's shell. In pieces: tmux drops
# a sequence with more than 63 bytes of parameters whole, others one with more than 16 parameters.
_OFF = (
    b"\x1b[?1;5;6;9;45;69l\x1b[?1000;1002;1003;1004;1005;1006;1015;1016l"
    b"\x1b[?1045;2004;2027;2031;2033;2048l"
)
# DECSTR first, for what a terminal has and we have no name for; then by name, as some terminals
# know no DECSTR and VT510-like ones turn autowrap off with it. The keyboard comes twice: each
# screen has a stack of its own. It moves the cursor home.
ALL = (
    KEYS + b"\x1b[!p\x1b[?1049l\x1b[?1047l\x1b[?47l" + _OFF + b"\x1b[?7;25h\x1b[2;4;20l\x1b[12h"
    b"\x1b>\x1b[r\x1b[?5W\x1b[0 q" + KEYS + PEN
)

# Modes that are on in some terminals and off in others (smooth scrolling, repeat, 132 columns
# allowed, backspace, the wheel on the alternate screen, numlock, alt and meta, clusters): the
# terminal keeps its own while a session is shown. One that cannot do that ignores both.
_DIFFERS = b"4;8;40;67;1007;1035;1036;1039;2027"
KEEP = b"\x1b[?" + _DIFFERS + b"s"
GIVE_BACK = b"\x1b[?" + _DIFFERS + b"r"
