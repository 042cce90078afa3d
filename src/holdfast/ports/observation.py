"""Observing a live session from outside, through the kernel."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.graph import Evidence, Graph
from holdfast.model.spec import Place


class Observation(Protocol):
    """Read-only; safe on a session that ends meanwhile."""

    def evidence(
        self, place: Place, master: int, *, shell_is_shell: bool, shell_pid: int = 0
    ) -> Evidence:
        """The facts that the state is derived from; about 0.1 ms, for frequent use. `shell_pid`:
        the shell that reads command lines, if it is another than the main process."""

    def graph(
        self, place: Place, master: int, *, shell_is_shell: bool, shell_pid: int = 0
    ) -> Graph:
        """Everything, for a human or an agent."""
