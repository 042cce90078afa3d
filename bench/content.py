"""What sessions print: coloured text like a build log, and the script that prints it on demand.

The script answers each line `VERB NUMBER` with what the verb says and then a marker made of the
number. The echo of what was typed never contains the marker, so waiting for it is safe."""

from __future__ import annotations

import random
import time
from itertools import count

from bench.terminal import Silent, Terminal

BLOCK_BYTES = 1_000_000
SCRIPT = r"""
stty -echo
echo $$ > "$1"
while read -r verb number; do
    case $verb in
        cat) cat "$2" ;;
        keys) stty raw -echo ;;
    esac
    printf '\n<%s-END>\n' "$number"
    [ "$verb" = keys ] && exec cat
done
"""
_TEXT = """
    compiling linking module session keeper ring offset cursor attach resync custody wire frame
    daemon launch gate turn lease warning error note src/holdfast tests build target cached
"""
_WORDS = _TEXT.split()
_PING_EVERY_S = 0.3
_numbers = count(1)


def block(seed: int = 1) -> bytes:
    """BLOCK_BYTES of coloured lines of up to 110 columns, the same for the same seed."""
    rng = random.Random(seed)
    lines: list[bytes] = []
    size = 0
    while size < BLOCK_BYTES:
        line = _line(rng)
        lines.append(line)
        size += len(line)
    text = b"".join(lines)[: BLOCK_BYTES - 5]
    return text[: text.rfind(b"\n") + 1].ljust(BLOCK_BYTES - 5, b".") + b"\x1b[0m\n"


def _line(rng: random.Random) -> bytes:
    pieces = []
    width = 0
    while width < 70 + rng.randrange(30):
        word = rng.choice(_WORDS)
        style = rng.randrange(3)
        if style == 0:
            pieces.append(f"\x1b[{rng.randrange(31, 37)}m{word}\x1b[0m ")
        elif style == 1:
            pieces.append(f"\x1b[1;38;5;{rng.randrange(16, 232)}m{word}\x1b[0m ")
        else:
            pieces.append(f"{word} ")
        width += len(word) + 1
    return "".join(pieces).encode() + b"\n"


def make_file(path: str, blocks: int) -> str:
    data = block()
    with open(path, "wb") as file:
        for _ in range(blocks):
            file.write(data)
    return path


def script(pid_file: str, file: str) -> list[str]:
    """The command line of a session that runs the script."""
    return ["/bin/sh", "-c", SCRIPT, "bench", pid_file, file]


def ask(terminal: Terminal, verb: str, timeout_s: float) -> float:
    """Type the verb and wait for its marker; gives the seconds it took."""
    number = next(_numbers)
    began = time.perf_counter()
    terminal.type(f"{verb} {number}\n".encode())
    terminal.wait_for(f"<{number}-END>".encode(), timeout_s)
    return time.perf_counter() - began


def until_attached(terminal: Terminal, timeout_s: float = 15.0) -> None:
    """Ping until the script answers. Repeated, because a client may throw away what was typed
    before it had set up its terminal."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            ask(terminal, "ping", _PING_EVERY_S)
            terminal.discard(_PING_EVERY_S)
            return
        except Silent:
            if time.monotonic() > deadline or terminal.process.poll() is not None:
                raise
