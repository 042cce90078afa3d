"""What an operator typed and the host has not yet taken: numbered, in order, to be sent again after
a lost connection, under the same numbers."""

from __future__ import annotations

from collections import deque


class UnackedInputs:
    """Inputs between being typed and being acknowledged."""

    def __init__(self) -> None:
        self.last = 0  # the number of the latest input, taken or not
        self._inputs: deque[tuple[int, bytes]] = deque()
        self._requests: dict[int, int] = {}  # request id -> number of the input it carried
        self.bytes = 0

    def add(self, data: bytes) -> int:
        """A new input; gives its number."""
        self.last += 1
        self._inputs.append((self.last, data))
        self.bytes += len(data)
        return self.last

    def sent_already(self, seq: int, request: int, data: bytes) -> None:
        """An input that was numbered and sent by other code (cli/attach/native_loop.py)."""
        self._inputs.append((seq, data))
        self.bytes += len(data)
        self.sent(request, seq)

    def numbered_to(self, seq: int) -> None:
        """Numbers up to this one were used."""
        self.last = max(self.last, seq)

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

    def refused(self, request: int) -> bytes:
        """This one will be refused again: drop it, and only it. Gives what it was."""
        seq = self._requests.pop(request, None)
        dropped = b"".join(data for number, data in self._inputs if number == seq)
        self._inputs = deque(entry for entry in self._inputs if entry[0] != seq)
        self.bytes = sum(len(data) for _, data in self._inputs)
        return dropped
