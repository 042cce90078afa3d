"""Runs in a session: reads its terminal byte for byte and appends what it read to a file, in the
order in which it was read. Prints a dot for each read, so that there is output too. Arguments: the
file."""

import os
import sys
import tty


def main() -> None:
    tty.setraw(0)  # what is typed arrives as it is: no line editing, no echo, no signals
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(1, b"ready\r\n")
    while data := os.read(0, 4096):
        os.write(log, data)
        os.write(1, b".")


main()
