"""The exec gate of one session, as its answerer (answerer.py) holds it: what a waiting call would
do, whether the answer is known, who writes and reads which file, and what has to be asked.

What it knows counts for one value of the page's word: the daemon changes that when policies or
rights change, and everything is asked again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from typing import NamedTuple, TypeVar

from holdfast.adapters.seccomp import call_facts, notification
from holdfast.adapters.seccomp.call_facts import CallFacts
from holdfast.adapters.seccomp.file_lookup import AT_FDCWD, FoundFile, at_name, look_up, named
from holdfast.adapters.seccomp.file_watch import FileWatch, MarkedOpening
from holdfast.adapters.seccomp.gate_messages import (
    ARGUMENTS_MAX_BYTES,
    AskWritten,
    CallAnswer,
    CallQuestion,
    Learns,
    NamedFile,
    Read,
    Serve,
    Wrote,
)
from holdfast.adapters.seccomp.gate_page import GatePage, JudgedKinds
from holdfast.adapters.seccomp.notification import Call
from holdfast.adapters.seccomp.peer_lookup import listening_groups, reading_groups
from holdfast.adapters.seccomp.process_memory import Unreadable
from holdfast.model.gate import EffectKind
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_KNOWN_MAX = 4096  # answers remembered of one session; then they are asked for again
_FRESH_MAX = 64  # files that are about to be made; a program makes one at a time
_FRESH_S = 1.0  # after which it was not made
_NAMELESS = " (deleted)"  # how the kernel shows a file without a name
_JUDGED = {
    EffectKind.EXEC: JudgedKinds.EXEC,
    EffectKind.WRITE_OPEN: JudgedKinds.WRITE_OPEN,
    # Who is behind a server is to be known as soon as several have a part.
    EffectKind.CONNECT: JudgedKinds.CONNECT | JudgedKinds.READS,
}

_Key = tuple[EffectKind, CallFacts]


class AskedCall(NamedTuple):
    """A call that was asked about: where it is in the page, what its answer is remembered by, and
    under which word it was asked."""

    place: int
    group: tuple[EffectKind, str]
    key: _Key
    word: int
    reads: int  # how often its group had read then what others wrote


class AnsweredSession:
    """The gate of one session."""

    def __init__(self, serve: Serve, listener: int, memfd: int, say: Callable[[Record], None]):
        self.id, self.listener, self.page = serve.session, listener, GatePage(memfd)
        self._directory = serve.cgroup
        os.close(memfd)
        self._say, self._main_pid = say, serve.main_pid
        self._ordinary = call_facts.first_environment(serve.main_pid)
        self._word = 0
        self._own_files = frozenset(serve.own_files)
        self._watch: FileWatch | None = None  # of what was written here
        # Of each thread: what it was let execute, and open for writing only, the last time.
        self._executes: dict[int, set[tuple[int, int]]] = {}
        self._only_writes: dict[int, tuple[int, int]] = {}
        # Of each file: who wrote it last, and who wrote all that is in it; by control group.
        self._latest: dict[tuple[int, int], str] = {}
        self._all_of: dict[tuple[int, int], str] = {}
        self._reads: dict[str, int] = {}  # by control group: how often it read what others wrote
        self._groups: dict[tuple[EffectKind, str], bool] = {}
        self._known: dict[str, dict[_Key, bool]] = {}  # by control group
        # Files and links that are about to be made, with who makes them; and what was reported.
        self._fresh: dict[str, tuple[str, float]] = {}
        self._renamed: dict[tuple[int, int], None] = {}  # by inode: what somebody gave its name
        self._told: dict[tuple[str, NamedFile], bool] = {}
        # Denied once, by process: one that searches PATH tries the same program again.
        self._denied: set[tuple[int, _Key]] = set()
        self.waiting: dict[int, AskedCall] = {}  # by the kernel's number

    def take(self) -> bool:
        """Take one call, only when the listener is readable. False: too many are waiting for an
        answer; the kernel keeps this one."""
        place = self.page.free_place()
        if place is None:
            return False
        if notification.take_into(self.listener, self.page.address(place)):
            self.judge(place)
        else:
            self.page.give_back(place)
        return True

    def judge(self, place: int) -> None:
        """What is in that place of the page: answered now, or asked for."""
        call = notification.unpack(self.page.call(place))
        # After it was taken: a change of the word counts for what is called behind it.
        word = self.page.word
        if word != self._word:
            self._word = word
            self._groups.clear()
            self._known.clear()
            self._denied.clear()
            self._executes.clear()
        kind = call_facts.kind_of(call)
        judged = _JUDGED[kind]
        if call.number in call_facts.REACHES:
            judged |= JudgedKinds.READS  # into what is another's, whatever is said of programs
        if not self.page.judged & judged:
            self._settle(place, call, 0)
            return
        try:
            self._judge(place, call, kind)
        except call_facts.Harmless:
            self._settle(place, call, 0)
        except call_facts.Fails as failure:
            self._settle(place, call, failure.errno)
        except Unreadable:
            self._settle(place, call, errno.EFAULT)
        except OSError as error:  # the process is gone, or the kernel would say the same to it
            self._settle(place, call, error.errno or errno.EPERM)

    def _judge(self, place: int, call: Call, kind: EffectKind) -> None:
        self.look_at_fresh()  # before anything can be done with what was made
        group = kind, call_facts.membership(call.pid)
        allowed = self._groups.get(group)
        self._executes.pop(call.pid, None)
        if allowed is not None and kind is EffectKind.EXEC and call.number in call_facts.EXECS:
            self._settle(place, call, 0 if allowed else errno.EPERM)
            return
        facts = self._facts(call)
        if facts.file.path in self._own_files:
            raise call_facts.Harmless
        if kind is EffectKind.CONNECT:
            self._talks(call.pid, group[1], facts)
            if not self.page.judged & JudgedKinds.CONNECT:
                raise call_facts.Harmless
        if stat.S_ISFIFO(facts.file.mode):
            self._feeds(group[1], facts.file)
            if not facts.file.path.startswith("/"):
                raise call_facts.Harmless  # a pipe without a name
        key = (kind, facts)
        if allowed is None or facts.target:
            allowed = self._known.get(group[1], {}).get(key)
            if (call.pid, key) in self._denied:
                allowed = False
        # If its process was ended meanwhile, what was read may be another's: the answer is for
        # those facts, and the kernel drops it.
        if allowed is None:
            reads = self._reads.get(group[1], 0)
            self.waiting[call.id] = AskedCall(place, group, key, self._word, reads)
            self._say(self._question(call, group[1], facts))
            return
        if allowed:
            self._lets(call.pid, group[1], facts)
        self._settle(place, call, 0 if allowed else errno.EPERM)

    def _facts(self, call: Call) -> CallFacts:
        """How a program is found matters only where somebody gave a name on the way."""
        facts = call_facts.facts_of(call, self._ordinary)
        if not facts.given:
            return facts
        passed = call_facts.names_passed(call.pid, facts) if self._renamed else []
        chosen = tuple(each for each in passed if (each.device, each.inode) in self._renamed)
        return facts._replace(given=b"", given_at=AT_FDCWD, chosen=chosen)

    # -- who writes which file --------------------------------------------------------------------

    def _lets(self, pid: int, membership: str, facts: CallFacts) -> None:
        """It may go on: from here on it may be behind the file."""
        file = facts.file
        if self._watch is not None and file.inode:
            if facts.kind is EffectKind.EXEC:
                _remember(self._executes, pid, {(file.device, file.inode)})
            elif not facts.reads:
                _remember(self._only_writes, pid, (file.device, file.inode))
        self._named(membership, facts.moved, file.path)
        self._named(membership, facts.exchanged, facts.moved.path)
        new = not file.inode and (facts.links or not facts.names)
        if new or facts.moved.path.endswith(_NAMELESS):
            if file.path and len(self._fresh) < _FRESH_MAX:
                self._fresh[file.path] = membership, time.monotonic() + _FRESH_S
        elif facts.kind is not EffectKind.WRITE_OPEN or not file.path or facts.names:
            return
        elif stat.S_ISFIFO(file.mode):
            self._wrote(membership, NamedFile(file.path, file.device, file.inode), True)
        elif stat.S_ISREG(file.mode) and call_facts.may_write(pid, file):
            if self._latest.get((file.device, file.inode)) != membership:
                self._feeds(membership, file)
            self._wrote(membership, NamedFile(file.path, file.device, file.inode), facts.adds)

    def _named(self, membership: str, file: FoundFile, path: str) -> None:
        """It has this name now: whoever chose the name is behind what is found by it."""
        if stat.S_ISREG(file.mode):
            self._mark(NamedFile(file.path, file.device, file.inode))
        if self._notes_name(file) or stat.S_ISREG(file.mode):
            self._wrote(membership, NamedFile(path, file.device, file.inode), True)

    def _notes_name(self, file: FoundFile) -> bool:
        """If it is a name by which something else is found: a link, a directory."""
        names = stat.S_ISLNK(file.mode) or stat.S_ISDIR(file.mode)
        if names:
            _remember(self._renamed, (file.device, file.inode), None)
        return names

    def _talks(self, pid: int, membership: str, facts: CallFacts) -> None:
        """A server may do what it is sent, and a client what it is answered: each is behind the
        other from here on."""
        if facts.peer is None or not self._directory:
            return
        for other in listening_groups(pid, facts.peer, facts.file, self._directory) - {membership}:
            self._learns(other, membership)
            self._learns(membership, other)

    def _feeds(self, membership: str, file: FoundFile) -> None:
        """Others have it open already, and will not be seen to open it when it is written."""
        if self._directory and self.page.judged & JudgedKinds.READS:
            for other in reading_groups(file, self._directory) - {membership}:
                self._learns(other, membership)

    def _learns(self, group: str, of: str) -> None:
        self._reads[group] = self._reads.get(group, 0) + 1
        self._known.pop(group, None)
        self._say(Learns(self.id, group, of))

    @property
    def has_fresh(self) -> bool:
        return bool(self._fresh)

    def look_at_fresh(self) -> None:
        """Files that were about to be made, and now are there."""
        for path, (membership, until) in list(self._fresh.items()):
            file = FoundFile(path)
            with contextlib.suppress(OSError):
                file = at_name(self._main_pid, path)
            if file.inode:
                self._notes_name(file)
                self._wrote(membership, NamedFile(file.path, file.device, file.inode), False)
            if file.inode or time.monotonic() > until:
                del self._fresh[path]

    def tell_again(self) -> None:
        """A daemon may not have kept the latest before it died."""
        for (membership, file), adds in self._told.items():
            self._say(Wrote(self.id, membership, file, adds))

    def _wrote(self, membership: str, file: NamedFile, adds: bool) -> None:
        inode = file.device, file.inode
        if not adds:
            _remember(self._all_of, inode, membership)
        elif self._all_of.get(inode) != membership:
            self._all_of.pop(inode, None)
        is_latest = self._latest.get(inode) == membership
        if is_latest and (membership, file) in self._told:
            return
        _remember(self._latest, inode, membership)
        if len(self._told) >= _KNOWN_MAX:
            self._told.clear()
        self._told[membership, file] = adds
        # What others may run by what they knew before, now has somebody else behind it.
        for other in [group for group in self._known if group != membership]:
            del self._known[other]
        self._mark(file)
        self._say(Wrote(self.id, membership, file, adds))

    # -- who reads what others wrote --------------------------------------------------------------

    def watch(self) -> bool:
        """Start watching, if that is needed by now. True: there is one more descriptor to wait
        on."""
        if self._watch is not None or not self.page.judged & JudgedKinds.READS:
            return False
        try:
            self._watch = FileWatch()
        except OSError as error:
            print(f"who reads which file is not seen: {error}", file=sys.stderr)
            return False
        for _, file in self._told:
            self._mark(file)
        return True

    @property
    def watch_fd(self) -> int:
        return self._watch.fd if self._watch is not None else -1

    def ask_written(self) -> None:
        if self._watch is not None:
            self._say(AskWritten(self.id))

    def written(self, files: tuple[NamedFile, ...]) -> None:
        for file in files:
            with contextlib.suppress(OSError):
                self._notes_name(at_name(self._main_pid, file.path))
            self._mark(file)

    def _mark(self, file: NamedFile) -> None:
        if self._watch is None:
            return
        with contextlib.suppress(OSError):  # it is gone, or has another name
            found, place = named(self._main_pid, file.path)
            try:
                same = (found.device, found.inode) == (file.device, file.inode)
                if same and stat.S_ISREG(found.mode):
                    self._watch.mark(place)
            finally:
                os.close(place)

    def opened(self) -> None:
        """Marked files are about to be. Whoever reads has to be asked about again: its command has
        one more behind it. Another program than the one that was judged is not executed."""
        if self._watch is None:
            return
        for number, opening in self._watch.openings():
            allow = True
            with contextlib.suppress(OSError):  # its process is gone
                allow = self._opens(opening)
            self._watch.answer(number, allow=allow)

    def _opens(self, opening: MarkedOpening) -> bool:
        """Before it goes on: a process that reads may be gone right afterwards."""
        file = opening.device, opening.inode
        judged = self._executes.get(opening.pid)
        if opening.executes and judged is not None:
            if file not in judged:
                return False
            if opening.interpreter:
                found = look_up(opening.pid, AT_FDCWD, opening.interpreter)
                judged.add((found.device, found.inode))
        if self._only_writes.pop(opening.pid, None) == file:
            return True
        membership = call_facts.membership(opening.pid)
        if self._all_of.get(file) != membership:
            self._reads[membership] = self._reads.get(membership, 0) + 1
            self._known.pop(membership, None)
            self._say(Read(self.id, membership, *file))
        return True

    def _question(self, call: Call, membership: str, facts: CallFacts) -> CallQuestion:
        argv, cut_argv = _told(facts.argv)
        environment, cut_environment = _told(facts.environment)
        return CallQuestion(
            self.id,
            call.id,
            self._word,
            facts.kind,
            call.pid,
            membership,
            facts.file.path,
            facts.file.device,
            facts.file.inode,
            facts.cwd,
            argv,
            environment,
            cut_argv or cut_environment,
            facts.target,
            facts.first,
            facts.moved.path,
            tuple(
                NamedFile(each.path, each.device, each.inode)
                for each in (
                    *call_facts.named_files(call.pid, facts.argv),
                    *facts.chosen,
                )
            ),
            facts.also,
            facts.destination,
        )

    def answer(self, answer: CallAnswer) -> None:
        """The daemon's."""
        if answer.id not in self.waiting:
            return
        place, group, key, _, reads = self.waiting[answer.id]
        if answer.word != self.page.word:
            del self.waiting[answer.id]
            self.judge(place)
            return
        del self.waiting[answer.id]
        call = notification.unpack(self.page.call(place))
        if sum(map(len, self._known.values())) + len(self._denied) >= _KNOWN_MAX:
            self._known.clear()
            self._denied.clear()
        latest = reads == self._reads.get(group[1], 0)
        if answer.whole_group:
            self._groups[group] = answer.allow
        elif not answer.once:
            if latest:  # else what it would be asked by now has more behind it
                self._known.setdefault(group[1], {})[key] = answer.allow
        elif not answer.allow:
            self._denied.add((call.pid, key))
        if answer.allow:
            self._lets(call.pid, group[1], key[1])
        self._settle(place, call, 0 if answer.allow else errno.EPERM)

    def judge_again(self) -> None:
        """Everything that has no answer: also what another answerer took."""
        self.waiting.clear()
        for place in self.page.waiting():
            self.judge(place)

    def word_changed(self) -> None:
        """What was asked before is asked again."""
        for id, each in list(self.waiting.items()):
            if each.word != self.page.word:
                del self.waiting[id]
                self.judge(each.place)

    def sweep(self) -> list[int]:
        """Drop the calls that their process gave up while they waited."""
        gone = [id for id in self.waiting if not notification.is_valid(self.listener, id)]
        for id in gone:
            self.page.give_back(self.waiting.pop(id).place)
        return gone

    def _settle(self, place: int, call: Call, number: int) -> None:
        if number:
            notification.fail(self.listener, call.id, number)
        else:
            notification.go_on(self.listener, call.id)
        self.page.give_back(place)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self.page.close()
        os.close(self.listener)


_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


def _remember(what: dict[_Name, _Value], key: _Name, value: _Value) -> None:
    """As the latest; the oldest is forgotten."""
    what.pop(key, None)
    what[key] = value
    if len(what) > _KNOWN_MAX:
        del what[next(iter(what))]


def _told(words: tuple[bytes, ...]) -> tuple[tuple[str, ...], bool]:
    """As many as one message may hold, and whether some are left out."""
    told: list[str] = []
    room = ARGUMENTS_MAX_BYTES
    for word in words:
        room -= len(word) + 8
        if room < 0:
            return tuple(told), True
        told.append(os.fsdecode(word))
    return tuple(told), False
