"""The output of a session: PTY -> conduit -> ring, so that no byte is lost when the daemon dies.

A daemon killed between `read()` from the PTY and storing the bytes would lose them. So the bytes
never pass through the daemon's hands: they are spliced from the PTY into a pipe (the *conduit*)
and from the pipe into the ring's memfd. Both are in the keeper's custody, and the kernel moves the
memfd's file position in the same system call as the data, so at every instant each byte is in
exactly one of PTY, conduit and ring, and the file position says how many the ring has. Measured:
as fast as reading into memory.

layout.py says where the ring is in the memfd. A byte of the session's output has one offset for
ever; the byte at offset N is at ring position N mod capacity.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import termios

from holdfast.adapters.session_memory.layout import (
    CAPACITY_WORD,
    CHECKPOINT_SLOT_BYTES,
    DATA_AT,
    HEAD_WORD,
    LEDGER_AT,
    MAGIC,
    MAGIC_WORD,
    PAGE,
    SLOT_WORD,
    SLOT_WORDS,
    SLOTS_AT,
)
from holdfast.model.limits import OUTPUT_CHUNK_BYTES

# The PTY gives at most one page per read, and a pipe has 16 slots of a page.
_BURST_READS = 15
_SHORT_READ = PAGE // 2  # a read this short means that the PTY has no more


class Hangup(Exception):
    """Nobody has the terminal open on the session's side."""


class Ring:
    """The last `capacity` bytes of output, by offset."""

    def __init__(self, memfd: int, conduit: int) -> None:
        self.memfd = memfd
        self.conduit = conduit
        self.mapping = mmap.mmap(memfd, 0)
        self.view = memoryview(self.mapping)
        self._words = self.view[:LEDGER_AT].cast("Q")
        if self._words[MAGIC_WORD] != MAGIC:
            raise ValueError("not a ring")
        self.capacity: int = self._words[CAPACITY_WORD]
        self.head: int = self._words[HEAD_WORD]

    @classmethod
    def create(cls, capacity: int) -> Ring:
        """A new ring with its conduit."""
        capacity = -(-capacity // PAGE) * PAGE
        memfd = os.memfd_create("holdfast-ring", os.MFD_CLOEXEC)
        os.ftruncate(memfd, DATA_AT + capacity)
        with mmap.mmap(memfd, PAGE) as head, memoryview(head).cast("Q") as words:
            words[CAPACITY_WORD] = capacity
            words[MAGIC_WORD] = MAGIC
        os.lseek(memfd, DATA_AT, os.SEEK_SET)
        return cls(memfd, make_conduit())

    @property
    def tail(self) -> int:
        """The oldest offset still held."""
        return max(0, self.head - self.capacity)

    def pump(self, master: int, budget: int) -> int:
        """Move what the PTY has, at most `budget` bytes (or a page). Gives the number moved; raises
        Hangup when there is nothing and never will be until somebody opens the terminal again."""
        moved = 0
        while moved == 0 or moved + PAGE <= budget:
            burst, dry = self._burst(master, max(1, min(_BURST_READS, (budget - moved) // PAGE)))
            if burst:
                self._drain(burst)
                moved += burst
            elif dry is Hangup and not moved:
                raise Hangup
            if dry is not None:
                break
        return moved

    def _burst(self, master: int, reads: int) -> tuple[int, type[Exception] | None]:
        """Fill the conduit. Gives the bytes moved and, when the PTY has no more, why."""
        burst = 0
        try:
            for _ in range(reads):
                count = os.splice(master, self.conduit, PAGE)
                burst += count
                if count == 0:
                    return burst, Hangup
                if count < _SHORT_READ:
                    return burst, BlockingIOError  # most likely; if not, we are called again
        except BlockingIOError:
            return burst, BlockingIOError
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return burst, Hangup
        return burst, None

    def read(self, start: int, end: int) -> list[memoryview]:
        """Views of the bytes [start, end): one piece, or two when they wrap. Valid until the ring
        is pumped again."""
        if not self.head - self.capacity <= start <= end <= self.head or start < 0:
            raise ValueError("not held")
        at, size = start % self.capacity, end - start
        first = min(size, self.capacity - at)
        pieces = [self.view[DATA_AT + at : DATA_AT + at + first]]
        if first < size:
            pieces.append(self.view[DATA_AT : DATA_AT + size - first])
        return pieces

    def copy(self, start: int, end: int) -> bytes:
        return b"".join(self.read(start, end))

    def append_notice(self, data: bytes) -> None:
        """A short line of the host's own among the output; the conduit is empty."""
        self._drain(os.write(self.conduit, data))

    # -- checkpoint of the view, so that a new daemon need not have seen all the output ----------

    def save_checkpoint(self, offset: int, data: bytes) -> bool:
        """Keep `data` as true at `offset`. Written to the slot not in use, then switched to."""
        if len(data) > CHECKPOINT_SLOT_BYTES:
            return False
        slot = 1 - self._words[SLOT_WORD] % 2
        at = SLOTS_AT + slot * CHECKPOINT_SLOT_BYTES
        self.view[at : at + len(data)] = data
        self._words[SLOT_WORDS + 2 * slot] = offset
        self._words[SLOT_WORDS + 2 * slot + 1] = len(data)
        self._words[SLOT_WORD] = slot
        return True

    def load_checkpoint(self) -> tuple[int, bytes] | None:
        slot = self._words[SLOT_WORD] % 2
        offset, size = self._words[SLOT_WORDS + 2 * slot], self._words[SLOT_WORDS + 2 * slot + 1]
        if not size:
            return None
        at = SLOTS_AT + slot * CHECKPOINT_SLOT_BYTES
        return offset, bytes(self.view[at : at + size])

    def unmap(self) -> None:
        """Let go of the memory, not of the descriptors."""
        self._words.release()
        self.view.release()
        self.mapping.close()

    def close(self) -> None:
        self.unmap()
        os.close(self.memfd)
        os.close(self.conduit)

    def recover(self) -> None:
        """Another daemon wrote it until now: find out how far, and take what that one left on the
        way."""
        self.head = self._recover_head()
        self._drain(unread(self.conduit))

    def _recover_head(self) -> int:
        """The header's word may be one transfer behind the file position, which never lies; a
        transfer is far shorter than the ring, so together they give one answer."""
        noted: int = self._words[HEAD_WORD]
        position = os.lseek(self.memfd, 0, os.SEEK_CUR) - DATA_AT
        return noted + (position - noted) % self.capacity

    def _drain(self, waiting: int) -> None:
        while waiting:
            at = self.head % self.capacity
            if at == 0:
                os.lseek(self.memfd, DATA_AT, os.SEEK_SET)
            count = os.splice(self.conduit, self.memfd, min(waiting, self.capacity - at))
            self.head += count
            self._words[HEAD_WORD] = self.head
            waiting -= count


def make_conduit(content: bytes = b"") -> int:
    """A pipe as one descriptor, open for both directions: half the descriptors to keep. `content`:
    what is in it, as it was in another one."""
    reader, writer = os.pipe()
    try:
        # A user with very many pipes is given small ones: ask for the usual size, and fail if it
        # cannot be had rather than lose something later.
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 16 * PAGE)
        os.write(writer, content)
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(f"/proc/self/fd/{reader}", flags)
    finally:
        os.close(reader)
        os.close(writer)


def unread(fd: int) -> int:
    """Bytes waiting in a pipe."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"), "little")


assert OUTPUT_CHUNK_BYTES >= _BURST_READS * PAGE
