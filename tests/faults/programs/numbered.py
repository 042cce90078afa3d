"""Runs in a session: prints numbers, one a line and none left out, in bursts of every size; appends
each line it reads to a file. The line `stop` ends the numbers. Arguments: the file, a
seed, and optionally the seconds to rest after each burst."""

import os
import random
import signal
import sys
import termios
import threading

_OUTPUT, _LOCAL = 1, 3


def main() -> None:
    path, seed = sys.argv[1], int(sys.argv[2])
    rest_s = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    modes = termios.tcgetattr(0)
    modes[_OUTPUT] &= ~termios.OPOST  # the ring shall hold exactly what is printed here
    modes[_LOCAL] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, modes)
    stop = threading.Event()
    threading.Thread(target=keep_lines, args=(path, stop), daemon=True).start()
    chance = random.Random(seed)
    number = 0
    while not stop.is_set():
        count = chance.choice([1, 3, 40, 1500, 20_000])
        write_all(b"".join(b"%d\n" % n for n in range(number, number + count)))
        number += count
        stop.wait(rest_s + chance.uniform(0, 0.02))
    write_all(b"end\n")
    while True:
        signal.pause()


def keep_lines(path: str, stop: threading.Event) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for line in sys.stdin.buffer:
        if line == b"stop\n":
            stop.set()
        else:
            os.write(log, line)


def write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


main()
