"""What a session is made of at one moment: files, processes, sockets, the shell's own state. Two of
these show what happened in between (core.gate.action_effects).

Everything slow runs in a thread. Nothing here raises: the look says what could not be seen.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence

from holdfast.adapters.file_tree import ScanReader, ScanRoot, scan
from holdfast.core.gate.action_effects import Look
from holdfast.core.gate.file_globs import absolute, fixed_part, reaches_down
from holdfast.model.file_marks import TreeScan
from holdfast.model.graph import Graph, Process
from holdfast.model.limits import ACTION_PROMPT_S, ACTION_SCAN_FILES, ACTION_SCAN_S
from holdfast.model.shell_state import ShellState
from holdfast.model.spec import Place
from holdfast.model.state import Level

_STATE_LOOK_S = 0.02  # between two looks at the state file: the shell writes it before its prompt
_PLAIN = "level plain: a process that left the session's process tree is not seen"

_ROOT = "files: of / only what is directly in it"


class SessionLook:
    """Looks at one session."""

    def __init__(
        self,
        place: Place,
        level: Level,
        workspace: str,
        *,
        graph: Callable[[int], Graph],
        master: Callable[[], int],
        shell_state: Callable[[], ShellState | None],
        cwd: Callable[[], str],
        skip: Sequence[str],
    ) -> None:
        """`skip`: directories of the host's own, which change all the time."""
        self._place, self._level, self._workspace = place, level, workspace
        self._graph, self._master, self._shell_state = graph, master, shell_state
        self._cwd, self._skip = cwd, tuple(skip)

    @property
    def own(self) -> frozenset[int]:
        """Pids of the shell, and of what it runs under."""
        return frozenset((self._place.pid, self._place.shell_pid))

    @property
    def cwd(self) -> str:
        return self._cwd()

    def roots(self, directory: str = "") -> tuple[str, ...]:
        """Directories in which every file counts, for a command that runs in this one, or in the
        shell's own."""
        return tuple(dict.fromkeys((directory or self._cwd(), self._workspace)))

    async def look(self, roots: Sequence[str], globs: Sequence[str], number: int = 0) -> Look:
        """`globs`: absolute, of files that were declared; `number`: of the command that ended. The
        prompt after it is waited for, because the shell says then what changed in it."""
        shell = await self._shell_after(number)
        cwd = self._cwd()
        files = await asyncio.to_thread(self._files, roots, globs, cwd)
        processes, hidden = await self.processes()
        said = (hidden, _PLAIN if self._level is Level.PLAIN else "", _ROOT if "/" in roots else "")
        return Look(files, processes, shell, cwd, tuple(why for why in said if why))

    async def processes(self) -> tuple[tuple[Process, ...], str]:
        """And what could not be shown of them."""
        try:
            master = os.dup(self._master())
        except OSError:
            return (), "the session ended"
        try:
            graph = await asyncio.to_thread(self._graph, master)
        finally:
            os.close(master)
        return graph.processes, graph.truncated

    async def _shell_after(self, number: int) -> ShellState | None:
        if not number:
            return self._shell_state()
        until = time.monotonic() + ACTION_PROMPT_S
        while (state := self._shell_state()) is None or state.number <= number:
            if time.monotonic() > until:
                return None
            await asyncio.sleep(_STATE_LOOK_S)
        return state

    def _files(self, roots: Sequence[str], globs: Sequence[str], cwd: str) -> TreeScan:
        # Of the root directory only what is in it itself: below it the whole machine is at work.
        wanted = [ScanRoot(path, deep=path != "/", is_cwd=path == cwd) for path in roots]
        for glob in globs:
            path = fixed_part(glob)
            within = any(f"{path}/".startswith(f"{root}/") for root in roots if root != "/")
            wanted.append(ScanRoot(path, deep=within or reaches_down(glob)))
        try:
            pid = self._place.shell_pid or self._place.pid
            reader = ScanReader.of(pid)
        except (OSError, KeyError):
            return TreeScan({}, ("files: the session's shell is gone",))
        most, seconds = ACTION_SCAN_FILES, ACTION_SCAN_S
        return scan(wanted, reader, self._skip, most=most, seconds=seconds)


def absolute_globs(globs: Sequence[str], directory: str) -> tuple[str, ...]:
    return tuple(absolute(glob, directory) for glob in globs)
