"""Who is behind what a session's shell holds, and behind a line that is about to run.

After every prompt the shell's state is compared with the one before (state_file.py). Behind a
change is everybody who had a part in the commands between: who typed them, who typed into them
while they ran, who was behind the state that they used. Whoever wrote since the last state that was
seen counts as well, whatever the shell reports: so an actor that removes our hooks, changes
something and puts them back, is behind that change.

The book is in a file of the session's directory, for the next daemon; the parcel says up to which
prompt that file is complete. What cannot be known (no file, a gap in the journal) counts as shaped
by everybody who wrote.

Deliberately absent: what of it is allowed (core/gate/authority_meet.py, policies).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Protocol

import msgpack

from holdfast.adapters.seccomp.file_lookup import AT_FDCWD, passed
from holdfast.adapters.shell import program_search
from holdfast.core.access.authority import Authority
from holdfast.core.gate.authority_meet import check_contributors
from holdfast.core.gate.line_reading import read_line, used_keys
from holdfast.core.gate.originators import KeptOrigins, Origin, OriginatorBook, merged
from holdfast.host.clock import now
from holdfast.host.gate.command_book import Approved, CommandBook, KnownCommand, PartIn, replayed
from holdfast.host.gate.contributors import contributor
from holdfast.host.gate.file_originators import FileOriginators, KeptFiles
from holdfast.journal import entries
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.packed import PackedState
from holdfast.model.record import Malformed, Record
from holdfast.model.shell_state import ShellState, shapes_commands

_KEYS_RECORDED = 64  # of one command in the journal; a file that is sourced may change thousands
_USES_RECORDED = 16  # the same, of the state that it used
_KEYS = ("key:", "var:fish_key_bindings")
_OF_KEYS = ("var:EDITOR", "var:VISUAL", "var:FCEDIT", "var:INPUTRC")  # that some key starts, reads
_ZSH_IN_VI_MODE = 'bindkey "^[" vi-cmd-mode'  # where letters may be commands
_NOT_INHERITED = ("alias:", "builtin:", "dir:", "hash:", "job:", "key:", "option:")  # by a child
_OF_SIZE = ("WINCH", "COLUMNS", "LINES")
_COMPLETION = "key:complete "  # how a word is completed, which only Tab asks for
_FILE_WORDS = 64  # words of one line that are looked up as files
_CODE_FILES = {  # files that a program reads as code, unasked
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "npm": ("package.json",),
    "yarn": ("package.json",),
    "just": ("justfile",),
}


class OuterShell(Record):
    """A shell that waits while one that was started in it reports."""

    below: int  # the command line that started that one
    origins: KeptOrigins  # of the state of the shell that waits
    # Who may have shaped the nested one before its first prompt: they are behind that command, or
    # behind some of the state that it may have inherited.
    behind: tuple[str, ...]


class KeptProvenance(Record):
    """What another daemon needs of it."""

    origins: KeptOrigins
    files: KeptFiles
    outer: tuple[OuterShell, ...] = ()  # of the shells that wait for the one that reports now


class Journal(Protocol):
    """Where it is recorded."""

    def happened(self, actor: str, body: entries.Body) -> None: ...


class SessionProvenance:
    """Of one session."""

    def __init__(
        self,
        path: str,
        journal: Journal,
        *,
        read_state: Callable[[], PackedState | None],
        shell_pid: Callable[[], int],
        reports: bool,
        is_silent: Callable[[], bool],
        writers: Callable[[], Iterable[str]],
        authority: Authority,
        session: SessionId,
        labels: tuple[str, ...],
        joined: Callable[[], None],
        complete_to: int = 0,
    ) -> None:
        """`shell_pid`: of the shell that reads command lines. `joined`: somebody has typed into a
        program for the first time. `reports`: the session's shell does. `is_silent`: it is at a
        prompt that it did not report. `writers`: everybody that may have written. `complete_to`:
        by the parcel, the prompt up to which the file says everything."""
        self._path, self._journal = path, journal
        self._read_state, self._shell_pid = read_state, shell_pid
        self.reports, self._is_silent = reports, is_silent
        self._writers, self._authority = writers, authority
        self._session, self._labels = session, labels
        self.complete_to, self._joined = complete_to, joined
        self._files_changed = False
        self._passed: Approved | None = None
        self.commands = CommandBook()
        self._wrote: dict[str, None] = {}  # since the last state that was seen
        self._prompt = 0  # the number of the last one that was reported
        self._state: PackedState | None = None
        self._shaped: Collection[int] = ()  # recorded by an earlier daemon
        self.keys_rebound = False  # somebody may have bound keys to anything
        self.book, self.files = OriginatorBook(), FileOriginators()
        self._outer: tuple[OuterShell, ...] = ()

    # -- another daemon -------------------------------------------------------------------------

    def recover(
        self, found: Sequence[entries.Entry], more: Callable[[], Sequence[entries.Entry]]
    ) -> None:
        """Another daemon served the session until now. `found`: the journal's last entries;
        `more`: gives more of them, which takes longer."""
        self._recover(found, more)
        self._look_at_keys(self._shell_state())

    def _recover(
        self, found: Sequence[entries.Entry], more: Callable[[], Sequence[entries.Entry]]
    ) -> None:
        kept = self._load()
        if kept is not None:
            self.files, self._outer = FileOriginators(kept.files), kept.outer
        if not self.reports:
            return
        if kept is None or not kept.origins.number:
            self.book.not_seen(self.everybody())
            return
        self.book = OriginatorBook(kept.origins)
        self.book.number = max(self.book.number, self.complete_to)
        since = _since(found, self.book.number)
        if since is None:
            found = more()
            since = _since(found, self.book.number)
        self.commands = replayed(found)
        self._shaped = {
            entry.body.number for entry in found if isinstance(entry.body, entries.ShapedEntry)
        }
        if since is None:
            self.book.not_seen(self.everybody())
        else:
            self._wrote = dict.fromkeys(since)
        self._state = self._read_state()
        self._prompt = max(self.book.number, self._state.number if self._state else 0)

    def _load(self) -> KeptProvenance | None:
        unreadable = (OSError, ValueError, TypeError, Malformed, msgpack.UnpackException)
        with contextlib.suppress(*unreadable), open(self._path, "rb") as file:
            return KeptProvenance.unpack(msgpack.unpackb(file.read()))
        return None

    def everybody(self) -> tuple[str, ...]:
        """All that may have had a hand in the session."""
        return tuple(dict.fromkeys(actor for actor in (*self._writers(), *self._wrote) if actor))

    def _keep(self) -> None:
        """Without fsync: if the machine dies, so does the session. On a full disk the file stays as
        it was, and so does what the parcel says about it."""
        kept = KeptProvenance(self.book.kept(), self.files.kept(), self._outer)
        new = f"{self._path}.new"
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgpack.packb(kept.pack()))
            os.rename(new, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(new)
            return
        self.complete_to = self.book.number

    # -- what happens -----------------------------------------------------------------------------

    def typed(self, actor: str, *, running: bool) -> None:
        """An actor's input was taken. `running`: by what the shell reported, a command reads it."""
        if actor == HOST_ACTOR or not self.reports:
            return
        self._wrote[actor] = None
        if running and self.commands.had_input(actor):
            self._joined()

    def wrote(self, dev: int, inode: int, path: str, origin: Origin, *, adds: bool) -> None:
        """The exec gate saw a file opened for writing, at this moment or just before."""
        self.files.wrote(dev, inode, path, origin, adds=adds)
        self._files_changed = True

    def command_read(self, number: int, part: PartIn) -> None:
        """A process of this command, or the shell before it began, reads what another wrote."""
        command = self.commands.get(number) or self.commands.last
        if command is not None and part not in command.parts:
            self.commands.change(command.replace(parts=(*command.parts, part)))

    def keep_files(self) -> None:
        """So that another daemon knows them."""
        if self._files_changed:
            self._files_changed = False
            self._keep()

    def line_passed(self, approved: Approved | None) -> None:
        """The command that begins next was approved, or needed no approval."""
        self._passed = approved

    def began(
        self, body: entries.CommandBegan, by: str, at: float, text: str | None, *, blind: bool
    ) -> entries.CommandBegan:
        """The shell began a command; gives what is to be recorded of it, with all behind it.
        `text`: as the shell took it; None if it does not say. Of a `blind` one nothing is kept."""
        parts = self._parts(text, body.authors)
        uses = [f"{part.what}@{part.command}" for part in parts if part.what and not blind]
        command = KnownCommand(
            body.number,
            body.text,
            by,
            body.authors,
            at,
            tuple(parts),
            tuple(dict.fromkeys(uses))[:_USES_RECORDED],
            approved=self._passed,
        )
        self._passed = None
        forgotten = self.commands.add(command)
        if forgotten is not None and forgotten.number >= self.book.number:
            self._wrote.update(dict.fromkeys(forgotten.actors))  # its changes are not seen yet
        return body.replace(originators=command.actors, uses=command.uses)

    def shells_are(self, below: tuple[int, ...]) -> None:
        """These commands started shells that report, one below the other: each has a state of its
        own. The one that waits has its own again when the other ends."""
        before = len(self._outer)
        while self._outer and self._outer[-1].below not in below:
            self.book, self._outer = OriginatorBook(self._outer[-1].origins), self._outer[:-1]
        for number in below[len(self._outer) :]:
            command = self.commands.get(number)
            behind = dict.fromkeys(command.actors if command is not None else self.everybody())
            for key, origin in self.book.entries.items():
                if self._is_inherited(key):
                    behind |= dict.fromkeys(origin.actors)
            behind |= dict.fromkeys((*self.book.forgotten, *self._behind_shell, *self._wrote))
            self._outer += (OuterShell(number, self.book.kept(), tuple(behind)),)
            self.book = OriginatorBook(KeptOrigins(number=number))
        if len(self._outer) != before:
            self._keep()

    def _is_inherited(self, key: str) -> bool:
        """Whether this piece of the shell's state, or that it is not there, may reach a program."""
        state, name = self._shell_state(), key.removeprefix("var:")
        if state is not None and name != key and name not in state.exported:
            return name not in state.private and name not in state.variables
        return not key.startswith(_NOT_INHERITED)

    @property
    def _behind_shell(self) -> tuple[str, ...]:
        """Who may have shaped the shell before it first reported, if it was started in another."""
        return self._outer[-1].behind if self._outer else ()

    def prompted(self, number: int) -> None:
        """The shell is at its prompt, and has written its state."""
        self._prompt = number
        self.look()

    def look(self) -> None:
        """Take the state as the shell last wrote it."""
        found = self._read_state() if self.reports else None
        if found is None or found.number != self._prompt:
            return  # not written, or there is a later prompt, whose report is on its way
        state = found.state()
        lead_to = program_search.descriptors_of(self._shell_pid())
        if state.kind == "fish":  # which stores its own state there
            lead_to = {}
        open_then = {number: lead_to[number] for number in state.descriptors if number in lead_to}
        state = state.replace(descriptors=open_then)
        in_step = self.complete_to == self.book.number
        by = self._behind(state.number)
        self._state = found
        taken = self.book.take(state, by, self._in_path(state))
        self._look_at_keys(state)
        self._wrote.clear()
        if taken.keys and by is not None:
            self._record(by, taken.keys)
        if taken.changed or not in_step:
            self._keep()
        else:
            self.complete_to = self.book.number

    def _shell_state(self) -> ShellState | None:
        return self._state.state() if self._state is not None else None

    def _look_at_keys(self, state: ShellState | None) -> None:
        in_vi_mode = state is not None and (
            "vi" in state.options or _ZSH_IN_VI_MODE in state.bindings
        )
        self.keys_rebound = bool(in_vi_mode or self.book.forgotten) or any(
            key.startswith(_KEYS) and not key.startswith(_COMPLETION) for key in self.book.entries
        )
        # Keys of a nested shell may be bound by what it inherited (INPUTRC, a file): by others than
        # its writer only if there are others.
        self.keys_rebound |= bool(self._outer) and len(self.everybody()) > 1

    def _behind(self, number: int) -> Origin | None:
        """Everybody behind what ran since the last state that was seen. At a shell's first prompt
        nothing ran; what was typed by then, it reads later."""
        if number <= (self._outer[-1].below + 1 if self._outer else 1):
            return None
        found: Origin | None = None
        for command in self.commands.since(self.book.number):
            if command.number < number:
                found = merged(found, command.origin)
        if self._wrote:
            wrote = Origin(found.command if found else 0, tuple(self._wrote))
            found = merged(wrote, found) if found else wrote
        last = self.commands.last
        return found or (Origin(0, last.actors) if last is not None else None)

    def _record(self, by: Origin, keys: tuple[str, ...]) -> None:
        number = by.command or self.book.number - 1
        command = self.commands.get(number)
        if number and number in self._shaped:
            return
        trigger = command.trigger if command is not None else by.actors[0]
        left_out = max(0, len(keys) - _KEYS_RECORDED)
        body = entries.ShapedEntry(number, keys[:_KEYS_RECORDED], left_out, by.actors)
        self._journal.happened(trigger, body)

    # -- asking -----------------------------------------------------------------------------------

    @property
    def cwd(self) -> str:
        """The shell's working directory, as it last said; "" if it did not."""
        state = self._shell_state()
        return state.cwd if state is not None else ""

    @property
    def environment(self) -> tuple[str, ...]:
        """What programs inherit that is not as the session began: `NAME=VALUE`, or the name alone
        of a variable whose value the shell does not tell."""
        state = self._shell_state() if self.book.entries else None
        return tuple(
            f"{name}={value}" if shapes_commands(name) else name
            for name, value in (state.exported if state is not None else {}).items()
            if f"var:{name}" in self.book.entries
        )

    @property
    def prompt_seen(self) -> bool:
        """Whether the shell ever reported a prompt, to us or to an earlier daemon."""
        return self._prompt > 0 or self.complete_to > 0  # its reports outlive the file

    def shaped_by(self) -> tuple[str, ...]:
        """Who counts as having shaped the shell, because it does not report what it holds; nobody
        while it reports."""
        if not self.reports or not self._is_silent():
            return ()
        last = self.commands.last
        return tuple(self._wrote) or (last.actors[:1] if last is not None else ())

    def contributors_of_line(
        self, text: str | None, authors: Sequence[str]
    ) -> tuple[Contributor, ...]:
        """Everybody behind a line at the prompt, the one who sets it off first. `text`: None if the
        shell does not say. `authors`: who typed it, the latest last."""
        return tuple(self.contributor(part) for part in self._parts(text, authors))

    def contributors_of_key(
        self, text: str | None, authors: Sequence[str], key: bytes
    ) -> tuple[Contributor, ...]:
        """Everybody behind what another key than Enter does with this line. Completion may call any
        function; what else a key is bound to, the shell's bindings say."""
        parts = self._parts(text, authors)
        kinds = (*_KEYS, *_OF_KEYS, "option:", *(("func:", "alias:") if key == b"\t" else ()))
        for name, origin in self.book.entries.items():
            if name.startswith(kinds):
                parts += [
                    PartIn(actor, Part.STATE, name, origin.command) for actor in origin.actors
                ]
        parts += [PartIn(actor, Part.SHAPED) for actor in self._not_seen(text)]
        return tuple(self.contributor(part) for part in dict.fromkeys(parts))

    def authors_of_history(self) -> tuple[Contributor, ...]:
        """Everybody who entered a command here, and so may have put one into the history."""
        parts = (
            PartIn(actor, Part.TYPED, "history", command.number)
            for command in self.commands
            for actor in command.authors
        )
        return tuple(self.contributor(part) for part in dict.fromkeys(parts))

    def behind_resize(self) -> tuple[Contributor, ...]:
        """Everybody behind what the shell runs when its terminal gets another size."""
        parts = (
            PartIn(actor, Part.STATE, key, origin.command)
            for key, origin in self.book.entries.items()
            if key.startswith(("trap:", "func:TRAP")) and any(word in key for word in _OF_SIZE)
            for actor in origin.actors
        )
        return tuple(self.contributor(part) for part in parts)

    def contributors_of_command(self, number: int) -> tuple[Contributor, ...]:
        """Everybody behind a command that is remembered."""
        command = self.commands.get(number)
        if command is None:
            return ()
        if command.adopted:
            return (self.contributor(PartIn(command.adopted, Part.TRIGGER)),)
        return tuple(self.contributor(part) for part in command.parts)

    def behind_running(self) -> tuple[Contributor, ...]:
        """Everybody behind the command that the shell began last."""
        last = self.commands.last
        return self.contributors_of_command(last.number) if last is not None else ()

    def contributor(self, part: PartIn) -> Contributor:
        """With its name and kind."""
        known = self._authority.actor
        return contributor(known, part.actor, part.part, part.what, part.command)

    def check(self, contributors: Iterable[Contributor]) -> None:
        """Raise unless all of them may write here now: an effect has no more authority than each
        that is behind it."""
        check_contributors(contributors, self._authority, self._session, self._labels, now())

    def _parts(self, text: str | None, authors: Sequence[str]) -> list[PartIn]:
        typed = [actor for actor in authors if actor]
        parts = [PartIn(actor, Part.TYPED) for actor in typed[:-1]]
        parts[:0] = [PartIn(actor, Part.TRIGGER) for actor in typed[-1:]]
        known = list(self.book.entries)
        state = self._shell_state() if text and (known or len(self.files)) else None
        if text is not None and known:
            known = used_keys(text, state, known, self._leads_to(state))
        for key in known:
            origin = self.book.entries[key]
            parts += [PartIn(actor, Part.STATE, key, origin.command) for actor in origin.actors]
        if text is None or text.strip():
            parts += [PartIn(actor, Part.SHAPED) for actor in self._not_seen(text)]
            began = (actor for actor in self._behind_shell if actor not in typed)
            parts += [PartIn(actor, Part.SHAPED) for actor in began]
        if text:
            parts += self._file_parts(text, state)
            use, last = read_line(text), self.commands.last
            if use.status and last is not None:
                parts += [PartIn(actor, Part.STATE, "status", last.number) for actor in last.actors]
            if use.history:
                parts += [
                    PartIn(actor, Part.TYPED, "history", command.number)
                    for command in self.commands
                    for actor in command.authors
                ]
        return list(dict.fromkeys(parts))

    def _not_seen(self, text: str | None) -> Iterable[str]:
        """Who may have shaped the shell in a way that nobody saw."""
        found = dict.fromkeys(self.book.forgotten)
        if text is None or self._prompt > self.book.number or self.shaped_by():
            found |= self._wrote
            for command in self.commands.since(self.book.number):
                found |= dict.fromkeys(command.actors)
        if text is None and not self._wrote:
            found |= dict.fromkeys(self.commands.last.actors if self.commands.last else ())
        return found

    def _file_parts(self, text: str, state: ShellState | None) -> list[PartIn]:
        if not len(self.files):
            return []
        use, cwd = read_line(text), state.cwd if state is not None else ""
        leads_to = self._leads_to(state)
        named = sorted(use.words)[:_FILE_WORDS]
        for command in use.commands:
            if "/" not in command and (directory := leads_to(command)):
                named.append(f"{directory}/{command}")
            named += _CODE_FILES.get(command.rpartition("/")[2], ())
        parts = []
        for word in named:
            where = program_search.file_of(word, self._shell_pid(), cwd)
            found = [self.files.find(*where)] if where else []
            with contextlib.suppress(OSError, ValueError):
                way = passed(self._shell_pid(), AT_FDCWD, os.fsencode(word))
                found += [self.files.find_name(each.device, each.inode) for each in way]
            for written in filter(None, found):
                origin = written.origin
                what = f"file:{written.path or word}"
                parts += [PartIn(actor, Part.FILE, what, origin.command) for actor in origin.actors]
        return parts

    def _leads_to(self, state: ShellState | None) -> Callable[[str], str]:
        if state is None:
            return lambda _: ""
        return partial(_directory, state, self._shell_pid())

    def _in_path(self, state: ShellState) -> Callable[[str, str], bool]:
        leads_to = self._leads_to(state)

        def found(program: str, file: str) -> bool:
            directory = leads_to(program)
            return bool(directory) and f"{directory.rstrip('/')}/{program}" == file

        return found

    # -- taking on --------------------------------------------------------------------------------

    def adopt_key(self, key: str, actor: str) -> None:
        """This actor answers for a piece of the shell's state."""
        before = self.book.origin(key)
        self.book.adopt(key, actor)
        self._adopted(key, before, actor)

    def adopt_file(self, dev: int, inode: int, path: str, actor: str) -> None:
        """And for a file."""
        before = self.files.find(dev, inode)
        self.files.adopt(dev, inode, path, actor)
        self._adopted(f"file:{path}", before.origin if before else None, actor)

    def adopt_command(self, command: KnownCommand, actor: str) -> None:
        """And for what a command left: its processes, ports, output."""
        before = command.origin
        if self.commands.get(command.number) is None:
            self.commands.add(command)
        self.commands.change(command.replace(adopted=actor))
        self._adopted(f"command:{command.number}", before, actor)

    def _adopted(self, target: str, before: Origin | None, actor: str) -> None:
        self._journal.happened(actor, entries.AdoptedEntry(target, before.actors if before else ()))
        self._keep()


def _directory(state: ShellState, pid: int, program: str) -> str:
    path = state.exported.get("PATH", state.variables.get("PATH", ""))
    return program_search.directory_of(program, path, pid, state.cwd)


def _since(found: Sequence[entries.Entry], number: int) -> list[str] | None:
    """Who wrote since this prompt; None if the entries do not reach back so far."""
    for index in range(len(found) - 1, -1, -1):
        body = found[index].body
        # After a shell that was started in this one the numbers go on behind those of that one.
        before = isinstance(body, entries.CommandEnded) and body.number < number
        if before or (number <= 1 and isinstance(body, entries.Began)):
            inputs = (entries.InputEntry, entries.BlindInput)
            return [
                each.actor for each in found[index:] if each.actor and isinstance(each.body, inputs)
            ]
    return None
