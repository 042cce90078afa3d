"""What an operator typed and the host has not yet taken: numbered, in order, to be sent again after
a lost connection, under the same numbers."""

from __future__ import annotations

from collections import deque


class Untaken:
    """Inputs between being typed and being acknowledged."""

    def __init__(self) -> None:
        self._seq = 0
        self._inputs: deque[tuple[int, bytes]] = deque()
        self._requests: dict[int, int] = {}  # request id -> number of the input it carried
        self.bytes = 0

    def add(self, data: bytes) -> int:
        """A new input; gives its number."""
        self._seq += 1
        self._inputs.append((self._seq, data))
        self.bytes += len(data)
        return self._seq

    def sent(self, request: int, seq: int) -> None:
        self._requests[request] = seq

    def all(self) -> list[tuple[int, bytes]]:
        return list(self._inputs)

    def taken(self, seq: int) -> None:
        """The host has this one and all before it."""
        while self._inputs and self._inputs[0][0] <= seq:
            self.bytes -= len(self._inputs.popleft()[1])
        if not self._inputs:
            self._requests.clear()

    def refused(self, request: int) -> None:
        """This one will be refused again: drop it, and only it."""
        seq = self._requests.pop(request, None)
        self._inputs = deque(entry for entry in self._inputs if entry[0] != seq)
        self.bytes = sum(len(data) for _, data in self._inputs)
