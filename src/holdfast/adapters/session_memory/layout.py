"""Where everything is in a session's shared memory: one memfd in the keeper's custody.

    0 .. 512          header words of the output ring
    512 .. PAGE       the input ledger (input_ledger.py)
    PAGE .. 2*PAGE    keys that are not in the journal's file yet (burst_page.py)
    2*PAGE .. DATA_AT two slots for a checkpoint of the screen (output_ring.py)
    DATA_AT ..        the output, a ring of `capacity` bytes; the file position says how far it goes

All sparse: memory is taken only as used. This is a format: new daemons read what old ones wrote.
"""

from __future__ import annotations

import os

PAGE = 4096
LEDGER_AT = 512
BURST_AT = PAGE
SLOTS_AT = 2 * PAGE
CHECKPOINT_SLOT_BYTES = 1 << 20
DATA_AT = SLOTS_AT + 2 * CHECKPOINT_SLOT_BYTES

# Header words (u64). Each is written by one store, so a kill never leaves half of one.
MAGIC_WORD, CAPACITY_WORD, HEAD_WORD, SLOT_WORD = 0, 1, 2, 3
HEAD_AT = 8 * HEAD_WORD  # a keeper writes this one while no daemon runs
SLOT_WORDS = 4  # from here, for each slot: offset, length
MAGIC = 0x686F6C6452494E33


def copy(memfd: int) -> int:
    """The whole memory in a memfd of its own, holes left out, with the same file position. While
    nobody writes: the daemon is the only one that does, and its keeper while there is none."""
    size, position = os.fstat(memfd).st_size, os.lseek(memfd, 0, os.SEEK_CUR)
    fresh = os.memfd_create("holdfast-ring", os.MFD_CLOEXEC)
    os.ftruncate(fresh, size)
    try:
        _copy_data(memfd, fresh)
    finally:
        os.lseek(memfd, position, os.SEEK_SET)
    os.lseek(fresh, position, os.SEEK_SET)
    return fresh


def save(memfd: int, path: str) -> None:
    """Into a file, holes left out. While nobody writes."""
    with open(path, "wb") as file:
        os.ftruncate(file.fileno(), os.fstat(memfd).st_size)
        _copy_data(memfd, file.fileno())


def load(path: str) -> int:
    """What `save` wrote, in a memfd of its own; its file position is where the header says."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        memfd = os.memfd_create("holdfast-ring", os.MFD_CLOEXEC)
        os.ftruncate(memfd, size)
        _copy_data(file.fileno(), memfd)
    words = memoryview(os.pread(memfd, LEDGER_AT, 0)).cast("Q")
    at = words[HEAD_WORD] % words[CAPACITY_WORD] if words[CAPACITY_WORD] else 0
    os.lseek(memfd, DATA_AT + at, os.SEEK_SET)
    return memfd


def _copy_data(source: int, target: int) -> None:
    """All but the holes; the file position of the source is moved."""
    size, at = os.fstat(source).st_size, 0
    while at < size:
        try:
            begin = os.lseek(source, at, os.SEEK_DATA)
        except OSError:  # ENXIO: only a hole is left
            return
        at = os.lseek(source, begin, os.SEEK_HOLE)
        while begin < at:
            begin += os.pwrite(target, os.pread(source, min(at - begin, 1 << 20), begin), begin)
