"""The live graph as text for a human: the process tree, and under each process what it holds.

Under a process are its sockets, its pipes with who is at the other end, and its files with
offset and locks. Left out is what says nothing: the terminal itself, /dev/null, directories, and a
pipe a process only has with itself. Everything a program can choose (arguments, paths, names) is
made harmless first: it must not be able to send control sequences to the reader's terminal.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.graph import Graph, Lock, OpenFile, Process, Socket, Terminal
from holdfast.model.state import SessionState

DETAILS_MAX = 12  # lines under one process; a browser has hundreds of files

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_STATE_STYLES = {
    SessionState.WORKING: "green",
    SessionState.PROMPT: "bold",
    SessionState.INPUT: "yellow",
    SessionState.SECRET: "yellow",
    SessionState.STOPPED: "red",
    SessionState.HALTED: "red",
    SessionState.ENDED: "red",
    SessionState.LOST: "red",
}
_LETTER_STYLES = {"R": "green", "D": "red", "T": "red", "t": "red", "Z": "red"}
_DULL_KINDS = ("tty", "device", "dir", "anon")

Line = list[tuple[str, str]]  # pieces of text, each with a style or ""


def render(graph: Graph, *, width: int, color: bool) -> str:
    """The graph in lines of at most `width` columns."""
    lines = [_headline(graph)]
    if graph.processes:
        lines += _Tree(graph).lines()
    if graph.truncated:
        lines.append([(f"not shown: {_plain(graph.truncated)}", "yellow")])
    return "\n".join(_paint(line, width, color) for line in lines) + "\n"


def _headline(graph: Graph) -> Line:
    terminal = graph.terminal
    return [
        (_plain(terminal.name), "bold"),
        (f"  {terminal.size}  ", ""),
        (graph.state.value, _STATE_STYLES[graph.state]),
        ("".join(f"  {note}" for note in _notes(terminal)), "dim"),
    ]


def _notes(terminal: Terminal) -> Iterator[str]:
    yield "line by line" if terminal.canonical else "key by key"
    if not terminal.echo:
        yield "no echo"
    if terminal.unread_input:
        yield f"{_size(terminal.unread_input)} typed, not read"
    if terminal.unread_output:
        yield f"{_size(terminal.unread_output)} printed, not taken"


class _Tree:
    """Lines for the processes, parents before children, the older before the younger."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._by_pid = {process.pid: process for process in graph.processes}
        self._numbered_inside = any(p.pid != p.pid_inside for p in graph.processes)
        self._children: dict[int, list[Process]] = {}
        for process in sorted(graph.processes, key=lambda p: (p.started, p.pid)):
            parent = process.ppid if process.ppid in self._by_pid else 0
            self._children.setdefault(parent, []).append(process)
        self._holders: dict[int, list[tuple[Process, str]]] = {}
        self._sockets: dict[int, Process] = {}
        for process in graph.processes:
            for pipe in process.pipes:
                self._holders.setdefault(pipe.inode, []).append((process, pipe.end))
            for socket in process.sockets:
                self._sockets.setdefault(socket.inode, process)

    def lines(self) -> Iterator[Line]:
        inside = f"{'INSIDE':>7} " if self._numbered_inside else ""
        yield [(f"{'PID':>7} {inside}S  {'WAITS':<7}{'CPU':>6} {'MEM':>5}  COMMAND", "dim")]
        roots = self._children.get(0, [])
        roots.sort(key=lambda process: process.pid != self._graph.root)
        # A list, not recursion: a session may nest deeper than Python's stack.
        todo = [(process, "", "") for process in reversed(roots)]
        while todo:
            process, lead, below = todo.pop()
            yield self._process(process, lead)
            children = self._children.pop(process.pid, [])
            margin = below + ("│  " if children else "   ")
            for detail in self._details(process):
                yield [(self._blank(), ""), (margin, "dim"), *detail]
            for place, child in enumerate(reversed(children)):
                last = place == 0
                branch, bar = ("└─ ", "   ") if last else ("├─ ", "│  ")
                todo.append((child, below + branch, below + bar))

    def _blank(self) -> str:
        return " " * (40 if self._numbered_inside else 32)

    def _process(self, process: Process, lead: str) -> Line:
        letter = process.state + ("+" if process.foreground else "")
        inside = f"{process.pid_inside:>7} " if self._numbered_inside else ""
        program, arguments = process.argv[:1], process.argv[1:]
        command = " ".join((*(path.rpartition("/")[2] for path in program), *arguments))
        return [
            (f"{process.pid:>7} ", "bold" if process.foreground else ""),
            (inside, "dim"),
            (f"{_plain(letter):<3}", _LETTER_STYLES.get(process.state, "")),
            (f"{_plain(process.waits_for):<7}", "yellow" if process.waits_for == "tty" else "dim"),
            (f"{_duration(process.cpu_seconds):>6} {_size(process.rss_bytes):>5}  ", "dim"),
            (lead, "dim"),
            (_plain(command) or f"[{_plain(process.name)}]", "bold" if process.foreground else ""),
            ("  ended, not yet collected" if process.state == "Z" else "", "red"),
            (_behind(process), "dim"),
        ]

    def _details(self, process: Process) -> list[Line]:
        found = [*self._socket_lines(process), *self._pipe_lines(process), *_file_lines(process)]
        if len(found) > DETAILS_MAX:
            hidden = len(found) - DETAILS_MAX + 1
            found[DETAILS_MAX - 1 :] = [[(f"… and {hidden} more", "dim")]]
        return found

    def _socket_lines(self, process: Process) -> Iterator[Line]:
        for socket in sorted(process.sockets, key=lambda s: (s.state != "listen", s.fd)):
            if line := self._socket(process, socket):
                yield [(f"{socket.fd:>3} ", "dim"), *line]

    def _socket(self, process: Process, socket: Socket) -> Line:
        kind = f"unix {socket.kind}" if socket.family == "unix" else socket.kind
        local = _plain(socket.local)
        if socket.state == "listen":
            return [(f"listens {kind} {local}", "green")]
        peer = self._sockets.get(socket.peer) if socket.peer else None
        if peer is process and not socket.remote:
            return []  # a socket pair with itself, to wake itself up
        if peer is not None:
            remote = " ".join(filter(None, (_plain(socket.remote), _who(peer))))
        else:
            remote = _plain(socket.remote) or ("elsewhere" if socket.peer else "")
        text = f"{kind} {local}".rstrip() + (f" ⇄ {remote}" if remote else "")
        note = "" if socket.state == "established" else f"  {socket.state}"
        return [(text, "cyan"), (_plain(note), "dim")]

    def _pipe_lines(self, process: Process) -> Iterator[Line]:
        for pipe in process.pipes:
            arrow, wanted = {"write": ("→", "read"), "read": ("←", "write")}.get(
                pipe.end, ("↔", "both")
            )
            holders = self._holders[pipe.inode]
            if not pipe.path and len(holders) > 1 and all(h is process for h, _ in holders):
                continue
            far = {
                _who(holder): None
                for holder, end in holders
                if holder is not process and (end in (wanted, "both") or pipe.end == "both")
            }
            name = f" {_plain(pipe.path)}" if pipe.path else ""
            ends = ", ".join(far) or ("" if pipe.path else "elsewhere")
            yield [(f"{pipe.fd:>3} ", "dim"), (f"pipe{name} {arrow} {ends}".rstrip(), "cyan")]


