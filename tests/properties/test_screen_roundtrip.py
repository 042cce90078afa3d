"""A snapshot fed into a fresh screen gives the same screen, whatever programs have done before."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.ghostty.screen import GhosttyScreen
from holdfast.core.vt_boundary import complete_prefix
from holdfast.model.size import Size
from unit.screen_image import image

MODES = [1, 5, 6, 7, 9, 25, 45, 47, 66, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015]
MODES += [1047, 1049, 2004, 2026, 2027, 2031]


def csi(template: str, *bounds: int) -> st.SearchStrategy[bytes]:
    """A control sequence whose `%d`s are small numbers."""
    numbers = st.tuples(*(st.integers(0, bound) for bound in bounds))
    return numbers.map(lambda n: ("\x1b[" + template % n).encode())


WORDS = [
    "a",
    "word ",
    "0123456789",
    "x" * 25,
    "漢字",
    "e\u0301",
    "é",
    " ",
    "   ",
    "🎉",
    "क्षि",
    "👍🏽",
    "❤️",
]
TEXT = st.sampled_from(WORDS).map(str.encode)
LINES = st.sampled_from([b"\r\n", b"\r", b"\n", b"\b", b"\t", b"\x1bM", b"\x1bD", b"\x1bE"])
COLOURS = st.one_of(
    csi("%dm", 9), csi("3%dm", 7), csi("4%dm", 7), csi("38;5;%dm", 255),
    csi("48;2;%d;%d;9m", 255, 255),
    st.sampled_from([b"\x1b[m", b"\x1b[4:3m", b"\x1b[58;5;9m", b"\x1b[0;7m"]),
)  # fmt: skip
MOVES = st.one_of(
    csi("%d;%dH", 9, 24), csi("%dA", 5), csi("%dB", 9), csi("%dC", 24), csi("%dD", 9),
    csi("%dG", 24),
    st.sampled_from([b"\x1b7", b"\x1b8", b"\x1b[s", b"\x1b[u"]),
)  # fmt: skip
EDITS = st.one_of(
    csi("%dJ", 2), csi("%dK", 2), csi("%dX", 12), csi("%dP", 5), csi("%d@", 5), csi("%dL", 3),
    csi("%dM", 3), csi("%dS", 3), csi("%dT", 3), csi("%dr", 4), csi("%d;%dr", 3, 8), csi("%db", 9),
    st.sampled_from([b"\x1b[r", b"\x1b#8", b"\x1bH", b"\x1b[3g", b"\x1b[0g"]),
)  # fmt: skip
SWITCHED = [number for number in MODES if number not in (47, 1047, 1049, 2027)]
SWITCHES = st.one_of(
    st.tuples(st.sampled_from(SWITCHED), st.sampled_from([b"h", b"l"])).map(
        lambda mode: b"\x1b[?%d%s" % mode
    ),
    st.sampled_from([
        b"\x1b[?1049h", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[4h", b"\x1b[4l", b"\x1b=", b"\x1b>",
        b"\x1b[3;15s", b"\x1b(0lqqk\x1b(B", b"\x1b)0\x0eqq\x0f", b"\x1b[5 q", b"\x1b[2 q",
        b"\x1b[>1u", b"\x1b[>5u", b"\x1b[<u", b"\x1b[=3;1u", b"\x1b[>4;2m", b"\x1b[>4;0m",
        b"\x1b]2;title\x07", b"\x1b]8;;http://a/b\x1b\\", b"\x1b]8;id=i;http://c\x1b\\",
        b"\x1b]8;;\x1b\\",
    ]),
)  # fmt: skip
SIZES = st.sampled_from([Size(20, 6), Size(12, 4), Size(33, 9), Size(2, 2)])
STEPS = st.lists(st.one_of(TEXT, TEXT, LINES, COLOURS, MOVES, EDITS, SWITCHES, SIZES), max_size=40)


def seen(screen: GhosttyScreen) -> dict[str, object]:
    """All an operator or a program could notice, as the port tells it."""
    return {
        "text": screen.text(scrollback=True),
        "visible": screen.text(),
        "cursor": screen.cursor(),
        "title": screen.title,
        "modes": [number for number in MODES if screen.mode(number)],
        "keys": screen.feed(b"\x1b[?u"),
        "pen": screen.feed(b"\x1bP$qm\x1b\\"),
        "margins": screen.feed(b"\x1bP$qr\x1b\\"),
        "shape": screen.feed(b"\x1bP$q q\x1b\\"),
    }


def check_round_trip(screen: GhosttyScreen) -> GhosttyScreen:
    before = image(screen)
    snapshot = screen.snapshot()
    assert image(screen) == before, "taking a snapshot changed the live screen"
    fresh = GhosttyScreen(screen.size)
    assert fresh.feed(snapshot) == b"", "a snapshot asks nothing"
    assert fresh.snapshot() == snapshot
    assert seen(fresh) == seen(screen)
    return fresh


@settings(derandomize=True, max_examples=250, deadline=None)
@given(STEPS)
def test_any_output_round_trips(steps: list[bytes | Size]) -> None:
    screen = GhosttyScreen(Size(20, 6))
    for step in steps:
        if isinstance(step, Size):
            screen.resize(step)
        else:
            screen.feed(step)
    check_round_trip(screen)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(STEPS, st.lists(st.one_of(TEXT, LINES, COLOURS, MOVES), max_size=15))
def test_both_go_on_alike_after_it(steps: list[bytes | Size], later: list[bytes]) -> None:
    screen = GhosttyScreen(Size(20, 6))
    screen.feed(b"".join(step for step in steps if isinstance(step, bytes)))
    fresh = check_round_trip(screen)
    for step in [*later, b"\x1b[?1049l", b"end", b"\x1b8", b"saved"]:
        screen.feed(step)
        fresh.feed(step)
    assert seen(fresh) == seen(screen)


@dataclass
class Program:
    """A real one, with what is typed into it, and what must have shown up by then."""

    argv: list[str]
    until: bytes
    typed: list[tuple[bytes, bytes]] = field(default_factory=list)

    def __str__(self) -> str:
        return self.argv[0]


PROGRAMS = [
    Program(["vim", "-u", "NONE", "-N", "-n", "/etc/services"], b"service",
            [(b":set nu\r", b"1 "), (b"Gihi", b"hi")]),
    Program(["less", "/etc/services"], b"service", [(b" ", b":")]),
    Program(["top", "-d", "9"], b"COMMAND"),
    Program(["ls", "-la", "--color=always", "/etc"], b"passwd"),
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_real_programs_screen_round_trips(program: Program) -> None:
    if shutil.which(program.argv[0]) is None:
        pytest.skip(f"{program.argv[0]} is not installed")
    screen = GhosttyScreen(Size(80, 24))
    screen.feed(b"$ " + program.argv[0].encode() + b"\r\n")
    for output in captured(program):
        screen.feed(output)
    check_round_trip(screen)
    screen.resize(Size(60, 20))
    check_round_trip(screen)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs another terminal: tmux")
@pytest.mark.parametrize("program", [PROGRAMS[0], None], ids=str)
def test_a_terminal_not_of_our_library_shows_the_same(
    program: Program | None, tmp_path: Path
) -> None:
    """Both ends of the other tests are one library; its mistakes would cancel out."""
    screen = GhosttyScreen(Size(80, 24))
    screen.feed(b"$ before\r\n" * 30)
    if program is None:
        screen.feed("\x1b[44m\x1b[2Jtop\x1b[3;1H\x1b[0m漢字 é ".encode() + b"0123456789" * 9)
        screen.feed(b"\x1b[10;12r\x1b[?6h\x1b[2;5Hhere")
    for output in captured(program) if program else []:
        screen.feed(output)
    (tmp_path / "snapshot").write_bytes(screen.snapshot())
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]
    show = "stty raw -echo; cat snapshot; sleep 60"
    subprocess.run(
        [*tmux, "new-session", "-d", "-x", "80", "-y", "24", show], cwd=tmp_path, check=True
    )
    try:
        expected = (screen.text(), ",".join(map(str, screen.cursor())))
        deadline = time.monotonic() + 10
        while (shown := in_tmux(tmux)) != expected and time.monotonic() < deadline:
            time.sleep(0.05)
        assert shown == expected
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def in_tmux(tmux: list[str]) -> tuple[str, str]:
    text = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, check=True).stdout
    where = [*tmux, "display", "-p", "#{cursor_x},#{cursor_y}"]
    cursor = subprocess.run(where, capture_output=True, check=True).stdout
    lines = [line.rstrip() for line in text.decode().split("\n")]
    return "\n".join(lines).rstrip("\n"), cursor.decode().strip()


def captured(program: Program) -> list[bytes]:
    """Its output in pieces that end between sequences."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        program.argv,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm-256color", "LESS": "", "LINES": "24", "COLUMNS": "80"},
    )
    os.close(slave)
    try:
        got = [_read(master, program.until)]
        for typed, until in program.typed:
            os.write(master, typed)
            got.append(_read(master, until))
    finally:
        child.kill()
        child.wait()
        os.close(master)
    whole = b"".join(got)
    return [whole[: complete_prefix(whole, 4096)]]


def _read(master: int, until: bytes) -> bytes:
    """Until it has said `until` and then nothing for a moment; or five seconds."""
    data, deadline = b"", time.monotonic() + 5
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.15)
        if not ready and until in data:
            break
        try:
            data += os.read(master, 65536) if ready else b""
        except OSError:  # the program has ended
            break
    return data
