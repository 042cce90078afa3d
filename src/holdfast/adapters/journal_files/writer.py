"""Writing a journal: one positioned write per entry, disk reserved ahead, seals when they are due.

`record` is called before the effect it tells of. It refuses with StorageFailed while nothing has
happened, as long as less than the reserve can be had; entries that tell what *has* happened (how it
ended, that an input never arrived) may use the reserve up: `spend_reserve`. Nothing is on disk for
sure before `sync`, which may run in a thread; when it fails, what was written since the last one is
in doubt for good, and the caller should treat the journal as lost.

One writer per journal: the host sees to it. Records already written are never touched again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading

from holdfast.adapters import atomic_file
from holdfast.adapters.journal_files.segments import JournalReader, exists, storage_failed
from holdfast.journal.chain import Chain
from holdfast.journal.encoding import decode
from holdfast.journal.entries import Body, Entry
from holdfast.journal.framing import HEADER_BYTES, header, read, read_header
from holdfast.journal.reading import HEAD_NAME, segment_name
from holdfast.journal.signatures import Head
from holdfast.journal.verdict import Verdict, VerdictKind
from holdfast.journal.verify import verify_tail
from holdfast.model.errors import InvalidArgument, JournalDamaged, StorageFailed
from holdfast.model.limits import JOURNAL_AHEAD_BYTES, JOURNAL_SEGMENT_BYTES
from holdfast.model.record import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from holdfast.journal.signatures import Check, Sign


class JournalWriter:
    """The end of one journal."""

    def __init__(
        self, directory: str, chain: Chain, sign: Sign, index: int, end: int, limit: int
    ) -> None:
        """Use `create` or `open`."""
        self.chain = chain
        self.host_key = b""  # of the host that wrote it last, when it was opened
        self.cut: int | None = None  # bytes of a torn tail cut at opening; to be recorded
        # Entered while more of the disk is taken, with how much; raises StorageFailed if it may not
        # be. Not for a new segment: it takes about what the old one gives back.
        self.growth: Callable[[int], AbstractContextManager[object]] = contextlib.nullcontext
        self._directory, self._sign, self._limit = directory, sign, limit
        self._index, self._end = index, end
        self._fd = self._open(index)
        self._allocated = os.fstat(self._fd).st_size
        self._rotated = False
        self._lock = threading.Lock()  # what `sync` takes over from the writing thread
        self._syncing = threading.Lock()  # one at a time
        self._retired: list[int] = []  # segments left behind and not yet on disk
        self._head: Head | None = None  # to be signed and written once its seal is on disk
        self._directory_changed = True

    @classmethod
    def create(
        cls, directory: str, session: str, sign: Sign, *, limit: int = JOURNAL_SEGMENT_BYTES
    ) -> JournalWriter:
        """A new journal. Its first entry is to be `Began`, and is sealed at once."""
        if exists(directory):
            raise InvalidArgument("this session has a journal already")
        chain = Chain(session)
        try:
            _begin_segment(directory, 0, header(session, 1, chain.head), 0)
            return cls(directory, chain, sign, 0, HEADER_BYTES, limit)
        except OSError as error:
            raise storage_failed(error) from error

    @classmethod
    def open(
        cls,
        directory: str,
        session: str,
        sign: Sign,
        check: Check,
        *,
        whole: bool = True,
        limit: int = JOURNAL_SEGMENT_BYTES,
    ) -> JournalWriter:
        """Go on with a journal. All of it is verified first; with `whole=False` only what was
        written since the last head. A torn tail is cut, and `cut` says so; any other damage is left
        as it is and raises JournalDamaged."""
        reader = JournalReader(directory)
        head = reader.head()
        verdict = None if whole else verify_tail(session, reader.segment, head, check)
        verdict = verdict or reader.verify(session, check)
        if verdict.outcome is VerdictKind.DAMAGED:
            raise JournalDamaged(
                f"the journal of {session}: {verdict.text()}",
                hint="it is not extended; `hold verify` shows what is still intact",
            )
        chain = _chain(session, reader, verdict, head)
        index, end = _replay(chain, reader, verdict)
        try:
            writer = cls(directory, chain, sign, index, end, limit)
            writer.host_key = verdict.host_key
            _clear_unfinished(directory)
            if verdict.outcome is VerdictKind.TORN_TAIL:
                writer._cut(verdict, reader)
        except OSError as error:
            raise storage_failed(error) from error
        return writer

    # -- recording ----------------------------------------------------------------------------

    def record(
        self, at: float, epoch: int, actor: str, body: Body, *, spend_reserve: bool = False
    ) -> int:
        """Write one entry, and a seal when one is due. Gives the entry's number. When this raises,
        nothing was recorded."""
        if self._allocated - self._end < JOURNAL_AHEAD_BYTES and not spend_reserve:
            self.reserve()
        chain = self.chain
        framed = chain.add(at, epoch, actor, body)
        seq = chain.seq
        try:
            self.append(framed)
        except StorageFailed:
            chain.retract()
            raise
        if chain.seal_due or self._rotated or chain.is_seal_due(at):
            # The entry is valid without its seal; the next one tries again.
            with contextlib.suppress(StorageFailed):
                self.seal(at, epoch)
        return seq

    def seal(self, at: float, epoch: int) -> Entry:
        """Sign everything since the last seal. `sync` then writes the head that says so."""
        chain = self.chain
        entry, framed = chain.seal(at, epoch, self._sign)
        try:
            self.append(framed)
        except StorageFailed:
            chain.retract()
            raise
        chain.sealed()
        self._rotated = False
        head = Head(
            chain.session, entry.seq, chain.head, self._index, self._end - len(framed),
            dict(chain.actors), chain.closed_by,
        )  # fmt: skip
        with self._lock:
            self._head = head
        return entry

    def append(self, framed: bytes) -> None:
        """The framed record the chain made last, behind the others, in a new segment when this one
        is full."""
        end = self._end + len(framed)
        if end > self._limit and self._end > HEADER_BYTES:
            self._rotate(len(framed))
            end = self._end + len(framed)
        if end > self._allocated:
            self.reserve(len(framed))
        try:
            written = os.pwrite(self._fd, framed, self._end)
            if written == len(framed):
                self._end = end
                return
        except OSError as error:
            self._take_back()
            raise storage_failed(error) from error
        self._take_back()
        raise StorageFailed(
            f"the journal cannot be kept: {written} of {len(framed)} bytes were written"
        )

    def room(self) -> int:
        """Bytes that can be written for sure."""
        return self._allocated - self._end

    def reserve(self, size: int = 0) -> None:
        """See to it that the disk has room for `size` bytes and the reserve behind them."""
        if self._end + size + JOURNAL_AHEAD_BYTES <= self._allocated:
            return
        # More than needed, so that it is not asked for at every entry.
        wanted = self._end + size + 2 * JOURNAL_AHEAD_BYTES
        more = wanted - self._allocated
        with self.growth(more):
            try:
                os.posix_fallocate(self._fd, self._allocated, more)
            except OSError as error:
                raise storage_failed(error) from error
        self._allocated = wanted

    def _take_back(self) -> None:
        """Remove what a failed write left, so that it does not follow the next record."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, self._end)
        self._allocated = self._end

    def _rotate(self, size: int) -> None:
        """Go on in a new segment. If the disk has no room for one, but the old one has some left,
        stay: the limit is there for readers, not worth refusing an entry for."""
        start = header(self.chain.session, self.chain.seq, self.chain.parent)
        try:
            _begin_segment(self._directory, self._index + 1, start, size + JOURNAL_AHEAD_BYTES)
            fd = self._open(self._index + 1)
        except OSError as error:
            if self._end + size <= self._allocated:
                return
            raise storage_failed(error) from error
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, self._end)
        with self._lock:
            self._retired.append(self._fd)
            self._fd, self._directory_changed = fd, True
        self._index, self._end = self._index + 1, HEADER_BYTES
        self._allocated = os.fstat(fd).st_size
        self._rotated = True  # to be sealed, so that the head knows of the new segment

    # -- durability ---------------------------------------------------------------------------

    def sync(self) -> None:
        """Everything recorded so far is on disk, then the head of the last seal. Any thread."""
        with self._syncing:
            with self._lock:
                fds = [*self._retired, self._fd]
                head, self._head = self._head, None
                changed, self._directory_changed = self._directory_changed, False
            try:
                for fd in fds:
                    os.fdatasync(fd)
                if changed:
                    atomic_file.sync_directory(self._directory)
                if head is not None:
                    self._replace_head(head)
            except OSError as error:
                with self._lock:
                    self._head = self._head or head
                    self._directory_changed |= changed
                raise storage_failed(error) from error
            with self._lock:
                self._retired = [fd for fd in self._retired if fd not in fds]
            for fd in fds[:-1]:
                os.close(fd)

    def _replace_head(self, head: Head) -> None:
        """Whether the new one or the old is found after a power loss does not matter. So a disk
        without room for it is no failure: the records are there, and the next sync tries again."""
        try:
            atomic_file.replace(f"{self._directory}/{HEAD_NAME}", head.signed(self._sign).encoded())
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            with self._lock:
                self._head = self._head or head

    def close(self) -> None:
        """Let go of the files, as they are: another daemon may go on with them."""
        with self._syncing:
            for fd in (*self._retired, self._fd):
                os.close(fd)
            self._retired = []

    def finish(self) -> None:
        """The last entry is written and sealed: release the reserve, and sync."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, self._end)
        self._allocated = self._end
        self.sync()

    # -- files --------------------------------------------------------------------------------

    def _open(self, index: int) -> int:
        path = f"{self._directory}/{segment_name(index + 1)}"
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
            # The session must not be lost with it: it is carried on, and all recording refused.
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def _cut(self, verdict: Verdict, reader: JournalReader) -> None:
        """Remove what was never completed: the end of a record, or a segment without its header."""
        os.ftruncate(self._fd, self._end)
        self._allocated = self._end
        for name in reader.names[self._index + 1 :]:
            os.unlink(f"{self._directory}/{name}")
        self.cut = verdict.torn_size


def _clear_unfinished(directory: str) -> None:
    """A writer that died may have left a file that it was about to rename."""
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if name.endswith(".new"):
                os.unlink(f"{directory}/{name}")


def _begin_segment(directory: str, index: int, start: bytes, room: int) -> None:
    """A new segment with its header and some room. It appears under its name when it is whole."""
    path = f"{directory}/{segment_name(index + 1)}"
    beside = f"{path}.new"
    try:
        fd = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, len(start) + room)
            os.pwrite(fd, start, 0)
        finally:
            os.close(fd)
        os.rename(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _chain(session: str, reader: JournalReader, verdict: Verdict, head: Head | None) -> Chain:
    """The chain behind the last good seal. The head knows everybody's numbers up to there, when it
    speaks of that seal; else they are counted."""
    tail = verdict.tail
    if head is not None and head.seq == tail.seq - 1:
        actors = dict(head.actors)
    else:
        actors = {}
        for entry in reader.entries(1, tail.seq - 1) if tail.seq > 1 else ():
            actors[entry.actor] = entry.actor_seq
    chain = Chain(session, seq=tail.seq - 1, head=tail.parent, actors=actors)
    chain.closed_by = tail.closed_by
    return chain


def _replay(chain: Chain, reader: JournalReader, verdict: Verdict) -> tuple[int, int]:
    """Take in the records behind the seal. Gives index and offset of the journal's end."""
    index, at = verdict.tail.segment, verdict.tail.offset or HEADER_BYTES
    place = (index, at)
    while (data := reader.segment(index)) is not None:
        try:
            read_header(data)
        except Malformed:
            break  # a segment that never got its header: the torn tail
        while chain.seq < verdict.last_seq and (whole := read(data, at)) is not None:
            chain.replay(decode(whole.record), whole.record, data[at : whole.end])
            at = whole.end
        place = (index, at)
        index, at = index + 1, HEADER_BYTES
    return place