def _file_lines(process: Process) -> Iterator[Line]:
    """Duplicates of one opening (same file, mode and offset) share a line."""
    same: dict[OpenFile, list[int]] = {}
    for file in process.files:
        if file.kind not in _DULL_KINDS or file.locks:
            same.setdefault(file.replace(fd=0), []).append(file.fd)
    for file, fds in same.items():
        mark = {"deleted": "  deleted", "memfd": "  in memory"}.get(file.kind, "")
        yield [
            (f"{','.join(map(str, fds)):>3} ", "dim"),
            (f"{file.mode:<2} {_plain(file.path)} @{file.offset}", ""),
            (mark, "red"),
            ("".join(f"  {_lock(lock)}" for lock in file.locks), "yellow"),
        ]


def _lock(lock: Lock) -> str:
    whole = lock.start == 0 and lock.end is None
    span = "" if whole else f" {lock.start}-{'end' if lock.end is None else lock.end}"
    return f"locked {lock.kind} {lock.mode}{span}"


def _behind(process: Process) -> str:
    """The command that started it, who set that off, and who else is behind it."""
    if not process.command:
        return ""
    others = [name for name in process.originators if name != process.trigger]
    return f"  #{process.command} {_plain(', '.join([process.trigger, *others]))}"


def _who(process: Process) -> str:
    return f"{_plain(process.name)} {process.pid}"


def _size(count: int) -> str:
    """At most five columns: 812, 4.5K, 120M."""
    if count < 1000:
        return str(count)
    value = float(count)
    for unit in "KMGT":
        value /= 1024
        if value < 9.95:
            return f"{value:.1f}{unit}"
        if value < 999.5 or unit == "T":
            break
    return f"{value:.0f}{unit}"


def _duration(seconds: float) -> str:
    if seconds < 99.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 100:
        return f"{minutes}m{rest:02}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}"


def _plain(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\n\t" else "�" for c in text)


def _paint(line: Line, width: int, color: bool) -> str:
    """Cut to the width, then coloured: the escapes must not count as columns."""
    total = sum(len(text) for text, _ in line)
    room = width if total <= width else max(width - 1, 0)
    pieces = []
    for text, style in line:
        text, room = text[:room], max(room - len(text), 0)
        if text:
            pieces.append(f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color and style else text)
    return "".join(pieces) + ("…" if total > width > 0 else "")
