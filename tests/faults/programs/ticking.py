"""Runs in a session: prints numbers, one a line and none left out, a few at a time without end,
until a line is typed; then `end`."""

import os
import select
import sys
import termios

_OUTPUT, _LOCAL = 1, 3
_LINES, _EVERY_S = 40, 0.02


def main() -> None:
    modes = termios.tcgetattr(0)
    modes[_OUTPUT] &= ~termios.OPOST  # the ring shall hold exactly what is printed here
    modes[_LOCAL] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, modes)
    number = 0
    while not select.select([0], [], [], _EVERY_S)[0]:
        data = b"".join(b"%d\n" % each for each in range(number, number + _LINES))
        number += _LINES
        while data:
            data = data[os.write(1, data) :]
    os.write(1, b"end\n")
    sys.stdin.read()


main()
