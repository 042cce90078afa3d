"""Who is behind a process, a port, a file, a piece of the shell's state, a line, a command.

What is not state leads to a command: a process by its cgroup, or at level plain by the process tree
and the time; a port by the process that listens; a line by its output. From the command the chain
goes on to those that set the state it used. Commands that are no longer remembered are read from
the journal, in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from holdfast.adapters.halt import cgroup
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.proc import command_of_process, listening_ports, procfs
from holdfast.adapters.shell import program_search
from holdfast.core.gate.originators import Origin
from holdfast.host.gate.command_book import KnownCommand, replayed
from holdfast.host.gate.provenance import SessionProvenance
from holdfast.host.session.halt_control import HaltControl
from holdfast.host.session.nested_shells import ReportingShells
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session.record import SessionRecord
from holdfast.model.errors import HoldfastError, InvalidArgument
from holdfast.model.graph import Graph
from holdfast.model.info import BlameLine
from holdfast.model.record import Record
from holdfast.model.why import ChainLink, WhoIsBehind

CHAIN_MAX = 32  # commands in one answer; what led to the last ones is left out
_PROCESSES_MAX = 8192
_SLACK_S = 0.03  # between a shell's report of a command and a clock that counts hundredths
STATE_KINDS = ("var", "alias", "func", "option", "trap", "hash", "path", "dir", "job")
_NUMBERED = ("pid", "port", "line", "command")


class AskedSession(Protocol):
    """A live session, as far as it is asked about."""

    spec: SessionSpec
    journal: SessionRecord
    provenance: SessionProvenance
    halts: HaltControl
    shells: ReportingShells


class WhyTarget(Record):
    """What is asked about."""

    text: str
    kind: str
    name: str = ""
    number: int = 0


def target_of(text: str) -> WhyTarget:
    """Raises InvalidArgument."""
    kind, colon, name = text.partition(":")
    if text in ("cwd", "umask"):
        return WhyTarget(text, "state", text)
    if colon and name and kind in STATE_KINDS:
        return WhyTarget(text, "state", text)
    if colon and name and kind == "file":
        return WhyTarget(text, "file", name)
    if colon and kind in _NUMBERED and name.isdecimal() and len(name) < 10:
        return WhyTarget(text, kind, name, int(name))
    raise InvalidArgument(
        f"not something that `hold why` knows: {text[:80]!r}",
        hint="pid:N, port:N, file:PATH, var:NAME, alias:NAME, func:NAME, cwd, line:N or command:N",
    )


class Behind(Record):
    """What is behind a target: an origin, and what its command did."""

    origin: Origin | None  # None: nobody; it is as the session began
    what: str
    known: bool = True
    note: str = ""


class WhyQuestion:
    """One question about one session."""

    def __init__(
        self,
        live: AskedSession,
        directory: str,
        name: Callable[[str], str],
        lines: Callable[[], list[BlameLine]],
    ) -> None:
        """`lines`: reads the scrollback, each line with its command; in a thread."""
        self._live, self._directory, self._name, self._lines = live, directory, name, lines
        self._book = live.provenance
        self._older: dict[int, KnownCommand] = {}

    async def answer(self, target: WhyTarget) -> WhoIsBehind:
        found = await self.find(target)
        origin = found.origin
        chain = await self._chain(found) if origin is not None and origin.command else []
        return WhoIsBehind(
            target=target.text,
            known=found.known,
            originators=tuple(map(self._name, origin.actors)) if origin is not None else (),
            trigger=chain[0].actor if chain else "",
            chain=tuple(chain),
            adopted=origin is not None and origin.adopted,
            note=found.note,
        )

    async def find(self, target: WhyTarget) -> Behind:
        """Who is behind it."""
        match target.kind:
            case "state":
                return self._state(target.text)
            case "file":
                return self._file(target)
            case "pid":
                return await self._process(target.number)
            case "port":
                ports = await asyncio.to_thread(listening_ports.ports, self._live.spec.place)
                pids = [port.pid for port in ports if port.number == target.number]
                if not pids:
                    raise InvalidArgument(
                        f"nothing in this session listens on port {target.number}",
                        hint="`hold graph` shows what listens there",
                    )
                found = await self._process(pids[0])
                return found.replace(what=f"{found.what}, which listens on port {target.number}")
            case "line":
                return await self._line(target.number)
            case _:
                return await self._command(target.number, "ran")

    # -- each kind --------------------------------------------------------------------------------

    def _state(self, key: str) -> Behind:
        book = self._book
        if not book.reports:
            raise InvalidArgument(
                "the session's program does not report the state of a shell",
                hint="pid:N, port:N and line:N can be asked about in any session",
            )
        entry, silent = book.book.entries.get(key), book.shaped_by()
        what = f"set {key}"
        if silent:
            actors = tuple(dict.fromkeys((*silent, *(entry.actors if entry else ()))))
            note = (
                "the shell does not report what it holds; it counts as shaped by its last writers"
            )
            return Behind(Origin(entry.command if entry else 0, actors), what, False, note)
        if entry is not None:
            gone = "" if book.book.is_set(key) else "it is not set now"
            return Behind(entry, what, note=gone)
        if book.book.forgotten:
            note = "nobody saw who set it: everybody that wrote may have"
            return Behind(Origin(0, book.book.forgotten), what, False, note)
        if not book.book.has_begun:
            return Behind(None, what, False, "the shell has not reported its state yet")
        if not book.book.is_set(key):
            return Behind(None, what, note="it is not set, as when the session began")
        by = self._name(self._live.spec.created_by) if self._live.spec.created_by else "the host"
        return Behind(None, what, note=f"it is as the session began, which {by} started")

    def _file(self, target: WhyTarget) -> Behind:
        where = self.file(target)
        written = self._book.files.find(*where)
        if written is None:
            level = "at level plain nobody sees who writes files"
            seen = "nobody in this session was seen writing it"
            return Behind(None, "", False, seen if self._live.spec.place.cgroup else level)
        known = bool(written.path)
        note = "" if known else "nobody remembers who wrote it: everybody that wrote files may have"
        return Behind(written.origin, f"wrote {target.name}", known, note)

    def file(self, target: WhyTarget) -> tuple[int, int]:
        """Its device and inode."""
        spec = self._live.spec
        found = program_search.file_of(
            target.name, spec.place.shell_pid or spec.place.pid, self._book.cwd or spec.cwd
        )
        if found is None:
            raise InvalidArgument(f"there is no file {target.name[:200]!r} in this session")
        return found

    async def _process(self, pid: int) -> Behind:
        place = self._live.spec.place
        members = await asyncio.to_thread(procfs.members, place, _PROCESSES_MAX)
        if not place.cgroup:
            members += await asyncio.to_thread(procfs.same_session, members, _PROCESSES_MAX)
        if pid not in members:
            raise InvalidArgument(
                f"no process of this session has the number {pid}",
                hint="`hold graph` lists them by the host's numbers",
            )
        number, note = self.command_of(pid)
        what = f"started process {pid}"
        if number is None:
            everybody = Origin(0, self._book.everybody())
            return Behind(everybody, what, False, note)
        if number == 0:
            return Behind(None, what, note="it is of the session itself; no command started it")
        return (await self._command(number, what)).replace(note=note)

    def command_of(self, pid: int) -> tuple[int | None, str]:
        """The number of the command that started a process of the session; 0: none did; None:
        unknown. And how that is known."""
        place, book = self._live.spec.place, self._book
        shell = procfs.main_pid(place)
        if pid in (place.pid, shell):
            return 0, ""
        nested = self._live.shells.nested_pid
        if pid == nested:
            return self._live.shells.below, ""
        among: tuple[int, int] | None = None
        note = "by the process tree and the time: there is no other evidence at level plain"
        if place.cgroup:
            among = self._live.halts.leaves.commands_of(pid)
            note = "by the time it started: the commands of its group ran one after the other"
            if among is None and not cgroup.actors_of(place.cgroup, pid):
                return 0, ""
        if among is not None and among[0] == among[1]:
            return among[0], ""
        try:
            at = command_of_process.started_at(pid, (shell, nested))
        except OSError:
            at = None
        if at is None and among is not None:
            return among[1], note
        if at is None:
            return None, "its ancestors have ended: everybody that wrote may be behind it"
        before = [command.number for command in book.commands if command.at <= at + _SLACK_S]
        if among is not None:
            return min(max([*before, among[0]]), among[1]), note
        return (max(before), note) if before else (0, note)

    async def _line(self, number: int) -> Behind:
        lines = await asyncio.to_thread(self._lines)
        if not 1 <= number <= len(lines):
            raise InvalidArgument(f"there is no line {number}; there are {len(lines)}")
        command = lines[number - 1].command
        if command is None:
            return Behind(None, "", note="no command printed it")
        return await self._command(command, f"printed line {number}")

    async def _command(self, number: int, what: str) -> Behind:
        command = await self.command(number)
        adopted = bool(command.adopted)
        return Behind(command.origin.replace(adopted=adopted), what)

    # -- commands ---------------------------------------------------------------------------------

    async def command(self, number: int) -> KnownCommand:
        """From memory, or else from the journal."""
        known = self._book.commands.get(number) or self._older.get(number)
        if known is None:
            await self._read({number})
            known = self._older.get(number)
        if known is None:
            raise InvalidArgument(f"there is no command {number} in this session")
        return known

    async def _read(self, numbers: Iterable[int]) -> None:
        wanted = frozenset(numbers)
        self._live.journal.flush()
        through = self._live.journal.seq

        def read() -> list[KnownCommand]:
            try:
                return list(replayed(JournalReader(self._directory).entries(1, through), wanted))
            except HoldfastError:  # whoever writes the journal next will report it
                return []

        for command in await asyncio.to_thread(read):
            self._older[command.number] = command

    async def _chain(self, found: Behind) -> list[ChainLink]:
        """The command, and those that set the state that it used, and so on."""
        assert found.origin is not None
        todo = [(found.origin.command, found.what)]
        seen: set[int] = set()
        links: list[ChainLink] = []
        while todo and len(links) < CHAIN_MAX:
            missing = {n for n, _ in todo if not self._book.commands.get(n) and n not in seen}
            if missing - self._older.keys():
                await self._read(missing)
            number, what = todo.pop(0)
            if number in seen:
                continue
            seen.add(number)
            command = self._book.commands.get(number) or self._older.get(number)
            if command is None:  # its part of the journal cannot be read
                continue
            links.append(self._link(command, what))
            for use in command.uses:
                key, _, by = use.rpartition("@")
                if by.isdecimal() and int(by):
                    todo.append((int(by), f"set {key}, which command {number} used"))
        return links

    def _link(self, command: KnownCommand, what: str) -> ChainLink:
        name = self._name
        authors = tuple(map(name, command.authors))
        return ChainLink(
            command.number, command.text, name(command.trigger), authors, command.at, what
        )

    # -- the live graph ---------------------------------------------------------------------------

    def annotated(self, graph: Graph) -> Graph:
        """Every process with the command that started it, and who is behind that."""
        if not self._book.reports:
            return graph
        processes = []
        for process in graph.processes:
            number, _ = self.command_of(process.pid)
            command = self._book.commands.get(number) if number else None
            if command is not None:
                process = process.replace(
                    command=command.number,
                    trigger=self._name(command.trigger),
                    originators=tuple(map(self._name, command.actors)),
                )
            processes.append(process)
        return graph.replace(processes=tuple(processes))
