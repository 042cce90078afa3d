"""The shells that report: the session's own one, and those that were started in it, one below the
other. The innermost reads the command lines, until the command that started it ends.

A shell says of itself which process it is; what is believed of that is what the kernel shows: a
process of this session, running a shell of that kind. A number that leads to nothing else is not
taken, and the session's state is then judged as if a program read the terminal.

Deliberately absent: how a nested shell comes to report (shells/nested.sh), and its numbers
(adapters/shell/reports.py).
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.adapters.proc import procfs
from holdfast.adapters.proc.foreground import program_of
from holdfast.adapters.shell.integration import ShellBelow, exact_line_key_of
from holdfast.host.session.parcel import NestedShell, SessionSpec

_PROCESSES_MAX = 1024
_DEPTH_MAX = 32  # one that is deeper counts as a program that reads the terminal


class ReportingShells:
    """Of one session."""

    __slots__ = ("_follow", "_found", "_nested", "_spec")

    def __init__(
        self,
        spec: SessionSpec,
        kept: tuple[NestedShell, ...],
        follow: Callable[[int], object],
    ) -> None:
        """`kept`: by an earlier daemon; `follow`: command lines are read by this process now."""
        self._spec, self._follow = spec, follow
        self._nested = kept  # the outermost first
        self._found: tuple[NestedShell, int, int] | None = None  # process, and when it started
        if self._nested:
            self._follow(self.pid)

    def kept(self) -> tuple[NestedShell, ...]:
        return self._nested

    @property
    def numbers(self) -> tuple[int, ...]:
        """The command lines in which a shell reports."""
        return tuple(shell.below for shell in self._nested)

    @property
    def below(self) -> int:
        """The command line that started the innermost one; 0: it is the session's own."""
        return self._nested[-1].below if self._nested else 0

    @property
    def kind(self) -> str:
        """bash, zsh or fish; "" if the session has none that reports."""
        return self._nested[-1].kind if self._nested else self._spec.shell

    def kind_of(self, number: int) -> str:
        """Of the shell that runs this command line, which is no earlier one."""
        waiting = [shell.kind for shell in self._nested if shell.below < number]
        return waiting[-1] if waiting else self._spec.shell

    @property
    def exact_line_key(self) -> bytes:
        own = self._spec.exact_line_key
        return exact_line_key_of(self.kind) if self._nested else own

    @property
    def pid(self) -> int:
        """Of the one that reads command lines, by the host's numbers; of a nested one that is not
        there, of the session's own."""
        return self.nested_pid or procfs.main_pid(self._spec.place)

    @property
    def nested_pid(self) -> int:
        """Of the innermost; 0 if it is the session's own, or not there."""
        if not self._nested:
            return 0
        shell = self._nested[-1]
        if self._found is not None and self._found[0] is shell:
            _, pid, started = self._found
            return pid if _started(pid) == started else 0
        pid = self._look_up(shell)
        if pid:
            self._found = (shell, pid, _started(pid))
        return pid

    def began(self, report: ShellBelow) -> None:
        self._nested = tuple(each for each in self._nested if each.below < report.below)
        if len(self._nested) < _DEPTH_MAX:
            self._nested += (NestedShell(report.below, report.pid, report.kind),)
        self._follow(self.pid)

    def ended(self, number: int) -> bool:
        """A command; whether a shell that reports went with it."""
        before = len(self._nested)
        self._nested = tuple(each for each in self._nested if each.below < number)
        if len(self._nested) == before:
            return False
        self._follow(self.pid)
        return True

    def _look_up(self, shell: NestedShell) -> int:
        for pid in procfs.members(self._spec.place, _PROCESSES_MAX):
            try:
                if procfs.inner_pid(pid) == shell.pid:
                    return pid if program_of(pid).startswith(shell.kind) else 0
            except (OSError, ValueError):  # it went away
                continue
        return 0


def _started(pid: int) -> int:
    try:
        stat = procfs.stat_of(pid)
    except (OSError, ValueError):
        return 0
    return stat.start_ticks if stat.runs else 0
