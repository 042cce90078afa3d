"""Runs in a session: prints numbers, one a line and none left out, some at a time, from the first
line that is typed until the second; then `end`. Arguments: how many at a time, how often."""

import os
import select
import sys
import termios

_OUTPUT, _LOCAL = 1, 3


def main() -> None:
    lines, every_s = int(sys.argv[1]), float(sys.argv[2])
    modes = termios.tcgetattr(0)
    modes[_OUTPUT] &= ~termios.OPOST  # the ring shall hold exactly what is printed here
    modes[_LOCAL] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, modes)
    os.read(0, 100)
    number = 0
    while not select.select([0], [], [], every_s)[0]:
        data = b"".join(b"%d\n" % each for each in range(number, number + lines))
        number += lines
        while data:
            data = data[os.write(1, data) :]
    os.write(1, b"end\n")
    sys.stdin.read()


main()
