"""S6 for humans: the graph as a tree that can be read, and cannot harm its reader."""

from __future__ import annotations

import re

from holdfast.cli.text.graph import DETAILS_MAX, render
from holdfast.model.graph import Graph, Lock, OpenFile, Pipe, Process, Socket, Terminal
from holdfast.model.size import Size
from holdfast.model.state import SessionState

TERMINAL = Terminal("/dev/pts/3", Size(80, 24), 11, True, True, True, 0, 0)


def process(pid: int, ppid: int, *argv: str, **more: object) -> Process:
    values: dict[str, object] = {
        "pid_inside": pid,
        "pgid": pid,
        "sid": 10,
        "name": (argv or ("gone",))[0].rpartition("/")[2],
        "cwd": "/",
        "uid": 0,
        "state": "S",
        "started": float(pid),
        "cpu_seconds": 0.25,
        "rss_bytes": 5 << 20,
        "threads": 1,
        "foreground": False,
    }
    return Process(pid=pid, ppid=ppid, argv=argv, **{**values, **more})  # type: ignore[arg-type]


def graph(*processes: Process, **more: str) -> Graph:
    return Graph(10, processes, TERMINAL, SessionState.WORKING, **more)


def test_a_tree_with_what_its_processes_hold() -> None:
    server = process(
        11,
        10,
        "/usr/bin/node",
        "server.js",
        waits_for="socket",
        sockets=(
            Socket(21, 92, "inet", "tcp", "established", "127.0.0.1:3000", "127.0.0.1:50000"),
            Socket(20, 91, "inet", "tcp", "listen", "0.0.0.0:3000"),
        ),
        files=(
            OpenFile(0, "/dev/pts/3", "tty", "rw", 0),
            OpenFile(1, "/tmp/log", "file", "w", 1024),
            OpenFile(2, "/tmp/log", "file", "w", 1024),
            OpenFile(5, "/tmp/db", "file", "rw", 0, (Lock("posix", "write", 0, 99),)),
        ),
    )
    yes = process(12, 10, "yes", state="R", foreground=True, pipes=(Pipe(1, 77, "write"),))
    cat = process(13, 10, "cat", foreground=True, pipes=(Pipe(0, 77, "read"),))
    shown = render(graph(process(10, 1, "bash"), server, yes, cat), width=80, color=False)
    assert shown.splitlines() == [
        "/dev/pts/3  80x24  working  line by line",
        "    PID S  WAITS     CPU   MEM  COMMAND",
        "     10 S           0.2s  5.0M  bash",
        "     11 S  socket   0.2s  5.0M  ├─ node server.js",
        "                                │      20 listens tcp 0.0.0.0:3000",
        "                                │      21 tcp 127.0.0.1:3000 ⇄ 127.0.0.1:50000",
        "                                │     1,2 w  /tmp/log @1024",
        "                                │       5 rw /tmp/db @0  locked posix write 0-99",
        "     12 R+          0.2s  5.0M  ├─ yes",
        "                                │       1 pipe → cat 13",
        "     13 S+          0.2s  5.0M  └─ cat",
        "                                        0 pipe ← yes 12",
    ]


def test_no_line_is_wider_than_asked_and_colour_takes_no_columns() -> None:
    wide = graph(process(10, 1, "bash", "x" * 300), process(11, 10, "cat"))
    for width in (0, 1, 20, 80):
        plain = render(wide, width=width, color=False)
        assert all(len(line) <= width for line in plain.splitlines())
        assert re.sub(r"\x1b\[\d+m", "", render(wide, width=width, color=True)) == plain


def test_what_a_program_calls_itself_cannot_reach_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\n\u202e"
    shown = render(
        graph(
            process(10, 1, evil, evil, name=evil, files=(OpenFile(3, evil, "file", "r", 0),)),
            process(11, 10, name=evil, state="Z"),
            truncated=evil,
        ),
        width=200,
        color=False,
    )
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert len(shown.splitlines()) == 6


def test_a_zombie_says_what_it_is() -> None:
    shown = render(graph(process(10, 1, name="make", state="Z")), width=80, color=False)
    assert shown.splitlines()[-1].endswith("[make]  ended, not yet collected")


def test_numbers_inside_the_session_are_shown_when_they_differ() -> None:
    shown = render(graph(process(4242, 1, "bash", pid_inside=2)), width=80, color=False)
    assert shown.splitlines()[1:] == [
        "    PID  INSIDE S  WAITS     CPU   MEM  COMMAND",
        "   4242       2 S           0.2s  5.0M  bash",
    ]


def test_many_files_are_counted_and_a_pipe_to_oneself_is_left_out() -> None:
    files = tuple(OpenFile(fd, f"/f{fd}", "file", "r", 0) for fd in range(40))
    pipes = (Pipe(50, 7, "read"), Pipe(51, 7, "write"))
    shown = render(
        graph(process(10, 1, "browser", files=files, pipes=pipes)), width=80, color=False
    )
    assert len(shown.splitlines()) == 3 + DETAILS_MAX
    assert shown.splitlines()[-1].strip() == "… and 29 more"


def test_a_session_nested_deeper_than_the_stack_is_rendered() -> None:
    deep = graph(*(process(pid, pid - 1, "sh") for pid in range(10, 3010)))
    assert len(render(deep, width=80, color=False).splitlines()) == 3002


def test_an_ended_session_has_a_headline_only() -> None:
    ended = Graph(10, (), TERMINAL, SessionState.ENDED)
    assert render(ended, width=80, color=False).splitlines() == [
        "/dev/pts/3  80x24  ended  line by line"
    ]
