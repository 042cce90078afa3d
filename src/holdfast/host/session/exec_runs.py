"""`exec`: command lines that somebody waits for, and what is remembered of them.

An execution belongs to the session, not to the connection that asked for it: whoever asks the same
again (by key, or by operator and number) joins it. It is saved before its line is typed and
survives the daemon, so that asking again never runs a command twice. What its shell reports comes
from shell_commands.py; its output is in the ring, like all output.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Protocol
from unicodedata import category
from weakref import WeakSet

from holdfast.core.key_names import pasted
from holdfast.host.session.parcel import SavedExec
from holdfast.model.errors import GateRefused, HoldfastError, InvalidArgument
from holdfast.model.ids import OperatorId
from holdfast.model.limits import (
    EXEC_KEY_MAX_CHARS,
    EXECS_REMEMBERED,
    KEYED_EXECS_REMEMBERED,
)
from holdfast.model.shell_line import quoted
from holdfast.wire.messages import session as m


class Follower(Protocol):
    """Something that is told when there is news of an execution."""

    def wake(self) -> None: ...


_MARK_WAIT_S = 1.0  # for the end mark to arrive after the report of the end
_CWD_KEPT_BYTES = 100  # a longer one is not remembered: the state blob is small


class Execution:
    """One command line that was typed for somebody, and who reads its output."""

    def __init__(self, record: SavedExec, *, restored: bool = False) -> None:
        self.record = record
        self.restored = restored  # its asker spoke to another daemon
        self.followers: WeakSet[Follower] = WeakSet()  # operators that are still here, and others
        self.mark_deadline = 0.0
        self.begins_with = ""  # its first line; only in the daemon that typed it
        self.held_by = ""  # the approval that its line waits for, or waited for

    @property
    def over(self) -> bool:
        return self.record.seconds is not None

    @property
    def refused(self) -> bool:
        """At the gate, before it began."""
        return self.record.failure[:1] == (GateRefused.code,) and self.record.command is None

    def came_as(self, operator: OperatorId, seq: int) -> bool:
        return (self.record.operator, self.record.seq) == (operator, seq)

    def is_input(self, operator: OperatorId, seq: int) -> bool:
        """Whether it was typed as this input, and has not begun."""
        return self.record.command is None and self.came_as(operator, seq)

    def begins(self, command: int, journal_seq: int, *, parsed: bool = True) -> None:
        self.record = self.record.replace(command=command, parsed=parsed, journal_seq=journal_seq)

    def ends(self, status: int, cwd: str, head: int) -> None:
        cwd = cwd if len(cwd.encode(errors="replace")) <= _CWD_KEPT_BYTES else ""
        self._over(status=status, cwd=cwd, end_offset=head)
        # The end mark follows within the kernel's time to move it, unless the ring lost it.
        self.mark_deadline = time.monotonic() + _MARK_WAIT_S
        asyncio.get_running_loop().call_later(_MARK_WAIT_S, self.wake)

    def ends_with_session(self, status: int, head: int) -> None:
        """Its shell ended in it: no mark and no directory follow."""
        self._over(status=status, end_offset=head)

    def fails(self, error: HoldfastError, head: int | None = None) -> None:
        """`head`: up to there its output is shown first."""
        self._over(failure=(error.code, error.message, error.hint), end_offset=head)

    def is_measured(self) -> None:
        self.record = self.record.replace(measured=True)

    def _over(self, **what: object) -> None:
        seconds = max(0.0, time.monotonic() - self.record.began)
        self.record = self.record.replace(seconds=seconds, **what)

    def wake(self) -> None:
        """Tell who reads it. After it is kept: what one was told, the next is told too, also by
        another daemon."""
        for follower in tuple(self.followers):
            follower.wake()


class Executions:
    """Those of one session: the latest, and with keys of their own more of them."""

    def __init__(self, kept: tuple[SavedExec, ...]) -> None:
        self._keyed: list[Execution] = []
        self._others: list[Execution] = []
        for record in kept:
            self._among(record).append(Execution(record, restored=True))

    def _among(self, record: SavedExec) -> list[Execution]:
        return self._keyed if record.keyed else self._others

    def find(self, actor: str, operator: OperatorId, request: m.Exec) -> Execution | None:
        """What the same request began before."""
        name = _name(actor, operator, request)
        for execution in (*self._keyed, *self._others):
            if execution.record.name == name:
                if execution.refused and not execution.came_as(operator, request.seq):
                    self.forget(execution)  # what was refused did not happen: its key is free
                    return None
                if request.command and execution.record.digest != _digest(request.command):
                    raise InvalidArgument(
                        "this key, or number, was used for another command line",
                        hint="a key names one act; take another for another",
                    )
                return execution
        if request.key and not request.command:
            raise InvalidArgument(
                "no command of this actor is known here by this key",
                hint="look at the session before you run it again: it was never begun, or so many "
                "were begun since that it is no longer kept",
            )
        return None

    def unmeasured(self) -> list[Execution]:
        """Of structured actions: what an earlier daemon did not get to measure."""
        every = (*self._keyed, *self._others)
        return [each for each in every if each.record.action and not each.record.measured]

    def begin(
        self,
        actor: str,
        operator: OperatorId,
        request: m.Exec,
        offset: int,
        action: str = "",
    ) -> Execution:
        """A new one, about to be typed. The caller keeps it first, and forgets it if it is
        refused."""
        if len(request.key) > EXEC_KEY_MAX_CHARS:
            raise InvalidArgument(f"a key has at most {EXEC_KEY_MAX_CHARS} characters")
        record = SavedExec(
            _name(actor, operator, request),
            bool(request.key),
            operator,
            request.seq,
            _digest(request.command),
            offset,
            time.monotonic(),
            action=action,
        )
        execution = Execution(record)
        execution.begins_with = request.command.strip().split("\n")[0].rstrip()
        self._among(record).append(execution)
        return execution

    def typed(self) -> None:
        """The latest was not refused: so the oldest may go. Who is refused pushes nobody out."""
        del self._keyed[:-KEYED_EXECS_REMEMBERED]
        del self._others[:-EXECS_REMEMBERED]

    def forget(self, execution: Execution) -> None:
        among = self._among(execution.record)
        if execution in among:
            among.remove(execution)

    def unfinished(self, taken: Callable[[OperatorId], int]) -> Execution | None:
        """The one that an earlier daemon left running. One whose line was not typed, by the ledger,
        did not happen."""
        left = None
        for execution in (*self._keyed, *self._others):
            if not execution.over:
                if taken(execution.record.operator) < execution.record.seq:
                    self.forget(execution)
                else:
                    left = execution
        return left

    def kept(self) -> tuple[SavedExec, ...]:
        return tuple(execution.record for execution in (*self._keyed, *self._others))


def command_bytes(command: str, *, bracketed: bool, shell: str = "", exact: bytes = b"") -> bytes:
    """A command line as typed: pasted as one piece where the shell knows pastes, so that a newline
    in it is text, then Enter. `exact`: the key that keeps this shell from expanding history."""
    if not command.strip():
        raise InvalidArgument("an empty command line runs nothing")
    _check_plain(command, bracketed)
    if "\n" in command and not bracketed:
        # Its lines would be several commands, of which the first one's end would count.
        command = f"eval {quoted(command, fish=shell == 'fish')}"
    if shell == "fish" and not command.endswith("\\"):
        command += " "  # or fish would take its last word for an abbreviation, at Enter
    text = command.encode()
    return exact + (pasted(text) if bracketed else text) + b"\r"


def _check_plain(command: str, bracketed: bool) -> None:
    """A line editor takes a control character for a key, and runs another line than was given."""
    allowed = "\n\t" if bracketed else "\n"  # a tab that is not pasted completes a word
    for at, char in enumerate(command):
        if category(char) == "Cc" and char not in allowed:
            raise InvalidArgument(
                f"the command line has a control character (U+{ord(char):04X}, at {at}): "
                "the shell would take it for a key",
                hint="write it as the shell does, such as $'\\003'; to press keys use `hold keys`",
            )


def _name(actor: str, operator: OperatorId, request: m.Exec) -> str:
    """By which it is known again. Keys are the actor's own, numbers the operator's."""
    named = f"{actor}/key/{request.key}" if request.key else f"{operator}/{request.seq}"
    return hashlib.sha256(named.encode()).hexdigest()[:32]


def _digest(command: str) -> str:
    return hashlib.sha256(command.encode()).hexdigest()[:16]
