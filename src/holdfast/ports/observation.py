"""Looking at a live session from outside: the kernel's word on what it is and does."""

from __future__ import annotations

from typing import Protocol

from holdfast.model.graph import Evidence, Graph
from holdfast.model.spec import Place


class Observation(Protocol):
    """Reads only; safe on a session that ends while it is looked at."""

    def evidence(self, place: Place, master: int, *, shell_is_shell: bool) -> Evidence:
        """The facts the state is judged from; about 0.1 ms, for frequent use."""

    def graph(self, place: Place, master: int, *, shell_is_shell: bool) -> Graph:
        """Everything, for a human or an agent who asks."""
